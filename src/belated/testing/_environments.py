"""The conformance suite of environments, built-in and yours: what the runner and the agents rely on.

Each check takes an environment, plays a few episodes of random actions, and raises an `AssertionError` with an
explanation if it violates its contract. Run them all with `check_environment`, or one by one in a test.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from belated._kernels.streams import stream
from belated.environments._play import play
from belated.errors import InvalidInputError
from belated.types import Environment, Feedback, Policy, SimulatorProblem, Step, TableProblem, Trajectory

Check = Callable[[Environment], None]
SEED, EPISODES = 3, (0, 1, 5)


class _Random:
    """Actions that depend on the episode only."""

    def __init__(self, actions: int, episode: int) -> None:
        self._actions, self._rng = actions, stream(episode, "agent")

    def act(self, step: int, state: Any) -> int:
        return int(self._rng.integers(self._actions))


def _played(environment: Environment, episode: int) -> Trajectory:
    policy: Policy = _Random(environment.problem.actions, episode)
    return play(environment, policy, seed=SEED, episode=episode)


def _same(one: Trajectory, other: Trajectory) -> bool:
    return (
        np.array_equal(one.actions, other.actions)
        and np.array_equal(one.rewards, other.rewards)
        and one.terminated == other.terminated
        and all(_equal(a, b) for a, b in zip(one.states, other.states, strict=True))
    )


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def describes_itself(environment: Environment) -> None:
    """The label is a valid file name, the problem is of a known kind, and the description is plain and constant."""
    label = environment.label
    assert isinstance(label, str) and re.fullmatch(r"[A-Za-z0-9._+=-]+", label), (
        f"label must be letters, digits and ._+=-, got {label!r}"
    )
    problem = environment.problem
    assert isinstance(problem, TableProblem | SimulatorProblem), (
        f"problem must be a TableProblem or a SimulatorProblem, got {problem!r}"
    )
    assert environment.problem.horizon == problem.horizon, "problem must be the same each time it is asked for"
    try:
        described = json.dumps(environment.describe(), sort_keys=True)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"describe() must return plain values that JSON can hold: {error}") from error
    assert described == json.dumps(environment.describe(), sort_keys=True), "describe() must not change"


def steps_and_states_fit_the_problem(environment: Environment) -> None:
    """Every step is a `Step` with a finite reward, and encoded observations are states of the problem."""
    problem = environment.problem
    environment.encode(environment.reset(seed=SEED, episode=0))
    step = environment.step(0)
    assert isinstance(step, tuple) and len(step) == len(Step._fields), (
        f"step must return (observation, reward, terminated, truncated), got {step!r}"
    )
    assert isinstance(step[1], float | int) and np.isfinite(step[1]), f"a reward must be finite, got {step[1]!r}"
    assert all(isinstance(flag, bool | np.bool_) for flag in step[2:]), (
        f"terminated and truncated must be True or False, got {step[2:]!r}"
    )
    for episode in EPISODES:
        played = _played(environment, episode)
        try:
            Feedback(episode, played).check(problem)
        except InvalidInputError as error:
            raise AssertionError(f"episode {episode} does not fit the problem: {error}") from error


def same_seed_same_episode(environment: Environment) -> None:
    """An episode depends only on the seed, its number and the actions, not on earlier episodes."""
    first = {episode: _played(environment, episode) for episode in EPISODES}
    for episode in reversed(EPISODES):
        assert _same(first[episode], _played(environment, episode)), (
            f"episode {episode} differs when it is played after other episodes"
        )
    environment.reset(seed=SEED, episode=EPISODES[0])
    environment.step(0)  # an interrupted episode
    assert _same(first[EPISODES[1]], _played(environment, EPISODES[1])), "an interrupted episode changes the next one"


def threads_do_not_disturb_each_other(environment: Environment) -> None:
    """Each thread has its own episode."""
    environment.reset(seed=SEED, episode=0)
    alone = [environment.step(0)[1:3], environment.step(0)[1:3]] if environment.problem.horizon > 1 else []
    environment.reset(seed=SEED, episode=0)
    shared = [environment.step(0)[1:3]] if alone else []
    other = threading.Thread(target=_played, args=(environment, EPISODES[-1]))
    other.start()
    other.join()
    if alone and not alone[0][1]:
        shared.append(environment.step(0)[1:3])
        assert shared == alone, "an episode changes when another thread plays"


ENVIRONMENT_CHECKS: tuple[Check, ...] = (
    describes_itself,
    steps_and_states_fit_the_problem,
    same_seed_same_episode,
    threads_do_not_disturb_each_other,
)
"""Every check of an environment, in the order in which `check_environment` runs them."""


def check_environment(environment: Environment) -> None:
    """Run every check on `environment`; raise an `AssertionError` with an explanation at the first violation.

    >>> from belated import RiverSwim
    >>> check_environment(RiverSwim())
    """
    missing = [
        name
        for name in ("label", "problem", "reset", "step", "encode", "describe")
        if not hasattr(type(environment), name) and not hasattr(environment, name)
    ]
    assert not missing, f"an environment must have {missing[0]!r}, got {environment!r}"
    for check in ENVIRONMENT_CHECKS:
        run_check(check, environment, "environment")


def run_check(check: Callable[[Any], None], subject: Any, what: str) -> None:
    """Run one check; other exceptions become an `AssertionError` with an explanation."""
    try:
        check(subject)
    except AssertionError:
        raise
    except Exception as error:
        name = check.__name__.replace("_", " ")
        raise AssertionError(f"{name}: the {what} raised {type(error).__name__}: {error}") from error
