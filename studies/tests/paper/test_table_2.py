from __future__ import annotations

from typing import Any

from belated_studies.paper import table_2
from belated_studies.paper.setting import DELAYS, FULL, LITERAL, TUNED


def test_what_is_steady_is_judged(played: Any, cells: Any) -> None:
    section = table_2.section(played(table_2.ARTEFACT))
    found = cells(section, "table-2-tuned")
    assert [cell.value for cell in found["Delayed-PSVI"]] == [8.0] * len(DELAYS)
    # UCBVI still rises: the paper says by when its own was done under Poisson delays alone
    assert [cell.verdict for cell in found["Delayed-UCBVI"]] == [
        "cannot be judged",
        "better than published",
        "cannot be judged",
    ]
    assert {cell.verdict for cell in found["Delayed-PSVI"]} == {"worse than published"}
    printed = cells(section, "table-2-literal")
    assert {cell.verdict for cell in printed["Delayed-PSVI"]} == {"not reproduced"}
    assert [cell.published for cell in found["Delayed-UCBVI"]] == [10.61, 10.54, 7.20]
    assert {cell.note for cell in found["Delayed-UCBVI"]} == {"still rising"}
    assert found["Delayed-LPSVI (plain chain)"][0].published is None
    assert found["Delayed-LPSVI (plain chain)"][0].note == "not in the paper"
    (spreads,) = (table for table in section.tables if table.id == "table-2-spreads")
    assert [len(row) for row in spreads.rows] == [5] * 7


def test_the_finding_counts_the_verdicts(played: Any) -> None:
    (told,) = table_2.findings(played(table_2.ARTEFACT))
    assert told == (
        "Table 2, literal: of 9 numbers 7 not reproduced, 2 cannot be judged; tuned: of 9 numbers 1 better than "
        "published, 6 worse than published, 2 cannot be judged."
    )


def test_a_block_is_found_by_its_name() -> None:
    for block in (LITERAL, TUNED):
        assert table_2.of_block(FULL, block).name == f"table-2-{block}"
