from __future__ import annotations

from typing import Any

from belated_studies.paper import table_3, table_4


def test_returns_of_the_same_runs_as_table_3(played: Any, cells: Any) -> None:
    found = cells(table_4.section(played(table_3.ARTEFACT)), "table-4-literal")
    assert {cell.value for cell in found["Delayed-LPSVI"]} == {8.0}
    assert [cell.published for cell in found["Delayed-LPSVI"]] == [11.31, 11.37, 11.57, 11.57]
    assert table_4.ARTEFACT.experiments is table_3.ARTEFACT.experiments
