"""`RareSwitching` and `MultiBatch` in simulators: a plan is kept until enough has been learned."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from belated._util.validate import check_generator, refuse
from belated.agents import _invariants as invariants
from belated.agents._invariants import check_memory
from belated.agents._sparse import SparseAgent, WeightAgent
from belated.agents._wrapper import part_of
from belated.types import Feedback, Floats, Policy, SimulatorProblem, check_batch

if TYPE_CHECKING:
    from belated.agents._multi_batch import MultiBatch
    from belated.agents._rare_switching import RareSwitching

#: Tolerance for comparisons of growth, so that rounding does not decide.
SLACK = 1e-9


class KeptPlanAgent(ABC):
    """A wrapper for simulators: the base agent plans only when the wrapper decides."""

    def __init__(self, settings: RareSwitching | MultiBatch, problem: SimulatorProblem) -> None:
        base = settings.base.start(problem)
        if not isinstance(base, SparseAgent):
            raise refuse("base", settings.base, "an algorithm that plans from a regression, such as DelayedPSVI()")
        self.settings, self.problem, self.base = settings, problem, base
        self.mark = self.information()
        """log det Ω of every step at the last plan, shape (H,)."""
        self.counts = np.zeros(3, np.int64)

    def information(self) -> Floats:
        """Return log det Ω of every step; zeros for a base that keeps no Ω."""
        return self.base.information() if isinstance(self.base, WeightAgent) else np.zeros(self.problem.horizon)

    @property
    def growth(self) -> float:
        """Maximum over the steps of the growth of det Ω since the last plan."""
        return math.exp(min(float((self.information() - self.mark).max()) + SLACK, 700.0))

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        base = {f"base.{name}": values for name, values in self.base.memory().items()}
        return {**base, "mark": self.mark, "counts": self.counts}

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        own = {name: values for name, values in memory.items() if not name.startswith("base.")}
        own = check_memory(own, {"mark": self.mark, "counts": self.counts})
        invariants.counts("counts", own["counts"])
        self.base.restore(part_of(memory, "base."))
        self.mark, self.counts = own["mark"].copy(), own["counts"].copy()

    @abstractmethod
    def plan(self, rng: np.random.Generator) -> Policy: ...

    def __repr__(self) -> str:
        return f"<{self.settings}: {self.problem}>"


class RareSimulatorAgent(KeptPlanAgent):
    """`RareSwitching` in a simulator; counts are [episodes since the last plan, feedback since then, plans]."""

    settings: RareSwitching

    def __init__(self, settings: RareSwitching, problem: SimulatorProblem) -> None:
        super().__init__(settings, problem)
        if settings.growth is not None and not isinstance(self.base, WeightAgent):
            wanted = f"None, and every an integer: {type(settings.base).__name__} keeps no Ω to measure growth by"
            raise refuse("growth", settings.growth, wanted)

    @property
    def plans(self) -> int:
        """Number of policies planned so far."""
        return int(self.counts[2])

    def plan(self, rng: np.random.Generator) -> Policy:
        check_generator("rng", rng)
        since, arrived, plans = self.counts.tolist()
        growth, every = self.settings.growth, self.settings.every
        due = plans == 0 or (every is not None and since >= every)
        if not due and growth is not None and arrived > 0:
            self.counts[1] = 0
            due = self.growth >= growth
        if not due:
            self.counts[0] += 1
            return self.base.policy(rng)
        policy = self.base.plan_now(rng)
        self.mark, self.counts = self.information(), np.array([1, 0, plans + 1])
        return policy

    def learn(self, batch: Sequence[Feedback]) -> None:
        clean = check_batch(batch, self.problem)
        self.base.learn(clean)
        self.counts[1] += len(clean)


class MultiBatchSimulatorAgent(KeptPlanAgent):
    """`MultiBatch` in a simulator; counts are [episodes planned, first episode of the batch, arrivals in the batch]."""

    settings: MultiBatch

    def __init__(self, settings: MultiBatch, problem: SimulatorProblem) -> None:
        super().__init__(settings, problem)
        if not isinstance(self.base, WeightAgent):
            raise refuse("base", settings.base, "an algorithm that keeps Ω, such as DelayedPSVI()")

    def plan(self, rng: np.random.Generator) -> Policy:
        check_generator("rng", rng)
        planned, _, arrived = self.counts.tolist()
        if planned == 0 or (arrived > 0 and self.growth >= self.settings.growth):
            policy = self.base.plan_now(rng)
            self.mark, self.counts = self.information(), np.array([planned + 1, planned, 0])
            return policy
        self.counts[0] += 1
        return self.base.policy(rng)

    def learn(self, batch: Sequence[Feedback]) -> None:
        clean, first = check_batch(batch, self.problem), int(self.counts[1])
        kept = [each for each in clean if each.episode >= first or not self.settings.drop_stragglers]
        self.base.learn(kept)
        self.counts[2] += len(kept)
