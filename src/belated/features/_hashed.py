"""`Hashed`: very many sparse features of text, categories and numbers, by feature hashing."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np

from belated._util.hashing import product_hash, term_hash
from belated._util.validate import LARGEST_NUMBER, integer, refuse
from belated.errors import InvalidInputError
from belated.features._base import Features, Seen
from belated.types import SparseVector

#: Maximum number of hash buckets.
MOST_PLACES = 2**20

_WORD = re.compile(r"\w+")

#: A term: the hash of its name, and its value.
_Term = tuple[int, float]
_CONSTANT: _Term = (term_hash("="), 1.0)


@dataclass(frozen=True, kw_only=True)
class Hashed(Features):
    """A feature for each word, each value of a category and each number, hashed into `size` buckets.

    Nothing has to be listed in advance. Strings are text, with a feature for each distinct word; integers and booleans
    are categories, with a feature for each value; real numbers are features themselves, best scaled to about 1. The
    parts of a `Dict` are named by their keys, those of a `Tuple` by their positions, and the same word in two parts is
    two features. A cross of two or more parts has a feature for each combination of theirs. A constant is added.

    Terms in the same bucket are added with hashed signs (Weinberger et al., 2009). The hashes are the same on every
    machine, and the same as in a served model.

    >>> hashed = Hashed(crosses=(("country", "query"),))
    >>> shown = hashed.encode({"country": 3, "query": "red shoes", "age": 0.4})
    >>> shown.indices.size  # a constant, country=3, two words, age, and country × each word
    7
    """

    kind: ClassVar[str] = "hashed"

    size: int = 2**18
    """Number of hash buckets."""
    crosses: tuple[tuple[str, ...], ...] = ()
    """Names of parts whose combinations are features."""

    def __post_init__(self) -> None:
        integer("size", self.size, at_least=1, at_most=MOST_PLACES)
        given: Any = self.crosses
        if not isinstance(given, tuple | list) or not all(isinstance(each, tuple | list) for each in given):
            raise refuse("crosses", self.crosses, 'a list of lists of names, such as [["country", "query"]]')
        crosses = tuple(tuple(map(str, each)) for each in self.crosses)
        for cross in crosses:
            if len(cross) < 2 or len(set(cross)) < len(cross):
                raise refuse("crosses", self.crosses, "at least two distinct names in each")
        object.__setattr__(self, "crosses", crosses)

    def fitted(self, seen: Seen) -> Self:
        """Return the map itself, after checking that the crossed parts exist."""
        from gymnasium import spaces

        names: list[str] = []
        if isinstance(seen.space, spaces.Dict | spaces.Tuple):
            keys = seen.space.keys() if isinstance(seen.space, spaces.Dict) else range(len(seen.space))
            names = [str(key) for key in keys]
        for name in itertools.chain(*self.crosses):
            if name not in names:
                raise refuse(
                    "crosses", self.crosses, f"names of the observation's parts ({', '.join(names) or 'none'})"
                )
        return self

    def encode(self, observation: Any) -> SparseVector:
        parts = {name: list(_terms(name, part)) for name, part in _parts(observation)}
        places: dict[int, float] = {}
        for bits, value in itertools.chain([_CONSTANT], *parts.values(), self._crossed(parts)):
            place = (bits >> 1) % self.size
            places[place] = places.get(place, 0.0) + (value if bits & 1 else -value)
        indices = sorted(place for place, value in places.items() if value != 0.0)
        return SparseVector(np.array(indices, np.int64), np.array([places[place] for place in indices], np.float64))

    def _crossed(self, parts: dict[str, list[_Term]]) -> Iterator[_Term]:
        for cross in self.crosses:
            for name in cross:
                if name not in parts:
                    raise InvalidInputError(f"an observation must have the part {name!r}, which is crossed")
            for terms in itertools.product(*(parts[name] for name in cross)):
                yield reduce(product_hash, [bits for bits, _ in terms]), math.prod(value for _, value in terms)


def _parts(part: Any) -> Iterable[tuple[str, Any]]:
    """Return the named parts of an observation; a single part has an empty name."""
    if isinstance(part, dict):
        return ((str(key), part[key]) for key in sorted(part))
    if isinstance(part, np.ndarray):
        part = part.reshape(-1).tolist()
    if isinstance(part, tuple | list):
        return ((str(place), each) for place, each in enumerate(part))
    return (("", part),)


def _terms(name: str, part: Any) -> Iterator[_Term]:
    if isinstance(part, str):
        yield from ((term_hash(f"{name}:{word}"), 1.0) for word in dict.fromkeys(_WORD.findall(part.lower())))
    elif isinstance(part, float | np.floating):
        if not abs(float(part)) <= LARGEST_NUMBER:
            raise refuse("an observation", part, f"made of numbers of magnitude at most {LARGEST_NUMBER:g}")
        yield term_hash(name), float(part)
    elif isinstance(part, int | np.bool_ | np.integer):
        yield term_hash(f"{name}={int(part)}"), 1.0
    elif isinstance(part, dict | tuple | list | np.ndarray):
        for inner, each in _parts(part):
            yield from _terms(f"{name}.{inner}", each)
    else:
        raise refuse("an observation", part, "text or numbers, or arrays, tuples or dictionaries of them")
