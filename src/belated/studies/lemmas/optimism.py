"""Lemmas "Optimism" and "Pointwise concentration", for the theorems' settings and for practical ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from belated import theory
from belated.algorithms import DelayedLPSVI, DelayedPSVI
from belated.studies.lemmas.claims import Check, check, claims
from belated.studies.lemmas.watch import watch_all
from belated.studies.lemmas.worlds import DELTA, NARROW, PRACTICAL, SMALL_EPISODES, WORLDS, Size, forewarned, shown

SIZES = (WORLDS[0].dimension, WORLDS[0].horizon, SMALL_EPISODES, DELTA)


def measure(size: Size) -> Iterator[Check]:
    """Yield whether all action values of all small worlds are optimistic, and how far off they are."""
    with forewarned():
        exact = DelayedPSVI.from_theory(WORLDS[0].problem, SMALL_EPISODES, DELTA)
        chains = DelayedLPSVI.from_theory(WORLDS[0].problem, SMALL_EPISODES, DELTA)
    settings: DelayedPSVI | DelayedLPSVI
    for settings, beta in (
        (exact, theory.psvi_beta(*SIZES)),
        (chains, theory.lpsvi_beta(*SIZES)),
        (PRACTICAL, None),
        (NARROW, None),
    ):
        runs = watch_all(settings, range(size.seeds))
        yield check(
            "Optimism",
            "Q − Q* ≥ 0 for all s, a, h, k",
            shown(settings),
            bound=0.0,
            runs=np.array([run.gap for run in runs]),
            promised=1 - DELTA / 2,
            at_least=True,
            applies=beta is not None,
        )
        if beta is not None:
            yield check(
                "Pointwise concentration",
                "|Q − (r + PV)| ≤ β‖φ‖ + 1/K³",
                shown(settings),
                bound=beta,
                runs=np.array([run.deviation for run in runs]),
                promised=1 - DELTA / 4,
            )


ARTEFACT = claims("optimism", 1, "Optimism", measure)
