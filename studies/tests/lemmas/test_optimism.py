"""Optimism in a few runs: of the theorems' settings, not of practical ones."""

from __future__ import annotations

from belated_studies.lemmas.optimism import measure
from belated_studies.lemmas.worlds import QUICK


def test_the_settings_of_the_theorems_are_optimistic_and_practical_ones_are_not() -> None:
    found = list(measure(QUICK.resized(seeds=1)))
    single = [each for each in found if each.lemma == "Anti-concentration"]
    proved = [each for each in found if each.applies and each not in single]
    assert [each.lemma for each in proved] == ["Optimism", "Pointwise concentration"] * 2
    assert all(each.holds for each in proved)
    assert [each.case.split(",")[0] for each in proved] == ["exact draws", "exact draws", "chains", "chains"]
    practical = [each for each in found if not each.applies]
    assert [each.case for each in practical] == ["exact draws, M = 2, ν = 1", "exact draws, M = 2, ν = 0.2"]
    assert not any(each.holds for each in practical)
    assert all(each.measured < 0 for each in practical)
    # one draw is optimistic at one pair, and at all pairs of two directions, but not at those of ten
    assert [each.holds for each in single] == [True, True, False]
    assert single[0].measured > 0.15
