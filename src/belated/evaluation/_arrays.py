"""The array checks this package needs beyond `belated._util.validate`."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated._util.validate import array
from belated.errors import InvalidInputError
from belated.types import Floats


def any_shape(name: str, value: Any, *, axes: int = 0) -> Floats:
    """Return a read-only float copy of `value`, finite, with at least `axes` axes.

    >>> any_shape("samples", [[1, 2], [3, 4]]).shape
    (2, 2)
    """
    try:
        found = np.ndim(value)
    except ValueError:
        found = axes  # ragged lists: `array` refuses them in its own words
    if found < axes:
        raise InvalidInputError(f"{name} must have at least {axes} axis, got {value!r}")
    return array(name, value, (None,) * found)


def seed_curves(name: str, value: Any) -> Floats:
    """Return `value` as curves of shape (seeds, episodes), at least one of each.

    >>> seed_curves("values", [[], []])
    Traceback (most recent call last):
    belated.errors.InvalidInputError: values must have at least one seed and one episode, got shape (2, 0)
    """
    curves = array(name, value, (None, None))
    if curves.size == 0:
        raise InvalidInputError(f"{name} must have at least one seed and one episode, got shape {curves.shape}")
    return curves
