from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from diaries import Arrivals, Diary, expected, note
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList

from belated import Constant, DelayDistribution, Fixed, Geometric, Lossy, Pareto, Poisson
from belated._kernels.streams import stream
from belated.errors import InvalidInputError
from belated.gymnasium import LateFeedback, LateFeedbackVector

COUNT = 4
DELAYS: list[DelayDistribution] = [
    Constant(0),
    Poisson(6),
    Lossy(Geometric(4), missing=0.3),
    Pareto(shape=0.8, scale=5),
]
UNITS = ["trajectory", "reward"]
MODES = list(AutoresetMode)
every_mode = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
every_unit = pytest.mark.parametrize("unit", UNITS)


def soak(
    distribution: DelayDistribution, unit: str, mode: AutoresetMode, calls: int, seed: int = 3
) -> list[tuple[Diary, Arrivals]]:
    """Play, now and then resetting some or all; return the diary of each sub-environment and what arrived when."""
    clock = [0]
    makers: list[Callable[[], Diary]] = [partial(Diary, clock)] * COUNT
    base = SyncVectorEnv(makers, autoreset_mode=mode)
    envs = LateFeedbackVector(base, distribution, unit)
    whims = np.random.default_rng(seed)
    arrivals: list[Arrivals] = [{} for _ in range(COUNT)]

    def note_all(infos: dict[str, Any]) -> None:
        assert infos["_arrived"].all()
        for seen, arrived in zip(arrivals, infos["arrived"], strict=True):
            note(seen, arrived, clock[0])

    note_all(envs.reset(seed=seed)[1])
    for _ in range(calls):
        clock[0] += 1
        _, rewards, terminations, truncations, infos = envs.step(whims.integers(3, size=COUNT))
        assert not rewards.any()
        note_all(infos)
        ended = terminations | truncations
        clock[0] += 1
        if mode is AutoresetMode.DISABLED and ended.any():
            also = ended | (whims.random(COUNT) < 0.01)
            note_all(envs.reset(options={"reset_mask": also})[1])
        elif whims.random() < 0.01:
            note_all(envs.reset()[1])
    for seen, rest in zip(arrivals, envs.flush(), strict=True):
        note(seen, rest, None)
    assert envs.in_flight == 0
    diaries = [env.unwrapped for env in base.envs]
    return [(diary, seen) for diary, seen in zip(diaries, arrivals, strict=True) if isinstance(diary, Diary)]


@every_mode
@every_unit
@pytest.mark.parametrize("distribution", DELAYS, ids=lambda distribution: distribution.label)
def test_nothing_is_lost_doubled_early_or_misattributed(
    distribution: DelayDistribution, unit: str, mode: AutoresetMode
) -> None:
    pairs = soak(distribution, unit, mode, 2_000)
    assert len(pairs) == COUNT
    for i, (diary, arrivals) in enumerate(pairs):
        assert arrivals == expected(diary, unit, distribution.sample(stream(3 + i, "delay"), 2_100))


