"""Checks of what a Gymnasium environment returns; errors name the environment."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from belated._util.validate import LARGEST_NUMBER, flag, refuse
from belated.errors import BelatedError, InvalidInputError
from belated.types import Step

T = TypeVar("T")


def asked(what: str, ask: Callable[[], T]) -> T:
    """Return `ask()`, which runs the code of an environment; raise InvalidInputError if that fails."""
    try:
        return ask()
    except BelatedError:
        raise
    except Exception as error:  # user code may raise anything
        raise InvalidInputError(f"{what} must not fail, got {type(error).__name__}: {error}") from error


def checked_reset(name: str, found: Any) -> tuple[Any, Any]:
    """Validate the result of `reset`: the first observation and the info."""
    if not isinstance(found, tuple) or len(found) != 2:
        raise refuse(f"what reset of {name} returns", found, "a pair (observation, info)")
    return found


def checked_step(name: str, found: Any, where: str = "") -> tuple[Step, Any]:
    """Validate the result of `step`, except the observation."""
    if not isinstance(found, tuple) or len(found) != 5:
        expected = "five values (observation, reward, terminated, truncated, info)"
        raise refuse(f"what step of {name} returns", found, expected)
    observation, reward, terminated, truncated, info = found
    if not isinstance(terminated, bool):
        terminated = flag(f"terminated of {name}{where}", terminated)
    if not isinstance(truncated, bool):
        truncated = flag(f"truncated of {name}{where}", truncated)
    return Step(observation, checked_reward(name, reward, where), terminated, truncated), info


def checked_reward(name: str, reward: Any, where: str = "") -> float:
    """Return a reward as a finite number of bounded magnitude; a zero-dimensional array is accepted."""
    is_number = isinstance(reward, int | float | np.integer | np.floating | np.bool)
    if isinstance(reward, np.ndarray):
        is_number = reward.shape == () and reward.dtype.kind in "fiub"
    paid = float(reward) if is_number and abs(reward) <= LARGEST_NUMBER else math.nan
    if math.isnan(paid):
        expected = f"a finite number of magnitude at most {LARGEST_NUMBER:g}"
        raise refuse(f"a reward of {name}{where}", reward, expected)
    return paid
