from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from sklearn.preprocessing import PolynomialFeatures

from belated.errors import InvalidInputError, UnknownNameError
from belated.features import (
    FEATURES,
    Features,
    Fourier,
    FromCallable,
    FromSklearn,
    OneHot,
    Polynomial,
    RadialBasis,
    RandomFourier,
    Seen,
    Tiles,
    automatic,
    features_from_dict,
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


MAPS: list[Features] = [
    OneHot(sizes=(2, 6, 40), start=(-1, 0, 5)),
    Tiles(low=LOW, high=HIGH),
    Tiles(low=LOW, high=HIGH, tilings=3, bins=4, join="all"),
    Tiles(low=LOW, high=HIGH, bins=(4, 9, 5)),
    Tiles(low=LOW, high=HIGH, tilings=4, join="single"),
    Tiles(low=LOW, high=HIGH, tilings=4, whole=(False, True, True)),
    Fourier(low=LOW, high=HIGH, order=2),
    RandomFourier(low=LOW, high=HIGH, count=40, seed=3),
    RadialBasis(low=LOW, high=HIGH, centres=3),
    Polynomial(low=LOW, high=HIGH, degree=3),
    FromCallable(function=triple, width=3),
    FromSklearn(transformer=PolynomialFeatures(2), rows=((0.0, 0.0, 0.0), (1.0, 2.0, 3.0))),
]
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
        if not isinstance(features, FromCallable | FromSklearn | RandomFourier):
            assert np.linalg.norm(encoded.values) <= 1 + 1e-12
        for same in (given.astype(np.float32), given.tolist(), tuple(given.tolist()), given[np.newaxis]):
            if isinstance(features, FromCallable) and np.ndim(same) > 1:
                continue  # a function of one's own gets the observation as it is
            other = features.encode(np.array(same) if isinstance(same, np.ndarray) else same)
            if not isinstance(same, np.ndarray) or same.dtype == np.float64:
                np.testing.assert_array_equal(other.indices, encoded.indices)
                np.testing.assert_array_equal(other.values, encoded.values)


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


def test_every_map_is_in_the_registry_and_tested() -> None:
    assert {features.kind for features in MAPS} == set(FEATURES)
    assert all(kind.kind == name for name, kind in FEATURES.items())


def test_one_hot_is_the_number_of_the_state() -> None:
    features = OneHot(sizes=(3, 4, 5), start=(1, 0, -2))
    for where in np.ndindex(3, 4, 5):
        observation = np.add(where, (1, 0, -2))
        assert features.encode(observation).indices.tolist() == [np.ravel_multi_index(where, (3, 4, 5))]
    assert OneHot(sizes=(7,), start=(3,)).encode(np.int64(5)).indices.tolist() == [2]


def naive_tiles(row: Floats, groups: list[tuple[int, ...]], tilings: int, bins: int) -> list[tuple[int, ...]]:
    """Return grid by grid in which tile a state is, by the definition."""
    found = []
    for number, group in enumerate(groups):
        for tiling in range(tilings):
            tile = []
            for j, i in enumerate(group):
                displaced = shares(row)[i] * bins + tiling * (2 * j + 1) % tilings / tilings
                tile.append(min(math.floor(displaced), bins))
            found.append((number, tiling, *tile))
    return found


@pytest.mark.parametrize(
    ("join", "groups"),
    [("automatic", [(0, 1), (0, 2), (1, 2)]), ("all", [(0, 1, 2)]), ("single", [(0,), (1,), (2,)])],
)
def test_tiles_are_those_of_the_definition(join: str, groups: list[tuple[int, ...]]) -> None:
    """Two states share as many tiles as by the definition, for every pair of states."""
    tiles = Tiles(low=LOW, high=HIGH, tilings=5, bins=3, join=join)
    rows = observations(60)
    assert tiles.active == 5 * len(groups)
    assert tiles.size == sum(5 * 4 ** len(group) for group in groups)
    ours = [set(tiles.encode(row).indices.tolist()) for row in rows]
    theirs = [set(naive_tiles(row, groups, 5, 3)) for row in rows]
    for i, j in itertools.combinations(range(len(rows)), 2):
        assert len(ours[i] & ours[j]) == len(theirs[i] & theirs[j])
    np.testing.assert_allclose(dense(tiles, rows[0]) @ dense(tiles, rows[0]), 1.0)


def test_whole_numbers_have_a_tile_for_each_value() -> None:
    tiles = Tiles(low=(0, 0, 0), high=(3, 4, 1.0), whole=(True, True, False), tilings=4, bins=2)
    # 4 x 5 values told apart once, not in four tilings; 4 x 3 and 5 x 3 tiles in four
    assert tiles.size == 20 + 4 * 12 + 4 * 15
    kept: dict[tuple[int, int], int] = {}
    for a, b in itertools.product(range(4), range(5)):
        kept[a, b] = int(tiles.encode((a, b, 0.5)).indices[0])
    assert sorted(kept.values()) == list(range(20))


def test_near_states_share_tiles_and_far_ones_do_not() -> None:
    tiles = Tiles(low=(0, 0), high=(1, 1))
    near = dense(tiles, (0.5, 0.5)) @ dense(tiles, (0.51, 0.5))
    far = dense(tiles, (0.5, 0.5)) @ dense(tiles, (0.9, 0.5))
    assert near > 0.8 and far == 0.0


def test_fourier_is_the_definition() -> None:
    features = Fourier(low=LOW, high=HIGH, order=2)
    for row in observations(20):
        expected = [
            math.cos(math.pi * sum(c * x for c, x in zip(frequency, shares(row), strict=True))) / math.sqrt(27)
            for frequency in itertools.product(range(3), repeat=3)
        ]
        np.testing.assert_allclose(dense(features, row), expected, atol=1e-12)


def test_polynomial_is_that_of_scikit_learn() -> None:
    features = Polynomial(low=LOW, high=HIGH, degree=3)
    for row in observations(20):
        expected = PolynomialFeatures(3).fit_transform([[2 * x - 1 for x in shares(row)]])[0] / math.sqrt(20)
        np.testing.assert_allclose(dense(features, row), expected, atol=1e-12)


def test_radial_basis_is_the_definition() -> None:
    features = RadialBasis(low=LOW, high=HIGH, centres=3, width=0.5)
    for row in observations(20):
        bumps = [
            math.exp(-sum((x - c / 2) ** 2 for x, c in zip(shares(row), centre, strict=True)) / (2 * 0.25**2))
            for centre in itertools.product(range(3), repeat=3)
        ]
        np.testing.assert_allclose(dense(features, row), np.array(bumps) / sum(bumps), atol=1e-12)


def test_random_fourier_approximates_a_gaussian_kernel() -> None:
    features = RandomFourier(low=(0, 0), high=(1, 1), count=10_000, length=0.4, seed=1)
    rng = np.random.default_rng(0)
    for a, b in rng.random((10, 2, 2)):
        expected = math.exp(-float(((a - b) ** 2).sum()) / (2 * 0.4**2))
        assert dense(features, a) @ dense(features, b) == pytest.approx(expected, abs=0.05)
    assert not np.array_equal(dense(features, a), dense(RandomFourier(low=(0, 0), high=(1, 1), count=10_000), a))


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
    assert tiles.whole == (True, False, False)
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


def test_a_transformer_is_fitted_once_and_saved_with_what_it_was_fitted_to() -> None:
    from sklearn.kernel_approximation import RBFSampler

    space = spaces.Box(-np.inf, np.inf, (3,))
    rows = observations(50)
    unfitted = FromSklearn(transformer=RBFSampler(n_components=17, random_state=4))
    features = unfitted.fitted(Seen(space, lambda: list(rows)))
    expected = RBFSampler(n_components=17, random_state=4).fit(rows).transform(rows[:1])[0]
    np.testing.assert_allclose(dense(features, rows[0]), expected)
    again = features_from_dict(json.loads(json.dumps(features.to_dict())))
    np.testing.assert_array_equal(dense(again, rows[1]), dense(features, rows[1]))


def test_the_automatic_choice() -> None:
    assert automatic(spaces.Discrete(6, start=2)) == OneHot(sizes=(6,), start=(2,))
    assert automatic(spaces.MultiDiscrete([3, 4])) == OneHot(sizes=(3, 4))
    assert automatic(spaces.MultiBinary(3)) == OneHot(sizes=(2, 2, 2))
    many = automatic(spaces.MultiDiscrete([30, 30, 30]))
    assert many == Tiles()
    whole = many.fitted(Seen(spaces.MultiDiscrete([30, 30, 30]), lambda: [np.array([3, 4, 5]), np.array([9, 9, 9])]))
    assert isinstance(whole, Tiles) and whole.whole == (True,) * 3 and whole.active == 3
    assert automatic(spaces.Box(-np.inf, np.inf, (4,))) == Tiles()


def test_tiles_are_as_fine_as_random_play_needs() -> None:
    def fitted(space: spaces.Space[Any], *rows: list[float]) -> Tiles:
        made = automatic(space).fitted(Seen(space, lambda: [np.array(row) for row in rows]))
        assert isinstance(made, Tiles)
        return made

    # of the first number half is seen, of the second a tenth, of the third 0.3; the fourth never varies
    four = fitted(spaces.Box(0, 1, (4,)), [0.1, 0.2, 0.3, 0.4], [0.6, 0.3, 0.6, 0.4])
    assert four.bins == (4, 8, 7, 4)
    assert four.active == 4 * 6
    assert four.size == 4 * (5 * 9 + 5 * 8 + 5 * 5 + 9 * 8 + 9 * 5 + 8 * 5)
    two = fitted(spaces.Box(-1, 1, (2,)), [0.0, 0.0], [0.5, 0.02])
    assert (two.bins, two.active) == ((8, 16), 8)
    assert fitted(spaces.Box(-3.4e38, 3.4e38, (3,)), [0.0, 0, 0], [1.0, 2, 3]).high == (1.0, 2.0, 3.0)
    given = Tiles(bins=5).fitted(Seen(spaces.Box(0, 1, (2,)), lambda: [np.zeros(2), np.full(2, 0.01)]))
    assert given.bins == 5  # what was chosen stays


class Late(list[float]):
    """Returns one number more every time."""

    def __call__(self, observation: Any) -> list[float]:
        self.append(0.0)
        return self


BAD: list[tuple[Any, str]] = [
    (lambda: Tiles(low=(0, 1), high=(1, 1)), "low must be below high, got 1 and 1 at 1"),
    (lambda: Tiles(low=(0, 1)), "low and high must be both given, or both left out"),
    (lambda: Tiles(low=(0,), high=(np.nan,)), "high must be finite, got nan"),
    (lambda: Tiles(tilings=0), "tilings must be a whole number >= 1, got 0"),
    (
        lambda: Tiles(low=LOW, high=HIGH, bins=(4, 4)).size,
        "bins must be one number, or 3, as many",
    ),
    (lambda: Tiles(bins=(4, 0)), "bins must be a whole number >= 1, got 0"),
    (lambda: Tiles(whole=(True,)), "whole must be left out, or as many as low and high"),
    (lambda: Tiles().size, "low and high of 'tiles' features must be given, or those of an environment"),
    (lambda: Tiles(low=(0,) * 9, high=(1,) * 9, join="all").size, "tiles must be at most 10000000, got more"),
    (lambda: Tiles(low=LOW, high=HIGH).encode([1, 2]), "an observation must have 3 numbers, got 2"),
    (lambda: Tiles(low=LOW, high=HIGH).encode([1, np.nan, 2]), "an observation must be finite, got nan at index 1"),
    (lambda: Fourier(low=LOW, high=HIGH).encode([1, 2, np.inf]), "an observation must be finite, got inf at index 2"),
    (lambda: Fourier(low=LOW, high=HIGH).encode(["a", 2, 3]), "an observation must be numbers, or arrays, tuples or"),
    (lambda: Fourier(low=(0,) * 9, high=(1,) * 9).encode([0] * 9), "'fourier' must have at most 10000 features, got"),
    (lambda: Fourier(order=0), "order must be a whole number >= 1, got 0"),
    (lambda: RandomFourier(length=0.0), "length must be a finite number > 0, got 0.0"),
    (lambda: RadialBasis(centres=1), "centres must be a whole number >= 2, got 1"),
    (lambda: Polynomial(degree=1.5), "degree must be a whole number >= 1, got 1.5"),  # type: ignore[arg-type]
    (lambda: OneHot(sizes=(4,)).encode(4), r"an observation must have a whole number in 0\.\.3 at index 0, got 4"),
    (lambda: OneHot(sizes=(4, 2)).encode((0.5, 1)), r"a whole number in 0\.\.3 at index 0, got 0\.5"),
    (lambda: OneHot(sizes=(0,)), "sizes must be a whole number >= 1, got 0"),
    (lambda: OneHot(sizes=(2000, 2000)), "sizes must be numbers whose product is at most 1000000"),
    (lambda: OneHot().size, "sizes of 'one-hot' features must be given"),
    (
        lambda: OneHot().fitted(Seen(spaces.Box(0, 1, (1,)), list)),
        "features must be another map: not all numbers of Box",
    ),
    (lambda: FromCallable(function=3), "function must be a function, or a name of the form"),  # type: ignore[arg-type]
    (lambda: FromCallable(function="math:hypotenuse"), "function 'math:hypotenuse' cannot be imported"),
    (lambda: FromCallable(function="hypot"), "function must be a name of the form 'package.module:name', got 'hypot'"),
    (lambda: FromCallable(function=lambda o: [1.0], width=2).encode(0), "must always return 2 features, got 1"),
    (lambda: FromCallable(function=lambda o: [np.nan], width=1).encode(0), "must return finite features, got nan at"),
    (lambda: FromCallable(function=lambda o: [1.0], width=1).to_dict(), "function must be importable by name to be"),
    (
        lambda: FromCallable(function=Late()).fitted(Seen(spaces.Discrete(2), lambda: [0])),
        "the function must always return 1 features, got 2",
    ),
    (
        lambda: FromCallable(function=lambda o: np.random.default_rng().random(2)).fitted(
            Seen(spaces.Discrete(2), lambda: [0])
        ),
        "function must be frozen: the same observation has given two different features",
    ),
    (lambda: FromSklearn(transformer=3), "transformer must be a scikit-learn transformer, with fit and transform"),
    (
        lambda: FromSklearn(transformer=PolynomialFeatures()).size,
        "transformer of 'sklearn' features must be fitted",
    ),
    (
        lambda: FromSklearn(transformer=PolynomialFeatures().fit([[0.0]])).encode([1.0, 2.0]),
        "the transformer refuses an observation: X has 2 features",
    ),
    (
        lambda: FromSklearn(transformer=PolynomialFeatures().fit([[0.0]])).to_dict(),
        "transformer must be by name, 'package.module:name', to be saved",
    ),
    (lambda: automatic(spaces.Text(3)), "the observation space must be Discrete, MultiDiscrete, MultiBinary, Box,"),
    (
        lambda: automatic(spaces.Box(0, 255, (84, 84))),
        "features must be given for observations of more than 16",
    ),
    (lambda: features_from_dict({"tilings": 8}), "features must be a table such as"),
    (lambda: features_from_dict({"features": "tiles", "tiling": 8}), "'tiles' features have the fields low, high,"),
    (lambda: features_from_dict({"features": "callable"}), "'callable' features need the field 'function'"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_input_is_refused_in_words(call: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_names_are_suggested() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'tiles'"):
        features_from_dict({"features": "tile"})
    with pytest.raises(UnknownNameError, match="did you mean 'pairs'"):
        Tiles(join="pair")
