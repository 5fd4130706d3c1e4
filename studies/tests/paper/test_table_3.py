from __future__ import annotations

from typing import Any

from belated_studies.paper import table_3


def test_episodes_are_counted_beside_the_published_ones(played: Any, cells: Any) -> None:
    found = cells(table_3.section(played(table_3.ARTEFACT)), "table-3-literal")
    assert {cell.value for cell in found["Delayed-LPSVI"]} == {20.0}  # the window is longer than the curve
    assert [cell.published for cell in found["Delayed-UCBVI"]] == [3205, 2713, 3351, 3694]
    counted, told = table_3.findings(played(table_3.ARTEFACT))
    assert counted.startswith("Table 3, tuned, 20 published numbers: ")
    assert "Delayed-UCBVI 20 to 20 (paper 2713 to 3694)" in told
