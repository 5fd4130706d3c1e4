"""Agents with a fixed feature map in an environment with adaptive features: they use the first map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from belated.features import Adaptive, Features
from belated.types import Feedback, Policy, SimulatorProblem, SparseVector, check_batch


def with_first_map(problem: SimulatorProblem) -> SimulatorProblem:
    """Return the problem with the first feature map."""
    features = problem.features
    if not isinstance(features, Adaptive):
        return problem
    return replace(problem, features=features.begun)


class OnFirstMap:
    """Wraps an agent with a fixed feature map: encodes raw observations for it."""

    def __init__(self, agent: Any, problem: SimulatorProblem, features: Features) -> None:
        self.agent, self.problem, self.features = agent, problem, features
        self.settings = agent.settings

    def plan(self, rng: np.random.Generator) -> Policy:
        return EncodedPolicy(self.agent.plan(rng), self.features)

    def learn(self, batch: Sequence[Feedback]) -> None:
        self.agent.learn([self._encoded(each) for each in check_batch(batch, self.problem)])

    def _encoded(self, feedback: Feedback) -> Feedback:
        late: Any = feedback.trajectory
        states = [self.features.encode(state.values) for state in late.states]
        return Feedback(feedback.episode, replace(late, states=states))

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        memory: dict[str, npt.NDArray[Any]] = self.agent.memory()
        return memory

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        self.agent.restore(memory)

    def __repr__(self) -> str:
        return repr(self.agent)


class EncodedPolicy:
    """Encodes raw observations and acts on their features."""

    def __init__(self, policy: Policy, features: Features) -> None:
        self._policy, self._features = policy, features

    def act(self, step: int, state: SparseVector) -> int:
        return self._policy.act(step, self._features.encode(state.values))
