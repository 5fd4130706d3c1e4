"""What every feature map promises, and how it is completed from an environment."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest
from feature_maps import MAPS, observations
from gymnasium import spaces

from belated.features import (
    Adaptive,
    Features,
    Fourier,
    FromCallable,
    FromSklearn,
    Hashed,
    Network,
    OneHot,
    Polynomial,
    RadialBasis,
    RandomFourier,
    Seen,
    Tiles,
    features_from_dict,
)

every_map = pytest.mark.parametrize("features", MAPS, ids=lambda features: features.kind)


@every_map
def test_what_every_map_promises(features: Features) -> None:
    for row in observations(100):
        given = np.round(np.clip(row, (-1, 0, 5), (0, 5, 44))) if isinstance(features, OneHot) else row
        before = given.copy()
        encoded = features.encode(given)
        np.testing.assert_array_equal(given, before)
        assert encoded.indices.dtype == np.int64 and encoded.values.dtype == np.float64
        assert encoded.indices.shape == encoded.values.shape
        assert (np.diff(encoded.indices) > 0).all()
        assert encoded.indices[0] >= 0 and encoded.indices[-1] < features.size
        assert np.isfinite(encoded.values).all()
        if not isinstance(features, FromCallable | FromSklearn | Hashed | RandomFourier | Adaptive | Network):
            assert np.linalg.norm(encoded.values) <= 1 + 1e-12
        for same in (given.astype(np.float32), given.tolist(), tuple(given.tolist()), given[np.newaxis]):
            if isinstance(features, FromCallable) and np.ndim(same) > 1:
                continue  # a function of one's own gets the observation as it is
            other = features.encode(np.array(same) if isinstance(same, np.ndarray) else same)
            if not isinstance(same, np.ndarray) or same.dtype == np.float64:
                np.testing.assert_array_equal(other.indices, encoded.indices)
                np.testing.assert_array_equal(other.values, encoded.values)


@every_map
def test_many_observations_are_encoded_as_each_of_them(features: Features) -> None:
    rows = np.array(np.round(np.clip(observations(30), (-1, 0, 5), (0, 5, 44))), np.float64)
    together = features.encode_rows(rows)
    for i, row in enumerate(rows):
        alone, entries = features.encode(row), slice(together.starts[i], together.starts[i + 1])
        np.testing.assert_array_equal(together.indices[entries], alone.indices)
        np.testing.assert_allclose(together.values[entries], alone.values, rtol=0, atol=1e-12)


@every_map
def test_round_trips(features: Features) -> None:
    row = np.array([0.0, 3.0, 12.0])
    values = json.loads(json.dumps(features.to_dict()))
    for again in (features_from_dict(values), pickle.loads(pickle.dumps(features)), copy.deepcopy(features)):
        assert type(again) is type(features)
        assert again.to_dict() == features.to_dict()
        assert again.size == features.size
        np.testing.assert_array_equal(again.encode(row).indices, features.encode(row).indices)
        np.testing.assert_array_equal(again.encode(row).values, features.encode(row).values)


def test_what_is_not_known_is_filled_in() -> None:
    space = spaces.Dict({"b": spaces.Box(-np.inf, np.inf, (2,)), "a": spaces.Discrete(4, start=1)})
    played = [{"a": 2, "b": np.array([x, 7.0])} for x in (-3.0, 0.0, 4.0)]
    asked = []

    def play() -> list[Any]:
        asked.append(1)
        return played

    tiles = Tiles().fitted(Seen(space, play))
    # a number that did not vary, 7, has a range around it
    assert (tiles.low, tiles.high) == ((1.0, -3.0, 6.5), (4.0, 4.0, 7.5))
    assert tiles.integers == (True, False, False)
    assert asked == [1]
    one_sided = spaces.Box(np.array([0, -np.inf]), np.array([np.inf, 1]), dtype=np.float64)
    half = Seen(one_sided, lambda: [np.array([5, -2]), np.array([3, 0])])
    assert (half.ranges.low, half.ranges.high) == ((0.0, -2.0), (5.0, 1.0))  # a bound that is stated stays
    assert tiles.fitted(Seen(space, play)) is tiles  # nothing is missing any more
    given = tiles.encode({"b": np.array([99.0, 7.0]), "a": 4})
    np.testing.assert_array_equal(given.indices, tiles.encode({"a": 4, "b": np.array([4.0, 7.0])}).indices)
    for features in (Fourier(), RandomFourier(), RadialBasis(), Polynomial()):
        assert features.fitted(Seen(space, play)).to_dict()["low"] == [1.0, -3.0, 6.5]
    assert OneHot().fitted(Seen(spaces.MultiDiscrete([3, 4]), play)).size == 12
    assert FromCallable(function=lambda observation: [1.0] * 5).fitted(Seen(space, play)).size == 5
