"""What the study of the lemmas measures, against slower ways to measure it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from belated import Constant, Geometric, Lossy, Poisson, RandomLinearMDP, TablePolicy, theory
from belated.types import Floats
from belated_studies.lemmas import tools


def random_precision(rng: np.random.Generator, d: int) -> Floats:
    features = rng.normal(size=(30, d)) * 0.6 ** np.arange(d)
    precision: Floats = np.eye(d) + features.T @ features
    return precision


@pytest.mark.parametrize("steps", [1, 3, 40])
def test_the_ratios_are_those_of_the_covariance_added_up_step_by_step(steps: int) -> None:
    omega = random_precision(np.random.default_rng(steps), 4)
    eta = theory.step_size(omega)
    covariance, power = np.zeros((4, 4)), np.eye(4)
    for _ in range(steps):
        covariance += 2 * eta * power @ power
        power = power @ (np.eye(4) - 2 * eta * omega)
    root = np.linalg.cholesky(omega)
    ratios = np.linalg.eigvalsh(root.T @ covariance @ root)
    assert tools.covariance_ratios(omega, steps) == pytest.approx((ratios[0], ratios[-1]))
    kappa = theory.condition_number(omega)
    lower = 0.5 * (1 - (1 - 1 / (2 * kappa)) ** (2 * steps))
    assert tools.lower_ratio(omega, steps) == pytest.approx(lower)
    assert lower <= ratios[0] <= ratios[-1] <= 1.0


def test_chains_have_the_mean_and_the_covariance_of_their_distribution() -> None:
    omega, chains = random_precision(np.random.default_rng(0), 3), 3000
    errors = tools.chain_errors(omega, 5, chains=chains, rng=np.random.default_rng(1))
    for error, bound in zip(errors, tools.sampling_errors(3, chains, 0.01), strict=True):
        assert 0 < error <= bound


def test_the_sampling_errors_are_exceeded_no_more_often_than_they_may() -> None:
    rng, chains, errors = np.random.default_rng(2), 50, []
    for _ in range(400):
        z = rng.standard_normal((chains, 3))
        covariance = np.abs(np.linalg.eigvalsh(z.T @ z / chains) - 1).max()
        errors.append((np.linalg.norm(z.mean(axis=0)), covariance))
    bounds = np.array(tools.sampling_errors(3, chains, 0.5))
    assert (np.mean(np.array(errors) > bounds, axis=0) <= 0.5).all()
    assert (np.max(errors, axis=0) > bounds / 2).all()  # not idle


@pytest.mark.parametrize(
    "distribution", [Constant(0), Constant(3), Geometric(6), Lossy(Poisson(4), 0.3), Lossy(Constant(0), 1.0)]
)
def test_what_is_in_flight_and_late_by_counting(distribution: Any) -> None:
    rng = np.random.default_rng(7)
    delays = distribution.sample(rng, 2 * 25).reshape(2, 25)
    expected = [
        [sum(delay > k - sent for sent, delay in enumerate(row[: k + 1])) for k in range(25)] for row in delays.tolist()
    ]
    assert tools.in_flight(delays).tolist() == expected
    features = rng.normal(size=(25, 3))
    arrival = np.arange(25) + np.minimum(delays[0], 1000)
    norms = tools.delayed_norms(features, arrival)
    for k in range(25):
        here = features[:k][arrival[:k] < k]
        square = features[k] @ np.linalg.inv(np.eye(3) + here.T @ here) @ features[k]
        assert norms[k] == pytest.approx(np.sqrt(square))


def test_uniform_actions_have_the_mean_value_of_random_policies() -> None:
    world = RandomLinearMDP(states=2, actions=2, dimension=2, horizon=2, seed=3)
    tables = np.stack(np.meshgrid(*[[0, 1]] * 4, indexing="ij"), axis=-1).reshape(16, 2, 2)
    mean = np.mean([world.values(TablePolicy(table)) for table in tables], axis=0)
    np.testing.assert_allclose(tools.uniform_values(world), mean)
