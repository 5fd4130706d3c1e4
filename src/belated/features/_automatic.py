"""`automatic`: the default feature map, chosen from the observation space."""

from __future__ import annotations

import math
from typing import Any

from belated.errors import InvalidInputError
from belated.features._base import Features
from belated.features._one_hot import OneHot
from belated.features._spaces import integer_sizes, stated_ranges
from belated.features._tiles import Tiles

#: The maximum number of states for one-hot features.
TABLE = 10_000
#: The maximum number of numbers in an observation; tiles of all their pairs would be too many.
MOST_NUMBERS = 16


def automatic(observation_space: Any) -> Features:
    """Return the default feature map for an observation space.

    One-hot if all numbers of an observation are integers and there are at most 10 000 combinations; else tiles: 8
    tilings of 8 bins on all numbers if there are at most two, 4 tilings of 6 bins on all pairs if there are more, with
    one tile for each value of an integer.

    `fitted` fills in the ranges: the bounds of the space or, where it has none, the minimum and maximum seen in random
    play; observations are clipped to them. A range much wider than what random play sees is cut into more bins, so that
    it sees at least two, up to 16, or 8 for grids of pairs.

    >>> from gymnasium.spaces import Box, Discrete, Tuple
    >>> automatic(Tuple((Discrete(32), Discrete(11), Discrete(2))))
    OneHot(sizes=(32, 11, 2), start=(0, 0, 0))
    >>> automatic(Box(low=-1.0, high=1.0, shape=(2,)))
    Tiles(low=None, high=None, tilings=None, bins=None, join='automatic', integers=None)
    """
    found = integer_sizes(observation_space)
    if found is not None and math.prod(found[1]) <= TABLE:
        return OneHot(start=found[0], sizes=found[1])
    count = stated_ranges(observation_space)[0].size
    if count > MOST_NUMBERS:
        raise InvalidInputError(
            f"features must be given for observations of more than {MOST_NUMBERS} numbers, got {count}: "
            "choose some of them, or use an encoder (belated.features.FromCallable)"
        )
    return Tiles()
