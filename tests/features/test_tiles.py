"""Tiles against their definition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from feature_maps import HIGH, LOW, dense, observations, shares
from refusals import refusals

from belated.errors import InvalidInputError, UnknownNameError
from belated.features import Tiles
from belated.types import Floats


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
    tiles = Tiles(low=(0, 0, 0), high=(3, 4, 1.0), integers=(True, True, False), tilings=4, bins=2)
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


@refusals(
    (lambda: Tiles(low=(0, 1), high=(1, 1)), "low must be below high, got 1 and 1 at 1"),
    (lambda: Tiles(low=(0, 1)), "low and high must be both given, or both left out"),
    (lambda: Tiles(low=(0,), high=(np.nan,)), "high must be finite, got nan"),
    (lambda: Tiles(tilings=0), "tilings must be an integer >= 1, got 0"),
    (
        lambda: Tiles(low=LOW, high=HIGH, bins=(4, 4)).size,
        "bins must be one number, or 3, as many",
    ),
    (lambda: Tiles(bins=(4, 0)), "bins must be an integer >= 1, got 0"),
    (lambda: Tiles(integers=(True,)), "integers must be left out, or as long as low and high"),
    (lambda: Tiles().size, "low and high of 'tiles' features must be given, or fitted to an environment"),
    (lambda: Tiles(low=(0,) * 9, high=(1,) * 9, join="all").size, "tiles must be at most 10000000, got more"),
    (lambda: Tiles(low=LOW, high=HIGH).encode([1, 2]), "an observation must have 3 numbers, got 2"),
    (lambda: Tiles(low=LOW, high=HIGH).encode([1, np.nan, 2]), "an observation must be finite, got nan at index 1"),
)
def test_bad_input_is_refused_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_the_name_of_a_join_is_suggested() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'pairs'"):
        Tiles(join="pair")
