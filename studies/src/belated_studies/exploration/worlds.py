"""Environments of other people, made as `GymEnvironment` needs them: grids, pendulums, games."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any
from zlib import crc32

import numpy as np

from belated.environments._gym_bridge import load_gymnasium
from belated.errors import BelatedError

INSTALL = "pip install 'belated-studies[exploration]'"

NUMBERS = 2**14
"""Of observations that are told apart in a table; few of them share a number."""


def has(*modules: str) -> bool:
    return all(find_spec(module) is not None for module in modules)


def left_out(module: str) -> list[str]:
    """Return the remark of a section whose module is not installed."""
    return [] if has(module) else [f"Left out, because {module} is not installed: {INSTALL}."]


def require(module: str) -> Any:
    """Return a module of the extra, or raise an error that says how to install it."""
    if not has(module):
        raise BelatedError(f"{module} is not installed: {INSTALL}")
    return import_module(module)


def grid(world: str, view: bool = False, constant: bool = False, table: bool = False) -> Any:
    """Return a grid of MiniGrid, seen whole or by the 7×7 `view`, whose goal pays 1 at any time if `constant`.

    As a `table`, an observation is a number.
    """
    gymnasium = load_gymnasium()
    require("minigrid")
    wrappers = import_module("minigrid.wrappers")

    class PaysOne(gymnasium.Wrapper):  # type: ignore[misc,name-defined]
        """Pays 1 where the environment pays anything."""

        def step(self, action: Any) -> Any:
            observation, reward, terminated, truncated, info = self.env.step(action)
            return observation, float(reward > 0), terminated, truncated, info

    made = gymnasium.make(world)
    shown = wrappers.ImgObsWrapper(made if view else wrappers.FullyObsWrapper(made))
    shown = PaysOne(shown) if constant else shown
    return numbered(shown) if table else shown


def numbered(env: Any) -> Any:
    """Return `env` with a number in place of an observation, the same for the same: a table."""
    gymnasium = load_gymnasium()

    class Numbered(gymnasium.ObservationWrapper):  # type: ignore[misc,name-defined]
        observation_space = gymnasium.spaces.Discrete(NUMBERS)

        def observation(self, observation: Any) -> Any:
            return crc32(np.ascontiguousarray(observation).tobytes()) % NUMBERS

    return Numbered(env)


def blackjack_table() -> Any:
    return numbered(load_gymnasium().make("Blackjack-v1"))


def chosen_actions(name: str, values: tuple[float, ...]) -> Any:
    """Return an environment of one continuous action, of which these `values` can be chosen."""
    gymnasium = load_gymnasium()

    class Chosen(gymnasium.ActionWrapper):  # type: ignore[misc,name-defined]
        action_space = gymnasium.spaces.Discrete(len(values))

        def action(self, action: Any) -> Any:
            return np.array([values[int(action)]], np.float32)

    return Chosen(gymnasium.make(name))


def pendulum() -> Any:
    """Return Pendulum-v1 with five torques."""
    return chosen_actions("Pendulum-v1", (-2.0, -1.0, 0.0, 1.0, 2.0))


def continuous_mountain_car() -> Any:
    """Return MountainCarContinuous-v0 with three forces."""
    return chosen_actions("MountainCarContinuous-v0", (-1.0, 0.0, 1.0))


def random_lake(size: int, seed: int) -> Any:
    """Return a slippery lake whose holes are drawn."""
    drawn = import_module("gymnasium.envs.toy_text.frozen_lake").generate_random_map(size, 0.8, seed)
    return load_gymnasium().make("FrozenLake-v1", desc=drawn)


def minatar(game: str) -> Any:
    """Return a game of MinAtar with the actions that matter in it."""
    require("minatar")
    gymnasium, name = load_gymnasium(), f"MinAtar/{game}-v1"
    if name not in gymnasium.registry:
        import_module("minatar.gym").register_envs()
    return gymnasium.make(name, max_episode_steps=500)


def highway() -> Any:
    """Return highway-fast-v0 of highway-env: five cars, each by five numbers."""
    require("highway_env")
    return load_gymnasium().make("highway-fast-v0")
