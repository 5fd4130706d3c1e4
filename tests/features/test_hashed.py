"""Hashed features against a naive reading of the same observation."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from refusals import refusals

from belated import GymEnvironment
from belated.errors import InvalidInputError
from belated.features import Hashed, Seen, Tiles, automatic, features_from_dict


def split_mix(number: int) -> int:
    z = (number + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def naive(terms: dict[str, float], size: int) -> np.ndarray[Any, Any]:
    """Return the vector of named terms; a name with × is a cross."""
    found = np.zeros(size)
    for name, value in terms.items():
        digests = [blake2b(each.encode(), digest_size=8, person=b"belated-1").digest() for each in name.split("×")]
        number, *others = (int.from_bytes(digest, "little") for digest in digests)
        for other in others:
            number = split_mix(number ^ split_mix(other))
        found[(number >> 1) % size] += value if number % 2 else -value
    return found


def dense(features: Hashed, observation: Any) -> np.ndarray[Any, Any]:
    encoded = features.encode(observation)
    assert (np.diff(encoded.indices) > 0).all() and encoded.values.all()
    found = np.zeros(features.size)
    found[encoded.indices] = encoded.values
    return found


@pytest.mark.parametrize("size", [7, 2**18])
def test_words_categories_numbers_and_crosses(size: int) -> None:
    hashed = Hashed(size=size, crosses=(("page", "query"), ("age", "new", "page")))
    observation = {"query": "Red shoes, red!", "page": np.int64(3), "age": np.float32(0.5), "new": True, "x": (0.0, 2)}
    query, page = {"query:red": 1.0, "query:shoes": 1.0}, {"page=3": 1.0}
    crossed = {f"page=3×{word}": 1.0 for word in query} | {"age×new=1×page=3": 0.5}
    terms = {"=": 1.0, **query, **page, "age": 0.5, "new=1": 1.0, "x.1=2": 1.0, **crossed}
    np.testing.assert_array_equal(dense(hashed, observation), naive(terms, size))


def test_arrays_are_read_by_position_and_integers_are_categories() -> None:
    whole, real = np.array([[4, 0]]), np.array([0.25, 0.0, -1.0])
    np.testing.assert_array_equal(dense(Hashed(size=64), whole), naive({"=": 1, "0=4": 1, "1=0": 1}, 64))
    np.testing.assert_array_equal(dense(Hashed(size=64), real), naive({"=": 1, "0": 0.25, "2": -1}, 64))
    np.testing.assert_array_equal(dense(Hashed(size=64), {"a": real}), naive({"=": 1, "a.0": 0.25, "a.2": -1}, 64))
    np.testing.assert_array_equal(dense(Hashed(size=64), "to be or not to be"), dense(Hashed(size=64), "or not to be"))


def test_places_are_the_same_for_ever() -> None:
    assert Hashed().encode({"country": 3}).indices.tolist() == [202156, 216891]


class Shop(gymnasium.Env[Any, Any]):
    """Buys pay if the word says so; observations are text and a category."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Dict({"query": spaces.Text(20), "page": spaces.Discrete(3)})

    def _look(self) -> dict[str, Any]:
        return {"query": "red shoes" if self._wants else "garden hose", "page": 1}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._wants = bool(self.np_random.random() < 0.5)
        return self._look(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        paid = float(bool(action) == self._wants)
        self._wants = not self._wants
        return self._look(), paid, False, False, {}


def test_an_environment_with_text_has_hashed_features() -> None:
    assert automatic(Shop.observation_space) == Hashed()
    shop = GymEnvironment(Shop, horizon=3, reward_range=(0, 1))
    assert shop.problem.features == Hashed()
    first = shop.encode(shop.reset(seed=0, episode=0))
    assert first.indices.size == 4
    for bad, said in [
        ({"query": "x", "page": 9}, r"9 at index 0, which must be within \[0, 2\] in 'page'"),
        ({"query": 3, "page": 1}, "3 instead of text in 'query'"),
        ({"query": "x", "pages": 1}, "no 'page'"),
        ("x", "'x'"),
    ]:
        with pytest.raises(InvalidInputError, match=f"an observation of Shop must be in its space, got {said}"):
            shop.encode(bad)
    with pytest.raises(InvalidInputError, match="or with hashed features Text"):
        GymEnvironment(Shop, horizon=3, reward_range=(0, 1), features=Tiles())


def test_crosses_are_parts_of_the_observation() -> None:
    crossed = Hashed(crosses=(("page", "query"),))
    assert crossed.fitted(Seen(Shop.observation_space, list)) is crossed
    pair = spaces.Tuple((spaces.Discrete(2), spaces.Text(5)))
    assert Hashed(crosses=(("0", "1"),)).fitted(Seen(pair, list)).encode((1, "a b")).indices.size == 6
    assert features_from_dict(crossed.to_dict()) == crossed


@refusals(
    (lambda: Hashed(size=0), "size must be an integer >= 1"),
    (lambda: Hashed(size=2**21), "<= 1048576"),
    (lambda: Hashed(crosses=(("a",),)), "crosses must be at least two distinct names in each"),
    (lambda: Hashed(crosses=("ab",)), "crosses must be a list of lists of names"),  # type: ignore[arg-type]
    (
        lambda: Hashed(crosses=(("page", "colour"),)).fitted(Seen(Shop.observation_space, list)),
        r"crosses must be names of the observation's parts \(page, query\)",
    ),
    (lambda: Hashed(crosses=(("a", "b"),)).encode({"a": 1}), "must have the part 'b', which is crossed"),
    (lambda: Hashed().encode({"a": None}), "an observation must be text or numbers"),
    (lambda: Hashed().encode([float("nan")]), "numbers of magnitude at most 1e"),
)
def test_bad_input_is_refused_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()
