"""Sizes, and which problems they have."""

from __future__ import annotations

from functools import partial

from belated.agents import AutoPSVI
from belated.environments import GymEnvironment
from belated.features import Adaptive
from belated_studies.exploration.nchain import problems
from belated_studies.exploration.problems import AUTO, FULL, LEARNED, QUICK, Bar, Problem, chosen, learned, searched


def test_a_quick_look_has_the_smaller_problems() -> None:
    assert [each.label for each in chosen(problems(), QUICK)] == ["nchain-25"]
    assert len(chosen(problems(), FULL)) == 4


def test_episodes_are_a_limit() -> None:
    first = problems()[0]
    assert first.shortened(FULL) == first.episodes
    short = QUICK.resized(episodes=7)
    assert (first.shortened(short), short.folder) == (7, "quick-7-episodes")


def test_the_untuned_agent_plays_everywhere_with_nothing_set() -> None:
    (experiment,) = problems()[0].experiments(QUICK)
    assert experiment.agents[AUTO] == AutoPSVI()


def test_an_agent_may_see_a_problem_through_other_features() -> None:
    make = partial(GymEnvironment, "MountainCar-v0")
    bars: dict[str, Bar] = {}
    car = Problem(name="car", label="car", make=make, episodes=5, bars=bars, others={}, through=learned(make), share=40)
    first, second = car.experiments(QUICK)
    assert (
        (first.name, second.name) == (car.experiment_of(AUTO), car.experiment_of(LEARNED)) == ("car", f"car-{LEARNED}")
    )
    (world,) = {run.environment for run in second.runs()}
    assert isinstance(world, GymEnvironment) and isinstance(world.features, Adaptive)
    assert world.features.maps == "learned"
    assert (car.agents, len(second.runs())) == ((AUTO, LEARNED), 80)


def test_an_agent_of_two_searches_is_there_twice() -> None:
    found = searched("riverswim", "rivers", without=["phe"])
    assert (found["searches"]["psvi"], found["searches"]["psvi-rivers"]) == ("riverswim", "rivers")
    assert found["others"]["psvi"] != found["others"]["psvi-rivers"]
    assert "phe" not in found["others"]
