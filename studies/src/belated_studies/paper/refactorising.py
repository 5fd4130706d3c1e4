"""Delayed-PSVI as the paper counts its cost: a new O(d³) factorisation of every Ω in every episode.

It draws from the same posterior as `DelayedPSVI` and is here only to be timed against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated._kernels.jit import allocating_kernel, copy, kernel
from belated.agents._base import learns, plans
from belated.agents._base import plan as plan_with_factor
from belated.agents._psvi import DelayedPSVI, PSVIRecord
from belated.agents._regression import add_to_moments, make_regression
from belated.types import Floats, Ints, Problem


@dataclass(frozen=True, kw_only=True)
class RefactorisingPSVI(DelayedPSVI):
    """Delayed-PSVI that keeps Ω and factorises it again for every plan."""

    kind: ClassVar[str] = "psvi-refactorising"

    def record(self, problem: Problem) -> RefactorisingRecord:  # type: ignore[override]
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


@plans(RefactorisingRecord)
@allocating_kernel
def plan(agent: RefactorisingRecord, rng: np.random.Generator, policy: Ints) -> None:
    """Factorise, then plan as Delayed-PSVI does."""
    for h in range(agent.inner.table.horizon):
        copy(np.linalg.cholesky(agent.learned.precision[h]).T, agent.inner.learned.factor[h])
    plan_with_factor(agent.inner, rng, policy)


@learns(RefactorisingRecord)
@kernel
def learn(agent: RefactorisingRecord, episode: int, states: Ints, actions: Ints, rewards: Floats) -> None:
    """Add one late trajectory to Ω and the moments."""
    table, learned = agent.inner.table, agent.learned
    weight = 1.0 / (agent.inner.noise * agent.inner.noise)
    for h in range(table.horizon):
        phi = table.rows[states[h] * table.actions + actions[h]]
        add_to_moments(learned.reward_moment[h], learned.next_moment[h], phi, rewards[h], states[h + 1], weight)
        for i in range(phi.size):
            row = learned.precision[h, i]
            share = weight * phi[i]
            for j in range(phi.size):
                row[j] += share * phi[j]
