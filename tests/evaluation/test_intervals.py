from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from belated._kernels.streams import stream
from belated.errors import InvalidInputError
from belated.evaluation import Estimate, bootstrap, difference, mean_interval
from belated.evaluation import _intervals as intervals
from belated.types import Floats

numbers = st.floats(-1e6, 1e6, allow_subnormal=False)
tables = arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=numbers)


def naive_means(samples: Floats, resamples: int, seed: int) -> Floats:
    draws = stream(seed, "bootstrap").integers(len(samples), size=(resamples, len(samples)))
    return np.array([np.mean([samples[i] for i in row], axis=0) for row in draws])


def test_the_interval_is_the_expanded_percentile_of_a_naive_bootstrap() -> None:
    samples = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.0, 6.0])
    tail = stats.norm.cdf(-math.sqrt(7 / 6) * stats.t.ppf(0.95, df=6))
    low, high = np.quantile(naive_means(samples, 300, seed=5), [tail, 1 - tail])
    found = mean_interval(samples, level=0.9, resamples=300, seed=5)
    assert (found.value, found.low, found.high) == pytest.approx((26.5 / 7, low, high), rel=1e-12)
    assert (found.level, found.seeds) == (0.9, 7)


def test_two_seeds_give_the_range_of_the_data() -> None:
    found = mean_interval([1.0, 4.0])
    assert (found.value, found.low, found.high) == (2.5, 1.0, 4.0)


def test_a_column_without_spread_has_no_width_even_where_its_mean_rounds() -> None:
    band = bootstrap(np.full((3, 2), 0.1))
    assert band.low.tolist() == band.value.tolist() == band.high.tolist() == [0.1, 0.1]


@pytest.mark.parametrize(
    ("draw", "centre", "lowest"),
    [(np.random.Generator.standard_normal, 0.0, 0.92), (np.random.Generator.standard_exponential, 1.0, 0.89)],
    ids=["normal", "exponential"],
)
def test_ten_seeds_cover_where_the_plain_percentile_does_not(
    draw: Callable[..., Floats], centre: float, lowest: float
) -> None:
    datasets = draw(stream(3, "datasets"), size=(10, 3000))
    band = bootstrap(datasets, resamples=1000, seed=1)
    plain_low, plain_high = np.quantile(naive_means(datasets, 1000, seed=1), [0.025, 0.975], axis=0)
    plain = np.mean((plain_low <= centre) & (centre <= plain_high))
    expanded = np.mean((band.low <= centre) & (centre <= band.high))
    assert plain < lowest <= expanded <= 0.98


def test_a_curve_has_the_scalar_interval_in_every_column(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = stream(0, "samples").normal(size=(6, 5, 3))
    monkeypatch.setattr(intervals, "_CHUNK_NUMBERS", 4 * 500)  # 15 columns in chunks of 4, the last one short
    band = bootstrap(samples, resamples=500)
    assert band.value.shape == band.low.shape == band.high.shape == (5, 3)
    for where in np.ndindex(5, 3):
        alone = mean_interval(samples[:, *where], resamples=500)
        together = (band.value[where], band.low[where], band.high[where])
        assert together == pytest.approx((alone.value, alone.low, alone.high), rel=1e-12)


def test_the_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    samples = stream(0, "samples").normal(size=12)
    assert mean_interval(samples, seed=4) == mean_interval(samples, seed=4)
    assert mean_interval(samples, seed=4) != mean_interval(samples, seed=5)


def test_a_higher_level_is_wider() -> None:
    samples = stream(0, "samples").normal(size=12)
    narrow, wide = mean_interval(samples, level=0.5), mean_interval(samples, level=0.99)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_one_seed_has_a_value_and_no_interval() -> None:
    found = mean_interval([11.529])
    assert found.value == 11.529
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert str(found) == "11.53 [one seed]"
    assert f"{found:.0f}" == "12 [one seed]"
    assert np.isnan(bootstrap(np.zeros((1, 2, 3))).low).sum() == 6


def test_an_estimate_is_written_with_its_interval() -> None:
    found = Estimate(1234.5678, 1200.0, 1300.123, level=0.95, seeds=10)
    assert str(found) == f"{found}" == "1234.57 [1200.00, 1300.12]"
    assert f"{found:,.1f}" == "1,234.6 [1,200.0, 1,300.1]"


def test_a_difference_is_paired_by_seed() -> None:
    luck = stream(0, "luck").normal(scale=100, size=10)
    edge = np.linspace(0.9, 1.1, 10)
    found = difference(luck + edge, luck)
    assert found.value == pytest.approx(1.0)
    assert 0.9 < found.low < 1.0 < found.high < 1.1


def test_no_columns_give_an_empty_band() -> None:
    assert bootstrap(np.empty((3, 0))).low.shape == (0,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap(3.0), r"samples must have at least 1 axis, got 3\.0"),
        (lambda: bootstrap([]), r"samples must have at least one seed, got shape \(0,\)"),
        (lambda: bootstrap([[1.0], [1.0, 2.0]]), r"samples must be an array of numbers"),
        (lambda: bootstrap([[0.0], [math.nan]]), r"samples must be finite, got nan at index \(1, 0\)"),
        (lambda: bootstrap([0.0, 1.0], level=1.0), r"level must be a finite number > 0 and < 1, got 1\.0"),
        (lambda: bootstrap([0.0, 1.0], level=95), r"level must be .* got 95"),
        (lambda: bootstrap([0.0, 1.0], resamples=99), r"resamples must be an integer >= 100, got 99"),
        (lambda: bootstrap([0.0], seed=-1), r"seed must be an integer >= 0, got -1"),
        (lambda: mean_interval([[0.0, 1.0]]), r"samples must have shape \(any,\), got \(1, 2\)"),
        (lambda: difference([0.0, 1.0], [0.0]), r"b must have shape \(2,\), got \(1,\)"),
    ],
)
def test_wrong_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()


@given(samples=tables, level=st.floats(0.01, 0.99))
def test_the_interval_holds_the_mean_and_stays_within_the_data(samples: Floats, level: float) -> None:
    band = bootstrap(samples, level=level, resamples=100)
    np.testing.assert_allclose(band.value, samples.mean(axis=0), atol=1e-8)
    if len(samples) > 1:
        assert (band.low <= band.value).all()
        assert (band.value <= band.high).all()
        assert (band.low >= samples.min(axis=0) - 1e-8).all()
        assert (band.high <= samples.max(axis=0) + 1e-8).all()


@given(samples=tables, order=st.randoms(use_true_random=False))
def test_the_order_of_the_seeds_does_not_matter_to_the_mean(samples: Floats, order: Random) -> None:
    rows = list(range(len(samples)))
    order.shuffle(rows)
    before, after = bootstrap(samples, resamples=100), bootstrap(samples[rows], resamples=100)
    np.testing.assert_allclose(after.value, before.value, atol=1e-8)
