from __future__ import annotations

import importlib
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import stats

from belated import evaluation
from belated._kernels.streams import stream
from belated.errors import InvalidInputError
from belated.evaluation import (
    Estimate,
    bootstrap,
    cumulative_regret,
    difference,
    episodes_to_best,
    first_reaching,
    gaps,
    growth_exponent,
    interquartile_mean,
    mean_interval,
    performance_profile,
    probability_of_improvement,
    upon_convergence,
)
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
    monkeypatch.setattr(evaluation, "_CHUNK_NUMBERS", 4 * 500)  # 15 columns in chunks of 4, the last one short
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


curves = arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 30)), elements=st.integers(0, 9).map(float))


def exact_averages(values: Floats, window: int) -> dict[int, Fraction]:
    """Return the trailing averages of the seed mean by the episode they end at, without rounding."""
    seeds, episodes = values.shape
    width = min(window, episodes)
    totals = {end: int(values[:, end - width : end].sum()) for end in range(width, episodes + 1)}
    return {end: Fraction(total, seeds * width) for end, total in totals.items()}


def test_the_settled_value_is_that_of_the_last_tenth() -> None:
    values = np.zeros((2, 20))
    values[:, -2:] = [[1.0, 3.0], [5.0, 7.0]]
    found = upon_convergence(values)
    assert found.window == 2
    assert found.estimate == mean_interval([2.0, 6.0])
    assert found.spread_over_seeds == pytest.approx(math.sqrt(8))
    assert found.spread_over_episodes == pytest.approx(math.sqrt(20 / 3))


def test_the_window_is_rounded_and_never_empty() -> None:
    assert upon_convergence(np.zeros((2, 3))).window == 1
    assert upon_convergence(np.zeros((2, 100)), fraction=0.29).window == 29
    assert upon_convergence(np.zeros((2, 7)), fraction=1.0).window == 7


def test_one_seed_and_one_episode_have_no_spread() -> None:
    found = upon_convergence([[1.0, 2.0]])
    assert found.estimate.value == 2.0
    assert math.isnan(found.spread_over_seeds)
    assert math.isnan(found.spread_over_episodes)


@given(values=curves, window=st.integers(1, 40))
def test_episodes_to_best_is_the_first_exact_average_at_the_share(values: Floats, window: int) -> None:
    averages = exact_averages(values, window)
    target = Fraction(99, 100) * max(averages.values())
    assert episodes_to_best(values, window) == min(end for end, average in averages.items() if average >= target)


@given(values=curves, window=st.integers(1, 40), threshold=st.integers(-1, 10))
def test_first_reaching_is_the_first_exact_average_at_the_threshold(
    values: Floats, window: int, threshold: int
) -> None:
    hits = [end for end, average in exact_averages(values, window).items() if average >= threshold]
    assert first_reaching(values, threshold, window) == (hits[0] if hits else None)


def test_a_share_short_of_the_maximum_is_reached_earlier() -> None:
    values = [[0.0, 98.0, 99.0, 100.0]]
    assert episodes_to_best(values, window=1) == 3
    assert episodes_to_best(values, window=1, share=0.98) == 2
    assert episodes_to_best(values, window=1, share=1.0) == 4


def test_the_default_window_is_fifty_episodes() -> None:
    values = np.repeat([[0.0, 1.0]], 100, axis=1)
    assert episodes_to_best(values) == 150
    assert first_reaching(values, 0.51) == 126


def test_small_values_are_not_taken_for_rounding() -> None:
    assert first_reaching([[1e-12, 2e-12, 3e-12]], 3e-12, window=1) == 3


def test_a_constant_curve_has_reached_its_own_value_though_its_mean_rounds_down() -> None:
    assert first_reaching(np.full((10, 100), 0.1), 0.1, window=7) == 7


def test_negative_curves_have_thresholds_but_no_share_of_the_best() -> None:
    values = [[-5.0, -2.0, -1.0]]
    assert first_reaching(values, -2.0, window=1) == 2
    assert episodes_to_best(values, window=1, share=1.0) == 3
    with pytest.raises(InvalidInputError, match=r"maximum of -1; use first_reaching"):
        episodes_to_best(values, window=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: upon_convergence([1.0, 2.0]), r"values must have shape \(any, any\), got \(2,\)"),
        (lambda: upon_convergence([[], []]), r"values must have at least one seed and one episode"),
        (lambda: upon_convergence([[1.0]], fraction=0.0), r"fraction must be .* > 0 and <= 1, got 0\.0"),
        (lambda: episodes_to_best([[1.0, math.nan]]), r"values must be finite, got nan at index \(0, 1\)"),
        (lambda: episodes_to_best([[1.0]], window=0), r"window must be an integer >= 1, got 0"),
        (lambda: episodes_to_best([[1.0]], share=1.1), r"share must be .* <= 1, got 1\.1"),
        (lambda: first_reaching([[1.0]], math.nan), r"threshold must be a finite number, got nan"),
    ],
)
def test_wrong_curves_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_gaps_are_optimum_minus_value_in_the_shape_of_value() -> None:
    assert gaps([[3.0], [5.0]], [[1.0, 3.0], [5.0, 4.5]]).tolist() == [[2.0, 0.0], [0.0, 0.5]]
    assert gaps(3.0, 1.0).shape == ()


