"""Contexts and actions become features as declared, and nothing that was not declared gets in."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from belated._util.hashing import term_hash as _hash
from belated.decisions import DefaultAfter, Forgetting, Mature, ModelSettings, Unknown
from belated.decisions._encoding import Encoding, check_text
from belated.decisions._silence import silence_from_table, silence_to_table
from belated.errors import InvalidInputError, UnknownNameError

FULL = Encoding(
    features=("age",),
    categories=("country",),
    tags=("likes",),
    action_features=("price",),
    action_categories=("brand",),
    action_tags=("topics",),
    weights="shared",
    hashed=64,
)
BASE: dict[str, Any] = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}}


def place_of(bits: int, places: int) -> tuple[int, float]:
    return (bits >> 1) % places, 1.0 if bits & 1 else -1.0


def split_mix(number: int) -> int:
    """The finalizer of SplitMix64, as published, in Python's integers."""
    whole = 2**64 - 1
    z = (number + 0x9E3779B97F4A7C15) & whole
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & whole
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & whole
    return z ^ (z >> 31)


def test_numbers_have_places_of_their_own() -> None:
    matrix = Encoding(features=("x", "y")).matrix({"y": 2, "x": -0.5}, {"a": {}, "b": {}})
    assert matrix.tolist() == [[1.0, -0.5, 2.0]]  # the same for each action
    shared = Encoding(features=("x",), action_features=("u", "v"), weights="shared")
    rows = shared.matrix({"x": 3.0}, {"a": {"u": 5.0, "v": 7.0}})
    assert rows.tolist() == [[1.0, 5.0, 7.0, 3.0, 15.0, 21.0]]  # (1, x) times (1, u, v)


def test_categories_and_tags_are_hashed_the_same_for_ever() -> None:
    encoding = Encoding(categories=("country",), tags=("likes",), hashed=16)
    row = encoding.matrix({"country": "DE", "likes": ["tea", "cake", "tea"]}, {"a": {}})[0]
    expected = np.zeros(17)
    expected[0] = 1.0
    for term in ("country=DE", "likes:tea", "likes:cake"):
        place, sign = place_of(_hash(term), 16)
        expected[1 + place] += sign
    np.testing.assert_array_equal(row, expected)
    assert [place_of(_hash(term), 16) for term in ("country=DE", "likes:tea", "ü")] == [(1, 1.0), (11, 1.0), (4, -1.0)]
    assert encoding.matrix({}, {"a": {}}).tolist() == [[1.0] + [0.0] * 16]
    assert encoding.matrix({"country": None, "likes": []}, {"a": {}}).tolist() == [[1.0] + [0.0] * 16]


def test_products_of_a_context_and_an_action() -> None:
    context = {"age": 2.0, "country": "DE", "likes": ["tea"]}
    action = {"price": 3.0, "brand": "Acme", "topics": ["x"]}
    row = FULL.matrix(context, {"a": action})[0]
    assert row[:4].tolist() == [1.0, 3.0, 2.0, 6.0]
    expected = np.zeros(64)
    ours = {"1": 1.0, "age": 2.0, "country=DE": 1.0, "likes:tea": 1.0}
    theirs = {"1": 1.0, "price": 3.0, "brand=Acme": 1.0, "topics:x": 1.0}
    for one, value in ours.items():
        for two, other in theirs.items():
            if one not in ("1", "age") or two not in ("1", "price"):
                bits = (
                    _hash(one) if two == "1" else split_mix((0 if one == "1" else _hash(one)) ^ split_mix(_hash(two)))
                )
                place, sign = place_of(bits, 64)
                expected[place] += sign * value * other
    np.testing.assert_array_equal(row[4:], expected)


def test_hashes_are_spread_evenly() -> None:
    ours, theirs = [_hash(f"word={i}") for i in range(80)], [_hash(f"brand={i}") for i in range(100)]
    places = [place_of(split_mix(one ^ split_mix(two)), 8) for one in ours for two in theirs]
    counts = np.bincount([place for place, _ in places], minlength=8)
    assert abs(counts - 1000).max() < 4.5 * np.sqrt(1000)
    assert abs(sum(sign for _, sign in places)) < 4.5 * np.sqrt(8000)


