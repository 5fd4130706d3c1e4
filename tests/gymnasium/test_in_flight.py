"""What has been played and has not arrived yet, seen through the wrapper that withholds it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from diaries import Arrivals, Diary, expected, note

from belated import (
    Backlog,
    Bursts,
    Constant,
    DelayByAction,
    DelayByReward,
    DelayDistribution,
    Drift,
    Fixed,
    Geometric,
    Lossy,
    Outages,
    Periodic,
    Poisson,
)
from belated._kernels.streams import stream
from belated.delays import NEVER, OutcomeDelays
from belated.errors import InvalidInputError
from belated.gymnasium import LateFeedback, Transition
from belated.types import Trajectory

UNITS = ["trajectory", "reward"]


def test_an_unseeded_wrapper_works() -> None:
    env = LateFeedback(Diary([0]), Poisson(2), unit="reward")
    env.reset()
    arrived = [late for _ in range(100) for late in env.step(np.int64(1))[4]["arrived"]]
    assert len(arrived) + env.in_flight == 100


def test_never_arriving_feedback_is_not_kept() -> None:
    for unit in UNITS:
        env = LateFeedback(Diary([0]), Lossy(Constant(0), missing=1.0), unit)
        for _ in range(20):
            assert env.reset(seed=1)[1]["arrived"] == []
            ended = False
            while not ended:
                _, _, terminated, truncated, info = env.step(np.int64(0))
                ended = terminated or truncated
                assert info["arrived"] == []
            assert env.in_flight == 0
        assert env.flush() == []


def test_a_flush_in_the_middle_of_an_episode_hands_out_its_steps_once() -> None:
    env = LateFeedback(Diary([0]), Constant(0))
    env.reset(seed=8)
    for _ in range(3):
        env.step(np.int64(0))
    assert [late.step for late in env.flush()] == [0, 1, 2]
    env.step(np.int64(0))
    assert [(late.episode, late.step) for late in env.reset()[1]["arrived"]] == [(0, 3)]


@pytest.mark.parametrize("unit", UNITS)
def test_a_fixed_sequence_is_used_in_order_and_refused_when_it_is_used_up(unit: str) -> None:
    clock = [0]
    diary = Diary(clock)
    env = LateFeedback(diary, Fixed([2, 0, NEVER, 1]), unit)
    arrivals: Arrivals = {}
    for episode in range(4 if unit == "trajectory" else 1):
        clock[0] += 1
        note(arrivals, env.reset(seed=episode)[1]["arrived"], clock[0])
        for _ in range(1 if unit == "trajectory" else 4):
            clock[0] += 1
            note(arrivals, env.step(np.int64(0))[4]["arrived"], clock[0])
    clock[0] += 1
    note(arrivals, env.reset()[1]["arrived"], clock[0])
    taken = len(diary.episodes[-1])
    with pytest.raises(
        InvalidInputError, match="distribution must have a delay for everything that is played, got only 4"
    ):
        env.step(np.int64(0))
    assert len(diary.episodes[-1]) == taken  # refused before the environment took the step
    note(arrivals, env.flush(), None)
    assert arrivals == expected(diary, unit, np.array([2, 0, NEVER, 1, 0]))


def when_handed_out(distribution: DelayDistribution, episodes: int, seeds: dict[int, int]) -> list[int]:
    """Return the delay with which each of so many episodes of one step arrives, seeded before some of them."""
    env = LateFeedback(Diary([0]), distribution)
    delays = [-1] * episodes
    for episode in range(episodes + 200):
        for late in env.reset(seed=seeds.get(episode))[1]["arrived"]:
            if late.episode < episodes:
                delays[late.episode] = episode - late.episode - 1
        env.step(np.int64(0))
    return delays


@pytest.mark.parametrize(
    "distribution",
    [
        Periodic(7, offset=2),
        Outages([[5, 40]], Poisson(3)),
        Drift(Constant(0), Poisson(20), start=10, end=60),
        Bursts(Constant(0), Constant(9), begin=0.1, end=0.2),
        Backlog(Geometric(4), rate=5),
        Periodic(5, Fixed([*range(50)] * 6)),
    ],
    ids=lambda distribution: distribution.label,
)
def test_a_distribution_in_time_goes_on_where_it_is_when_another_seed_is_given(distribution: DelayDistribution) -> None:
    assert when_handed_out(distribution, 100, {0: 4}) == distribution.sample(stream(4, "delay"), 100).tolist()
    begun, state = distribution.draw(stream(4, "delay"), 30, 0, None)
    rest, _ = distribution.draw(stream(8, "delay"), 70, 30, state)
    assert when_handed_out(distribution, 100, {0: 4, 30: 8}) == [*begun, *rest]
    begun, state = distribution.draw(stream(4, "delay"), 16, 0, None)  # as many as are drawn ahead at first
    rest, _ = distribution.draw(stream(8, "delay"), 84, 16, state)
    assert when_handed_out(distribution, 100, {0: 4, 16: 8}) == [*begun, *rest]


@pytest.mark.parametrize("unit", UNITS)
def test_delays_that_depend_on_the_outcome(unit: str) -> None:
    distribution = DelayByAction([Constant(0), Constant(1), Lossy(Constant(0), missing=1.0)])
    env = LateFeedback(Diary([0]), distribution, unit)
    seen: list[tuple[int, int]] = []
    env.reset(seed=0)
    for action in (0, 1, 2, 0):
        seen += [(late.episode, late.action) for late in env.step(np.int64(action))[4]["arrived"]]
        seen += [(late.episode, late.action) for late in env.reset()[1]["arrived"]]
    # the feedback of the second comes one later, the third's never
    assert seen == ([(0, 0), (1, 1), (3, 0)])
    paid = DelayByReward(zero=Lossy(Constant(0), missing=1.0), positive=Constant(0))
    env = LateFeedback(Diary([0]), paid, unit)
    env.reset(seed=0)
    arrived = env.step(np.int64(0))[4]["arrived"] + env.reset()[1]["arrived"]
    assert [late.reward > 0 for late in arrived] == [True]


@pytest.mark.parametrize("unit", UNITS)
def test_an_outcome_is_told_every_step(unit: str) -> None:
    told: list[Trajectory] = []

    class Telling(OutcomeDelays):
        distributions_by_outcome = (Constant(0),)

        def outcome(self, trajectory: Trajectory) -> int:
            told.append(trajectory)
            return 0

    env = LateFeedback(gymnasium.make("CliffWalking-v1", max_episode_steps=3), Telling(), unit)
    observation, _ = env.reset(seed=0)
    seen, rewards = [observation], []
    for action in (0, 0, 1):
        observation, _, _, _, info = env.step(action)
        seen.append(observation)
        rewards += [late.reward for late in info["arrived"]]
    rewards += [late.reward for late in env.reset()[1]["arrived"]]
    assert rewards == [-1.0, -1.0, -1.0]
    whole = unit == "trajectory"
    assert [each.first for each in told] == ([0] if whole else [0, 1, 2])
    assert [list(each.states) for each in told] == ([seen] if whole else [seen[i : i + 2] for i in range(3)])
    assert [each.actions.tolist() for each in told] == ([[0, 0, 1]] if whole else [[0], [0], [1]])
    assert not told[-1].terminated


@pytest.mark.parametrize("space", ["dict", "tuple"])
def test_any_observation_space(space: str) -> None:
    class Odd(gymnasium.Env[Any, Any]):
        action_space = gymnasium.spaces.Discrete(2)
        observation_space = gymnasium.spaces.Box(0, 9, (1,))  # the wrapper does not ask
        count = 0

        def observe(self) -> Any:
            self.count += 1
            parts = [np.array([self.count]), self.count]
            return {"a": parts[0], "b": parts[1]} if space == "dict" else tuple(parts)

        def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
            return self.observe(), {}

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            return self.observe(), 1.0, False, False, {}

    env = LateFeedback(Odd(), Constant(1), "reward")
    first, _ = env.reset()
    second, *_ = env.step(0)
    for part in (first, second):
        part["a" if space == "dict" else 0][:] = 77  # what the agent does to its own copy is its own affair
    (late,) = env.step(1)[4]["arrived"]
    key = "a" if space == "dict" else 0
    assert (int(late.observation[key][0]), int(late.next_observation[key][0])) == (1, 2)


def test_transitions_are_typed() -> None:
    env = LateFeedback(gymnasium.make("CartPole-v1"), Constant(0), unit="reward")
    env.reset(seed=0)
    (late,) = env.step(np.int64(1))[4]["arrived"]
    assert isinstance(late, Transition)
    kinds = [type(late.episode), type(late.step), type(late.reward), type(late.terminated), type(late.truncated)]
    assert kinds == [int, int, float, bool, bool]
