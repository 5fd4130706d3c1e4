"""M, C_δ, the fixed point and β against numbers worked out by hand or by another route."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
from scipy import optimize, stats

from belated import InvalidInputError, theory
from belated.theory import FixedPoint

SIZES = [(1, 1, 1, 0.5), (2, 2, 20, 0.1), (5, 8, 1000, 0.05), (40, 20, 10**6, 0.001)]
SOLVERS: list[tuple[Callable[[int, int, int, float], FixedPoint], float]] = [
    (theory.psvi_concentration, 1.0),
    (theory.lpsvi_concentration, 4.0),
]


def test_rounds_by_hand() -> None:
    assert theory.rounds(0.5, 1, 1) == 133  # log 8 / log(64/63) = 132.04
    assert theory.rounds(0.05, horizon=20, episodes=5000) == 1010  # log(8e6) / log(64/63) = 1009.3


def test_the_number_of_draws_also_serves_a_union_over_the_pairs() -> None:
    """One draw of width C is optimistic at one pair with the chance P(Z >= 1): M draws of it, for all pairs at once."""
    miss = stats.norm.cdf(1.0)
    for delta, horizon, episodes in [(0.5, 1, 1), (0.05, 20, 5000)]:
        draws = theory.rounds(delta, horizon, episodes)
        target = delta / (4 * horizon * episodes)
        assert draws * math.log(miss) + 9.9 * math.log(1 / target) <= math.log(target)
        assert (63 / 64) ** draws <= target < (63 / 64) ** (draws - 1)


def test_weight_bound_by_hand() -> None:
    # 2·3·√8 + 3(√4 + √(2 log 100)) = 16.9706 + 3·(2 + 3.03485)
    assert theory.weight_bound(2, 3, 4, draws=10, delta=0.1, width=3.0) == pytest.approx(32.07513, abs=1e-5)


def test_concentration_by_hand() -> None:
    # weight bound 2; √(8[½ log 2 + log(1 + 2√8·2) + log 4]) + 2 = √(8·4.243581) + 2
    assert theory.concentration(1, 1, 1, draws=1, delta=0.5, width=0.0) == pytest.approx(7.826547, abs=1e-6)


def printed(d: int, H: int, K: int, M: int, delta: float, width: float) -> float:
    """C_δ of the lemma, with every λ written out."""
    lam = 1.0
    C = 2 * H * math.sqrt(d * K / lam) + (
        width * math.sqrt(2 * d) + width * math.sqrt(2 * math.log(M / delta))
    ) / math.sqrt(lam)
    net = d * M * math.log(1 + 2 * math.sqrt(8 * K**3) * C / (H * math.sqrt(lam)))
    return (
        math.sqrt(8 * H**2 * (d / 2 * math.log((K + lam) / lam) + net + math.log(2 / delta)))
        + 2 * math.sqrt(lam) * math.sqrt(d) * H
    )


@pytest.mark.parametrize("sizes", SIZES)
def test_the_printed_constant_leaves_room_for_the_union_over_steps_and_episodes(
    sizes: tuple[int, int, int, float],
) -> None:
    """The proof again with H/2 for the spread of a value in [0, H], the mesh H/(√8K), and HK in each logarithm."""
    d, H, K, delta = sizes
    M = theory.rounds(delta, H, K)
    width = theory.psvi_concentration(*sizes).value
    norm = 2 * H * math.sqrt(d * K) + width * (math.sqrt(2 * d) + math.sqrt(2 * math.log(2 * M * H * K / delta)))
    net = d * M * math.log(1 + 2 * math.sqrt(8) * K * norm / H)
    needed = H**2 * (d / 2 * math.log(K + 1) + net + math.log(2 * H * K / delta)) + H**2
    assert math.sqrt(needed) <= theory.concentration(d, H, K, M, delta, width) - 2 * math.sqrt(d) * H


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(("solve", "ratio"), SOLVERS)
def test_the_fixed_point_solves_its_equation(
    sizes: tuple[int, int, int, float], solve: Callable[[int, int, int, float], FixedPoint], ratio: float
) -> None:
    d, H, K, delta = sizes
    M = theory.rounds(delta, H, K)
    found = solve(d, H, K, delta)
    assert found.value == pytest.approx(printed(d, H, K, M, delta / 4, ratio * found.value), rel=1e-11)
    root = optimize.brentq(lambda c: printed(d, H, K, M, delta / 4, ratio * c) - c, 1.0, 1e12, rtol=1e-13)
    assert found.value == pytest.approx(root, rel=1e-10)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(("solve", "ratio"), SOLVERS)
def test_the_iterates_increase_and_each_gains_more_than_a_digit(
    sizes: tuple[int, int, int, float], solve: Callable[[int, int, int, float], FixedPoint], ratio: float
) -> None:
    found = solve(*sizes)
    steps = [later - earlier for earlier, later in pairwise(found.iterates)]
    assert found.iterates[0] == 0.0
    assert found.iterations == len(steps) <= 15
    assert all(step >= 0 for step in steps)
    large = [step for step in steps[1:] if step > 1e-9 * found.value]  # the first starts from nothing
    assert all(later < 0.1 * earlier for earlier, later in pairwise(large))


@pytest.mark.parametrize("sizes", SIZES)
def test_beta_by_the_printed_formula(sizes: tuple[int, int, int, float]) -> None:
    d, H, K, delta = sizes
    M = theory.rounds(delta, H, K)
    cases = [
        (theory.psvi_beta, theory.psvi_concentration(*sizes).value, 8),
        (theory.lpsvi_beta, math.sqrt(theory.temperature(*sizes)), 16),
    ]
    for beta, width, net in cases:
        log_cd = d * math.log(
            1 + (net * math.sqrt(2 * width**2 * math.log(16 / delta)) + net * H * math.sqrt(d)) * K**3
        )
        first = math.sqrt(2 * width**2 * (math.log(16 * H * M * K / delta) + log_cd))
        assert beta(*sizes) == pytest.approx(first + printed(d, H, K, M, delta / 8, width), rel=1e-12)


@pytest.mark.parametrize("quantity", [theory.psvi_beta, theory.lpsvi_beta, theory.temperature])
def test_everything_grows_with_the_size_of_the_problem(quantity: Callable[..., float]) -> None:
    base = {"dimension": 4, "horizon": 5, "episodes": 100, "delta": 0.1}
    for larger in ({"dimension": 5}, {"horizon": 6}, {"episodes": 101}, {"delta": 0.09}):
        assert quantity(**{**base, **larger}) > quantity(**base)


def test_the_width_has_the_order_of_the_theorem() -> None:
    """ν is of order H√(dM) up to logarithms: H doubled doubles it, but for M and logarithms."""
    sizes = [(4, 10, 1000, 0.1), (4, 20, 1000, 0.1)]
    width, wider = (
        theory.psvi_concentration(*each).value / math.sqrt(theory.rounds(0.1, *each[1:3])) for each in sizes
    )
    assert wider / width == pytest.approx(2.0, rel=0.01)


def test_bad_draws_and_widths_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="draws"):
        theory.concentration(1, 1, 1, draws=0, delta=0.1, width=1.0)
    with pytest.raises(InvalidInputError, match="width"):
        theory.weight_bound(1, 1, 1, draws=1, delta=0.1, width=-1.0)
