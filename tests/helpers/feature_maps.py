"""Feature maps that the tests share, and observations for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import PolynomialFeatures

from belated.features import (
    Adaptive,
    Distinct,
    Features,
    Fourier,
    FromCallable,
    FromSklearn,
    Hashed,
    Joint,
    Network,
    OneHot,
    Polynomial,
    RadialBasis,
    RandomFourier,
    Tiles,
)
from belated.types import Floats

LOW, HIGH = (-1.0, 0.0, 10.0), (1.0, 5.0, 30.0)


def dense(features: Features, observation: Any) -> Floats:
    """Return all k features."""
    encoded = features.encode(observation)
    out = np.zeros(features.size)
    out[encoded.indices] = encoded.values
    return out


def observations(count: int, seed: int = 0) -> Floats:
    """Return observations within the bounds, and a few beyond them."""
    wide = np.random.default_rng(seed).uniform(-0.1, 1.1, size=(count, 3))
    table: Floats = np.array(LOW) + wide * (np.array(HIGH) - np.array(LOW))
    return table


def shares(row: Floats) -> list[float]:
    return [min(max((x - a) / (b - a), 0.0), 1.0) for x, a, b in zip(row, LOW, HIGH, strict=True)]


def triple(observation: Any) -> list[float]:
    return [1.0, float(observation[0]), 2.0 * float(observation[0])]


def pair(observation: Any, action: int) -> list[float]:
    return [1.0, float(observation[0]) * action]


JOINT = Joint(function=pair, actions=2, width=2)
"""Encodes an observation as SparseRows, one row for each action; tests of `MAPS` expect one vector."""

MAPS: list[Features] = [
    OneHot(sizes=(2, 6, 40), start=(-1, 0, 5)),
    Tiles(low=LOW, high=HIGH),
    Tiles(low=LOW, high=HIGH, tilings=3, bins=4, join="all"),
    Tiles(low=LOW, high=HIGH, bins=(4, 9, 5)),
    Tiles(low=LOW, high=HIGH, tilings=4, join="single"),
    Tiles(low=LOW, high=HIGH, tilings=4, integers=(False, True, True)),
    Fourier(low=LOW, high=HIGH, order=2),
    RandomFourier(low=LOW, high=HIGH, count=40, seed=3),
    RadialBasis(low=LOW, high=HIGH, centres=3),
    Polynomial(low=LOW, high=HIGH, degree=3),
    FromCallable(function=triple, width=3),
    FromSklearn(transformer=PolynomialFeatures(2), rows=((0.0, 0.0, 0.0), (1.0, 2.0, 3.0))),
    Adaptive(first=Tiles(low=LOW, high=HIGH)),
    Distinct(),
    Hashed(size=64),
    Network.begun(observations(50), 2, np.random.default_rng(0)),
]
