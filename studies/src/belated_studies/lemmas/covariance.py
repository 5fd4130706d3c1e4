"""The sandwich of a chain's covariance Θ between ½(1 − (1 − 1/(2κ))²ᴺ)γΩ⁻¹ and γΩ⁻¹."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from belated import theory
from belated.types import Floats
from belated_studies.lemmas.claims import Check, check, claims
from belated_studies.lemmas.tools import chain_errors, covariance_ratios, lower_ratio, sampling_errors
from belated_studies.lemmas.watch import watch
from belated_studies.lemmas.worlds import DELTA, PRACTICAL, SMALL_DELAY, WORLDS, Size
from belated_studies.reports.document import Chart, Section, Series
from belated_studies.study import Measurement, Played

LEMMA, MEAN, CHAINS = "Covariance of a chain", "Mean of a chain", 4000


def collected() -> list[Floats]:
    """Return every Ω at the end of a run in each small world."""
    runs = [watch(world, PRACTICAL, SMALL_DELAY, episodes=50, seed=0) for world in WORLDS]
    return [omega for run in runs for omega in run.precisions]


def measure(size: Size) -> Iterator[Check]:
    """Yield the claims on the distribution of a chain, and whether chains have that distribution."""
    rng, omegas = np.random.default_rng(0), collected()
    least = "least eigenvalue of Ω^½ΘΩ^½/γ, over ½(1 − (1 − 1/2κ)²ᴺ) ≥ 1"
    for steps in (10, 100):
        case, ratios = f"N = {steps}", np.array([covariance_ratios(omega, steps) for omega in omegas])
        over = ratios[:, 0] / np.array([lower_ratio(omega, steps) for omega in omegas])
        yield check(LEMMA, least, case, 1.0, over, at_least=True)
        yield check(LEMMA, "largest eigenvalue of Ω^½ΘΩ^½/γ ≤ 1", case, 1.0, ratios[:, 1])
        case, bound = f"{case}, {CHAINS:,} chains", sampling_errors(len(omegas[0]), CHAINS, DELTA)
        means, covariances = zip(*(chain_errors(omega, steps, chains=CHAINS, rng=rng) for omega in omegas), strict=True)
        yield check(MEAN, "mean of chains is Aᴺw₀ + (I − Aᴺ)ŵ, but for sampling", case, bound.mean, means, 1 - DELTA)
        claim = "covariance of chains is Θ, but for sampling"
        yield check(LEMMA, claim, case, bound.covariance, covariances, 1 - DELTA)


class Spread(NamedTuple):
    """The eigenvalues of Ω^½ΘΩ^½/γ after N steps, and what the lemma says of the least."""

    steps: int
    largest: float
    least: float
    lower_bound: float


def measure_spread(size: Size) -> Iterator[Spread]:
    """Yield chains of growing length, for the worst conditioned Ω."""
    worst = max(collected(), key=theory.condition_number)
    for steps in np.unique(np.geomspace(1, 400, 40).round().astype(np.int64)).tolist():
        least, largest = covariance_ratios(worst, steps)
        yield Spread(steps, largest, least, lower_ratio(worst, steps))


CLAIMS = claims("covariance", 3, LEMMA, measure)
SPREAD = Measurement[Size](name="covariance-spread", kind=Spread, measure=measure_spread)


def section(played: Played[Size]) -> Section:
    """Return the claims, and the sandwich against the length of the chain."""
    steps, *curves = np.array(played.measured[SPREAD.name], dtype=np.float64).T
    names = ("largest eigenvalue", "least eigenvalue", "lower bound of the lemma")
    chart = Chart(
        id="lemmas-covariance",
        title="Covariance Θ of a chain of N steps",
        caption="Eigenvalues of Ω^½ΘΩ^½/γ for the worst conditioned Ω of the study.",
        x_label="steps of the chain, N",
        y_label="eigenvalue of Ω^½ΘΩ^½/γ",
        series=[Series(name=n, x=steps, y=y, dashed=n == names[-1]) for n, y in zip(names, curves, strict=True)],
        level=("upper bound", 1.0),
        log_x=True,
    )
    return replace(CLAIMS.section(played), charts=[chart])


ARTEFACT = replace(CLAIMS, section=section, measurements=[*CLAIMS.measurements, SPREAD])
