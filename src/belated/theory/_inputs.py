"""The checks that every bound shares."""

from __future__ import annotations

from typing import Any

from belated._util.validate import integer, real, refuse
from belated.delays._base import DelayDistribution, IndependentDelays, SubExponential
from belated.errors import InvalidInputError

#: Sizes above this are not exact as floats.
LARGEST = 2**53


def size(name: str, value: Any) -> int:
    """Return a dimension, a horizon or a number of episodes."""
    return integer(name, value, at_least=1, at_most=LARGEST)


def level(value: Any) -> float:
    """Return δ, the probability with which a bound may fail."""
    return real("delta", value, above=0.0, below=1.0)


def tail(delay: Any) -> SubExponential:
    """Return the sub-exponential parameters of a distribution, or say that it has none."""
    if not isinstance(delay, DelayDistribution):
        raise refuse("delay", delay, "a delay distribution")
    if not isinstance(delay, IndependentDelays):
        raise InvalidInputError(
            f"delay must be independent and identically distributed for the theorems to apply; {delay.label} is not"
        )
    found = delay.subexponential()
    if found is None:
        raise InvalidInputError(
            f"delay must have sub-exponential tails for the theorems to apply; {delay.label} has not"
        )
    return found
