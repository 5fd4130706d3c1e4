"""The map to begin with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from refusals import refusals

from belated.errors import InvalidInputError
from belated.features import OneHot, Tiles, automatic


def test_the_automatic_choice() -> None:
    assert automatic(spaces.Discrete(6, start=2)) == OneHot(sizes=(6,), start=(2,))
    assert automatic(spaces.MultiDiscrete([3, 4])) == OneHot(sizes=(3, 4))
    assert automatic(spaces.MultiBinary(3)) == OneHot(sizes=(2, 2, 2))
    car = automatic(spaces.Box(np.array([-1.2, -0.07]), np.array([0.6, 0.07]), dtype=np.float64))
    assert isinstance(car, Tiles) and (car.size, car.active) == (648, 8)
    assert automatic(spaces.Box(-np.inf, np.inf, (4,))) == Tiles()
    assert automatic(spaces.Box(-3.4e38, 3.4e38, (4,))) == Tiles()
    four = automatic(spaces.Box(-1, 1, (4,)))
    assert isinstance(four, Tiles) and (four.active, four.size) == (4 * 6, 4 * 6 * 25)
    many = automatic(spaces.MultiDiscrete([30, 30, 30]))
    assert isinstance(many, Tiles) and many.whole == (True,) * 3 and many.active == 3


@refusals(
    (lambda: automatic(spaces.Text(3)), "the observation space must be Discrete, MultiDiscrete, MultiBinary, Box,"),
    (
        lambda: automatic(spaces.Box(0, 255, (84, 84))),
        "features must be given for observations of more than 16",
    ),
)
def test_bad_input_is_refused_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()
