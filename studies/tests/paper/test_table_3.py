from __future__ import annotations

from typing import Any

from belated_studies.paper import table_3


def test_episodes_are_counted_beside_the_published_ones(played: Any, cells: Any) -> None:
    found = cells(table_3.section(played(table_3.ARTEFACT)), "table-3-literal")
    assert {cell.value for cell in found["Delayed-LPSVI"]} == {20.0}  # the window is longer than the curve
    assert [cell.published for cell in found["Delayed-UCBVI"]] == [3205, 2713, 3351, 3694]
    assert {(cell.verdict, cell.note) for cell in found["Delayed-UCBVI"]} == {
        ("cannot be judged", "still rising: at least")
    }
    assert {cell.verdict for cell in found["Delayed-LPSVI"]} == {"not reproduced"}
    (counted,) = table_3.findings(played(table_3.ARTEFACT))
    assert counted.startswith("Table 3, literal: of 20 numbers 16 not reproduced, 4 cannot be judged; tuned: ")
