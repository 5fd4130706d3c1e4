"""What Theorem 2 says of Langevin chains, on random precision matrices."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from belated import InvalidInputError, theory

Floats = npt.NDArray[np.float64]


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
