from __future__ import annotations

from typing import Any

from belated_studies.paper import table_1


def test_there_is_regret_where_the_system_was_played(played: Any, cells: Any) -> None:
    found = cells(table_1.section(played(table_1.ARTEFACT)), "table-1-systems")
    assert len(found) == 9
    assert [name for name in found if "lower bound" in name] == list(found)[-2:]
    assert {name for name, (cell,) in found.items() if cell.value is not None} == set(table_1.MEASURED)
    assert found["Delayed-PSVI"][0].value == 10 * 20.0 + 10 * 12.0
    assert "belated systems" in found["Howson et al. (2023a)"][0].note
