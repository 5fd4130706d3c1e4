"""A fixed policy; the optimal one is the oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from belated._kernels.jit import copy
from belated._util.validate import indices
from belated.agents._base import Arrival, CompiledSettings, Nothing
from belated.types import Ints, TableProblem


@dataclass(frozen=True, kw_only=True)
class FixedPolicy(CompiledSettings):
    """Plays the given table of actions in every episode and learns nothing.

    With an environment's optimal policy it is the oracle, whose regret is zero.

    Examples
    --------
    >>> from belated import RiverSwim
    >>> river = RiverSwim()
    >>> oracle = FixedPolicy(actions=river.optimal_policy().actions)
    >>> bool(river.value(oracle.start(river.problem).plan(np.random.default_rng(0))) == river.optimal_value)
    True
    """

    kind: ClassVar[str] = "fixed"
    discounts: ClassVar[bool] = True

    actions: Any
    """`actions[h, s]` is the action in state s at step h."""

    def __post_init__(self) -> None:
        # nested tuples support == and hash
        table = indices("actions", self.actions, (None, None), np.iinfo(np.int64).max)
        object.__setattr__(self, "actions", tuple(tuple(row) for row in table.tolist()))

    def record(self, problem: TableProblem) -> FixedRecord:
        table = indices("actions", self.actions, (problem.horizon, problem.states), problem.actions)
        return FixedRecord(learned=Nothing(np.zeros(0)), actions=np.array(table))


class FixedRecord(NamedTuple):
    learned: Nothing
    actions: Ints

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        copy(self.actions, policy)

    def learn(self, arrival: Arrival) -> None:
        """Learn nothing."""

    def settle(self) -> None:
        """Do nothing: `learn` defers no work."""
