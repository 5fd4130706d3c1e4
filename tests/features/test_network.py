"""The network against plain loops, differences and a regression that has a closed form."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
from feature_maps import observations

from belated._kernels.normals import standard_normals
from belated.errors import InvalidInputError
from belated.features import Network
from belated.features._network import RATE, UNITS, Transitions, adam, forward, gradient

RNG = np.random.default_rng(5)
NETWORK = Network.begun(observations(200), 3, np.random.default_rng(1))


def naive(layers: Any, x: Any) -> tuple[list[float], list[float]]:
    """Return the last hidden layer and the values, one product after the other."""
    hidden = list(x)
    for weights, offsets in ((layers[0], layers[1]), (layers[2], layers[3])):
        sums = [sum(h * w for h, w in zip(hidden, column, strict=True)) for column in weights.T]
        hidden = [max(0.0, total + b) for total, b in zip(sums, offsets, strict=True)]
    values = [sum(h * w for h, w in zip(hidden, column, strict=True)) for column in layers[4].T]
    return hidden, [value + b for value, b in zip(values, layers[5], strict=True)]


def test_features_are_the_last_hidden_layer_and_a_constant() -> None:
    for row in observations(20, seed=3):
        z = [(x - c) / s for x, c, s in zip(row, NETWORK.centre, NETWORK.scale, strict=True)]
        hidden, values = naive(NETWORK.layers, [min(max(each, -5.0), 5.0) for each in z])
        np.testing.assert_allclose(NETWORK.encode(row).values, [*hidden, 1.0], atol=1e-12)
        np.testing.assert_allclose(forward(NETWORK.layers, NETWORK.standardised(row))[2], values, atol=1e-12)
    assert NETWORK.size == UNITS + 1


def test_the_gradient_is_that_of_differences() -> None:
    layers = [each + 0.1 * RNG.standard_normal(each.shape) for each in NETWORK.layers]
    x, actions, wanted = RNG.standard_normal((8, 3)), RNG.integers(3, size=8), 2.0 * RNG.standard_normal(8)

    def loss(these: Any) -> float:
        errors = np.abs(forward(these, x)[2][np.arange(8), actions] - wanted)
        return float(np.mean(np.where(errors < 1.0, 0.5 * errors**2, errors - 0.5)))

    slopes = [np.zeros_like(each) for each in layers]
    gradient(layers, x, actions, wanted, slopes)
    for which, layer in enumerate(layers):
        for place in RNG.integers(layer.size, size=6):
            step = np.zeros(layer.size)
            step[place] = 1e-6
            moved = [[*layers[:which], layer + s * step.reshape(layer.shape), *layers[which + 1 :]] for s in (1, -1)]
            expected = (loss(moved[0]) - loss(moved[1])) / 2e-6
            assert slopes[which].ravel()[place] == pytest.approx(expected, abs=1e-6)


def test_adam_is_that_of_its_source() -> None:
    weights, mean, square = np.array([0.5]), np.zeros(1), np.zeros(1)
    theta, m, v = 0.5, 0.0, 0.0
    for t, g in enumerate([0.3, -2.0, 0.7], start=1):
        adam(weights, np.array([g]), mean, square, t)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        rate = RATE * math.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        theta -= rate * m / (math.sqrt(v) + 1e-8)
        assert weights[0] == pytest.approx(theta, abs=1e-15)


def test_other_scales_are_the_same_function() -> None:
    wider = NETWORK.rescaled(100.0 * observations(50, seed=9) + 7.0)
    assert wider.centre != NETWORK.centre
    for row in np.mean(observations(100), axis=0) + 0.1 * RNG.standard_normal((20, 3)):
        np.testing.assert_allclose(wider.encode(row).values, NETWORK.encode(row).values, atol=1e-9)


def bandit() -> Transitions:
    """Each of two actions ends the episode and pays a linear function of the observation."""
    states = RNG.uniform(-1.0, 1.0, (400, 2))
    action = RNG.integers(2, size=400)
    rewards = np.where(action == 0, states[:, 0], -states[:, 1])
    return Transitions(states, np.arange(400), action, np.full(400, -1), rewards, np.zeros(400))


ANY = -math.inf, math.inf


def test_values_become_what_is_paid() -> None:
    data = bandit()
    begun = Network.begun(data.states, 2, np.random.default_rng(0))
    trained = begun.fitted_to(data, 400, ANY, np.random.default_rng(1))

    def error(network: Network) -> float:
        values = forward(network.layers, network.standardised(data.states))[2]
        return float(np.mean((values[np.arange(400), data.action] - data.rewards) ** 2) / np.var(data.rewards))

    assert error(begun) > 0.9 and error(trained) < 0.05
    assert (begun.trained, trained.trained) == (0, 400)


def test_training_is_the_same_in_one_go_and_in_two() -> None:
    data, rng, again = bandit(), np.random.default_rng(1), np.random.default_rng(1)
    begun = Network.begun(data.states, 2, np.random.default_rng(0))
    once = begun.fitted_to(data, 20, ANY, rng)
    twice = begun.fitted_to(data, 8, ANY, again).fitted_to(data, 12, ANY, again)
    assert once.to_dict() == twice.to_dict()
    assert begun.trained == 0 and copy.deepcopy(once).to_dict() == once.to_dict()


def test_values_stay_within_what_is_possible() -> None:
    """A step that pays 1 and leads to itself is worth 2 at a discount of 0.5, unless bounds say otherwise."""
    ones = np.ones(50)
    at, action = np.zeros(50, np.int64), np.ones(50, np.int64)
    data = Transitions(np.zeros((1, 2)), at, action, at, ones, 0.5 * ones)
    begun = Network.begun(RNG.standard_normal((50, 2)), 2, np.random.default_rng(0))
    for bounds, value in ((ANY, 2.0), ((-math.inf, 1.0), 1.5), ((4.0, math.inf), 3.0)):
        trained = begun.fitted_to(data, 2_000, bounds, np.random.default_rng(1))
        assert forward(trained.layers, trained.standardised(data.states))[2][0, 1] == pytest.approx(value, rel=0.02)


def steps(count: int) -> Transitions:
    """Some transitions, a fifth of them terminal."""
    rng = np.random.default_rng(3)
    after = np.where(rng.random(count) < 0.2, -1, rng.integers(count, size=count))
    states, action = rng.uniform(-1.0, 1.0, (count, 3)), rng.integers(2, size=count)
    return Transitions(
        states, np.arange(count), action, after, rng.standard_normal(count), np.where(after >= 0, 0.9, 0.0)
    )


@pytest.mark.parametrize(("share", "bounds"), [(1.0, ANY), (2.5, (-0.01, 0.02))], ids=str)
def test_draws_are_those_of_the_posterior_of_the_output_layer(share: float, bounds: tuple[float, float]) -> None:
    """N(u, s²Ω⁻¹) by sums over the transitions one by one, inverses, and the same normal numbers."""
    data = steps(60)
    network = Network.begun(data.states, 3, np.random.default_rng(0)).fitted_to(data, 30, ANY, np.random.default_rng(1))
    drawn = network.drawn(data, share, bounds, 0.3, 4, np.random.default_rng(2))
    precisions, errors, norms = np.zeros((3, UNITS + 1, UNITS + 1)), [], []
    for s, a, after, reward in zip(data.state, data.action, data.after, data.rewards, strict=True):
        wanted = reward
        if after >= 0:
            z = network.standardised(data.states[after])
            ours, theirs = naive(network.layers, z)[1], naive(network.target, z)[1]
            wanted += 0.9 * min(max(theirs[max(range(3), key=ours.__getitem__)], bounds[0]), bounds[1])
        hidden, values = naive(network.layers, network.standardised(data.states[s]))
        psi = np.array([*hidden, 1.0])
        precisions[a] += share * np.outer(psi, psi)
        errors.append(wanted - values[a])
        norms.append(float(psi @ psi))
    width, rng = 0.3 * math.sqrt(sum(e * e for e in errors) / 60), np.random.default_rng(2)
    for a in range(3):  # the last one was never taken
        root = np.linalg.cholesky(precisions[a] + max(norms) / (UNITS + 1) * np.eye(UNITS + 1))
        normals = standard_normals(rng, (4, UNITS + 1))
        output = [*network.layers[4][:, a], network.layers[5][a]]
        np.testing.assert_allclose(drawn[:, a], output + width * (normals @ np.linalg.inv(root)), rtol=1e-6, atol=1e-8)


def test_without_width_the_network_is_played_as_it_was_trained() -> None:
    (drawn,) = NETWORK.drawn(steps(20), 1.0, ANY, 0.0, 1, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn[:, :-1], NETWORK.layers[4].T)
    np.testing.assert_array_equal(drawn[:, -1], NETWORK.layers[5])


def test_layers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="layers must be the layers of a network for 3 numbers"):
        Network(**{**NETWORK.__getstate__(), "layers": NETWORK.layers[:4]})
    with pytest.raises(InvalidInputError, match="layers must be the layers of a network for 2 numbers"):
        Network(**{**NETWORK.__getstate__(), "centre": (0.0, 0.0), "scale": (1.0, 1.0)})