@pytest.mark.parametrize(
    "context",
    [
        {"age": float("nan")}, {"age": float("inf")}, {"age": 1e13}, {"age": 10**400}, {"age": "2"}, {"age": True},
        {"age": None}, {}, {"age": [1.0]}, {"age": 1.0, "agee": 1.0}, {"age": 1.0, "country": 3},
        {"age": 1.0, "country": ""}, {"age": 1.0, "country": "x" * 300}, {"age": 1.0, "likes": "tea"},
        {"age": 1.0, "likes": [1]}, {"age": 1.0, "likes": ["t"] * 2000}, {"age": 1.0, "country": "\ud800"},
        {"age": 1.0, "country": "a\0b"}, [], None, "age", 3,
    ],
)  # fmt: skip
def test_bad_contexts_are_refused_by_name(context: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"context|likes|country|age"):
        FULL.matrix(context, {"a": {"price": 1.0}})


@pytest.mark.parametrize(
    "features", [{}, {"price": "1"}, {"price": 1.0, "size": 1.0}, None, 3, {"price": 1.0, "brand": 1}]
)
def test_bad_features_of_actions_are_refused(features: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"action 'a'"):
        FULL.matrix({"age": 1.0}, {"a": features})


@pytest.mark.parametrize(
    "changes",
    [
        {"features": "x"}, {"features": ["x", "x"]}, {"features": [""]}, {"features": [1]}, {"hashed": 8},
        {"categories": ["c"]}, {"tags": ["t"]}, {"features": ["x"], "categories": ["x"], "hashed": 4},
        {"weights": "shared"}, {"action_features": ["u"], "weights": "per action"}, {"hashed": -1}, {"encoding": 2},
        {"weights": "own"},
    ],
)  # fmt: skip
def test_bad_declarations_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises((InvalidInputError, UnknownNameError)):
        ModelSettings.from_table({**BASE, "actions": [], **changes})


@pytest.mark.parametrize(
    "table",
    [
        BASE,
        {**BASE, "silence": {"kind": "mature", "seconds": 86400, "default": 0.0}, "aggregate": "first"},
        {**BASE, "silence": {"kind": "default_after", "seconds": 5.0, "reward": -1.0}, "noise": 0.5, "draws": 1},
        {**BASE, "silence": {"kind": "unknown", "seconds": 60}, "forgetting": {"decisions": 500}, "retired": ["b"]},
        {**BASE, "actions": {"a": {"u": 1.0}, "b": {"u": 2.0}}, "action_features": ["u"], "floor": 0.0, "seed": 3},
        {**BASE, "categories": ["c"], "hashed": 32, "forgetting": {"seconds": 60.0}, "ridge": 2.0, "scale": 0.5},
    ],
)
def test_settings_survive_being_written_down(table: dict[str, Any]) -> None:
    first = ModelSettings.from_table(table)
    again = ModelSettings.from_table(json.loads(first.to_json()))
    assert again == first
    assert again.to_json() == first.to_json()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"silence": None}, "silence must be"),
        ({"silence": {"kind": "matur"}}, "did you mean 'mature'"),
        ({"silence": {"kind": "mature"}}, "seconds"),
        ({"silence": {"kind": "mature", "seconds": 0}}, "seconds must be"),
        ({"silence": {"kind": "mature", "seconds": 5, "reward": 1}}, "silence of kind 'mature'"),
        ({"silence": {"kind": "unknown", "default": 1}}, "silence of kind 'unknown'"),
        ({"aggregate": "total"}, "aggregate must be one of"),
        ({"floor": -0.1}, "floor must be"),
        ({"floor": 1.5}, "floor must be"),
        ({"floor": True}, "floor must be"),
        ({"draws": 0}, "draws must be"),
        ({"draws": 1.5}, "draws must be"),
        ({"noise": "none"}, "noise must be"),
        ({"noise": 0.0}, "noise must be"),
        ({"noise": None}, "noise must be"),
        ({"ridge": float("nan")}, "ridge must be"),
        ({"scale": -1}, "scale must be"),
        ({"seed": -1}, "seed must be"),
        ({"forgetting": {"days": 3}}, "forgetting must be"),
        ({"forgetting": {"seconds": 3, "decisions": 3}}, "forgetting must be"),
        ({"forgetting": {}}, "forgetting must be"),
        ({"forgetting": {"seconds": 0}}, "seconds of forgetting must be"),
        ({"actions": "ab"}, "actions must be"),
        ({"actions": ["a", "a"]}, "actions must be"),
        ({"actions": ["a", ""]}, "each of actions must be"),
        ({"actions": {"a": {"u": 1.0}}}, "features of action 'a' must be"),
        ({"actions": {"a": 5}}, "features of action 'a' must be a table"),
        ({"actions": {"a": "xy"}}, "features of action 'a' must be a table"),
        ({"actions": {"a": None}}, "features of action 'a' must be a table"),
        ({"actions": 5}, "actions must be"),
        ({"actions": [["a"]]}, "each of actions must be"),
        ({"actions": ["a\n"]}, "each of actions must be"),
        ({"retired": ["c"]}, "each of retired must be"),
        ({"retired": [["a"]]}, "each of retired must be"),
        ({"retired": 5}, "retired must be a list"),
        ({"retired": "a"}, "retired must be a list"),
        ({"florr": 0.1}, "did you mean 'floor'"),
    ],
)
def test_bad_settings_are_named(changes: dict[str, Any], words: str) -> None:
    table = {**BASE, **changes}
    if table["silence"] is None:
        del table["silence"]
    with pytest.raises((InvalidInputError, UnknownNameError), match=words):
        ModelSettings.from_table(table)


