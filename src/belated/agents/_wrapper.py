"""The part shared by wrappers, algorithms around another algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from belated._util.validate import refuse
from belated.agents._base import Settings
from belated.agents._registry import AGENTS, agent_from_dict
from belated.errors import InvalidInputError
from belated.types import Agent, Algorithm, PlansFromStart, Policy, Savable, TablePolicy


def describe(algorithm: Algorithm) -> Any:
    """Return the settings of an algorithm; without `to_dict`, its repr or its plain attributes.

    >>> class Mine:
    ...     def __init__(self, scale): self.scale = scale
    ...     def start(self, problem): ...
    >>> describe(Mine(2.0))["scale"]
    2.0
    """
    if hasattr(algorithm, "to_dict"):
        return algorithm.to_dict()
    kind = type(algorithm)
    if kind.__repr__ is not object.__repr__:
        return repr(algorithm)
    # the default repr has a memory address, which is not stable
    name, known = f"{kind.__module__}.{kind.__qualname__}", getattr(algorithm, "__dict__", {})
    plain = {key: value for key, value in known.items() if isinstance(value, bool | int | float | str | None)}
    return {"algorithm": name, **plain} if plain else name


@dataclass(frozen=True, kw_only=True)
class AroundBase(Settings):
    """Settings of a wrapper around another algorithm, built-in or yours."""

    base: Algorithm
    """The wrapped algorithm: anything with `start(problem)`."""

    def __post_init__(self) -> None:
        if not isinstance(self.base, Algorithm) or isinstance(self.base, type):
            raise refuse("base", self.base, "an algorithm with a method start(problem), such as DelayedPSVI()")

    @property
    def one_step(self) -> bool:
        return bool(getattr(self.base, "one_step", False))

    @property
    def discounts(self) -> bool:
        """Checked by the base itself."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, including those of the base.

        >>> from belated import BOLD, Greedy
        >>> BOLD(base=Greedy()).to_dict()
        {'algorithm': 'bold', 'base': {'algorithm': 'greedy', 'ridge': 1.0, 'shared': False}}
        """
        return {**super().to_dict(), "base": describe(self.base)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        base = values.get("base")
        if isinstance(base, Mapping):
            values = {**values, "base": agent_from_dict(base)}
        return super().from_dict(values)

    def can_be_loaded(self, agent: Agent) -> bool:
        """Whether `agent`, started by the base, can be saved and loaded by name."""
        base = self.base
        return isinstance(base, Settings) and AGENTS.get(base.kind) is type(base) and isinstance(agent, Savable)


def savable(agent: Agent) -> Savable:
    """Return `agent`, for which `can_be_loaded` is true, typed as savable."""
    assert isinstance(agent, Savable)
    return agent


def ask(agent: Agent, rng: np.random.Generator, state: int | None) -> TablePolicy:
    """Return the next policy of `agent`, passing the first state if it is known and supported."""
    if state is not None and isinstance(agent, PlansFromStart):
        policy: Policy = agent.plan_from(rng, state)
    else:
        policy = agent.plan(rng)
    if not isinstance(policy, TablePolicy):
        raise InvalidInputError(f"plan must return a TablePolicy, got {type(policy).__name__}")
    return policy


def part_of(memory: dict[str, npt.NDArray[Any]], prefix: str) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays whose names begin with `prefix`, named without it."""
    return {name.removeprefix(prefix): values for name, values in memory.items() if name.startswith(prefix)}
