"""Input validation: each function returns the clean value or raises InvalidInputError."""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from belated.errors import InvalidInputError, UnknownNameError

#: The maximum size of an array: 2 GB of floats. Larger ones are rejected before they are allocated.
LARGEST_ARRAY = 2**28
#: The maximum magnitude of a feature: sums of its squares over any number of episodes do not overflow.
LARGEST = 1e40
#: The maximum magnitude of a reward, and of a feature in a simulator, whose size is not known in advance.
LARGEST_NUMBER = 1e12
#: Tolerance beyond the reward range, relative to it: simulators may return single precision.
REWARD_SLACK = 1e-6


def refuse(name: str, value: object, expected: str) -> InvalidInputError:
    """Return the error "`name` must be `expected`, got `value`".

    >>> refuse("ridge", -1, "a positive number")
    InvalidInputError('ridge must be a positive number, got -1')
    """
    try:
        shown = repr(value)
    except ValueError:  # an integer of thousands of digits, which Python does not print
        shown = f"a number of more than {sys.get_int_max_str_digits()} digits"
    return InvalidInputError(f"{name} must be {expected}, got {shown if len(shown) <= 80 else shown[:77] + '...'}")


def real(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> float:
    """Return `value` as a finite float within the given bounds."""
    a_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    try:
        number = float(value) if a_number else math.nan
    except OverflowError:
        number = math.inf
    inside = (
        math.isfinite(number)
        and (above is None or number > above)
        and (at_least is None or number >= at_least)
        and (below is None or number < below)
        and (at_most is None or number <= at_most)
    )
    if not inside:
        bounds = {">": above, ">=": at_least, "<": below, "<=": at_most}
        raise refuse(name, value, _bounded("a finite number", bounds))
    return number


def integer(name: str, value: Any, *, at_least: int | None = None, at_most: int | None = None) -> int:
    """Return `value` as an int within the given bounds."""
    inside = (
        isinstance(value, int | np.integer)
        and not isinstance(value, bool)
        and (at_least is None or value >= at_least)
        and (at_most is None or value <= at_most)
    )
    if not inside:
        raise refuse(name, value, _bounded("an integer", {">=": at_least, "<=": at_most}))
    return int(value)


def _bounded(kind: str, bounds: dict[str, float | None]) -> str:
    given = [
        f"{sign} {limit:g}" if isinstance(limit, float) else f"{sign} {limit}"
        for sign, limit in bounds.items()
        if limit is not None
    ]
    return " ".join([kind, " and ".join(given)]) if given else kind


def check_generator(name: str, value: Any) -> None:
    if not isinstance(value, np.random.Generator):
        raise refuse(name, value, "a numpy.random.Generator")


def flag(name: str, value: Any) -> bool:
    """Return `value` as a bool; numbers are not accepted.

    >>> flag("bernoulli", True)
    True
    """
    if not isinstance(value, bool | np.bool):
        raise refuse(name, value, "True or False")
    return bool(value)


def choice(name: str, value: Any, options: Iterable[str], *, other: str = "") -> str:
    """Return `value` if it is one of `options`; the error lists them and `other`, and suggests the nearest.

    >>> choice("warm_start", "epsiode", ["episode", "cold"])
    Traceback (most recent call last):
    belated.errors.UnknownNameError: warm_start must be one of 'episode', 'cold', got 'epsiode'; did you mean 'episode'?
    """
    known = list(options)
    if isinstance(value, str) and value in known:
        return value
    near = difflib.get_close_matches(str(value), known, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(repr(option) for option in known) + (f", or {other}" if other else "")
    raise UnknownNameError(f"{name} must be one of {listed}, got {value!r}{hint}")


def _shape_text(shape: Sequence[int | None]) -> str:
    sizes = ["any" if n is None else str(n) for n in shape]
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"


def array(name: str, value: Any, shape: Sequence[int | None]) -> npt.NDArray[np.float64]:
    """Return a read-only, contiguous float copy of `value`, finite and of `shape` (None: any size)."""
    try:
        out = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        raise refuse(name, value, f"an array of numbers of shape {_shape_text(shape)}") from None
    matches = out.ndim == len(shape) and all(n is None or n == m for n, m in zip(shape, out.shape, strict=True))
    if not matches:
        raise InvalidInputError(f"{name} must have shape {_shape_text(shape)}, got {out.shape}")
    if not np.isfinite(out).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(out))[0])
        raise InvalidInputError(f"{name} must be finite, got {out[where]} at index {where}")
    out.flags.writeable = False
    return out


def moderate(name: str, value: npt.NDArray[np.float64], largest: float = LARGEST) -> npt.NDArray[np.float64]:
    """Return `value`; raise InvalidInputError if squares of its entries could overflow when summed.

    >>> moderate("features", np.array([1e200]))
    Traceback (most recent call last):
    belated.errors.InvalidInputError: features must be of magnitude at most 1e+40, got 1e+200
    """
    peak = float(np.abs(value).max(initial=0.0))
    if peak > largest:
        raise refuse(name, peak, f"of magnitude at most {largest:g}")
    return value


def indices(name: str, value: Any, shape: Sequence[int | None], size: int, *, least: int = 0) -> npt.NDArray[np.int64]:
    """Return a read-only int copy of `value`, of `shape`, each entry in `least..size-1`."""
    try:
        given = np.asarray(value)
    except ValueError:
        raise refuse(name, value, f"an array of integers in {least}..{size - 1}") from None
    if given.dtype.kind not in "iu" and not (given.size == 0 and given.dtype.kind == "f"):
        raise refuse(name, value, f"an array of integers in {least}..{size - 1}")
    wanted = _shape_text(shape)
    if given.ndim != len(shape) or any(n is not None and n != m for n, m in zip(shape, given.shape, strict=True)):
        raise InvalidInputError(f"{name} must have shape {wanted}, got {given.shape}")
    outside = (given < least) | (given >= size)
    if outside.any():
        raise InvalidInputError(f"{name} must hold integers in {least}..{size - 1}, got {given[outside].flat[0]}")
    out = np.array(given, dtype=np.int64, order="C")
    out.flags.writeable = False
    return out


def check_room(name: str, *shape: int) -> None:
    """Raise InvalidInputError if an array of `shape` would be larger than `LARGEST_ARRAY`.

    >>> check_room("the factors", 10**9, 4, 4)
    Traceback (most recent call last):
    belated.errors.InvalidInputError: the factors must have at most 268435456 numbers, got 16000000000
    """
    size = math.prod(shape)
    if size > LARGEST_ARRAY:
        raise InvalidInputError(f"{name} must have at most {LARGEST_ARRAY} numbers, got {size}")


def probabilities(name: str, value: Any, shape: Sequence[int | None]) -> npt.NDArray[np.float64]:
    """Return `value` as an array whose last axis is non-negative and sums to one."""
    out = array(name, value, shape)
    if out.size == 0:
        raise refuse(name, value, "at least one probability")
    if out.min() < 0:
        where = tuple(int(i) for i in np.argwhere(out < 0)[0])
        raise InvalidInputError(f"{name} must be non-negative, got {out[where]} at index {where}")
    totals = out.sum(axis=-1)
    wrong = np.abs(totals - 1.0) > 1e-8
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        place = f" at index {where}" if where else ""
        raise InvalidInputError(f"{name} must sum to one over the last axis, got {totals[where]:.10g}{place}")
    return out
