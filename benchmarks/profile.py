"""Where the time of an episode goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from belated._kernels.streams import stream
from belated.agents import CompiledSettings, DelayedLPSVI, DelayedUCBVI, FixedPolicy
from belated.environments import FiniteMDP
from belated.types import Ints
from belated_studies.timing import stopwatch
from benchmarks.kernels import draw_weights_many, evaluate_many, learn_many, rollout_many
from benchmarks.measure import interleaved
from benchmarks.problems import AGENT, Effort, medium, small
from benchmarks.scene import agent_episodes, make_scene, whole_episode

AGENTS: dict[str, CompiledSettings] = {"psvi": AGENT, "lpsvi": DelayedLPSVI(noise=0.1), "ucbvi": DelayedUCBVI()}


@dataclass(frozen=True)
class Profile:
    """Seconds of an episode, and of its parts."""

    algorithm: str
    problem: str
    whole: float
    parts: dict[str, float]

    @property
    def remainder(self) -> float:
        """What the parts do not explain; below zero if they were slower alone than in the episode."""
        return self.whole - sum(self.parts.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as plain values, in seconds."""
        return {
            "algorithm": self.algorithm,
            "problem": self.problem,
            "whole": self.whole,
            **self.parts,
            "remainder": self.remainder,
        }


def profiles(effort: Effort, tell: Callable[[str], None] = lambda text: None) -> list[Profile]:
    """Take every algorithm apart on the small and the medium problem."""
    found = []
    for problem, world, episodes in (("small", small(), 2048), ("medium", medium(), 256)):
        for name, algorithm in AGENTS.items():
            tell(f"profiling {name} on the {problem} problem")
            found.append(take_apart(name, problem, world, algorithm, episodes, effort))
    return found


def take_apart(
    name: str, problem: str, world: FiniteMDP, algorithm: CompiledSettings, episodes: int, effort: Effort
) -> Profile:
    """Time an episode and its parts, in turn; the least of the repeats counts, since parts are subtracted."""
    scene, least = make_scene(world, algorithm), effort.least_seconds / 4
    record, rng = scene.agent.record, stream(1, "agent")
    values = np.zeros((world.horizon + 1, world.states))
    states, actions, rewards = (np.zeros_like(each[0]) for each in (scene.states, scene.actions, scene.rewards))
    always, same = FixedPolicy(actions=scene.policies[0]), scene.policies[:1]

    def rollouts(policies: Ints) -> Callable[[], float]:
        return stopwatch(lambda count: rollout_many(world.world, policies, rng, states, actions, rewards, count), least)

    def evaluations(policies: Ints) -> Callable[[], float]:
        return stopwatch(lambda count: evaluate_many(world.world, policies, values, count), least)

    with threadpool_limits(1):
        taken = interleaved(
            4 * effort.repeats,
            stopwatch(lambda count: learn_many(record, scene.states, scene.actions, scene.rewards, count), least),
            stopwatch(lambda count: draw_weights_many(record, rng, count), least),
            stopwatch(agent_episodes(scene), least),
            rollouts(scene.policies),
            evaluations(scene.policies),
            rollouts(same),
            evaluations(same),
            lambda: whole_episode(world, always, 8 * episodes),
            lambda: whole_episode(world, algorithm, episodes),
        )
    update, draw, agent, play, evaluation, same_play, same_evaluation, idle, whole = (min(each) for each in taken)
    parts = {
        "update": update,
        "draw": draw,
        "Q": agent - update - draw,  # all that planning does besides finding the weights
        "rollout": play,
        "evaluation": evaluation,
        "recording": idle - same_play - same_evaluation,  # what is left of the loop around an agent that does nothing
    }
    return Profile(name, problem, whole, parts)
