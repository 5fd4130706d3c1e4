"""An algorithm of the library behind an agent of another class, so that the runner asks it in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from belated.types import Agent, Algorithm, Feedback, Policy, Problem


@dataclass(frozen=True)
class InPython:
    """The same algorithm behind an agent of another class, so that the runner asks it in Python."""

    algorithm: Algorithm

    def start(self, problem: Problem) -> Agent:
        inner = self.algorithm.start(problem)

        class Wrapped:
            def plan(self, rng: np.random.Generator) -> Policy:
                return inner.plan(rng)

            def plan_from(self, rng: np.random.Generator, state: int) -> Policy:
                if hasattr(inner, "plan_from"):
                    policy: Policy = inner.plan_from(rng, state)
                    return policy
                return inner.plan(rng)

            def learn(self, batch: Sequence[Feedback]) -> None:
                inner.learn(batch)

        return Wrapped()
