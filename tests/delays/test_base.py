"""What every distribution has: samples that follow it, and sub-exponential parameters that hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from delay_distributions import EVERY, RANDOM, THREE, arriving, by_label
from scipy import special

from belated._kernels.streams import stream
from belated.delays import (
    NEVER,
    Constant,
    DelayDistribution,
    Empirical,
    Fixed,
    Geometric,
    IndependentDelays,
    Lossy,
    Mixture,
    Multinomial,
    NegativeBinomial,
    Pareto,
    Poisson,
    SubExponential,
    Uniform,
)


@pytest.mark.parametrize("distribution", RANDOM, ids=by_label)
def test_samples_follow_the_distribution(distribution: IndependentDelays) -> None:
    size = 20_000
    delays = distribution.sample(stream(3, "delay"), size)
    assert delays.dtype == np.int64
    assert delays.shape == (size,)
    seen, counts = np.unique(arriving(delays), return_counts=True)
    gaps = np.abs(np.cumsum(counts) / size - [distribution.cdf(int(n)) for n in seen])
    assert gaps.max() < 1.95 / math.sqrt(size)  # Kolmogorov's bound: exceeded once in a thousand seeds
    if distribution.mean < math.inf and distribution.label != "pareto-2.5-0.5":  # whose fourth moment is infinite
        assert abs(delays.mean() - distribution.mean) <= 4 * delays.std() / math.sqrt(size)


@pytest.mark.parametrize(
    ("distribution", "draw"),
    [
        (Poisson(50), lambda rng: rng.poisson(50, 20_000)),
        (Geometric(50), lambda rng: rng.geometric(1 / 51, 20_000) - 1),
        (NegativeBinomial(50, 2), lambda rng: rng.negative_binomial(2, 2 / 52, 20_000)),
        (Pareto(1, 500), lambda rng: np.floor(500 * (1 + rng.pareto(1, 20_000)))),
        (Pareto(1, 500, kind="lomax"), lambda rng: np.floor(500 * rng.pareto(1, 20_000))),
        (Uniform(3, 12), lambda rng: rng.integers(3, 13, 20_000)),
    ],
    ids=by_label,
)
def test_samples_match_numpys(distribution: DelayDistribution, draw: Callable[[np.random.Generator], Any]) -> None:
    ours, theirs = np.sort(distribution.sample(stream(1, "delay"), 20_000)), np.sort(draw(stream(2, "delay")))
    both = np.concatenate([ours, theirs])
    gaps = np.searchsorted(ours, both, side="right") - np.searchsorted(theirs, both, side="right")
    assert np.abs(gaps).max() / 20_000 < 1.95 * math.sqrt(2 / 20_000)


@pytest.mark.parametrize("distribution", [*RANDOM, Pareto(0.1, 3)], ids=by_label)
def test_each_delay_is_the_quantile_at_its_uniform_number(distribution: IndependentDelays) -> None:
    levels = stream(6, "delay").random(200)
    assert distribution.sample(stream(6, "delay"), 200).tolist() == [distribution.quantile(q) for q in levels]


@pytest.mark.parametrize("distribution", EVERY, ids=by_label)
def test_a_longer_sample_only_adds_delays(distribution: DelayDistribution) -> None:
    size = 3 if isinstance(distribution, Fixed) else 400
    whole = distribution.sample(stream(5, "delay"), size)
    for n in [0, 1, size // 2]:
        np.testing.assert_array_equal(distribution.sample(stream(5, "delay"), n), whole[:n])
    if isinstance(distribution, IndependentDelays):
        rng = stream(5, "delay")
        parts = [distribution.sample(rng, n) for n in (1, 99, 300)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_longer_distribution_draws_longer_delays_from_the_same_stream() -> None:
    short, long = (Poisson(mean).sample(stream(5, "delay"), 1000) for mean in (20, 25))
    assert (long >= short).all()
    assert (long > short).any()


def test_a_draw_of_zero_stays_within_the_distribution() -> None:
    class Zeros(np.random.Generator):
        def random(self, size: Any = None, dtype: Any = None, out: Any = None) -> Any:
            return np.zeros(size)

    rng = Zeros(np.random.PCG64())
    assert Uniform(3, 12).sample(rng, 1).tolist() == [3]
    assert Lossy(Constant(2), 1).sample(rng, 1).tolist() == [NEVER]


@cache
def masses(distribution: IndependentDelays) -> Any:
    """P(τ = n) for each n up to the greatest delay."""
    return np.diff([distribution.cdf(n) for n in range(distribution.quantile(1.0) + 1)], prepend=0.0)


def log_mgf(distribution: IndependentDelays, g: float) -> float:
    """log E exp(g (τ - E τ)) from its exact formula."""
    if isinstance(distribution, Poisson):
        raw = distribution.mean * math.expm1(g)
    elif isinstance(distribution, Geometric):
        raw = -math.log1p(-distribution.mean * math.expm1(g))
    elif isinstance(distribution, NegativeBinomial):
        raw = -distribution.dispersion * math.log1p(-distribution.mean / distribution.dispersion * math.expm1(g))
    elif isinstance(distribution, Mixture):
        parts = zip(distribution.weights, distribution.components, strict=True)
        raw = float(special.logsumexp([log_mgf(part, g) + g * part.mean + math.log(w) for w, part in parts]))
    else:
        chances = masses(distribution)
        raw = float(special.logsumexp(g * np.arange(chances.size), b=chances))
    return raw - g * distribution.mean


@pytest.mark.parametrize(
    "distribution",
    [
        Constant(7),
        Uniform(0, 30),
        THREE,
        Multinomial([0, 1000], [0.999, 0.001]),
        Empirical([3, 0, 7, 3, 40]),
        *[Poisson(mean) for mean in (0.01, 1, 50, 1000)],
        *[Geometric(mean) for mean in (0.01, 0.3, 1, 50, 1000)],
        *[NegativeBinomial(mean, r) for mean in (0.01, 1, 50) for r in (0.1, 2, 40)],
        Mixture([Constant(0), Constant(10)], [0.3, 0.7]),
        Mixture([Uniform(0, 1), Uniform(10, 11)], [0.5, 0.5]),
        Mixture([Constant(0), Poisson(50)], [0.25, 0.75]),
        Mixture([Geometric(50), Poisson(5), Uniform(0, 300)], [0.2, 0.3, 0.5]),
        Mixture([Geometric(50), Geometric(500)], [0.99, 0.01]),
    ],
    ids=by_label,
)
def test_subexponential_parameters_bound_the_exact_mgf(distribution: IndependentDelays) -> None:
    tail = distribution.subexponential()
    assert tail is not None
    limit = 1 / tail.b if tail.b else 5.0
    for g in np.linspace(-limit, limit, 401):
        assert log_mgf(distribution, float(g)) <= tail.v**2 * g**2 / 2 * (1 + 1e-12) + 1e-9


@pytest.mark.parametrize("distribution", [Poisson(50), Geometric(50), NegativeBinomial(50, 2)], ids=by_label)
def test_subexponential_parameters_are_of_the_right_size(distribution: IndependentDelays) -> None:
    tail = distribution.subexponential()
    assert tail is not None
    variance = (log_mgf(distribution, 1e-4) + log_mgf(distribution, -1e-4)) / 1e-8
    assert variance <= tail.v**2 <= 4 * math.e * variance


@pytest.mark.parametrize(
    ("distribution", "expected"),
    [
        (Constant(7), SubExponential(0.0, 0.0)),
        (Uniform(3, 12), SubExponential(4.5, 0.0)),
        (Poisson(50), SubExponential(10.0, 1.0)),
        (Lossy(Poisson(50), 0), SubExponential(10.0, 1.0)),
        (Mixture([Constant(0), Poisson(50)], [0.5, 0.5]), SubExponential(math.hypot(10, 25), 1.0)),
        (Mixture([Uniform(0, 10), Uniform(2, 10)], [0.5, 0.5]), SubExponential(5.0, 0.0)),
        (Mixture([Constant(3), Pareto(1, 2)], [1.0, 0.0]), SubExponential(0.0, 0.0)),
        (Pareto(5, 2), None),
        (Pareto(5, 2, kind="lomax"), None),
        (Lossy(Constant(1), 0.1), None),
        (Mixture([Constant(1), Pareto(5, 2)], [0.9, 0.1]), None),
        (Mixture([Constant(1), Lossy(Constant(1), 0.1)], [0.9, 0.1]), None),
        (Fixed([1, 2]), None),
    ],
    ids=by_label,
)
def test_subexponential_parameters(distribution: DelayDistribution, expected: SubExponential | None) -> None:
    assert distribution.subexponential() == expected


def test_a_long_distribution_has_a_short_text() -> None:
    assert repr(Empirical([3, 1])) == "Empirical(observed=(3, 1))"
    assert repr(Fixed(range(5000))) == "Fixed(delays=(0, 1, 2, 3, 4, 5, 6, 7, ... 4,992 more))"
    nested = Mixture([Empirical(range(100)), Poisson(3)], [0.5, 0.5])
    assert repr(Empirical(range(100))) in repr(nested)
    assert len(repr(nested)) < 150
    for distribution in EVERY:
        assert repr(distribution).startswith(f"{type(distribution).__name__}(")
