"""The checks that every bound shares."""

from __future__ import annotations

from typing import Any

from belated.delays.base import DelayLaw, IndependentLaw, SubExponential
from belated.errors import InvalidInputError
from belated.validate import integer, real, refuse

#: Sizes above this are not exact as floats.
LARGEST = 2**53


def size(name: str, value: Any) -> int:
    """Return a dimension, a horizon or a number of episodes."""
    return integer(name, value, at_least=1, at_most=LARGEST)


def level(value: Any) -> float:
    """Return δ, the probability with which a bound may fail."""
    return real("delta", value, above=0.0, below=1.0)


def tail(delay: Any) -> SubExponential:
    """Return the sub-exponential parameters of a law, or say that it has none."""
    if not isinstance(delay, DelayLaw):
        raise refuse("delay", delay, "a delay law")
    if not isinstance(delay, IndependentLaw):
        raise InvalidInputError(
            f"delay must be independent and identically distributed for the theorems to apply; {delay.label} is not"
        )
    found = delay.subexponential()
    if found is None:
        raise InvalidInputError(
            f"delay must have sub-exponential tails for the theorems to apply; {delay.label} has not"
        )
    return found
