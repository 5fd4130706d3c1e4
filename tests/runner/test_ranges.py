"""Ranges of settings in a search file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belated.errors import InvalidInputError
from belated.runner._experiment import is_range
from belated.runner._tuning import Range, range_from_dict


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ({"choices": ["a", "b"]}, ["a", "b"]),
        ({"choices": [[1, 2], [3]]}, [[1, 2], [3]]),
        ({"from": 0.0, "to": 1.0, "count": 3}, [0.0, 0.5, 1.0]),
        ({"from": 0.01, "to": 100.0, "count": 5, "log": True}, [0.01, 0.1, 1.0, 10.0, 100.0]),
        ({"from": 2, "to": 5}, [2, 3, 4, 5]),
        ({"from": 1, "to": 64, "count": 4, "log": True}, [1, 4, 16, 64]),
        ({"from": 1, "to": 3, "count": 9}, [1, 2, 3]),  # integers, each once
        ({"from": 1.23456, "to": 2.34567, "count": 2}, [1.23456, 2.34567]),
    ],
)
def test_a_grid_has_the_values_that_one_expects(table: dict[str, Any], values: list[Any]) -> None:
    assert is_range(table)
    found = range_from_dict("scale", table).grid("scale")
    assert found == values
    assert [type(each) for each in found] == [type(each) for each in values]


@given(
    st.floats(1e-6, 1e6),
    st.floats(1.001, 1e6),
    st.integers(2, 50),
    st.booleans(),
)
def test_a_grid_is_evenly_spaced_within_its_bounds(low: float, factor: float, count: int, log: bool) -> None:
    high = low * factor
    grid = Range(low=low, high=high, log=log, count=count).grid("x")
    assert grid[0] == low
    assert grid[-1] == high
    steps = np.geomspace(low, high, count) if log else np.linspace(low, high, count)
    assert all(min(abs(value - steps) / value) < 0.006 for value in grid)  # three digits


@given(st.floats(0.1, 1.0), st.floats(1.1, 7.0), st.floats(0, 1))
def test_what_a_sampler_proposes_stays_within_the_bounds(low: float, high: float, share: float) -> None:
    near = Range(low=low, high=high).value(low + share * (high - low))
    assert low <= near <= high
    assert near == pytest.approx(low + share * (high - low), rel=1e-3)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"choices": []}, "the choices of a.x must be a sequence of at least one value"),
        ({"choices": [1, 1.0]}, "the choices of a.x must be distinct values"),
        ({"choices": [1], "log": True}, "the range of a.x has the fields choices, got 'log'"),
        ({"from": 1, "to": 2, "by": 1}, "the range of a.x has the fields from, to, count, log, got 'by'"),
        ({"from": 1}, "the range of a.x needs the field 'to'"),
        ({"to": 1}, "the range of a.x needs the field 'from'"),
        ({"from": "1", "to": 2}, "from of a.x must be a finite number, got '1'"),
        ({"from": 2.0, "to": 2.0}, "to of a.x must be a finite number > 2, got 2.0"),
        ({"from": 0.0, "to": 2.0, "log": True}, "from of a.x, on a logarithmic scale, must be a finite number > 0"),
        ({"from": 0.0, "to": 2.0, "log": 1}, "log of a.x must be True or False"),
        ({"from": 0.0, "to": 2.0, "count": 1}, "count of a.x must be an integer >= 2"),
        ({"from": 0, "to": 10**9}, "to of a.x must be an integer <= 1000"),
        ({"from": 0.5, "to": 2.0}, "a.x needs the field 'count' for a grid"),
    ],
)
def test_what_is_no_range_is_refused(table: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        range_from_dict("a.x", table).grid("a.x")