def test_a_gap_below_zero_by_rounding_is_zero() -> None:
    assert gaps(0.3, [0.1 + 0.2]).tolist() == [0.0]
    assert gaps(1e6, [1e6 + 5e-4]).tolist() == [0.0]


def test_a_value_above_the_optimum_is_refused_where_it_is() -> None:
    message = r"value must not exceed optimal, got 2\.5 against 2\.0 at index \(1, 0\)"
    with pytest.raises(InvalidInputError, match=message):
        gaps(2.0, [[1.0, 2.0], [2.5, 3.0]])
    with pytest.raises(InvalidInputError, match=r"at index \(0,\)"):
        gaps(1e6, [1e6 + 5e-3])


def test_cumulative_regret_runs_along_the_last_axis() -> None:
    assert cumulative_regret([[1.0, 2.0, 0.5], [0.0, 4.0, 1.0]]).tolist() == [
        [1.0, 3.0, 3.5],
        [0.0, 4.0, 5.0],
    ]


@given(st.data())
def test_regret_never_falls_and_ends_at_the_sum_of_the_gaps(data: st.DataObject) -> None:
    values = data.draw(arrays(np.float64, array_shapes(max_dims=3, max_side=5), elements=st.floats(-1e3, 1e3)))
    optimal = data.draw(st.floats(values.max(), 2e3))
    regret = cumulative_regret(gaps(optimal, values))
    assert regret.shape == values.shape
    assert (regret[..., 0] >= 0).all()
    assert (np.diff(regret, axis=-1) >= 0).all()
    lost = values.shape[-1] * optimal - values.sum(axis=-1)
    np.testing.assert_allclose(regret[..., -1], lost, atol=1e-8)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_the_exponent_of_a_power_distribution_is_found_exactly(exponent: float) -> None:
    curves = np.outer([0.1, 1.0, 20.0], np.arange(1.0, 201.0) ** exponent)
    found = growth_exponent(curves)
    assert (found.value, found.low, found.high) == pytest.approx((exponent,) * 3, abs=1e-12)
    assert found.seeds == 3


def test_the_slope_is_that_of_polyfit_after_the_first_tenth() -> None:
    curves = np.cumsum(stream(0, "gaps").random((4, 60)), axis=1)
    slopes = [np.polyfit(np.log(np.arange(7, 61)), np.log(row[6:]), 1)[0] for row in curves]
    assert growth_exponent(curves).value == pytest.approx(np.mean(slopes), rel=1e-9)
    assert growth_exponent(curves, first=0.0).value != pytest.approx(np.mean(slopes), rel=1e-4)


