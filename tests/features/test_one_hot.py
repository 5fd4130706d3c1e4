"""One feature for each state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from refusals import refusals

from belated.errors import InvalidInputError
from belated.features import OneHot, Seen


def test_one_hot_is_the_number_of_the_state() -> None:
    features = OneHot(sizes=(3, 4, 5), start=(1, 0, -2))
    for where in np.ndindex(3, 4, 5):
        observation = np.add(where, (1, 0, -2))
        assert features.encode(observation).indices.tolist() == [np.ravel_multi_index(where, (3, 4, 5))]
    assert OneHot(sizes=(7,), start=(3,)).encode(np.int64(5)).indices.tolist() == [2]


@refusals(
    (lambda: OneHot(sizes=(4,)).encode(4), r"an observation must have an integer in 0\.\.3 at index 0, got 4"),
    (lambda: OneHot(sizes=(4, 2)).encode((0.5, 1)), r"an integer in 0\.\.3 at index 0, got 0\.5"),
    (lambda: OneHot(sizes=(0,)), "sizes must be an integer >= 1, got 0"),
    (lambda: OneHot(sizes=(2000, 2000)), "sizes must be numbers whose product is at most 1000000"),
    (lambda: OneHot().size, "sizes of 'one-hot' features must be given"),
    (
        lambda: OneHot().fitted(Seen(spaces.Box(0, 1, (1,)), list)),
        "features must be another map: not all numbers of Box",
    ),
)
def test_bad_input_is_refused_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()
