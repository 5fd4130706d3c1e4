from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from refusals import refusals

from belated.errors import BelatedError
from belated.features import Adaptive, OneHot, Polynomial, Seen, Tiles
from belated.features._adaptive import suited, tiles_of


def test_an_agent_is_handed_the_numbers_as_they_are() -> None:
    space = spaces.Dict({"b": spaces.Box(-np.inf, np.inf, (2,)), "a": spaces.Discrete(4)})
    made = Adaptive().fitted(Seen(space, lambda: [{"a": 1, "b": np.array([5.0, 6.0])}]))
    state = made.encode({"a": 3, "b": np.array([1e6, -0.0])})
    assert state.indices.tolist() == [0, 1, 2] and state.values.tolist() == [3.0, 1e6, 0.0]
    assert not np.signbit(state.values[2])


def test_agents_that_keep_one_map_have_tiles_or_the_numbers() -> None:
    for count, kind in ((2, Tiles), (16, Tiles), (17, Polynomial), (147, Polynomial)):
        space = spaces.Box(0, 255, (count,), np.uint8)
        rows = [np.zeros(count, np.uint8), np.full(count, 9, np.uint8)]
        assert isinstance(Adaptive().fitted(Seen(space, lambda rows=rows: rows)).first, kind)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("observations", "numbers", "transitions", "kind"),
    [
        (100, 147, 99, "network"),  # a single path
        (100, 147, 124, "network"),
        (100, 147, 125, "distinct"),
        (100, 4, 99, "tiles"),
        (100, 4, 125, "distinct"),
        (100, 5, 99, "network"),
    ],
)
def test_what_suits_depends_on_how_observations_are_reached_and_how_long_they_are(
    observations: int, numbers: int, transitions: int, kind: str
) -> None:
    assert suited(observations, numbers, transitions) == kind
    assert suited(observations, numbers, transitions, "learned") == "network"


def test_tiles_have_the_ranges_that_were_seen() -> None:
    tiles = tiles_of(np.array([[-1.0, 3.0], [1.0, 3.0]]))
    assert tiles.low == pytest.approx((-1.02, 2.99)) and tiles.high == pytest.approx((1.02, 3.01))
    assert tiles.bins is None and tiles_of(np.eye(3)).bins == 4


@refusals(
    (lambda: Adaptive(maps="learnt"), "maps must be one of 'automatic', 'learned', got 'learnt'"),
    (lambda: Adaptive(first=OneHot(sizes=(3,))), "first must be a map of numbers with ranges, such as Tiles"),
    (lambda: Adaptive().encode([1.0]), "first must be given, or fitted to an environment"),
)
def test_bad_input_is_refused_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(BelatedError, match=message):
        call()
