"""A run in which every plan is looked at: are its action values optimistic, and how far from one exact backup?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from belated.agents import DelayedLPSVI, DelayedPSVI
from belated.agents._base import Learner
from belated.delays import DelayDistribution
from belated.environments import FiniteMDP
from belated.runner import Observed, simulate
from belated.types import Floats, Ints
from belated_studies.lemmas.worlds import SMALL_DELAY, SMALL_EPISODES, WORLDS

DRAWS = 2000


class Watched(NamedTuple):
    """A run of an agent whose every action value was looked at."""

    gap: float
    """The least Q − Q* of all states, actions, steps and episodes: at least 0 if all are optimistic."""
    optimistic: float
    """Of all states, actions, steps and episodes, the part with Q >= Q*."""
    deviation: float
    """The largest (|Q − (r + PV)| − 1/K³)/‖φ‖_{Ω⁻¹}, which the event E keeps below β."""
    features: Floats
    """φ of the pairs that were visited, shape (K, H, d)."""
    delays: Ints
    precisions: Floats
    """Ω_h at the last plan, shape (H, d, d)."""


def watch(
    world: FiniteMDP, settings: DelayedPSVI | DelayedLPSVI, delay: DelayDistribution, *, episodes: int, seed: int
) -> Watched:
    """Play a run, looking at every plan."""
    best = _backup(world, world.optimal_values())
    gaps, optimistic, deviations, visited, omega = [], [], [0.0], [], np.zeros(0)

    def look(seen: Observed) -> None:
        nonlocal omega
        assert isinstance(seen.agent, Learner)
        assert seen.plan is not None
        q, omega = seen.plan.q, precisions(seen.agent)
        norms = np.sqrt(np.einsum("sai,hij,saj->hsa", world.features, np.linalg.inv(omega), world.features))
        off = np.abs(q - _backup(world, seen.plan.values)) - episodes**-3.0
        gaps.append((q - best).min())
        optimistic.append((q >= best).mean())
        deviations.append((off / norms).max())
        visited.append(world.features[seen.trajectory.rows[:-1], seen.trajectory.actions])

    rows = simulate(world, settings, delay, episodes=episodes, seed=seed, observe=look)
    share, delays = float(np.mean(optimistic)), rows["delay"].to_numpy()
    return Watched(float(min(gaps)), share, float(max(deviations)), np.stack(visited), delays, omega)


class SingleDraw(NamedTuple):
    """The least chance, over all steps and episodes of a run, that one draw of the weights is optimistic."""

    pair: float
    """At one pair (s, a): P(φᵀw ≥ r + PV), exactly."""
    together: float
    """At all pairs at once, as the proof takes it: the share of `DRAWS` draws."""


def single_draws(
    world: FiniteMDP, settings: DelayedPSVI, delay: DelayDistribution, *, episodes: int, seed: int
) -> SingleDraw:
    """Play a run, and at every plan look at single draws around its posterior mean."""
    pairs, together = [1.0], [1.0]
    rng = np.random.default_rng(seed)
    features = world.features.reshape(-1, world.dimension)

    def look(seen: Observed) -> None:
        assert isinstance(seen.agent, Learner)
        assert seen.plan is not None
        learned, targets = seen.agent.record.learned, _backup(world, seen.plan.values)
        for h, omega in enumerate(precisions(seen.agent)):
            moment = learned.reward_moment[h] + seen.plan.values[h + 1] @ learned.next_moment[h]
            spread = settings.scale * np.linalg.inv(np.linalg.cholesky(omega))  # its rows span N(0, ν²Ω⁻¹)
            short = targets[h].ravel() - features @ np.linalg.solve(omega, moment)
            pairs.append(float(norm.sf(short / np.linalg.norm(features @ spread.T, axis=1)).min()))
            draws = rng.standard_normal((DRAWS, world.dimension)) @ spread @ features.T
            together.append(float((draws >= short).all(axis=1).mean()))

    simulate(world, settings, delay, episodes=episodes, seed=seed, observe=look)
    return SingleDraw(min(pairs), min(together))


def watch_all(settings: DelayedPSVI | DelayedLPSVI, seeds: Sequence[int]) -> list[Watched]:
    """Watch `settings` on all small worlds."""
    return [
        watch(world, settings, SMALL_DELAY, episodes=SMALL_EPISODES, seed=seed) for world in WORLDS for seed in seeds
    ]


def precisions(agent: Learner) -> Floats:
    """Return Ω_h of all steps, shape (H, d, d)."""
    learned = agent.record.learned
    factors = learned.factor
    omega: Floats = np.swapaxes(factors, 1, 2) @ factors if factors.size else np.array(learned.precision)
    return omega


def _backup(world: FiniteMDP, values: Floats) -> Floats:
    """Return r + PV, shape (H, S, A)."""
    exact: Floats = world.rewards + np.einsum("hsat,ht->hsa", world.transitions, values[1:])
    return exact
