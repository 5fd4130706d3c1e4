"""Environments of Gymnasium that misbehave: each ends in a sentence that names it and says what was expected."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import belated
from belated.environments._asked import checked_reward
from belated.errors import InvalidInputError
from belated.gymnasium import LateFeedback

INSIDE = np.array([0.5, 0.5])
LATER = 25
"""Calls after which it misbehaves, so that what is found out beforehand goes well; 0: at once."""


class World(gymnasium.Env[Any, Any]):
    """Does what it should until `after` calls of step have been made, and what `changes` say from then on."""

    observation_space = spaces.Box(0.0, 1.0, (2,))
    action_space = spaces.Discrete(2)

    def __init__(self, after: int = 0, **changes: Any) -> None:
        self.after, self.changes, self.steps = after, changes, 0
        for name in {"observation_space", "action_space"} & set(changes):
            setattr(self, name, changes[name])

    def _said(self, name: str, usual: Any) -> Any:
        said = self.changes.get(name, usual) if self.steps >= self.after else usual
        if isinstance(said, Exception):
            raise said
        return said

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return self._said("reset", (self._said("first", INSIDE), self._said("info", {})))

    def step(self, action: Any) -> Any:
        self.steps += 1
        usual = [("observation", INSIDE), ("reward", 1.0), ("terminated", False), ("truncated", False), ("info", {})]
        return self._said("step", tuple(self._said(name, value) for name, value in usual))

    def render(self) -> Any:
        raise RuntimeError("no screen")

    def close(self) -> None:
        raise RuntimeError("it stays open")


NUMBER = r"a reward of World.* must be a finite number of magnitude at most 1e\+12, got "
MISBEHAVING: dict[str, tuple[dict[str, Any], str]] = {
    "reset returns no pair": ({"reset": INSIDE}, r"what reset of World returns must be a pair \(observation, info\)"),
    "reset raises": ({"reset": OSError("no data")}, "reset of World must not fail, got OSError: no data"),
    "nan at first": ({"first": np.full(2, np.nan)}, "an observation of World must be in its space, got nan"),
    "four values": ({"step": (INSIDE, 1.0, False, {})}, r"what step of World returns must be five values .*, got \("),
    "nothing": ({"step": None}, "what step of World returns must be five values .*, got None"),
    "step raises": ({"step": KeyError("left")}, "step of World must not fail, got KeyError: 'left'"),
    "nan": ({"observation": np.full(2, np.nan)}, "an observation of World must be in its space, got nan at index 0"),
    "wrong shape": ({"observation": np.zeros(3)}, "an observation of World must be in its space, got 3 numbers"),
    "wrong dtype": ({"observation": np.array(["a", "b"])}, "an observation of World must be in its space, got"),
    "no observation": ({"observation": None}, "an observation of World must be in its space, got"),
    "infinite": ({"observation": np.array([0.5, -np.inf])}, "World must be in its space, got -inf at index 1"),
    "too large": ({"observation": np.array([0.5, 1e300])}, r"World must be in its space, got 1e\+300 at index 1"),
    "a number": ({"observation": 0.5}, "an observation of World must be in its space, got 1 numbers instead of 2"),
    "numbers in words": ({"observation": np.array(["0.5", "0.5"])}, "must be in its space, got an observation must be"),
    "objects": ({"observation": np.array([0.5, None])}, "must be in its space, got an observation must be numbers"),
    "complex": ({"observation": np.array([0.5, 1j])}, "must be in its space, got an observation must be numbers"),
    "masked": ({"observation": np.ma.array([0.5, 0.5], mask=[True, False])}, "got an observation must be numbers"),
    "a set": ({"observation": {0.5, 0.6}}, "must be in its space, got an observation must be numbers"),
    "keys of all sorts": ({"observation": {"a": 0.5, 1: 0.5}}, "got an observation must be numbers"),
    "a huge integer": ({"observation": [10**400, 1]}, "must be in its space, got an observation must be numbers"),
    "six values": ({"step": (INSIDE, 1.0, False, False, {}, 0)}, "what step of World returns must be five values"),
    "a list": ({"step": [INSIDE, 1.0, False, False, {}]}, "what step of World returns must be five values"),
    "three of a reset": ({"reset": (INSIDE, {}, 0)}, "what reset of World returns must be a pair"),
    "a failed assertion": ({"step": AssertionError()}, "step of World must not fail, got AssertionError"),
    "an iterator's end": ({"step": StopIteration()}, "step of World must not fail, got StopIteration"),
    "no reward": ({"reward": None}, NUMBER + "None"),
    "a reward of nan": ({"reward": float("nan")}, NUMBER + "nan"),
    "an infinite reward": ({"reward": float("-inf")}, NUMBER + "-inf"),
    "a huge reward": ({"reward": 1e160}, NUMBER + r"1e\+160"),
    "a text": ({"reward": "1"}, NUMBER + "'1'"),
    "a complex reward": ({"reward": 1j}, NUMBER + "1j"),
    "two rewards": ({"reward": np.array([1.0, 2.0])}, NUMBER + "array"),
    "one reward in an array": ({"reward": np.array([1.0])}, NUMBER + "array"),
    "a list of rewards": ({"reward": [1.0]}, NUMBER + r"\[1\.0\]"),
    "a decimal": ({"reward": Decimal(1)}, NUMBER + "Decimal"),
    "a huge integer as reward": ({"reward": 10**400}, NUMBER + "1000"),
    "terminated is a word": ({"terminated": "no"}, r"terminated of World.* must be True or False, got 'no'"),
    "terminated is an array": ({"terminated": np.array([True])}, r"terminated of World.* must be True or False, got"),
    "terminated is a number": ({"terminated": 1}, r"terminated of World.* must be True or False, got 1"),
    "truncated is nothing": ({"truncated": None}, r"truncated of World.* must be True or False, got None"),
}


def play(environment: Any) -> belated.Results:
    agents = {"psvi": belated.DelayedPSVI()}
    return belated.run(environment, agents, belated.Constant(1), episodes=8, seeds=1, jobs=1, progress=False)


@pytest.mark.parametrize(("changes", "message"), MISBEHAVING.values(), ids=MISBEHAVING.keys())
@pytest.mark.parametrize("after", [0, LATER])
def test_it_is_refused_by_name(changes: dict[str, Any], message: str, after: int) -> None:
    """Whether it misbehaves from the beginning, or only when it is played."""
    with pytest.raises(InvalidInputError, match=message):
        play(belated.GymEnvironment(World, horizon=4, reward_range=(0.0, 1.0), after=after, **changes))


def test_rewards_are_looked_at_in_random_play() -> None:
    with pytest.raises(InvalidInputError, match="a reward of World in random play must be a finite number"):
        belated.GymEnvironment(World, horizon=4, reward=None)
    with pytest.raises(InvalidInputError, match=r"observation of World must be in its space, .* \(in random play\)"):
        belated.GymEnvironment(World, horizon=4, observation=np.full(2, np.nan))


@pytest.mark.parametrize("after", [0, LATER])
def test_beyond_its_bounds_it_is_played_and_told_once(after: int) -> None:
    """Gymnasium's own LunarLander does that."""
    with pytest.warns(UserWarning, match="World must be in its space, got 7 at index 1, which must be within") as told:
        environment = belated.GymEnvironment(
            World, horizon=4, reward_range=(0.0, 1.0), after=after, observation=np.array([0.5, 7.0])
        )
        assert play(environment).returns(agent="psvi").tolist() == [[4.0] * 8]
    assert len(told) == 1


