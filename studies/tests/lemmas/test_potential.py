"""The elliptical potential: what is played stays below the bounds, and one case is as the documentation shows it."""

from __future__ import annotations

import theory_page

from belated_studies.lemmas.potential import measure
from belated_studies.lemmas.worlds import DELAYS, QUICK


def test_the_bounds_hold_in_one_run_under_every_distribution() -> None:
    visited, in_turn, *delayed = measure(QUICK.resized(seeds=1))
    assert visited.measured < in_turn.measured, "directions in turn are the worst there can be, nearly"
    theory_page.shows([in_turn])  # which has no runs
    assert [each.case.split()[0] for each in delayed] == list(DELAYS)
    assert all(each.holds for each in (visited, in_turn, *delayed))
