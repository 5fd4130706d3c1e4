import math

import pytest
from documents import MEASURED

from belated_studies.reports.document import Cell
from belated_studies.reports.formatting import cell_text


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (MEASURED, "11.53 [11.40, 11.66]"),
        (Cell(value=1234.5, digits=0), "1,234"),
        (Cell(value=-0.25, low=-0.5, high=0.0, digits=1), "−0.2 [−0.5, 0.0]"),
        (Cell(value=-0.001), "0.00"),
        (Cell(value=1.0, low=0.5), "1.00"),
        (Cell(value=1.0, note="one seed"), "1.00 (one seed)"),
        (Cell(value=None, note="not run"), "not run"),
        (Cell(value=None, low=1.0, high=2.0), "–"),
        (Cell(value=math.nan), "–"),
        (Cell(value=math.inf), "∞"),
    ],
)
def test_cell_text(cell: Cell, text: str) -> None:
    assert cell_text(cell) == text