def test_integers_beyond_their_space_are_no_state() -> None:
    environment = belated.GymEnvironment(
        World, horizon=4, reward_range=(0.0, 1.0), observation_space=spaces.Discrete(3), first=0, observation=3
    )
    with pytest.raises(InvalidInputError, match=r"World must be in its space, got 3 at index 0, .* within \[0, 2\]"):
        play(environment)


def test_steps_out_of_turn() -> None:
    environment = belated.GymEnvironment("CartPole-v1")
    with pytest.raises(InvalidInputError, match="step of CartPole-v1 must come after a reset, but there was no reset"):
        environment.step(0)
    environment.reset(seed=0, episode=0)
    for bad in ("left", 2, -1, 0.5):
        with pytest.raises(InvalidInputError, match=r"the action must be an integer >= 0 and <= 1, got"):
            environment.step(bad)  # type: ignore[arg-type]
    while not environment.step(0).terminated:
        pass
    with pytest.raises(InvalidInputError, match="step of CartPole-v1 must come after a reset, but the episode is over"):
        environment.step(0)


class Overwriting(World):
    """Returns the same array again and again, with other numbers in it."""

    def step(self, action: Any) -> Any:
        self.steps += 1
        self.seen = getattr(self, "seen", np.zeros(2))
        self.seen[:] = (self.steps % 10) / 10
        return self.seen, 1.0, False, False, {}