def test_settings_are_frozen_and_checked_in_python() -> None:
    settings = ModelSettings(silence=Unknown())
    with pytest.raises(AttributeError):
        settings.noise = 0.1  # type: ignore[misc]
    for changes in ({"silence": "unknown"}, {"encoding": None}, {"forgetting": 3.0}):
        with pytest.raises(InvalidInputError):
            ModelSettings(**{"silence": Unknown(), **changes})  # type: ignore[arg-type]
    assert Forgetting(seconds=10.0).time(25.0, 3) == 2.5
    assert Forgetting(decisions=2.0).time(25.0, 3) == 1.5


def test_silence_as_a_table() -> None:
    for silence in (Unknown(), Unknown(5.0), DefaultAfter(3.0, 1.0), Mature(3.0, 0.5)):
        assert silence_from_table(silence_to_table(silence)) == silence
    for bad in (None, "unknown", {}, {"seconds": 3}):
        with pytest.raises(InvalidInputError, match=r"^silence must be"):
            silence_from_table(bad)


@pytest.mark.parametrize(("seconds", "reward"), [(0, 0.0), (-1.0, 0.0), (float("nan"), 0.0), (5.0, 1e13), (5.0, "0")])
def test_a_bad_window_or_default_is_refused(seconds: Any, reward: Any) -> None:
    for kind in (DefaultAfter, Mature):
        with pytest.raises(InvalidInputError, match=r"^(seconds|reward|default) must be"):
            kind(seconds, reward)


def test_actions_come_and_go() -> None:
    settings = ModelSettings.from_table(BASE)
    more = settings.with_action("c")
    less = more.without_action("a")
    assert (more.names, less.names, list(less.actions)) == (("a", "b", "c"), ("b", "c"), ["a", "b", "c"])
    assert less.with_action("a").names == ("a", "b", "c")
    with pytest.raises(InvalidInputError, match="not on offer yet"):
        settings.with_action("a")
    with pytest.raises(UnknownNameError):
        settings.without_action("z")


def test_a_state_that_would_not_fit_is_refused() -> None:
    names = tuple(map(str, range(31)))
    assert Encoding(features=names, action_features=names, weights="shared").dimension == 1024
    with pytest.raises(InvalidInputError, match=r"length of a feature vector must be at most 1048576.*got 1048577"):
        Encoding(categories=("c",), hashed=2**20)
    with pytest.raises(InvalidInputError, match=r"hashed must be .* <= 1048576"):
        Encoding(categories=("c",), hashed=2**20 + 1)


@pytest.mark.parametrize(
    "bad", ["", "x" * 257, "a\0", "a\r\nb", "\x1b[2J", "\x7f", "\x85", "\u2028", "\u202e", "\u2067", "\ud800", 5]
)
def test_names_that_are_not_safe_to_show_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidInputError, match="key must be a string of 1 to 256 characters") as error:
        check_text("key", bad)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("good", ["a", "x" * 256, "größe 3", "日本", "שלום", "👍🏽", "a\u00a0b", "e\u0301", "\u200d"])
def test_names_in_any_language_are_fine(good: str) -> None:
    assert check_text("key", good) == good