def test_zero_regret_before_the_fit_is_fine_and_within_it_is_refused() -> None:
    curve = np.concatenate([np.zeros(2), np.arange(3.0, 21.0)])
    assert growth_exponent([curve]).value == pytest.approx(1.0)
    message = r"must be > 0 after the first 1 episodes, got 0\.0 at index \(0, 1\)"
    with pytest.raises(InvalidInputError, match=message):
        growth_exponent([curve], first=0.05)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gaps([1.0, 2.0], [1.0, 1.0, 1.0]), r"optimal must .* shape \(3,\), got shape \(2,\)"),
        (lambda: gaps([[1.0], [1.0]], [1.0, 1.0]), r"optimal must .* shape \(2,\), got shape \(2, 1\)"),
        (lambda: gaps(math.inf, [1.0]), r"optimal must be finite, got inf"),
        (lambda: gaps(1.0, [0.0, math.nan]), r"value must be finite, got nan at index \(1,\)"),
        (lambda: cumulative_regret(1.0), r"gaps must have at least 1 axis, got 1\.0"),
        (lambda: growth_exponent([1.0, 2.0]), r"regret_curves must have shape \(any, any\), got \(2,\)"),
        (lambda: growth_exponent([[1.0]]), r"fitted episodes in regret_curves must be .* >= 2, got 1"),
        (lambda: growth_exponent([[1.0, 2.0]], first=1.0), r"first must be .* < 1, got 1\.0"),
    ],
)
def test_wrong_regret_is_named(call: Callable[[], Floats], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()


@pytest.fixture
def scores() -> Floats:
    return np.random.default_rng(3).gamma(2.0, size=(7, 5)).round(1)  # rounded, so that there are ties


def test_the_interquartile_mean_is_scipys_trimmed_mean(
    scores: Floats,
) -> None:
    assert interquartile_mean(scores).value == pytest.approx(stats.trim_mean(scores, 0.25, axis=None), abs=1e-12)


def test_the_probability_of_improvement_is_mann_whitneys_u(
    scores: Floats,
) -> None:
    other = np.random.default_rng(4).gamma(2.5, size=(6, 5)).round(1)
    per_task = [stats.mannwhitneyu(a, b).statistic / (7 * 6) for a, b in zip(scores.T, other.T, strict=True)]
    assert probability_of_improvement(scores, other).value == pytest.approx(np.mean(per_task), abs=1e-12)


def test_a_profile_is_the_share_above_each_threshold() -> None:
    band = performance_profile([[1.0, 2.0], [3.0, 4.0]], [0.0, 1.0, 3.5, 4.0])
    assert band.value.tolist() == [1.0, 0.75, 0.25, 0.0]
    assert (band.low <= band.value).all()
    assert (band.value <= band.high).all()


@pytest.fixture(scope="module")
def rliable() -> Iterator[tuple[Any, Any]]:
    """Return its metrics and its library; what its own bootstrap builds on is not needed, and is not imported."""
    patch = pytest.MonkeyPatch()
    bases = SimpleNamespace(IIDBootstrap=object, IndependentSamplesBootstrap=object)
    patch.setitem(sys.modules, "arch", SimpleNamespace(bootstrap=bases))
    patch.setitem(sys.modules, "arch.bootstrap", bases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of what it imports
        yield importlib.import_module("rliable.metrics"), importlib.import_module("rliable.library")
    patch.undo()
    sys.modules.pop("rliable.library")


@pytest.mark.parametrize("shape", [(7, 5), (10, 1), (3, 11), (4, 4)])
def test_point_estimates_are_those_of_rliable(shape: tuple[int, int], rliable: tuple[Any, Any]) -> None:
    metrics, library = rliable
    scores = np.random.default_rng(3).gamma(2.0, size=shape).round(1)  # rounded, so that there are ties
    other = np.random.default_rng(4).gamma(2.0, size=shape).round(1)
    assert abs(interquartile_mean(scores).value - metrics.aggregate_iqm(scores)) <= 1e-12
    found = probability_of_improvement(scores, other).value
    assert abs(found - metrics.probability_of_improvement(scores, other)) <= 1e-12
    marks = np.linspace(0.0, 6.0, 25)
    theirs = [library.run_score_deviation(scores, mark) for mark in marks]
    np.testing.assert_allclose(performance_profile(scores, marks).value, theirs, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "tasks"), [(10, 3), (20, 5)])
def test_intervals_of_profiles_and_improvement_hold_their_level(runs: int, tasks: int) -> None:
    rng, tries, held = np.random.default_rng(1), 2000, np.zeros(2)
    for _ in range(tries):
        a, b = rng.normal(0.5, 1.0, (runs, tasks)), rng.standard_normal((runs, tasks))
        share = performance_profile(a, [0.5], resamples=400)
        better = probability_of_improvement(a, b, resamples=400)
        held += share.low[0] <= 0.5 <= share.high[0], better.low <= stats.norm.cdf(0.5 / math.sqrt(2)) <= better.high
    assert (held / tries >= 0.93).all(), held / tries
    assert (held / tries <= 0.97).all(), held / tries


@pytest.mark.parametrize(("runs", "tasks"), [(10, 1), (10, 5)])
def test_intervals_hold_their_level(runs: int, tasks: int) -> None:
    rng, held, tries = np.random.default_rng(0), 0, 1500
    for _ in range(tries):
        found = interquartile_mean(rng.standard_normal((runs, tasks)), resamples=200)
        held += found.low <= 0.0 <= found.high
    assert 0.93 <= held / tries <= 0.97


def test_one_run_has_no_interval() -> None:
    found = interquartile_mean([[1.0, 2.0, 3.0, 4.0]])
    assert found.value == 2.5
    assert np.isnan([found.low, found.high]).all()


@pytest.mark.parametrize("bad", [[], [[]], [1.0, 2.0], [[1.0, np.nan]]])
def test_what_is_no_table_of_scores_is_refused(bad: list[object]) -> None:
    with pytest.raises(InvalidInputError, match="scores"):
        interquartile_mean(bad)  # type: ignore[arg-type]


def test_other_tasks_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="b must"):
        probability_of_improvement([[1.0, 2.0]], [[1.0]])
