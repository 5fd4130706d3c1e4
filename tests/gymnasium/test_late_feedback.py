from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from diaries import Arrivals, Diary, expected, note
from gymnasium.utils.env_checker import check_env

from belated import (
    Constant,
    DelayByAction,
    DelayDistribution,
    Geometric,
    Lossy,
    Pareto,
    Poisson,
    RandomPolicy,
    RiverSwim,
    simulate,
)
from belated._kernels.streams import stream
from belated.environments import as_gymnasium
from belated.errors import InvalidInputError, UnknownNameError
from belated.gymnasium import LateFeedback

DELAYS: list[DelayDistribution] = [
    Constant(0),
    Constant(3),
    Poisson(10),
    Lossy(Geometric(4), missing=0.3),
    Pareto(shape=0.8, scale=5),
]
UNITS = ["trajectory", "reward"]


def soak(
    distribution: DelayDistribution, unit: str, steps: int, *, reuse: bool = False, seed: int = 3
) -> tuple[Diary, Arrivals]:
    """Play, now and then breaking an episode off or resetting twice; return the diary and what arrived when."""
    clock = [0]
    diary = Diary(clock, reuse)
    env = LateFeedback(diary, distribution, unit)
    whims = np.random.default_rng(seed)
    actions, breaks = whims.integers(3, size=steps).tolist(), (whims.random(steps) < 0.01).tolist()
    arrivals: Arrivals = {}
    _, info = env.reset(seed=seed)
    note(arrivals, info["arrived"], 0)
    for action, broken in zip(actions, breaks, strict=True):
        clock[0] += 1
        _, reward, terminated, truncated, info = env.step(action)
        assert reward == 0.0
        note(arrivals, info["arrived"], clock[0])
        for _ in range((terminated or truncated) + broken):
            clock[0] += 1
            note(arrivals, env.reset()[1]["arrived"], clock[0])
    rest, count = env.flush(), env.in_flight
    note(arrivals, rest, None)
    assert count == 0
    assert [late[:2] for late in rest] == sorted(late[:2] for late in rest)
    return diary, arrivals


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("distribution", DELAYS, ids=lambda distribution: distribution.label)
def test_nothing_is_lost_doubled_early_or_misattributed(distribution: DelayDistribution, unit: str) -> None:
    diary, arrivals = soak(distribution, unit, 10_000)
    delays = distribution.sample(stream(3, "delay"), 10_001)
    assert arrivals == expected(diary, unit, delays)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_a_million_steps(unit: str) -> None:
    distribution = Lossy(Poisson(20), missing=0.1)
    diary, arrivals = soak(distribution, unit, 1_000_000)
    assert arrivals == expected(diary, unit, distribution.sample(stream(3, "delay"), 1_000_001))


@pytest.mark.parametrize("unit", UNITS)
def test_observations_that_are_written_over_are_kept_as_they_were(unit: str) -> None:
    diary, arrivals = soak(Poisson(5), unit, 2_000, reuse=True)
    assert arrivals == expected(diary, unit, Poisson(5).sample(stream(3, "delay"), 2_001))


def test_what_is_in_flight_survives_seeded_resets() -> None:
    """A loop that seeds every episode, as reproducible ones do: each episode has the first delay of its seed."""
    clock = [0]
    diary = Diary(clock)
    env = LateFeedback(diary, Poisson(3))
    arrivals: Arrivals = {}
    for episode in range(200):
        clock[0] += 1
        note(arrivals, env.reset(seed=episode)[1]["arrived"], clock[0])
        ended = False
        while not ended:
            clock[0] += 1
            _, _, terminated, truncated, info = env.step(np.int64(0))
            ended = terminated or truncated
            note(arrivals, info["arrived"], clock[0])
    note(arrivals, env.flush(), None)
    delays = np.array([Poisson(3).sample(stream(episode, "delay"), 1)[0] for episode in range(200)])
    assert arrivals == expected(diary, "trajectory", delays)


