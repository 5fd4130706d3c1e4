"""A claim, its row and its sentence."""

from __future__ import annotations

import numpy as np

from belated_studies.lemmas.claims import Check, check, claims, claims_table, untrue
from belated_studies.lemmas.worlds import QUICK
from belated_studies.reports.tables import table_markdown
from belated_studies.study import Played

PROVED = Check("Optimism", "Q − Q* ≥ 0", "M = 9", 0.0, 1.5, 1.0, 0.95, applies=True)
UNPROVED = Check("Optimism", "Q − Q* ≥ 0", "M = 2", 0.0, -1.25, 0.5, 0.95, applies=False)
BROKEN = Check("Theorem 1", "regret ≤ its bound", "M = 9", 1.0, 2.0, 0.0, 0.9, applies=True)


def test_a_check_compares_every_run_and_shows_the_worst() -> None:
    runs = np.array([1.0, 2.0, 3.0, 0.0])
    below = check("L", "c", "x", 2.0, runs, 0.75)
    assert (below.measured, below.share, below.holds) == (3.0, 0.75, True)
    above = check("L", "c", "x", 2.0, runs, 0.75, at_least=True)
    assert (above.measured, above.share, above.holds) == (0.0, 0.5, False)


def test_a_row_says_whether_anything_is_proved_and_whether_it_holds() -> None:
    table = claims_table("some", [PROVED, UNPROVED])
    assert table.prominent
    written = table_markdown(table)
    assert "| Optimism | Q − Q\\* ≥ 0 | M = 9 | 0 | 1.5 | 100.0% | 95.0% | yes |" in written
    assert "| Optimism \\* | Q − Q\\* ≥ 0 | M = 2 | 0 | −1.25 | 50.0% | 95.0% | no |" in written


def test_a_claim_that_should_hold_and_does_not_is_told_apart() -> None:
    assert untrue([PROVED, UNPROVED, BROKEN]) == [
        "Not promised, and not so: optimism with M = 2.",
        "Promised, and not so: theorem 1 with M = 9.",
    ]


def test_the_artefact_of_claims_shows_them_and_says_what_did_not_hold() -> None:
    artefact = claims("some", 7, "Some", lambda size: [PROVED, UNPROVED])
    (measurement,) = artefact.measurements
    played = Played(QUICK, {}, {}, {measurement.name: list(measurement.measure(QUICK))})
    section = artefact.section(played)
    assert (section.id, section.title, artefact.order) == ("some", "Some", 7)
    assert section.tables == [claims_table("some", [PROVED, UNPROVED])]
    assert artefact.findings(played) == ["Not promised, and not so: optimism with M = 2."]
