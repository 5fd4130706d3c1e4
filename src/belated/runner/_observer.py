"""Looking over an agent's shoulder: every plan of a run with all its action values.

An agent's kernels keep the action values of the step they planned last, the first of the episode. Those of step h are
found by planning the problem that is left from there, H − h steps long, with what the agent knows of them and the same
random numbers: backward induction goes through the same steps and stops at h.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from belated.agents._base import Learner
from belated.types import Agent, Floats, TablePolicy, TableProblem, Trajectory


class Plan(NamedTuple):
    """The numbers behind a plan."""

    q: Floats
    """Q_h(s, a) before the cap, shape (H, S, A)."""
    values: Floats
    """V_h(s), shape (H+1, S)."""
    weights: Floats
    """The weights wᵐ_h that were drawn, shape (H, M, d)."""


class Observed(NamedTuple):
    """An episode as an observer sees it, before its feedback is sent."""

    episode: int
    start: int
    policy: TablePolicy
    trajectory: Trajectory
    agent: Agent
    """As it was when it planned, but for the places that its chains have moved to."""
    plan: Plan | None
    """None for agents that do not draw weights."""


class Shoulder:
    """Plans beside an agent, number for number as it does, and keeps what it does not."""

    def __init__(self, agent: Learner) -> None:
        problem = agent.problem
        self._left = [Learner(agent.settings, _left_from(problem, h)) for h in range(problem.horizon)]
        self._shape = problem.states, problem.actions

    def plan(self, agent: Learner, rng: np.random.Generator) -> Plan:
        """Return what the next plan of `agent` with `rng` will be; both are left as they are."""
        horizon, states = len(self._left), self._shape[0]
        q, values, weights = np.zeros((horizon, *self._shape)), np.zeros((horizon + 1, states)), []
        known = agent.memory()
        for h, left in enumerate(self._left):
            wanted = left.memory()
            left.restore({name: each[-len(wanted[name]) :] if h else each for name, each in known.items()})
            left.plan(copy.deepcopy(rng))
            q[h], values[h] = left.record.work.q.reshape(self._shape), left.record.work.values[0]
            weights.append(np.array(left.record.drawn))
        return Plan(q, values, np.stack(weights))


def shoulder(agent: Agent) -> Shoulder | None:
    """Return what looks over the shoulder of `agent`, None if it does not draw weights."""
    return Shoulder(agent) if isinstance(agent, Learner) and hasattr(agent.record, "drawn") else None


def _left_from(problem: TableProblem, h: int) -> TableProblem:
    """Return `problem` without its first h steps."""
    return replace(problem, horizon=problem.horizon - h, dynamics=None)
