"""The longest delay and the most feedback in flight."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from belated import theory
from belated_studies.lemmas.claims import Check, check, claims
from belated_studies.lemmas.tools import in_flight
from belated_studies.lemmas.worlds import DELAYS, DELTA, EPISODES, Size


def measure(size: Size) -> Iterator[Check]:
    """Yield the largest delay, and the most feedback in flight, of many runs under every distribution."""
    runs = len(size.part(500))
    for name, distribution in DELAYS.items():
        delays = distribution.sample(np.random.default_rng(1), runs * EPISODES).reshape(runs, EPISODES)
        case, longest, most = (
            f"{name} delays of mean {distribution.mean:g}",
            delays.max(axis=1),
            in_flight(delays).max(axis=1),
        )
        bound = theory.delay_bound(distribution, EPISODES, DELTA)
        yield check("Tail of the delays", "max τ ≤ its bound", case, bound, longest, 1 - DELTA)
        bound = theory.missing_bound(distribution, EPISODES, DELTA)
        yield check("Feedback in flight", "max U ≤ its bound", case, bound, most, 1 - DELTA)


ARTEFACT = claims("lateness", 5, "Late and in flight", measure)
