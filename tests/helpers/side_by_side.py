"""An agent and its line-by-line transcription on the same late trajectories, and agents fed the same ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from naive import NaiveAgent

from belated._kernels.streams import stream
from belated.agents import (
    CompiledSettings,
    RandomPolicy,
)
from belated.agents._base import Learner
from belated.delays import DelayDistribution, FeedbackQueue
from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim, SyntheticLinearMDP
from belated.types import Feedback, TablePolicy, Trajectory

Floats = npt.NDArray[np.float64]

EPISODES = 60


ENVIRONMENTS: dict[str, Callable[[], FiniteMDP]] = {
    "synthetic": lambda: SyntheticLinearMDP(actions=6, horizon=8),
    "synthetic-20": lambda: SyntheticLinearMDP(actions=20, horizon=5),
    "riverswim": lambda: RiverSwim(states=4, horizon=6),
    "random-linear": lambda: RandomLinearMDP(states=6, actions=3, dimension=4, horizon=5, seed=3, bernoulli=True),
}

MDPS = pytest.mark.parametrize("environment", list(ENVIRONMENTS))


def homogeneous_linear() -> FiniteMDP:
    """Return a linear MDP whose steps are all like the first of a random one."""
    model = RandomLinearMDP(states=6, actions=3, dimension=4, horizon=5, seed=3)
    tables = model.transitions[0], model.rewards[0], model.features
    return FiniteMDP(*tables, horizon=model.horizon, bernoulli=True, name="homogeneous-linear")


#: Problems whose dynamics and rewards do not depend on the step.
HOMOGENEOUS = pytest.mark.parametrize(
    "mdp", [RiverSwim(states=4, horizon=6), homogeneous_linear()], ids=lambda mdp: mdp.label
)


def play(
    environment: FiniteMDP,
    settings: CompiledSettings,
    naive: NaiveAgent,
    distribution: DelayDistribution,
    seed: int,
    episodes: int = EPISODES,
) -> Iterator[tuple[Learner, np.random.Generator, np.random.Generator]]:
    """Play both agents on the same trajectories, compare every policy, and yield after each plan."""
    agent = settings.start(environment.problem)
    buffer: FeedbackQueue[Trajectory] = FeedbackQueue()
    world, mine, other = stream(seed, "environment"), stream(seed, "agent"), stream(seed, "agent")
    delays = distribution.sample(stream(seed, "delay"), episodes)
    arrived = 0
    for k, delay in enumerate(delays):
        batch = [Feedback(origin, trajectory) for origin, trajectory in buffer.arrived(k)]
        arrived += len(batch)
        agent.learn(batch)
        policy = agent.plan(mine)
        np.testing.assert_array_equal(policy.actions, naive.plan(k, other), err_msg=f"policy of episode {k}")
        np.testing.assert_allclose(
            work_of(agent).values, naive.values, rtol=1e-8, atol=1e-8, err_msg=f"V of episode {k}"
        )
        yield agent, mine, other
        trajectory = environment.rollout(TablePolicy(policy.actions), world)
        buffer.add(k, int(delay), trajectory)
        naive.observe(k, int(delay), trajectory.rows, trajectory.actions, trajectory.rewards)
    assert mine.bit_generator.state == other.bit_generator.state
    assert 0 < arrived < episodes


def fed(mdp: FiniteMDP, *settings: CompiledSettings, episodes: int = 30) -> list[Learner]:
    """Start agents and let each learn the same trajectories of a random policy."""
    agents = [setting.start(mdp.problem) for setting in settings]
    explorer, rng, world = RandomPolicy().start(mdp.problem), stream(0, "explorer"), stream(0, "world")
    batch = [Feedback(k, mdp.rollout(explorer.plan(rng), world)) for k in range(episodes)]
    for agent in agents:
        agent.learn(batch)
    return agents


def values_of(agent: Learner, seed: int) -> Floats:
    agent.plan(np.random.default_rng(seed))
    values: Floats = work_of(agent).values.copy()
    return values


def work_of(agent: Learner) -> Any:
    """Return the scratch space of an agent's sweep; ε-greedy keeps it in its greedy record."""
    return getattr(agent.record, "greedy", agent.record).work
