"""The map to begin with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from refusals import refusals

from belated.errors import InvalidInputError
from belated.features import Adaptive, OneHot, Seen, Tiles, automatic


def test_the_automatic_choice() -> None:
    assert automatic(spaces.Discrete(6, start=2)) == OneHot(sizes=(6,), start=(2,))
    assert automatic(spaces.MultiDiscrete([3, 4])) == OneHot(sizes=(3, 4))
    assert automatic(spaces.MultiBinary(3)) == OneHot(sizes=(2, 2, 2))
    many = automatic(spaces.MultiDiscrete([30, 30, 30]))
    assert many == Adaptive()
    whole = many.fitted(Seen(spaces.MultiDiscrete([30, 30, 30]), lambda: [np.array([3, 4, 5]), np.array([9, 9, 9])]))
    assert isinstance(whole, Adaptive) and isinstance(whole.first, Tiles)
    assert whole.first.integers == (True,) * 3 and whole.first.active == 3
    assert automatic(spaces.Box(-np.inf, np.inf, (4,))) == Adaptive()


def test_tiles_are_as_fine_as_random_play_needs() -> None:
    def fitted(space: spaces.Space[Any], *rows: list[float]) -> Tiles:
        made = Tiles().fitted(Seen(space, lambda: [np.array(row) for row in rows]))
        assert isinstance(made, Tiles)
        return made

    # of the first number half is seen, of the second a tenth, of the third 0.3; the fourth never varies
    four = fitted(spaces.Box(0, 1, (4,)), [0.1, 0.2, 0.3, 0.4], [0.6, 0.3, 0.6, 0.4])
    assert four.bins == (6, 8, 7, 6)
    assert four.active == 4 * 6
    assert four.size == 4 * (7 * 9 + 7 * 8 + 7 * 7 + 9 * 8 + 9 * 7 + 8 * 7)
    two = fitted(spaces.Box(-1, 1, (2,)), [0.0, 0.0], [0.5, 0.02])
    assert (two.bins, two.active) == ((8, 16), 8)
    assert fitted(spaces.Box(-3.4e38, 3.4e38, (3,)), [0.0, 0, 0], [1.0, 2, 3]).high == (1.0, 2.0, 3.0)
    given = Tiles(bins=5).fitted(Seen(spaces.Box(0, 1, (2,)), lambda: [np.zeros(2), np.full(2, 0.01)]))
    assert given.bins == 5  # what was chosen stays


@refusals(
    (
        lambda: automatic(spaces.Sequence(spaces.Text(3))),
        "the observation space must be Discrete, MultiDiscrete, Multi",
    ),
    (
        lambda: automatic(spaces.Box(0, 255, (84, 84))).fitted(Seen(spaces.Box(0, 255, (84, 84)), list)),
        "features must be given for observations of more than 1024 numbers",
    ),
)
def test_bad_input_is_refused_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()
