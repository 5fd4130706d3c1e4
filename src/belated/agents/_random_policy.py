"""Uniformly random actions: the baseline that every learner must beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._util.validate import check_generator
from belated.agents._base import Arrival, CompiledSettings, Nothing
from belated.agents._invariants import check_memory
from belated.agents._plan_sets import NO_WIDTHS, PlanSet
from belated.types import (
    Feedback,
    Floats,
    Ints,
    Plays,
    Savable,
    SimulatorProblem,
    SparseRows,
    SparseVector,
    TableProblem,
    check_batch,
)


@dataclass(frozen=True, kw_only=True)
class RandomPolicy(CompiledSettings):
    """Takes every action with the same probability and learns nothing.

    Examples
    --------
    >>> from belated import RiverSwim
    >>> agent = RandomPolicy().start(RiverSwim().problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (20, 5)
    """

    kind: ClassVar[str] = "random"
    discounts: ClassVar[bool] = True
    plays: ClassVar[Plays] = "both"

    def record(self, problem: TableProblem) -> RandomRecord:
        return RandomRecord(learned=Nothing(np.zeros(0)), actions=problem.actions)

    def start_simulator(self, problem: SimulatorProblem) -> Savable:
        return RandomSampler(self, problem)


class RandomRecord(NamedTuple):
    learned: Nothing
    actions: int

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        for h in range(policy.shape[0]):
            for s in range(policy.shape[1]):
                policy[h, s] = int(rng.random() * self.actions)

    def learn(self, arrival: Arrival) -> None:
        """Learn nothing."""

    def settle(self) -> None:
        """Do nothing: `learn` defers no work."""


class RandomSampler:
    def __init__(self, settings: RandomPolicy, problem: SimulatorProblem) -> None:
        self.settings, self.problem = settings, problem

    def plan(self, rng: np.random.Generator) -> RandomActions:
        check_generator("rng", rng)
        return RandomActions(np.random.default_rng(int(rng.integers(2**63))), self.problem.actions)

    def plan_set(self, rng: np.random.Generator, count: int) -> PlanSet:
        """Return one plan with uniform actions."""
        blocks = 1 if self.problem.joint else self.problem.actions
        caps = np.full(self.problem.horizon, np.inf)
        nothing = np.zeros(0, np.int64)
        return PlanSet(np.zeros((1, 1, 1, blocks, 0)), nothing, NO_WIDTHS, caps, 1.0, 0.0, 0.0, False)

    def learn(self, batch: Sequence[Feedback]) -> None:
        check_batch(batch, self.problem)

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        return {}

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        check_memory(memory, {})


class RandomActions(NamedTuple):
    """Uniform actions at every step."""

    rng: np.random.Generator
    actions: int

    def act(self, step: int, state: SparseVector | SparseRows) -> int:
        return int(self.rng.integers(self.actions))

    def distribution(self, step: int, state: SparseVector | SparseRows) -> Floats:
        return np.full(self.actions, 1.0 / self.actions)