@pytest.mark.slow
@every_mode
@every_unit
def test_a_million_steps(unit: str, mode: AutoresetMode) -> None:
    distribution = Lossy(Poisson(20), missing=0.1)
    for i, (diary, arrivals) in enumerate(soak(distribution, unit, mode, 1_000_000 // COUNT)):
        assert arrivals == expected(diary, unit, distribution.sample(stream(3 + i, "delay"), 260_000))


@every_unit
def test_a_vector_of_wrapped_environments_is_a_wrapped_vector(unit: str) -> None:
    """With NEXT_STEP, where Gymnasium's own vector hands on all that the wrappers say."""
    distribution = Poisson(3)
    makers = [partial(gymnasium.make, "CartPole-v1", max_episode_steps=15)] * 3
    outside = LateFeedbackVector(SyncVectorEnv(makers), distribution, unit)

    def wrapped() -> LateFeedback[Any, Any]:
        return LateFeedback(makers[0](), distribution, unit)

    inside: Any = SyncVectorEnv([wrapped] * 3)
    actions = np.random.default_rng(0).integers(2, size=(300, 3))
    seeds: Any = [5, 2, 9]
    for envs in (outside, inside):
        envs.reset(seed=seeds)
    for row in actions:
        one, other = outside.step(row), inside.step(row)
        for here, there in zip(one[:4], other[:4], strict=True):
            np.testing.assert_array_equal(here, there)
        for here, there in zip(one[4]["arrived"], other[4]["arrived"], strict=True):
            assert str(here) == str(there)
    assert sum(len(late) for late in outside.flush()) > 0


@every_mode
def test_the_last_observation_of_an_episode_is_its_own(mode: AutoresetMode) -> None:
    for diary, arrivals in soak(Constant(0), "reward", mode, 300):
        ends = [content for _, content in arrivals.values() if content[4] or content[5]]
        assert ends and all(reached == seen + 1 for seen, _, _, reached, _, _ in ends)
        assert diary.observed > 300


def test_processes_of_their_own() -> None:
    makers = [partial(gymnasium.make, "CartPole-v1", max_episode_steps=5)] * 2
    envs = LateFeedbackVector(AsyncVectorEnv(makers), Constant(0))
    try:
        envs.reset(seed=0)
        arrived = [envs.step(np.array([0, 1]))[4]["arrived"] for _ in range(6)]
    finally:
        envs.close()
    assert [[len(late) for late in row] for row in arrived] == [[0, 0]] * 5 + [[5, 5]]


@pytest.mark.parametrize("unit", UNITS)
def test_a_vector_that_is_no_list_of_environments(unit: str) -> None:
    """Gymnasium's own vector of carts, which knows no sub-environments: the steps of an episode must fit together."""
    envs = LateFeedbackVector(gymnasium.make_vec("CartPole-v1", 3, "vector_entry_point"), Constant(0), unit)
    assert not isinstance(envs.unwrapped, SyncVectorEnv)
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    steps: list[list[Any]] = [[], [], []]
    for _ in range(200):
        for i, arrived in enumerate(envs.step(rng.integers(2, size=3))[4]["arrived"]):
            steps[i] += arrived
    for i, rest in enumerate(envs.flush()):
        for before, after in zip(steps[i] + rest, (steps[i] + rest)[1:], strict=False):
            if before.terminated or before.truncated:
                assert (after.episode, after.step) == (before.episode + 1, 0)
                assert np.abs(after.observation).max() <= 0.05  # where carts start
            else:
                assert (after.episode, after.step) == (before.episode, before.step + 1)
                np.testing.assert_array_equal(before.next_observation, after.observation)
        assert len(steps[i] + rest) + steps[i][-1].episode >= 190


def test_infos_can_be_told_apart_by_sub_environment() -> None:
    makers = [partial(gymnasium.make, "CartPole-v1")] * 2
    envs = DictInfoToList(LateFeedbackVector(SyncVectorEnv(makers), Constant(0), "reward"))
    envs.reset(seed=0)
    infos: Any = envs.step(np.array([0, 1]))[4]
    assert [[late.action for late in info["arrived"]] for info in infos] == [[0], [1]]


@pytest.mark.parametrize("space", ["FrozenLake-v1", "Blackjack-v1"])
def test_observations_that_are_no_arrays(space: str) -> None:
    pytest.importorskip("gymnasium.envs.toy_text")
    makers = [partial(gymnasium.make, space)] * 2
    envs = LateFeedbackVector(SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP), Constant(0), "reward")
    envs.reset(seed=0)
    for _ in range(50):
        for arrived in envs.step(np.array([1, 1]))[4]["arrived"]:
            (late,) = arrived
            assert envs.single_observation_space.contains(late.observation)
            assert envs.single_observation_space.contains(late.next_observation)


def test_bad_input_is_refused_in_words() -> None:
    makers = [partial(Diary, [0])] * 2
    wrong: Any = Diary([0])
    with pytest.raises(InvalidInputError, match=r"env must be a gymnasium.vector.VectorEnv; LateFeedback"):
        LateFeedbackVector(wrong, Poisson(2))
    silent = SyncVectorEnv(makers)
    del silent.metadata["autoreset_mode"]
    with pytest.raises(
        InvalidInputError, match=r"autoreset_mode'\] must be a gymnasium.vector.AutoresetMode, got None"
    ):
        LateFeedbackVector(silent, Poisson(2))
    with pytest.raises(gymnasium.error.ResetNeeded, match="no episode has been started"):
        LateFeedbackVector(SyncVectorEnv(makers), Poisson(2)).step(np.array([0, 0]))
    manual = LateFeedbackVector(SyncVectorEnv(makers, autoreset_mode=AutoresetMode.DISABLED), Poisson(2))
    manual.reset(seed=0)
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"the episodes of \[\d(, 1)?\] have ended"):
        for _ in range(1000):
            manual.step(np.array([0, 0]))


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP], ids=lambda mode: mode.value)
def test_a_fixed_sequence_lasts_for_as_many_episodes(mode: AutoresetMode) -> None:
    envs = LateFeedbackVector(SyncVectorEnv([partial(Diary, [0])], autoreset_mode=mode), Fixed([0, 0]))
    envs.reset(seed=0)
    arrived = []
    with pytest.raises(
        InvalidInputError, match="distribution must have a delay for everything that is played, got only 2"
    ):
        while True:
            arrived += envs.step(np.array([0]))[4]["arrived"][0]
    assert {late.episode for late in arrived} == {0, 1}
