"""Settings of the theorems: for which problems, which they are, and the warning that comes with them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import optimize, stats

from belated import (
    Bursts,
    Constant,
    DelayDistribution,
    DelayedLPSVI,
    DelayedPSVI,
    Feedback,
    Fixed,
    Geometric,
    IndependentDelays,
    InvalidInputError,
    Lossy,
    Multinomial,
    Pareto,
    Periodic,
    Poisson,
    RandomLinearMDP,
    SyntheticLinearMDP,
    TableProblem,
    simulate,
    theory,
)
from belated.agents._pslb import DelayedPSLB
from belated.theory import ConservativeSettingsWarning, FixedPoint
from belated_studies.lemmas.tools import delayed_norms, in_flight
from belated_studies.lemmas.watch import Watched, watch

SIZES = (2, 2, 20, 0.1)


WORLD = RandomLinearMDP(states=3, actions=2, dimension=SIZES[0], horizon=SIZES[1], seed=4)


BANDIT = RandomLinearMDP(states=1, actions=4, dimension=3, horizon=1, bernoulli=True)


def test_settings_are_those_of_the_theorems() -> None:
    K, delta = SIZES[2:]
    with pytest.warns(
        ConservativeSettingsWarning, match=r"M = 469 draws and ν = 651: .*about 1e\+05 times.* H = 2"
    ) as seen:
        psvi = DelayedPSVI.from_theory(WORLD.problem, K, delta)
    assert seen[0].filename == __file__
    assert psvi == DelayedPSVI(draws=469, scale=theory.psvi_concentration(*SIZES).value, noise=1.0, ridge=1.0)
    with pytest.warns(ConservativeSettingsWarning, match="M = 469 chains of N = 536 steps and √γ = 2.7") as seen:
        lpsvi = DelayedLPSVI.from_theory(WORLD.problem, K, delta)
    assert seen[0].filename == __file__
    assert lpsvi == DelayedLPSVI(
        draws=469,
        steps=536,
        temperature=theory.temperature(*SIZES),
        step_ratio=0.25,
        sampler="collapsed",
        warm_start="cold",
    )
    assert issubclass(ConservativeSettingsWarning, UserWarning)
    assert theory.chain_length(*SIZES).steps == 536


def test_settings_of_a_bandit_are_those_of_the_corollary() -> None:
    with pytest.warns(ConservativeSettingsWarning, match=r"M = 527 draws and ν = 4\.0.*H = 1") as seen:
        found = DelayedPSLB.from_theory(BANDIT.problem, 100, 0.1, reward_noise=0.5)
    assert seen[0].filename == __file__
    # M = log(4·100/0.1)/log(64/63), ν = B√(2[(d/2) log(T + 1) + log(4/δ)]) + √d
    width = 0.5 * math.sqrt(2 * (1.5 * math.log(101) + math.log(40))) + math.sqrt(3)
    assert found.scale == pytest.approx(width)
    assert found == DelayedPSLB(draws=527, scale=found.scale, noise=1.0, ridge=1.0)
    with pytest.raises(InvalidInputError, match="horizon must be 1, since Delayed-PSLB is for bandits, got 2"):
        DelayedPSLB.from_theory(WORLD.problem, 100, 0.1)


def test_problems_outside_the_theorems_are_refused() -> None:
    problem = SyntheticLinearMDP().problem
    assert np.linalg.norm(problem.features, axis=-1).max() > 1
    for made in (DelayedPSVI, DelayedLPSVI, DelayedPSLB):
        with pytest.raises(InvalidInputError, match="features must have norm at most 1"):
            made.from_theory(problem, 10, 0.1)
        with pytest.raises(InvalidInputError, match="problem must be a TableProblem, as that of a FiniteMDP"):
            made.from_theory(WORLD, 10, 0.1)  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match="delta"):
            made.from_theory(TableProblem([[[1.0]]], 1), 10, 1.5)  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match="episodes"):
            made.from_theory(TableProblem([[[1.0]]], 1), 0, 0.5)  # type: ignore[arg-type]


MANY_SIZES = [(1, 1, 1, 0.5), (2, 2, 20, 0.1), (5, 8, 1000, 0.05), (40, 20, 10**6, 0.001)]
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


@pytest.mark.parametrize("sizes", MANY_SIZES)
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


@pytest.mark.parametrize("sizes", MANY_SIZES)
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


@pytest.mark.parametrize("sizes", MANY_SIZES)
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


@pytest.mark.parametrize("sizes", MANY_SIZES)
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dimension": 0}, "dimension must be an integer >= 1"),
        ({"horizon": 2.5}, "horizon must be an integer"),
        ({"episodes": 2**60}, "episodes must be an integer >= 1 and <= 9007199254740992"),
        ({"delta": 0.0}, "delta must be a finite number > 0 and < 1"),
        ({"delta": 1.0}, "delta must be a finite number > 0 and < 1"),
    ],
)
def test_bad_sizes_are_refused(change: dict[str, Any], message: str) -> None:
    sizes: dict[str, Any] = {"dimension": 2, "horizon": 2, "episodes": 2, "delta": 0.1, **change}
    quantities = (theory.psvi_concentration, theory.psvi_beta, theory.temperature, theory.chain_length)
    for quantity in quantities:
        with pytest.raises(InvalidInputError, match=message):
            quantity(**sizes)


@pytest.mark.parametrize("distribution", [Pareto(shape=1, scale=5), Pareto(3, 5), Lossy(Poisson(3), 0.1)])
def test_distributions_without_sub_exponential_tails_are_refused(distribution: DelayDistribution) -> None:
    for refused in (
        lambda: theory.delay_bound(distribution, 10, 0.1),
        lambda: theory.missing_bound(distribution, 10, 0.1),
        lambda: theory.delayed_error_bound(2, 2, 10, 0.1, distribution),
        lambda: theory.bounds(2, 2, 10, 0.1, distribution),
    ):
        with pytest.raises(InvalidInputError, match=f"sub-exponential tails.*{distribution.label} does not"):
            refused()


@pytest.mark.parametrize(
    "distribution", [Fixed([1, 2]), Periodic(24, Poisson(3)), Bursts(Poisson(3), Poisson(9), 0.1, 0.1)]
)
def test_distributions_whose_draws_are_not_alike_and_independent_are_refused(distribution: DelayDistribution) -> None:
    for refused in (
        lambda: theory.missing_bound(distribution, 10, 0.1),
        lambda: theory.bounds(2, 2, 10, 0.1, distribution),
    ):
        with pytest.raises(
            InvalidInputError, match=f"independent and identically distributed.*{distribution.label} is not"
        ):
            refused()


def test_what_is_no_distribution_is_refused() -> None:
    no_distribution: Any = 5
    for refused in (
        lambda: theory.delay_bound(no_distribution, 10, 0.1),
        lambda: theory.bandit_regret_bound(2, 10, 0.1, no_distribution),
    ):
        with pytest.raises(InvalidInputError, match="delay must be a delay distribution, got 5"):
            refused()


def random_precision(rng: np.random.Generator, d: int, episodes: int) -> Floats:
    """Return I plus `episodes` matrices φφᵀ of features that favour a few directions, of norm at most 1."""
    features = rng.normal(size=(episodes, d)) * 0.5 ** np.arange(d)
    features /= np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1.0)
    precision: Floats = np.eye(d) + features.T @ features
    return precision


def least_eigenvalue(matrix: Floats) -> float:
    return float(np.linalg.eigvalsh((matrix + matrix.T) / 2)[0])


@pytest.mark.parametrize("steps", [1, 3, 40])
@pytest.mark.parametrize("d", [1, 2, 6])
def test_the_covariance_of_a_chain_lies_between_its_bounds(d: int, steps: int) -> None:
    rng = np.random.default_rng(10 * d + steps)
    for episodes in (0, 5, 60):
        omega = random_precision(rng, d, episodes)
        gamma, eta, kappa = 3.0, theory.step_size(omega), theory.condition_number(omega)
        contraction = np.eye(d) - 2 * eta * omega
        theta, power = np.zeros((d, d)), np.eye(d)
        for _ in range(steps):  # the covariance of the sum of the noises, one step at a time
            theta += 2 * eta * gamma * power @ power
            power = power @ contraction
        inverse = np.linalg.inv(omega)
        lower = gamma / 2 * (1 - (1 - 1 / (2 * kappa)) ** (2 * steps)) * inverse
        assert least_eigenvalue(theta - lower) >= -1e-12
        assert least_eigenvalue(gamma * inverse - theta) >= -1e-12
        assert least_eigenvalue(2 / 3 * gamma * inverse - theta) >= -1e-12  # what the proof shows on the way
        assert kappa <= theory.condition_bound(max(episodes, 1))


def test_the_bound_on_the_condition_number_is_reached() -> None:
    omega = np.eye(3)
    omega[0, 0] += 10.0  # ten times the same unit feature
    assert theory.condition_number(omega) == pytest.approx(theory.condition_bound(10)) == 11.0
    assert theory.condition_bound(10, ridge=0.5) == 21.0


def test_temperature_is_sixteen_times_the_square() -> None:
    C = theory.lpsvi_concentration(3, 4, 50, 0.1).value
    assert theory.temperature(3, 4, 50, 0.1) == pytest.approx(16 * C**2)
    assert theory.psvi_concentration(3, 4, 50, 0.1).value < C  # its draws are wider, so it has more to cover


def test_the_length_of_a_chain_by_hand() -> None:
    found = theory.chain_length(1, 1, 1, 0.5, condition=1.0)  # ρ = log 2
    assert found.spread == pytest.approx(0.5)
    assert found.accuracy == pytest.approx(2.0)  # log 4 / log 2
    gamma = theory.temperature(1, 1, 1, 0.5)
    assert found.optimism == pytest.approx(math.log2(64 / gamma + 1) / 2)
    assert found.steps == 2


@pytest.mark.parametrize("kappa", [1.0, 7.0, 101.0])
def test_each_term_of_the_length_keeps_its_promise_and_no_more(kappa: float) -> None:
    d, H, K, delta = 3, 4, 100, 0.1
    gamma = theory.temperature(d, H, K, delta)
    found = theory.chain_length(d, H, K, delta, condition=kappa)
    kept = 1 - 1 / (2 * kappa)

    def forgetting(steps: float) -> float:  # how much of the start is left, in the widths that optimism needs
        remains = math.sqrt(K + 1) * kept**steps * 2 * H * math.sqrt(d * K)
        return float(remains / math.sqrt(gamma / 2 * (1 - kept ** (2 * steps))))

    assert forgetting(found.optimism) == pytest.approx(0.5)
    assert 1 - kept ** (2 * found.spread) == pytest.approx(0.5)
    assert kept**found.accuracy * 2 * H * math.sqrt(d * K) == pytest.approx(1 / (2 * K**3))
    assert found.steps - 1 < max(found.optimism, found.spread, found.accuracy) <= found.steps


def test_the_length_grows_in_proportion_to_the_condition_number() -> None:
    short, long = (theory.chain_length(3, 4, 100, 0.1, condition=kappa).accuracy for kappa in (100.0, 1000.0))
    assert long / short == pytest.approx(10, rel=0.01)
    assert theory.chain_length(3, 4, 100, 0.1) == theory.chain_length(3, 4, 100, 0.1, condition=101.0)


def test_bad_matrices_are_refused() -> None:
    refused: list[tuple[npt.ArrayLike, str]] = [
        ([[1.0, 2.0]], "a symmetric matrix"),
        ([[1.0, 2.0], [0.0, 1.0]], "a symmetric matrix"),
        ([[1.0, 0.0], [0.0, -1.0]], "positive definite"),
        ([1.0], "shape"),
    ]
    for bad, message in refused:
        for function in (theory.condition_number, theory.step_size):
            with pytest.raises(InvalidInputError, match=f"precision must .*{message}"):
                function(bad)
    with pytest.raises(InvalidInputError, match="condition"):
        theory.chain_length(2, 2, 2, 0.1, condition=0.5)
    with pytest.raises(InvalidInputError, match="ridge"):
        theory.condition_bound(2, ridge=0.0)


def run(draws: int, scale: float, seed: int) -> Watched:
    return watch(WORLD, DelayedPSVI(draws=draws, scale=scale), Poisson(3), episodes=SIZES[2], seed=seed)


def test_optimism_and_the_event_hold_as_often_as_promised() -> None:
    """Lemma "Optimism" promises 1 - δ/2; the event E, here even without the cap at H - h, 1 - δ/4."""
    _, H, K, delta = SIZES
    draws, width = theory.rounds(delta, H, K), theory.psvi_concentration(*SIZES).value
    beta, runs = theory.psvi_beta(*SIZES), 30
    results = [run(draws, width, seed) for seed in range(runs)]
    assert np.mean([each.gap >= 0 for each in results]) >= 1 - delta / 2
    assert np.mean([each.deviation <= beta for each in results]) >= 1 - delta / 4
    # β is not idle: the draws alone go beyond a quarter of it.
    assert max(each.deviation for each in results) > beta / 4


def test_without_width_there_is_no_optimism() -> None:
    draws = theory.rounds(SIZES[3], *SIZES[1:3])
    assert not any(run(draws, 0.0, seed).gap >= 0 for seed in range(5))


def test_the_agent_of_the_library_is_optimistic_with_the_settings_of_the_theorems() -> None:
    episodes, delta = SIZES[2:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConservativeSettingsWarning)
        settings = [made.from_theory(WORLD.problem, episodes, delta) for made in (DelayedPSVI, DelayedLPSVI)]
    for each in settings:
        agent, rng = each.start(WORLD.problem), np.random.default_rng(0)
        for episode in range(episodes):
            policy = agent.plan(rng)
            assert (agent.record.work.values >= WORLD.optimal_values()).all()
            agent.learn([Feedback(episode, WORLD.rollout(policy, rng))])


def test_measured_regret_is_below_the_bound_of_the_theorem() -> None:
    world, distribution, episodes, delta = RandomLinearMDP(seed=1), Poisson(5), 300, 0.1
    rows = simulate(world, DelayedPSVI(scale=1.0), distribution, episodes=episodes, seed=0)
    regret = rows["regret"][-1]
    bound = theory.psvi_regret_bound(world.dimension, world.horizon, episodes, delta, distribution)
    assert 0 < regret <= bound.total
    # A tuned agent beats the terms that do not depend on β, which the whole bound exceeds by far.
    assert regret <= bound.transitions


def test_regret_bounds_by_hand() -> None:
    d, H, K, delta, distribution = 3, 4, 50, 0.1, Poisson(6)
    log, term = math.log(53 / 3), theory.delay_term(distribution, H, K, delta)
    for bound, beta in [
        (theory.psvi_regret_bound(d, H, K, delta, distribution), theory.psvi_beta(d, H, K, delta)),
        (theory.lpsvi_regret_bound(d, H, K, delta, distribution), theory.lpsvi_beta(d, H, K, delta)),
    ]:
        assert bound.transitions == pytest.approx(math.sqrt(2 * H**2 * (H * K) * math.log(80)))
        assert bound.learning == pytest.approx(beta * H * math.sqrt(2 * d * K * log))
        assert bound.delay == pytest.approx(beta * d * H * term * log)
        assert bound.net == pytest.approx(4 / 2500)
        assert bound.total == pytest.approx(bound.transitions + bound.learning + bound.delay + bound.net)


def test_the_bandit_bound_by_hand() -> None:
    d, T, delta, distribution, noise = 2, 100, 0.1, Poisson(6), 0.5
    M = theory.rounds(delta, 1, T)
    nu = noise * math.sqrt(2 * (math.log(101) + math.log(40))) + math.sqrt(2)
    log_cd = 2 * math.log(1 + (8 * nu * math.sqrt(2 * math.log(160)) + 8 * math.sqrt(2)) * 10**6)
    beta = nu * math.sqrt(2 * (math.log(16 * M * T / delta) + log_cd))
    beta += noise * math.sqrt(2 * (math.log(101) + math.log(80))) + math.sqrt(2)
    bound = theory.bandit_regret_bound(d, T, delta, distribution, noise)
    assert bound.transitions == 0.0
    assert bound.learning == pytest.approx(beta * math.sqrt(4 * T * math.log(51)))
    assert bound.delay == pytest.approx(beta * 2 * theory.delay_term(distribution, 1, T, delta) * math.log(51))
    assert bound.net == pytest.approx(1e-4)


def test_regret_grows_as_the_root_of_episodes_and_in_proportion_to_delay() -> None:
    few, many = (theory.psvi_regret_bound(3, 4, k, 0.1, Poisson(6)).learning for k in (10**6, 10**8))
    assert 10 < many / few < 20  # 10, and logarithms
    short, long = (theory.psvi_regret_bound(3, 4, 100, 0.1, Poisson(m)).delay for m in (1e4, 1e6))
    assert long / short == pytest.approx(100, rel=0.1)


def test_the_summary_agrees_with_its_parts() -> None:
    distribution = Poisson(3)
    found = theory.bounds(*SIZES, distribution)
    rows = {row.symbol: row.value for row in found.to_rows()}
    assert len(rows) == len(found.to_rows())
    d, H, K, delta = SIZES
    expected = {
        "d": d,
        "H": H,
        "K": K,
        "δ": delta,
        "E[τ]": 3.0,
        "v": math.sqrt(6),
        "b": 1.0,
        "max τ": theory.delay_bound(distribution, K, delta),
        "max U": theory.missing_bound(distribution, K, delta),
        "D": theory.delay_term(distribution, H, K, delta),
        "M": 469,
        "ν": theory.psvi_concentration(*SIZES).value,
        "n": theory.psvi_concentration(*SIZES).iterations,
        "C_w": theory.weight_bound(d, H, K, 469, delta / 4, theory.psvi_concentration(*SIZES).value),
        "β": theory.psvi_beta(*SIZES),
        "Σ‖φ‖²": theory.potential_bound(d, K),
        "Σ‖φ‖": theory.delayed_error_bound(*SIZES, distribution),
        "R₁": theory.psvi_regret_bound(*SIZES, distribution).total,
        "R₁ (τ)": theory.psvi_regret_bound(*SIZES, distribution).delay,
        "γ": theory.temperature(*SIZES),
        "n_γ": theory.lpsvi_concentration(*SIZES).iterations,
        "κ": 21.0,
        "η": 1 / 84,
        "N₁": theory.chain_length(*SIZES).optimism,
        "N₂": theory.chain_length(*SIZES).spread,
        "N₃": theory.chain_length(*SIZES).accuracy,
        "N": 536,
        "β_L": theory.lpsvi_beta(*SIZES),
        "R₂": theory.lpsvi_regret_bound(*SIZES, distribution).total,
        "R₂ (τ)": theory.lpsvi_regret_bound(*SIZES, distribution).delay,
        "R_b": theory.bandit_regret_bound(d, K, delta, distribution).total,
        "HK": 40,
    }
    assert rows == expected
    lines = found.table().splitlines()
    assert len(lines) == len(rows)
    assert len({len(line) for line in lines}) == 1
    assert lines[-1].split() == ["HK", "maximum", "regret", "40"]


def test_without_delay_no_part_of_a_bound_is_due_to_it() -> None:
    found = theory.bounds(5, 5, 1000, 0.05, Constant(0))
    assert found.delay_term == found.max_missing == found.max_delay == 0
    assert found.psvi_regret.delay == found.lpsvi_regret.delay == found.bandit_regret.delay == 0
    late = theory.bounds(5, 5, 1000, 0.05, Constant(1))
    assert found.psvi_regret.learning == late.psvi_regret.learning
    assert late.delay_term > 1
    for bound in (theory.missing_bound, theory.delay_bound):
        with pytest.raises(InvalidInputError, match="delta"):
            bound(Constant(0), 10, 2.0)


def test_expected_regret_is_the_corollary() -> None:
    bound = theory.psvi_regret_bound(3, 4, 500, 1 / 2000, Poisson(20)).total  # δ = 1/(HK)
    assert theory.expected_regret_bound(3, 4, 500, Poisson(20)) == bound + 1
    with pytest.raises(InvalidInputError, match="horizon · episodes must be"):
        theory.expected_regret_bound(3, 1, 1, Poisson(20))
    with pytest.raises(InvalidInputError, match="sub-exponential"):
        theory.expected_regret_bound(3, 4, 500, Pareto(1, 500))


def test_the_order_under_any_delay_is_least_at_its_q() -> None:
    sizes = (10, 20, 5000)
    for delay in (Pareto(1, 500), Pareto(1, 500, kind="lomax"), Poisson(50), Lossy(Geometric(40), 0.3), Constant(0)):
        found = theory.arbitrary_delay_bound(*sizes, delay)
        assert isinstance(delay, IndependentDelays)
        assert found.q == delay.cdf(found.quantile)
        assert found.learning == pytest.approx(math.sqrt(10**3 * 20**4 * 5000) / found.q)
        assert found.delay == 10 * 20**2 * found.quantile
        given = [theory.arbitrary_delay_bound(*sizes, delay, q=q).total for q in np.linspace(0.001, 0.699, 400)]
        assert found.total <= 1.0005 * min(given)
    # L/(1 - s/(n + 1)) + cn is least where n + 1 - s = √(sL/c): 499 + √(500·894427/4000)
    assert theory.arbitrary_delay_bound(*sizes, Pareto(1, 500)).quantile == pytest.approx(833.4, abs=1)
    never = theory.arbitrary_delay_bound(*sizes, Lossy(Constant(3), 0.3))
    assert never.q == pytest.approx(0.7)
    assert never.quantile == 3


def test_delays_and_shares_without_an_order_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="delay must let some feedback arrive"):
        theory.arbitrary_delay_bound(2, 2, 20, Lossy(Constant(3), 1.0))
    with pytest.raises(InvalidInputError, match="q must be a fraction of feedback that"):
        theory.arbitrary_delay_bound(2, 2, 20, Lossy(Constant(3), 0.5), q=0.6)
    with pytest.raises(InvalidInputError, match="q must be"):
        theory.arbitrary_delay_bound(2, 2, 20, Poisson(3), q=0.0)
    with pytest.raises(InvalidInputError, match="delay must be a distribution of independent draws"):
        theory.arbitrary_delay_bound(2, 2, 20, Fixed([1] * 20))
