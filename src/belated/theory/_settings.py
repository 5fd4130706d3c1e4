"""To which problems, delays and levels the theorems apply."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from belated._util.validate import integer, real, refuse
from belated.delays._base import IndependentDelays, SubExponential, any_delay
from belated.errors import InvalidInputError
from belated.types import TableProblem

#: Larger integers are not exact as floats.
LARGEST = 2**53


def size(name: str, value: Any) -> int:
    return integer(name, value, at_least=1, at_most=LARGEST)


def level(value: Any) -> float:
    """Return δ, the probability that a bound fails."""
    return real("delta", value, above=0.0, below=1.0)


def tail(delay: Any) -> SubExponential:
    """Return the sub-exponential parameters of `delay`; raise InvalidInputError if it has none."""
    delay = any_delay("delay", delay)
    if not isinstance(delay, IndependentDelays):
        raise InvalidInputError(
            f"delay must be independent and identically distributed for the theorems to apply; {delay.label} is not"
        )
    found = delay.subexponential()
    if found is None:
        raise InvalidInputError(
            f"delay must have sub-exponential tails for the theorems to apply; {delay.label} does not"
        )
    return found


class ConservativeSettingsWarning(UserWarning):
    """The settings of the theorems hold for every problem, so they explore far more than yours needs."""


def accepted(problem: Any) -> tuple[int, int]:
    """Return d and H of `problem`; raise InvalidInputError unless the theorems apply to it."""
    if not isinstance(problem, TableProblem):
        raise refuse("problem", problem, "a TableProblem, as that of a FiniteMDP")
    longest = float(np.linalg.norm(problem.features, axis=-1).max())
    if longest > 1.0 + 1e-9:
        raise InvalidInputError(f"features must have norm at most 1 for the theorems to apply, got {longest:.6g}")
    return problem.dimension, problem.horizon


def warn_of_width(what: str, width: float, horizon: int) -> None:
    """Warn the caller of `from_theory` that draws are as wide as `width`."""
    visits = (width / horizon) ** 2
    warnings.warn(
        f"the theorem sets {what}: until each direction has been visited about {visits:.1g} times, draws are wider "
        f"than H = {horizon}, the maximum value, and exploration is close to uniform; a few draws of "
        "width about 1 learn far faster, without the guarantee",
        ConservativeSettingsWarning,
        stacklevel=3,
    )
