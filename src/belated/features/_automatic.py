"""`automatic`: the feature map to begin with, chosen from the space of observations."""

from __future__ import annotations

import math
from typing import Any

from belated.errors import InvalidInputError
from belated.features._base import Features
from belated.features._one_hot import OneHot
from belated.features._spaces import stated_ranges, whole_sizes
from belated.features._tiles import Tiles

#: So many states are still told apart one by one.
TABLE = 10_000
#: Tiles of all pairs of more numbers than this would be too many.
MOST_NUMBERS = 16


def automatic(observation_space: Any) -> Features:
    """Return the map that is used unless another is given.

    One-hot if all numbers of an observation are whole and there are at most 10 000 combinations; else tiles: 8 tilings
    of 8 bins on all numbers if there are at most two, 4 tilings of 6 bins on all pairs if there are more, with a tile
    of its own for each value of an integer.

    The ranges are filled in by `fitted`: the bounds of the space; where it states none, the least and the largest
    number seen in random play, and what is beyond counts as the bound. A range that is much wider than what random play
    sees is cut into more bins, so that two of them are seen, but at most into 16, and into 8 where grids are of pairs.

    >>> from gymnasium.spaces import Box, Discrete, Tuple
    >>> automatic(Tuple((Discrete(32), Discrete(11), Discrete(2))))
    OneHot(sizes=(32, 11, 2), start=(0, 0, 0))
    >>> automatic(Box(low=-1.0, high=1.0, shape=(2,)))
    Tiles(low=None, high=None, tilings=None, bins=None, join='automatic', whole=None)
    """
    found = whole_sizes(observation_space)
    if found is not None and math.prod(found[1]) <= TABLE:
        return OneHot(start=found[0], sizes=found[1])
    count = stated_ranges(observation_space)[0].size
    if count > MOST_NUMBERS:
        raise InvalidInputError(
            f"features must be given for observations of more than {MOST_NUMBERS} numbers, got {count}: "
            "choose some of them, or use an encoder (belated.features.FromCallable)"
        )
    return Tiles()