@pytest.mark.parametrize(
    "distribution", [Poisson(4), Lossy(Poisson(2), missing=0.4)], ids=lambda distribution: distribution.label
)
def test_delays_are_those_of_a_simulation_with_the_same_seed(distribution: DelayDistribution) -> None:
    world = RiverSwim(states=3, horizon=4)
    rows = simulate(world, RandomPolicy(), distribution, episodes=60, seed=9)
    env = LateFeedback(as_gymnasium(world), distribution)
    counts = []
    for episode in range(60):
        _, info = env.reset(seed=9 if episode == 0 else None)
        counts.append(len(info["arrived"]) // world.horizon)
        for _ in range(world.horizon):
            env.step(np.int64(1))
    assert counts == rows["arrived"].to_list()


def test_the_environment_draws_the_same_numbers_as_without_the_wrapper() -> None:
    bare, wrapped = Diary([0]), LateFeedback(Diary([0]), Poisson(2), unit="reward")
    bare.reset(seed=4)
    wrapped.reset(seed=4)
    for _ in range(50):
        bare.step(np.int64(1))
        wrapped.step(np.int64(1))
    assert isinstance(wrapped.unwrapped, Diary)
    assert bare.episodes == wrapped.unwrapped.episodes


@pytest.mark.parametrize("distribution", DELAYS, ids=lambda distribution: distribution.label)
def test_passes_the_checker_of_gymnasium(distribution: DelayDistribution) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(unwrapped version|infinity).*")
        check_env(LateFeedback(gymnasium.make("CartPole-v1").unwrapped, distribution), skip_render_check=True)
        check_env(LateFeedback(gymnasium.make("FrozenLake-v1").unwrapped, distribution), skip_render_check=True)


def test_single_rewards_pass_the_checker_of_gymnasium() -> None:
    """It compares the first step after the same seed twice, so nothing of what it did before may arrive there."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*unwrapped version.*")
        env = LateFeedback(gymnasium.make("MountainCar-v0").unwrapped, Constant(10), "reward")
        check_env(env, skip_render_check=True)


def test_the_wrapper_is_part_of_the_specification() -> None:
    env = LateFeedback(gymnasium.make("CartPole-v1"), Lossy(Poisson(5), missing=0.1), unit="reward")
    assert env.spec is not None
    text = env.spec.to_json()
    json.loads(text)
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(text))
    assert isinstance(again, LateFeedback)
    runs = []
    for one in (env, again):
        one.reset(seed=5)
        runs.append([len(one.step(step % 2)[4]["arrived"]) for step in range(8)])
    assert runs[0] == runs[1]


def test_a_copy_goes_on_where_the_original_was(tmp_path: Path) -> None:
    env = LateFeedback(gymnasium.make("CartPole-v1"), Poisson(3), unit="reward")
    env.reset(seed=1)
    for _ in range(4):
        env.step(0)
    copy = pickle.loads(pickle.dumps(env))
    assert [late[:5] for late in copy.flush()] == [
        (*late[:2], pytest.approx(late.observation), *late[3:5]) for late in env.flush()
    ]


class Talkative(Diary):
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
        return super().reset(seed=seed)[0], {"arrived": "late"}


def test_bad_input_is_refused_in_words() -> None:
    cartpole = gymnasium.make("CartPole-v1")
    wrong: Any
    for wrong in (5, "poisson"):
        with pytest.raises(
            InvalidInputError, match=r"distribution must be a delay distribution of belated.delays, such as Pois"
        ):
            LateFeedback(cartpole, wrong)
    with pytest.raises(UnknownNameError, match="unit must be one of 'trajectory', 'reward', got 'trajectories'"):
        LateFeedback(cartpole, Poisson(5), "trajectories")
    with pytest.raises(InvalidInputError, match=r"env must be a gymnasium.Env"):
        wrong = "CartPole-v1"
        LateFeedback(wrong, Poisson(5))
    with pytest.raises(
        InvalidInputError,
        match=r"distribution.delays must be one distribution for each action of Discrete\(2\), got 3",
    ):
        LateFeedback(cartpole, DelayByAction([Constant(0)] * 3))
    with pytest.raises(InvalidInputError, match="info must be without the key 'arrived', which the wrapper uses"):
        LateFeedback(Talkative([0]), Poisson(5)).reset()
    with pytest.raises(gymnasium.error.ResetNeeded, match="no episode has been started"):
        LateFeedback(Diary([0]), Poisson(5)).step(np.int64(0))


def test_a_step_that_the_environment_refuses_changes_nothing() -> None:
    env = LateFeedback(gymnasium.make("CartPole-v1"), Constant(0), unit="reward")
    env.reset(seed=0)
    env.step(np.int64(1))
    with pytest.raises(AssertionError):
        env.step(np.int64(7))
    (late,) = env.step(np.int64(0))[4]["arrived"]
    assert (late.episode, late.step, late.action) == (0, 1, 0)


def test_the_delay_is_the_parameter_delay_and_is_specified_by_its_plain_values() -> None:
    world = RiverSwim(states=3, horizon=4)
    seen = []
    for given in (Geometric(4), Geometric(4).to_dict()):
        env: LateFeedback[Any, Any] = LateFeedback(as_gymnasium(world), delay=given, unit="reward")
        env.reset(seed=1)
        seen.append([len(env.step(step % 2)[4]["arrived"]) for step in range(4)])
    assert seen[0] == seen[1]
    made = LateFeedback(gymnasium.make("CartPole-v1"), delay=Poisson(3))
    assert made.spec is not None
    (wrapper,) = (each for each in made.spec.additional_wrappers if each.name == "LateFeedback")
    assert wrapper.kwargs == {"delay": Poisson(3).to_dict(), "unit": "trajectory"}
    again = gymnasium.make(made.spec)
    assert isinstance(again, LateFeedback)
    with pytest.raises(TypeError):
        LateFeedback(gymnasium.make("CartPole-v1"), distribution=Poisson(3))  # type: ignore[call-arg]
