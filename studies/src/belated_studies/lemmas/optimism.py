"""Lemmas "Optimism" and "Pointwise concentration", for the theorems' settings and for practical ones."""

from __future__ import annotations

from collections.abc import Iterator

from belated import theory
from belated.agents import DelayedLPSVI, DelayedPSVI
from belated.environments import RiverSwim
from belated_studies.lemmas.claims import Check, check, claims
from belated_studies.lemmas.watch import single_draws, watch_all
from belated_studies.lemmas.worlds import (
    DELTA,
    NARROW,
    PRACTICAL,
    SMALL_DELAY,
    SMALL_EPISODES,
    WORLDS,
    Size,
    forewarned,
    shown,
)


def measure(size: Size) -> Iterator[Check]:
    """Yield whether all action values of all small worlds are optimistic, and how far off they are."""
    world, optimistic = WORLDS[0], "Q − Q* ≥ 0 for all s, a, h, k"
    sizes = (world.dimension, world.horizon, SMALL_EPISODES, DELTA)
    with forewarned():
        exact = DelayedPSVI.from_theory(world.problem, SMALL_EPISODES, DELTA)
        chains = DelayedLPSVI.from_theory(world.problem, SMALL_EPISODES, DELTA)
    settings: DelayedPSVI | DelayedLPSVI
    for settings, beta in ((exact, theory.psvi_beta(*sizes)), (chains, theory.lpsvi_beta(*sizes))):
        runs, case = watch_all(settings, range(size.seeds)), shown(settings)
        yield check("Optimism", optimistic, case, 0.0, [run.gap for run in runs], 1 - DELTA / 2, at_least=True)
        off = [run.deviation for run in runs]
        yield check("Pointwise concentration", "|Q − (r + PV)| ≤ β‖φ‖ + 1/K³", case, beta, off, 1 - DELTA / 4)
    yield from _single(exact, size)
    for settings in (PRACTICAL, NARROW):
        gaps = [run.gap for run in watch_all(settings, range(size.seeds))]
        case = shown(settings)
        yield check("Optimism", optimistic, case, 0.0, gaps, 1 - DELTA / 2, at_least=True, applies=False)


def _single(exact: DelayedPSVI, size: Size) -> Iterator[Check]:
    """Yield the chance of one draw, of which the lemma says at least 1/64: at one pair, and at all pairs at once."""
    lemma, least = "Anti-concentration", 1 / 64
    found = [
        single_draws(world, exact, SMALL_DELAY, episodes=SMALL_EPISODES, seed=seed)
        for world in WORLDS
        for seed in size.part(3)
    ]
    told, case = "P(one draw ≥ r + PV) ≥ 1/64", shown(exact)
    yield check(lemma, f"{told} at each s, a", case, least, [one.pair for one in found], 1 - DELTA / 4, at_least=True)
    claim = f"{told} at all s, a at once"
    yield check(lemma, claim, f"{case}, d = 2", least, [one.together for one in found], 1 - DELTA / 4, at_least=True)
    river = RiverSwim()
    with forewarned():
        settings = DelayedPSVI.from_theory(river.problem, SMALL_EPISODES, DELTA)
    tabular = single_draws(river, settings, SMALL_DELAY, episodes=SMALL_EPISODES, seed=0).together
    case = f"{shown(settings)}, RiverSwim, d = 10"
    yield check(lemma, claim, case, least, [tabular], 1 - DELTA / 4, at_least=True)


ARTEFACT = claims("optimism", 1, "Optimism", measure)
