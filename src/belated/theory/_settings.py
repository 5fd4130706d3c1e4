"""What the settings of the theorems share: which problems they are for, and how careful they are."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from belated._util.validate import refuse
from belated.errors import InvalidInputError
from belated.types import Problem


class ConservativeSettingsWarning(UserWarning):
    """The theorems' settings are safe for every problem and so explore far more than yours needs."""


def accepted(problem: Any) -> tuple[int, int]:
    """Return d and H of a problem to which the theorems apply."""
    if not isinstance(problem, Problem):
        raise refuse("problem", problem, "a Problem")
    longest = float(np.linalg.norm(problem.table, axis=-1).max())
    if longest > 1.0 + 1e-9:
        raise InvalidInputError(f"features must have norm at most 1 for the theorems to apply, got {longest:.6g}")
    return problem.dimension, problem.horizon


def warn_of_width(what: str, width: float, horizon: int) -> None:
    """Warn the caller of `from_theory`, which calls this, that draws are as wide as `width`."""
    visits = (width / horizon) ** 2
    warnings.warn(
        f"the theorem sets {what}: until each direction has been visited about {visits:.1g} times, draws are wider "
        f"than H = {horizon}, the largest value there can be, and exploration is close to uniform; a few draws of "
        "width about 1 learn far sooner, without the guarantee",
        ConservativeSettingsWarning,
        stacklevel=3,
    )
