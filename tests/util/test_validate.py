"""Checks return the clean value or say what was wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belated._util.validate import array, choice, indices, integer, probabilities, real, refuse
from belated.errors import BelatedError, InvalidInputError, UnknownNameError


@pytest.mark.parametrize("value", [1, 1.0, np.int32(1), np.float32(1.0), np.float64(1.0)])
def test_real_returns_a_float(value: Any) -> None:
    clean = real("x", value)
    assert clean == 1.0
    assert type(clean) is float


@pytest.mark.parametrize(
    "value",
    [True, np.True_, "1", None, [1.0], 1j, np.array([1.0]), float("nan"), float("inf"), -float("inf"), 10**400],
)
def test_real_refuses_what_is_no_finite_number(value: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^x must be a finite number, got "):
        real("x", value)


def test_real_keeps_to_its_bounds() -> None:
    assert real("x", 1, at_least=1, at_most=1) == 1.0
    cases: list[tuple[float, dict[str, float], str]] = [
        (1.0, {"above": 1}, "> 1"),
        (0.5, {"at_least": 1}, ">= 1"),
        (2.0, {"below": 2}, "< 2"),
        (2.5, {"at_most": 2}, "<= 2"),
        (2.5, {"above": 0, "below": 1.5}, "> 0 and < 1.5"),
    ]
    for value, bounds, text in cases:
        with pytest.raises(InvalidInputError, match=rf"^x must be a finite number {text}, got {value}$"):
            real("x", value, **bounds)


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_integer_returns_an_int(value: Any) -> None:
    clean = integer("n", value)
    assert clean == 3
    assert type(clean) is int


@pytest.mark.parametrize("value", [3.0, True, np.False_, "3", None, [3], np.array([3])])
def test_integer_refuses_what_is_no_whole_number(value: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^n must be an integer, got "):
        integer("n", value)


def test_integer_keeps_to_its_bounds() -> None:
    assert integer("n", 2, at_least=2, at_most=2) == 2
    with pytest.raises(InvalidInputError, match=r"^n must be an integer >= 1 and <= 3, got 0$"):
        integer("n", 0, at_least=1, at_most=3)
    with pytest.raises(InvalidInputError, match=r"^n must be an integer <= 3, got 4$"):
        integer("n", 4, at_most=3)


def test_choice_suggests_the_nearest() -> None:
    assert choice("mode", "fast", ["slow", "fast"]) == "fast"
    with pytest.raises(
        UnknownNameError, match=r"^mode must be one of 'slow', 'fast', got 'fsat'; did you mean 'fast'\?$"
    ):
        choice("mode", "fsat", ["slow", "fast"])
    with pytest.raises(UnknownNameError, match=r"got 'zzz'$"):
        choice("mode", "zzz", ["slow", "fast"])
    others: list[Any] = [None, 3, ["fast"], {}]
    for value in others:
        with pytest.raises(UnknownNameError, match=r"^mode must be one of"):
            choice("mode", value, ["slow", "fast"])


def test_array_is_a_read_only_contiguous_copy() -> None:
    given_array = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    clean = array("a", given_array, (2, None))
    given_array[0, 0] = 9.0
    assert clean[0, 0] == 0.0
    assert clean.dtype == np.float64
    assert clean.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        clean[0, 0] = 1.0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0, 2.0], r"^a must have shape \(2, any\), got \(2,\)$"),
        ([[1.0]], r"^a must have shape \(2, any\), got \(1, 1\)$"),
        (3.0, r"^a must have shape \(2, any\), got \(\)$"),
        ([[1.0], [np.nan]], r"^a must be finite, got nan at index \(1, 0\)$"),
        ([[1.0], [-np.inf]], r"^a must be finite, got -inf at index \(1, 0\)$"),
        ([["a"], ["b"]], r"^a must be an array of numbers of shape \(2, any\), got "),
        ([[1.0], [1.0, 2.0]], r"^a must be an array of numbers of shape \(2, any\), got "),
        ([[1j], [2.0]], r"^a must be an array of numbers of shape \(2, any\), got "),
        ([[{}], [2.0]], r"^a must be an array of numbers of shape \(2, any\), got "),
    ],
)
def test_array_says_what_is_wrong(value: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        array("a", value, (2, None))


def test_indices_is_a_read_only_copy() -> None:
    given_indices = np.array([0, 2], dtype=np.uint8)
    clean = indices("i", given_indices, (2,), 3)
    given_indices[0] = 1
    assert clean.tolist() == [0, 2]
    assert clean.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        clean[0] = 1
    assert indices("i", [], (None,), 3).tolist() == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([0, 3], r"^i must hold integers in 0\.\.2, got 3$"),
        ([-1, 0], r"^i must hold integers in 0\.\.2, got -1$"),
        ([0], r"^i must have shape \(2,\), got \(1,\)$"),
        ([[0, 1]], r"^i must have shape \(2,\), got \(1, 2\)$"),
        ([0.0, 1.0], r"^i must be an array of integers in 0\.\.2, got \[0\.0, 1\.0\]$"),
        ([True, False], r"^i must be an array of integers"),
        (["0", "1"], r"^i must be an array of integers"),
        (None, r"^i must be an array of integers"),
        ([[0], [0, 1]], r"^i must be an array of integers"),
        (np.array([0, 2**63 + 1], dtype=np.uint64), r"^i must hold integers in 0\.\.2, got "),
    ],
)
def test_indices_says_what_is_wrong(value: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        indices("i", value, (2,), 3)


@given(st.lists(st.integers(-5, 5), max_size=6))
def test_indices_accepts_exactly_what_is_in_range(values: list[int]) -> None:
    if all(0 <= value < 4 for value in values):
        assert indices("i", values, (None,), 4).tolist() == values
    else:
        with pytest.raises(InvalidInputError):
            indices("i", values, (None,), 4)


def test_probabilities() -> None:
    assert probabilities("p", [[0.25, 0.75], [1, 0]], (2, None)).tolist() == [[0.25, 0.75], [1.0, 0.0]]
    assert probabilities("p", [1 / 3, 1 / 3, 1 / 3], (3,)).sum() == pytest.approx(1.0)
    cases: list[tuple[Any, str]] = [
        ([0.5, 0.4], r"^p must sum to one over the last axis, got 0\.9$"),
        ([[1.0, 0.0], [0.7, 0.7]], r"^p must sum to one over the last axis, got 1\.4 at index \(1,\)$"),
        ([1.5, -0.5], r"^p must be non-negative, got -0\.5 at index \(1,\)$"),
        ([], r"^p must be at least one probability, got \[\]$"),
        ([np.nan, 1.0], r"^p must be finite"),
    ]
    for value, message in cases:
        with pytest.raises(InvalidInputError, match=message):
            probabilities("p", value, (None,) * np.ndim(value))


def test_long_values_are_cut_in_messages() -> None:
    message = str(refuse("x", list(range(1000)), "short"))
    assert len(message) < 120
    assert message.endswith("...")


def test_errors_are_also_the_built_in_kind() -> None:
    assert issubclass(InvalidInputError, ValueError)
    assert issubclass(UnknownNameError, LookupError)
    assert issubclass(InvalidInputError, BelatedError)
    assert issubclass(UnknownNameError, BelatedError)


def test_numbers_too_long_to_be_written_are_refused_too() -> None:
    with pytest.raises(InvalidInputError, match=r"^n must be .* got a number of more than \d+ digits$"):
        integer("n", 10**5000, at_most=5)
