"""Sizes, and which problems they have."""

from __future__ import annotations

from belated.agents import AutoPSVI
from belated_studies.exploration.nchain import problems
from belated_studies.exploration.problems import AUTO, FULL, QUICK, SEARCHED, borrowed, chosen


def test_a_quick_look_has_the_smaller_problems() -> None:
    assert [each.label for each in chosen(problems(), QUICK)] == ["nchain-25"]
    assert len(chosen(problems(), FULL)) == 4


def test_episodes_are_a_limit() -> None:
    first = problems()[0]
    assert first.shortened(FULL) == first.episodes
    short = QUICK.resized(episodes=7)
    assert (first.shortened(short), short.folder) == (7, "quick-7-episodes")


def test_the_untuned_agent_plays_everywhere_with_nothing_set() -> None:
    experiment = problems()[0].experiment(QUICK)
    assert experiment.agents[AUTO] == AutoPSVI()
    assert set(borrowed()) - set(SEARCHED) == {"psrl", "q-learning"}
