"""Delayed-PSVI as the paper counts its cost: a new O(d³) factorisation of every Ω in every episode.

It draws from the same posterior as `DelayedPSVI` and is here only to be timed against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated._kernels.jit import copy
from belated.agents._base import Arrival
from belated.agents._psvi import DelayedPSVI, PSVIRecord
from belated.agents._regression import add_to_moments, make_regression
from belated.types import Floats, Ints, TableProblem


@dataclass(frozen=True, kw_only=True)
class RefactorisingPSVI(DelayedPSVI):
    """Delayed-PSVI that keeps Ω and factorises it again for every plan."""

    kind: ClassVar[str] = "psvi-refactorising"
    whole_episodes: ClassVar[bool] = True

    def record(self, problem: TableProblem) -> RefactorisingRecord:  # type: ignore[override]
        """Return the record of an agent that has seen nothing yet."""
        regression = make_regression(problem, float(self.ridge))
        inner = super().record(problem)._replace(learned=regression)
        precision = np.tile(float(self.ridge) * np.eye(problem.dimension), (problem.horizon, 1, 1))
        learned = RefactorisingLearned(precision, regression.reward_moment, regression.next_moment)
        return RefactorisingRecord(inner, learned)


class RefactorisingLearned(NamedTuple):
    """What feedback changes; the moments are shared with the inner record."""

    precision: Floats
    reward_moment: Floats
    next_moment: Floats


class RefactorisingRecord(NamedTuple):
    """An ordinary record, whose factors are overwritten before each plan, and the matrices they come from."""

    inner: PSVIRecord
    learned: RefactorisingLearned

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Factorise, then plan as Delayed-PSVI does."""
        for h in range(self.inner.table.horizon):
            copy(np.linalg.cholesky(self.learned.precision[h]).T, self.inner.learned.factor[h])
        self.inner.plan(rng, start, policy)

    def learn(self, arrival: Arrival) -> None:
        """Add one late trajectory to Ω and the moments."""
        table, learned = self.inner.table, self.learned
        weight = 1.0 / (self.inner.noise * self.inner.noise)
        for h in range(arrival.actions.size):
            phi = table.rows[add_to_moments(learned.reward_moment, learned.next_moment, table, arrival, h, weight)]
            for i in range(phi.size):
                row = learned.precision[h, i]
                share = weight * phi[i]
                for j in range(phi.size):
                    row[j] += share * phi[j]

    def settle(self) -> None:
        """Do nothing: `learn` defers no work."""
