"""A run in which every plan is looked at: are its action values optimistic, and how far from one exact backup?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from belated.algorithms import DelayedLPSVI, DelayedPSVI
from belated.algorithms.agent import Learner
from belated.delays import DelayBuffer, DelayLaw
from belated.environments import FiniteMDP
from belated.planning import TIE
from belated.rng import stream
from belated.studies.lemmas.worlds import SMALL_DELAY, SMALL_EPISODES, WORLDS
from belated.types import Feedback, Floats, Ints, Policy, Trajectory


class Plan(NamedTuple):
    """A plan with all its action values."""

    policy: Policy
    q: Floats
    """Q_h(s, a) before the cap, shape (H, S, A)."""
    values: Floats
    """V_h(s), shape (H+1, S)."""


def plan(agent: Learner, rng: np.random.Generator) -> Plan:
    """Plan as `agent.plan(rng)` does, number for number, but keep the action values."""
    features, horizon = agent.problem.features, agent.problem.horizon
    states, actions, _ = features.shape
    learned = agent.record.learned
    q, values = np.zeros((horizon, states, actions)), np.zeros((horizon + 1, states))
    policy = np.zeros((horizon, states), dtype=np.int64)
    for h in range(horizon - 1, -1, -1):
        moment = learned.reward_moment[h] + values[h + 1] @ learned.next_moment[h]
        q[h] = (features @ _weights(agent, h, moment, rng).T).max(axis=-1)
        for s in range(states):
            best = values[h, s] = min(q[h, s].max(), horizon - h)
            ties = np.flatnonzero(q[h, s] >= best - TIE * max(1.0, abs(best)))
            policy[h, s] = ties[int(rng.random() * ties.size)] if ties.size > 1 else ties[0]
    return Plan(Policy(policy), q, values)


def _weights(agent: Learner, h: int, moment: Floats, rng: np.random.Generator) -> Floats:
    """Return the M weight vectors drawn at step h, shape (M, d)."""
    settings, learned = agent.settings, agent.record.learned
    assert isinstance(settings, DelayedPSVI | DelayedLPSVI)
    normal = rng.standard_normal((settings.draws, moment.size))
    drawn: Floats
    if isinstance(settings, DelayedPSVI):
        factor = learned.factor[h]
        half = np.linalg.solve(factor.T, moment)  # w = U⁻¹(u + νz), u = U⁻ᵀΦy/σ²
        drawn = np.linalg.solve(factor, (half + settings.scale * normal).T).T
        return drawn
    assert (settings.sampler, settings.warm_start, settings.step_size) == ("collapsed", "cold", None)
    eigenvalues, vectors = np.linalg.eigh(learned.precision[h])
    contraction = 1 - 2 * settings.step_ratio * eigenvalues / eigenvalues[-1]  # A = I − 2ηΩ
    kept = contraction**settings.steps
    mean = (1 - kept) * (moment @ vectors) / eigenvalues
    variance = settings.temperature * (1 - kept**2) / (eigenvalues * (1 + contraction))  # Θ
    drawn = (mean + np.sqrt(variance) * normal) @ vectors.T
    return drawn


def precisions(agent: Learner) -> Floats:
    """Return Ω_h of all steps, shape (H, d, d)."""
    learned = agent.record.learned
    omega: Floats = (
        np.swapaxes(learned.factor, 1, 2) @ learned.factor if learned.factor.size else np.array(learned.precision)
    )
    return omega


@dataclass(frozen=True, eq=False)
class Watched:
    """A run of an agent whose every action value was looked at."""

    gap: float
    """The least Q − Q* of all states, actions, steps and episodes: at least 0 if all are optimistic."""
    optimistic: float
    """Of all states, actions, steps and episodes, the part with Q >= Q*."""
    deviation: float
    """The largest (|Q − (r + PV)| − 1/K³)/‖φ‖_{Ω⁻¹}, which the event E keeps below β."""
    regret: float
    features: Floats
    """φ of the pairs that were visited, shape (K, H, d)."""
    delays: Ints
    precisions: Floats
    """Ω_h at the end, shape (H, d, d)."""


def watch(
    world: FiniteMDP, settings: DelayedPSVI | DelayedLPSVI, delay: DelayLaw, *, episodes: int, seed: int
) -> Watched:
    """Play the same run as `simulate`, looking at every plan."""
    rngs = {name: stream(seed, name) for name in ("delay", "environment", "agent")}
    delays = delay.sample(rngs["delay"], episodes)
    buffer: DelayBuffer[Trajectory] = DelayBuffer()
    agent, optimal = settings.start(world.problem), world.optimal_values()
    best = world.rewards + np.einsum("hsat,ht->hsa", world.transitions, optimal[1:])
    gap, optimistic, deviation, regret = np.inf, 0.0, 0.0, 0.0
    visited = np.zeros((episodes, world.horizon, world.dimension))
    for episode in range(episodes):
        agent.learn([Feedback(*late) for late in buffer.arrived(episode)])
        start = world.first_state(rngs["environment"], episode=episode)
        found = plan(agent, rngs["agent"])
        gap = min(gap, float((found.q - best).min()))
        optimistic += float((found.q >= best).mean()) / episodes
        backup = world.rewards + np.einsum("hsat,ht->hsa", world.transitions, found.values[1:])
        inverse = np.linalg.inv(precisions(agent))
        norms = np.sqrt(np.einsum("sai,hij,saj->hsa", world.features, inverse, world.features))
        deviation = max(deviation, float(((np.abs(found.q - backup) - episodes**-3.0) / norms).max()))
        regret += float(optimal[0, start] - world.values(found.policy)[0, start])
        played = world.rollout(found.policy, rngs["environment"], episode=episode, start=start)
        visited[episode] = world.features[played.states[:-1], played.actions]
        buffer.add(episode, int(delays[episode]), played)
    return Watched(gap, optimistic, deviation, regret, visited, delays, precisions(agent))


def watch_all(settings: DelayedPSVI | DelayedLPSVI, seeds: Sequence[int]) -> list[Watched]:
    """Watch `settings` on all small worlds."""
    return [
        watch(world, settings, SMALL_DELAY, episodes=SMALL_EPISODES, seed=seed) for world in WORLDS for seed in seeds
    ]
