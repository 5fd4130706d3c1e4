"""The longest delay and the most feedback in flight."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from belated import theory
from belated.studies.lemmas.claims import Check, check, claims
from belated.studies.lemmas.tools import in_flight
from belated.studies.lemmas.worlds import DELTA, EPISODES, LAWS, Size


def measure(size: Size) -> Iterator[Check]:
    """Yield the largest delay, and the most feedback in flight, of many runs under every law."""
    runs = len(size.part(500))
    for name, law in LAWS.items():
        delays = law.sample(np.random.default_rng(1), runs * EPISODES).reshape(runs, EPISODES)
        case = f"{name} delays of mean {law.mean:g}"
        for lemma, claim, bound, found in (
            ("Tail of the delays", "max τ ≤ its bound", theory.delay_bound(law, EPISODES, DELTA), delays),
            ("Feedback in flight", "max U ≤ its bound", theory.missing_bound(law, EPISODES, DELTA), in_flight(delays)),
        ):
            most = found.max(axis=1).astype(np.float64)
            yield check(lemma, claim, case, bound=bound, runs=most, promised=1 - DELTA)


ARTEFACT = claims("lateness", 5, "Late and in flight", measure)
