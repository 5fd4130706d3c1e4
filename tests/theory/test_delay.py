"""The lemmas about delays: by hand, and against simulated delays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from belated import Constant, DelayDistribution, Geometric, Multinomial, Poisson, theory
from belated_studies.lemmas.tools import delayed_norms, in_flight

Floats = npt.NDArray[np.float64]

DELAYS = [
    Poisson(mean=20),
    Geometric(mean=20),
    Multinomial(categories=[0, 10, 60], probabilities=[0.3, 0.5, 0.2]),
]


def test_the_bounds_on_delays_by_hand() -> None:
    delta = 3 / math.e**2  # with K = 2, L = log(3K/2δ) = 2
    assert theory.delay_bound(Poisson(8), 2, delta) == pytest.approx(8 + 8)  # v = 4: √(2·16·2)
    assert theory.delay_bound(Poisson(0.5), 2, delta) == pytest.approx(0.5 + 4)  # b = 1: 2·1·2, above √(2·1·2)
    assert theory.missing_bound(Poisson(8), 2, delta) == pytest.approx(8 + 2 * math.sqrt(32) + 8 / 3)
    assert theory.delay_bound(Constant(7), 2, delta) == 7.0


def test_the_delay_term_by_hand() -> None:
    delta = 24 / math.e**4  # with H = K = 1, L = log(24KH/δ) = 4
    expected = 1 + 16 + 2 * math.sqrt(64) + 16 / 3 + 4 * math.sqrt(8)
    assert theory.delay_term(Poisson(8), 1, 1, delta) == pytest.approx(expected)
    assert theory.delay_term(Poisson(8), 2, 1, 2 * delta) == pytest.approx(expected)  # only KH/δ counts


def test_the_potential_and_the_error_by_hand() -> None:
    assert theory.potential_bound(2, 100) == pytest.approx(4 * math.log(51))
    delta = 24 / math.e**4
    term = theory.delay_term(Poisson(8), 1, 1, delta)
    expected = math.sqrt(2 * 3 * math.log(4 / 3)) + 3 * term * math.log(4 / 3)
    assert theory.delayed_error_bound(3, 1, 1, delta, Poisson(8)) == pytest.approx(expected)


@pytest.mark.parametrize("distribution", DELAYS, ids=lambda distribution: distribution.label)
def test_the_bounds_on_delays_fail_no_more_often_than_they_may(distribution: DelayDistribution) -> None:
    runs, episodes, delta = 1000, 150, 0.2
    delays = distribution.sample(np.random.default_rng(1), runs * episodes).reshape(runs, episodes)
    longest, most = delays.max(axis=1), in_flight(delays).max(axis=1)
    assert (longest > theory.delay_bound(distribution, episodes, delta)).mean() <= delta
    assert (most > theory.missing_bound(distribution, episodes, delta)).mean() <= delta
    # Neither bound is idle: the means alone would not do.
    assert (longest > distribution.mean).all()
    assert (most > distribution.mean).mean() > 0.9


def test_the_printed_minimum_of_the_tail_bound_would_be_wrong() -> None:
    """A bounded distribution has b = 0, where min{√(2v²L), 2bL} allows no delay above the mean."""
    distribution = DELAYS[2]
    tail = distribution.subexponential()
    assert tail is not None
    assert tail.b == 0.0
    assert distribution.sample(np.random.default_rng(0), 100).max() > distribution.mean + min(tail.v, 2 * tail.b)


def unit_features(rng: np.random.Generator, episodes: int, d: int) -> Floats:
    """Return directions that are new as often as chance allows, of norm 1."""
    raw = rng.normal(size=(episodes, d))
    unit: Floats = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    return unit


@pytest.mark.parametrize("d", [1, 3, 8])
def test_the_elliptical_potential_lemma(d: int) -> None:
    rng = np.random.default_rng(d)
    episodes = 150
    for features in (unit_features(rng, episodes, d), unit_features(rng, episodes, d) * rng.random((episodes, 1))):
        squares = float((delayed_norms(features, np.arange(episodes)) ** 2).sum())
        logdet = float(np.linalg.slogdet(np.eye(d) + features.T @ features)[1])
        assert logdet <= squares <= 2 * logdet <= theory.potential_bound(d, episodes)
    spread = np.tile(np.eye(d), (episodes // d + 1, 1))[:episodes]
    assert (delayed_norms(spread, np.arange(episodes)) ** 2).sum() > 0.4 * theory.potential_bound(d, episodes)


@pytest.mark.parametrize(
    "distribution",
    [Poisson(mean=100), Geometric(mean=100), Multinomial(categories=[80, 120], probabilities=[0.5, 0.5])],
    ids=lambda distribution: distribution.label,
)
def test_the_sum_of_delayed_errors_stays_below_its_bound(distribution: DelayDistribution) -> None:
    d, episodes, delta = 2, 300, 0.2
    rng = np.random.default_rng(3)
    for _ in range(4):
        delays = distribution.sample(rng, episodes)
        measured = delayed_norms(unit_features(rng, episodes, d), np.arange(episodes) + delays).sum()
        assert measured <= theory.delayed_error_bound(d, 1, episodes, delta, distribution)
        # The lemma for these very delays, without any probability.
        late = 1 + in_flight(delays[None])[0].max() + delays.max()
        potential = theory.potential_bound(d, episodes)
        assert measured <= math.sqrt(episodes * potential) + late * potential / 2
    # A constant delay is the worst: without the delay term the bound would be false.
    stuck = delayed_norms(unit_features(rng, episodes, d), np.arange(episodes) + 150).sum()
    undelayed = math.sqrt(episodes * theory.potential_bound(d, episodes))
    assert undelayed < stuck <= theory.delayed_error_bound(d, 1, episodes, delta, Constant(150))


def test_more_delay_and_more_certainty_cost_more() -> None:
    base: dict[str, Any] = {"horizon": 3, "episodes": 100, "delta": 0.1}
    term = theory.delay_term(Poisson(10), **base)
    assert theory.delay_term(Poisson(11), **base) > term
    for larger in ({"horizon": 4}, {"episodes": 101}, {"delta": 0.09}):
        assert theory.delay_term(Poisson(10), **{**base, **larger}) > term
