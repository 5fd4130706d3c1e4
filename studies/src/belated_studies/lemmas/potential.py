"""The elliptical potential, and what delay makes of its root."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from belated import theory
from belated_studies.lemmas.claims import Check, check, claims
from belated_studies.lemmas.tools import delayed_norms
from belated_studies.lemmas.watch import watch
from belated_studies.lemmas.worlds import DELAYS, DELTA, EPISODES, MEDIUM, PRACTICAL, Size


def measure(size: Size) -> Iterator[Check]:
    """Yield the potential of what an agent visits and of directions in turn, and its root under every distribution."""
    d, steps, at_once = MEDIUM.dimension, range(MEDIUM.horizon), np.arange(EPISODES)
    runs = {
        name: [watch(MEDIUM, PRACTICAL, distribution, episodes=EPISODES, seed=seed) for seed in size.part(2)]
        for name, distribution in DELAYS.items()
    }
    visited = [run.features[:, h] for run in runs["Poisson"] for h in steps]
    in_turn = np.tile(np.eye(d), (EPISODES // d + 1, 1))[:EPISODES]
    bound = theory.potential_bound(d, EPISODES)
    for case, sequences in (("pairs an agent visited", visited), ("directions in turn", [in_turn])):
        sums = [float((delayed_norms(each, at_once) ** 2).sum()) for each in sequences]
        yield check("Elliptical potential", "Σ‖φ‖² ≤ 2d log((d + K)/d)", case, bound, sums)
    for name, distribution in DELAYS.items():
        bound = theory.delayed_error_bound(d, MEDIUM.horizon, EPISODES, DELTA, distribution)
        sums = [
            sum(float(delayed_norms(run.features[:, h], at_once + run.delays).sum()) for h in steps)
            for run in runs[name]
        ]
        case = f"{name} delays of mean {distribution.mean:g}"
        yield check("Delayed error", "Σ‖φ‖ ≤ its bound", case, bound, sums, 1 - DELTA / 8)


ARTEFACT = claims("potential", 4, "Elliptical potential and delayed error", measure)
