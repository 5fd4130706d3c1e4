"""The part shared by bandit algorithms that learn from a play before, or without, feedback about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from belated._kernels.jit import kernel
from belated._kernels.planning import greedy
from belated.agents._base import CompiledSettings
from belated.agents._regression import Table, Work
from belated.types import Feedback, Ints, Problem


@dataclass(frozen=True, kw_only=True)
class SilentSettings(CompiledSettings):
    """Settings of bandit algorithms that know a play when it is planned, and whose rewards add up."""

    one_step: ClassVar[bool] = True
    learns_from_plans: ClassVar[bool] = True
    adds_reports: ClassVar[bool] = True

    def check_feedback(self, batch: Sequence[Feedback], problem: Problem) -> list[Feedback]:
        return self.check_reports(batch, problem)


@kernel
def play_largest(table: Table, work: Work, state: int, rng: np.random.Generator, policy: Ints) -> int:
    """Choose the action with the largest value in `work.q`; return the pair."""
    greedy(work.q[: table.actions], np.inf, False, rng, work.values[0, state : state + 1], policy[0, state : state + 1])
    return int(state * table.actions + policy[0, state])