def test_an_observation_that_is_written_over() -> None:
    environment = belated.GymEnvironment(
        Overwriting, horizon=4, observation_space=spaces.Box(-np.inf, np.inf, (2,)), features={"features": "tiles"}
    )
    assert environment.features.low == (0.0, 0.0) and environment.features.high == (0.9, 0.9)  # type: ignore[attr-defined]


class NoSpaces(World):
    @property
    def observation_space(self) -> Any:  # type: ignore[override]
        raise RuntimeError("not known yet")


def test_spaces_that_fail() -> None:
    with pytest.raises(InvalidInputError, match="the spaces of NoSpaces must not fail, got RuntimeError: not known"):
        belated.GymEnvironment(NoSpaces, horizon=4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"action_space": spaces.MultiBinary(2)}, "World cannot be played: the action space must be Discrete"),
        ({"action_space": spaces.Dict({"a": spaces.Discrete(2)})}, "World cannot be played: the action space must be"),
        ({"observation_space": spaces.Box(0, 1, (0,))}, "must be a space with at least one number, got Box"),
        ({"observation_space": spaces.Tuple(())}, "must be a space with at least one number, got Tuple"),
        ({"observation_space": spaces.Dict({})}, "must be a space with at least one number, got Dict"),
        ({"observation_space": spaces.Sequence(spaces.Discrete(2))}, "the observation space must be Discrete, Multi"),
        (
            {"observation_space": spaces.Dict({"a": spaces.Sequence(spaces.Text(3))})},
            "the observation space must be Discrete, Multi",
        ),
        ({"observation_space": "Box"}, "the observation space must be Discrete, .* got 'Box'"),
        ({"action_space": spaces.Box(0.0, 1.0)}, "World cannot be played: the action space must be Discrete"),
        ({"action_space": None}, "World cannot be played: the action space must be Discrete: .* got None"),
        ({"observation_space": None}, "World cannot be played: the observation space must be Discrete, .* got None"),
    ],
)
def test_spaces_that_cannot_be_played(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        belated.GymEnvironment(World, horizon=4, **changes)


def test_one_that_cannot_be_made() -> None:
    def world() -> gymnasium.Env[Any, Any]:
        raise OSError("no disk")

    with pytest.raises(InvalidInputError, match="id_or_factory world must not fail, got OSError: no disk"):
        belated.GymEnvironment(world, horizon=4)


def test_spaces_that_change_from_one_to_the_next() -> None:
    sizes = itertools.count(2)

    def world() -> gymnasium.Env[Any, Any]:
        return World(action_space=spaces.Discrete(next(sizes)))

    environment = belated.GymEnvironment(world, horizon=4, reward_range=(0.0, 1.0))
    del environment._local.env  # as in another thread
    with pytest.raises(InvalidInputError, match=r"the spaces of world must be \(Discrete\(2\), .* got \(Discrete\(3\)"):
        environment.reset(seed=0, episode=0)


def test_what_is_not_needed_does_no_harm() -> None:
    """Neither an info that is none, nor render and close that raise; a reward in an array without axes is a number."""
    environment = belated.GymEnvironment(World, horizon=4, info=None, reward=np.array(0.5), terminated=np.bool(False))
    assert play(environment).returns(agent="psvi").tolist() == [[2.0] * 8]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reset": INSIDE}, r"what reset of <World.* returns must be a pair"),
        ({"step": (INSIDE, 1.0, False, {})}, "what step of <World.* returns must be five values"),
        ({"reward": None}, "a reward of <World.* must be a finite number"),
        ({"terminated": 1}, "terminated of <World.* must be True or False, got 1"),
        ({"info": None}, "info must be a dictionary, got None"),
    ],
)
def test_late_feedback_says_the_same(changes: dict[str, Any], message: str) -> None:
    env = LateFeedback(World(**changes), belated.Constant(1))
    with pytest.raises(InvalidInputError, match=message):
        env.reset(seed=0)
        env.step(0)


def test_the_errors_of_an_environment_pass_through_late_feedback() -> None:
    env = LateFeedback(World(step=KeyError("left")), belated.Constant(1))
    env.reset(seed=0)
    with pytest.raises(KeyError, match="left"):
        env.step(0)


def test_a_reward_is_a_number() -> None:
    assert [checked_reward("x", reward) for reward in (1, True, np.float32(0.5), np.array(-2))] == [1.0, 1.0, 0.5, -2.0]
