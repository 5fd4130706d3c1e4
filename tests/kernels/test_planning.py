"""Backward-induction kernels against NumPy, and ties that are broken fairly."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from belated._kernels import planning
from belated._kernels.jit import entry_point
from belated._kernels.planning import TIE

greedy = entry_point(planning.greedy)
larger_values = entry_point(planning.larger_values)
linear_values = entry_point(planning.linear_values)
raise_to = entry_point(planning.raise_to)
target_moment = entry_point(planning.target_moment)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@pytest.mark.parametrize(("states", "d"), [(1, 1), (3, 2), (7, 11)])
def test_target_moment(states: int, d: int) -> None:
    rng = np.random.default_rng(d)
    rewards, following, values = (rng.standard_normal(shape) for shape in (d, (states, d), states))
    moment = rng.standard_normal(d)  # what was there before must not matter
    target_moment(rewards, following, values, 0.5, moment)
    np.testing.assert_allclose(moment, rewards + 0.5 * values @ following, rtol=1e-12, atol=1e-14)


def test_target_moment_is_the_regression_on_targets() -> None:
    rng = np.random.default_rng(0)
    phi, rewards, following = rng.standard_normal((20, 3)), rng.random(20), rng.integers(4, size=20)
    values, sigma = rng.random(4), 0.6
    counted = np.stack([phi[following == s].sum(axis=0) for s in range(4)]) / sigma**2
    moment = np.empty(3)
    target_moment(phi.T @ rewards / sigma**2, counted, values, 1.0, moment)
    np.testing.assert_allclose(moment, phi.T @ (rewards + values[following]) / sigma**2, rtol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 23])
@pytest.mark.parametrize("first", [0, 3])
def test_linear_values(d: int, first: int) -> None:
    rng = np.random.default_rng(d)
    rows, weights, q = rng.standard_normal((43, d)), rng.standard_normal((3, d)), rng.standard_normal(40)
    columns, other, wanted = np.ascontiguousarray(rows.T), rng.standard_normal(40), rows[first : first + 40] @ weights.T
    linear_values(columns, weights[0], first, q)
    np.testing.assert_allclose(q, wanted[:, 0], rtol=1e-12, atol=1e-13)
    larger_values(columns, weights[0], weights[1], first, q, other)
    np.testing.assert_allclose(q, wanted[:, :2].max(axis=1), rtol=1e-12, atol=1e-13)


def test_raise_to() -> None:
    q, other = np.array([1.0, -2.0, 3.0]), np.array([0.5, -1.0, 3.0])
    raise_to(q, other)
    assert q.tolist() == [1.0, -1.0, 3.0]
    assert other.tolist() == [0.5, -1.0, 3.0]


def plan(q: Floats, cap: float, rng: np.random.Generator) -> tuple[Floats, Ints]:
    values, policy = np.full(len(q), np.nan), np.full(len(q), -1)
    greedy(q.ravel().copy(), cap, False, rng, values, policy)
    return values, policy


@pytest.mark.parametrize("cap", [0.3, 1.0, 100.0])
def test_greedy_against_numpy(cap: float) -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        q = rng.standard_normal((5, 4))
        values, policy = plan(q, cap, rng)
        capped = np.minimum(q, cap)
        np.testing.assert_array_equal(values, capped.max(axis=1))
        np.testing.assert_array_equal(capped[np.arange(5), policy], values)


def test_no_number_is_drawn_where_there_is_no_tie() -> None:
    q = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, -1.0], [-3.0, -2.0, -5.0]])
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    values, policy = plan(q, 10.0, rng)
    assert rng.bit_generator.state == before
    assert policy.tolist() == [2, 0, 1]
    assert values.tolist() == [3.0, 3.0, -2.0]
    plan(np.array([[2.0]]), 1.0, rng)  # a single action never ties
    assert rng.bit_generator.state == before


def test_one_number_is_drawn_for_each_state_with_a_tie() -> None:
    q = np.array([[1.0, 2.0, 2.0, 0.0], [5.0, 1.0, 6.0, 7.0], [4.0, 1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0]])
    rng, other = np.random.default_rng(7), np.random.default_rng(7)
    values, policy = plan(q, 4.5, rng)
    assert values.tolist() == [2.0, 4.5, 4.0, 0.0]
    picks = [[1, 2][int(other.random() * 2)], [0, 2, 3][int(other.random() * 3)], 0, int(other.random() * 4)]
    assert policy.tolist() == picks
    assert rng.bit_generator.state == other.bit_generator.state


def test_the_first_of_a_tie_is_what_argmax_takes_and_draws_nothing() -> None:
    rng = np.random.default_rng(3)
    before = rng.bit_generator.state
    q = np.round(np.random.default_rng(2).standard_normal((50, 6)), 1)  # rounded, so that ties are common
    values, policy = np.zeros(50), np.zeros(50, dtype=np.int64)
    greedy(q.ravel().copy(), 0.5, True, rng, values, policy)
    assert policy.tolist() == np.minimum(q, 0.5).argmax(axis=1).tolist()
    assert rng.bit_generator.state == before


def test_ties_are_broken_uniformly() -> None:
    rng = np.random.default_rng(1)
    counts = np.zeros((2, 5))
    for _ in range(10_000):
        _, policy = plan(np.array([[1.0, 0.0, 1.0, 1.0, -2.0], [9.0, 3.0, 8.0, 7.0, 6.0]]), 5.0, rng)
        counts[[0, 1], policy] += 1
    assert counts[0, [1, 4]].sum() == 0
    assert counts[1, 1] == 0
    first, second = counts[0, [0, 2, 3]], counts[1, [0, 2, 3, 4]]
    assert ((first - 10_000 / 3) ** 2 / (10_000 / 3)).sum() < 23.0  # P(χ²₂ > 23) ≈ 1e-5
    assert ((second - 2500.0) ** 2 / 2500.0).sum() < 26.0  # P(χ²₃ > 26) ≈ 1e-5


@pytest.mark.parametrize("size", [1e-3, 1.0, 50.0])
def test_rounding_does_not_decide_but_a_difference_does(size: float) -> None:
    scale = max(1.0, size)
    seen = {
        gap: {
            int(plan(np.array([[size, size - gap * TIE * scale]]), 1e9, np.random.default_rng(seed))[1][0])
            for seed in range(40)
        }
        for gap in (0.5, 10.0)
    }
    assert seen == {0.5: {0, 1}, 10.0: {0}}


def test_the_value_of_a_tie_is_the_largest() -> None:
    values, _ = plan(np.array([[1.0 - 5e-13, 1.0, 1.0 - 2e-13]]), 10.0, np.random.default_rng(0))
    assert values.tolist() == [1.0]
