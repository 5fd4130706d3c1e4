"""The settings against what the paper prints."""

from __future__ import annotations

from math import sqrt

import pytest

import belated
from belated_studies.paper.agents import distinct, five, literal_riverswim, literal_synthetic, trio_and_plain
from belated_studies.paper.setting import LITERAL, TUNED
from belated_studies.winners import tuned


def test_literal_settings_are_the_printed_ones() -> None:
    agents = literal_synthetic()
    for sigma in (0.1, 0.2, 0.3):
        psvi = agents[f"psvi-{sigma}"]
        assert isinstance(psvi, belated.DelayedPSVI)
        assert (psvi.draws, psvi.noise) == (2, sigma)
        assert psvi.scale == pytest.approx(sqrt(10) * 20)
    lpsvi = agents["lpsvi"]
    assert isinstance(lpsvi, belated.DelayedLPSVI)
    assert (lpsvi.draws, lpsvi.steps, lpsvi.step_ratio, lpsvi.temperature) == (2, 40, 0.5, 0.02)
    assert lpsvi.sampler == "plain"
    ucbvi = agents["ucbvi"]
    assert isinstance(ucbvi, belated.DelayedUCBVI)
    assert (ucbvi.bonus_ratio, ucbvi.bonus_form) == (0.1, "constant")


def test_literal_riverswim_settings_are_the_printed_ones() -> None:
    agents = literal_riverswim()
    assert agents["psvi"].to_dict() == {**belated.DelayedPSVI(scale=1.0, noise=1.13).to_dict()}
    lpsvi, ucbvi = agents["lpsvi"], agents["ucbvi"]
    assert isinstance(lpsvi, belated.DelayedLPSVI)
    assert lpsvi.temperature == pytest.approx(0.005**2 * 10 * 2 * 400)
    assert isinstance(ucbvi, belated.DelayedUCBVI)
    assert (ucbvi.bonus_ratio, ucbvi.bonus_form) == (0.04, "growing")


def test_tuned_agents_are_the_winners() -> None:
    winners = tuned("synthetic")
    assert five(TUNED) == {name: winners[name] for name in five(LITERAL)}
    assert trio_and_plain(TUNED)["psvi"] == winners["psvi-0.1"]
    assert "lpsvi-plain" not in trio_and_plain(LITERAL)


def test_an_agent_is_not_played_twice() -> None:
    same = belated.DelayedPSVI(scale=2.0)
    kept = distinct({"a": same, "b": belated.DelayedUCBVI(), "c": belated.DelayedPSVI(scale=2.0)})
    assert list(kept) == ["a", "b"]
