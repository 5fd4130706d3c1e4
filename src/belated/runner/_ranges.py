"""What a setting may be in a search: some choices, or numbers between two bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from belated._util.validate import flag, integer, real, refuse
from belated.errors import InvalidInputError

MOST_VALUES = 1000
"""A range has at most so many values in a grid."""
_FIELDS = ("from", "to", "count", "log")


@dataclass(frozen=True)
class Choices:
    """One of some values."""

    values: tuple[Any, ...]

    def grid(self, name: str) -> list[Any]:
        """Return all values."""
        return list(self.values)


@dataclass(frozen=True, kw_only=True)
class Range:
    """A number between two bounds, a whole one if both bounds are; with `log`, on a logarithmic scale."""

    low: float
    high: float
    log: bool = False
    count: int | None = None
    """How many values a grid has."""

    @property
    def whole(self) -> bool:
        """Whether only integers are meant."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def grid(self, name: str) -> list[float]:
        """Return `count` values, evenly spaced; of integers, all of them if there is no count.

        Between the bounds they are rounded to three digits, so that they can be quoted.

        >>> Range(low=0.1, high=2.0, log=True, count=3).grid("scale"), Range(low=1, high=4).grid("draws")
        ([0.1, 0.447, 2.0], [1, 2, 3, 4])
        """
        if self.count is None:
            if not self.whole or self.log:
                raise InvalidInputError(f"{name} needs the field 'count' for a grid: how many values there are")
            return [float(n) if not self.whole else n for n in range(int(self.low), int(self.high) + 1)]
        between = np.geomspace if self.log else np.linspace
        spaced = between(self.low, self.high, self.count)[1:-1].tolist()
        inner = [round(value) if self.whole else float(f"{value:.3g}") for value in spaced]
        return list(dict.fromkeys([self.low, *inner, self.high]))

    def nearest(self, value: float) -> float:
        """Return a number that a sampler has proposed, with four digits and within the bounds."""
        return value if self.whole else min(max(float(f"{value:.4g}"), self.low), self.high)


def is_range(value: Any) -> bool:
    """Tell whether the value of a setting is one to be searched: a table with `choices`, or with `from` and `to`.

    >>> is_range({"choices": [1, 2]}), is_range({"algorithm": "greedy"}), is_range(3)
    (True, False, False)
    """
    return isinstance(value, Mapping) and ("choices" in value or "from" in value or "to" in value)


def range_from_dict(name: str, values: Mapping[str, Any]) -> Choices | Range:
    """Return what a table of a search file describes.

    >>> range_from_dict("scale", {"from": 0.1, "to": 10, "count": 3, "log": True}).grid("scale")
    [0.1, 1.0, 10]
    """
    known = ("choices",) if "choices" in values else _FIELDS
    for field in values:
        if field not in known:
            raise InvalidInputError(f"the range of {name} has the fields {', '.join(known)}, got {field!r}")
    if "choices" in values:
        return Choices(checked_values(f"the choices of {name}", values["choices"]))
    for field in ("from", "to"):
        if field not in values:
            raise InvalidInputError(f"the range of {name} needs the field {field!r}")
        real(f"{field} of {name}", values[field])
    low, high, log = values["from"], values["to"], flag(f"log of {name}", values.get("log", False))
    real(f"to of {name}", high, above=low)
    if log:
        real(f"from of {name}, on a logarithmic scale,", low, above=0)
    count = values.get("count")
    if count is not None:
        count = integer(f"count of {name}", count, at_least=2, at_most=MOST_VALUES)
    elif isinstance(low, int) and isinstance(high, int):
        integer(f"to of {name}", high, at_most=low + MOST_VALUES)
    return Range(low=low, high=high, log=log, count=count)


def checked_values(name: str, given: Any) -> tuple[Any, ...]:
    """Return the values of a setting as plain ones, at least one and each only once."""
    if not isinstance(given, list | tuple | range | np.ndarray) or not len(given):
        raise refuse(name, given, "a sequence of values, at least one")
    plain = tuple(value.item() if isinstance(value, np.generic) else value for value in given)
    if any(value in plain[:i] for i, value in enumerate(plain)):
        raise refuse(name, given, "values that differ")
    return plain
