from __future__ import annotations

import pytest
from made import made
from small import SMALL

from belated.runner import Results
from belated_studies.paper import figure_3
from belated_studies.paper.setting import FULL, PaperSize
from belated_studies.reports.document import Cell
from belated_studies.study import Played


def _swum(values: dict[str, float]) -> Results:
    return made({("river", "poisson", agent): [[value] * 20, [value] * 20] for agent, value in values.items()})


def _played(size: PaperSize) -> Played[PaperSize]:
    results = {
        "figure-3-literal": _swum({"psvi": 3.0, "lpsvi": 1.0, "ucbvi": 2.0}),
        "figure-3-tuned": _swum({"psvi": 3.0, "lpsvi": 3.5, "ucbvi": 2.0}),
    }
    return Played(size, {one.name: one for one in figure_3.experiments(size)}, results)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (FULL, ["holds", "does not hold", None, "holds", "holds", None]),
        (SMALL, ["cannot be judged", "cannot be judged", None] * 2),
    ],
)
def test_the_samplers_must_have_less_regret_than_ucbvi(size: PaperSize, expected: list[str | None]) -> None:
    ends = figure_3.section(_played(size)).tables[0]
    cells = [row[2] for row in ends.rows if isinstance(row[2], Cell)]
    assert [cell.verdict for cell in cells] == expected
    assert [cell.value for cell in cells[:3]] == [20.0, 60.0, 40.0]  # 20 episodes, the optimum is 4
    assert isinstance(ends.rows[0][4], Cell)
    assert ends.rows[0][4].value == 75.0
