"""An agent that has learned a little, with the trajectories and policies to time its pieces on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from belated._kernels.streams import stream
from belated.agents import CompiledSettings
from belated.agents._base import Learner
from belated.delays import Constant
from belated.environments import FiniteMDP
from belated.runner import Run, Simulation
from belated.runner._simulation import BLOCK, CHUNK
from belated.types import Feedback, Floats, Ints
from belated_studies.timing import seconds
from benchmarks.kernels import plan_and_learn_many

#: Episodes that an agent plays before its pieces are timed, and how many of the last ones are gone round.
PLAYED, KEPT = 320, 64


@dataclass(frozen=True, eq=False)
class Scene:
    """An agent and what it met, one row an episode."""

    agent: Learner
    policies: Ints
    states: Ints
    actions: Ints
    rewards: Floats


def make_scene(
    world: FiniteMDP, algorithm: CompiledSettings, episodes: int = PLAYED, explorer: CompiledSettings | None = None
) -> Scene:
    """Let a new agent, or an `explorer` for it, play, and the agent learn without delay; keep the last episodes."""
    agent = algorithm.start(world.problem)
    player = agent if explorer is None else explorer.start(world.problem)
    rng, dynamics = stream(0, "agent"), stream(0, "environment")
    policies, trajectories = [], []
    for k in range(episodes):
        policies.append(player.plan(rng))
        trajectories.append(world.rollout(policies[-1], dynamics))
        agent.learn([Feedback(k, trajectories[-1])])
    policies, trajectories = policies[-KEPT:], trajectories[-KEPT:]
    return Scene(
        agent,
        np.array([policy.actions for policy in policies]),
        np.array([each.states for each in trajectories]),
        np.array([each.actions for each in trajectories]),
        np.array([each.rewards for each in trajectories]),
    )


def agent_episodes(scene: Scene) -> Callable[[int], None]:
    """Return what plays the agent's part of so many episodes: one plan and one arrival each."""
    policy, rng = np.zeros_like(scene.policies[0]), stream(1, "agent")
    return lambda count: plan_and_learn_many(
        scene.agent.record, rng, policy, scene.states, scene.actions, scene.rewards, count
    )


def time_blocks(world: FiniteMDP, algorithm: CompiledSettings, episodes: int, block: int) -> tuple[Floats, Ints]:
    """Simulate, one arrival an episode, and return the seconds and the number of episodes of each block.

    They come after a block that is not counted, since it compiles and allocates.
    """
    simulation = Simulation(Run(world, algorithm, Constant(1), episodes + BLOCK, seed=0))
    simulation.advance(BLOCK)
    taken: list[float] = []
    played: list[int] = []
    while simulation.played < simulation.episodes:
        taken.append(seconds(lambda: played.append(simulation.advance(block))))
    return np.array(taken), np.array(played)


def whole_episode(world: FiniteMDP, algorithm: CompiledSettings, episodes: int) -> float:
    """Return seconds per episode of a simulation in blocks as long as a brisk one has them."""
    taken, played = time_blocks(world, algorithm, episodes, CHUNK)
    return float(taken.sum() / played.sum())
