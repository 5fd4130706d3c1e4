"""Regret, and when a curve has settled."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from belated._kernels.streams import stream
from belated.errors import InvalidInputError
from belated.evaluation import (
    cumulative_regret,
    episodes_to_best,
    first_reaching,
    gaps,
    growth_exponent,
    mean_interval,
    upon_convergence,
)
from belated.types import Floats


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
def test_wrong_input_is_named_of_regret(call: Callable[[], Floats], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()


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
def test_wrong_input_is_named_of_convergence(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()
