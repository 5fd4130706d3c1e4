"""Standard normal numbers in compiled code: those of NumPy's generator, bit for bit, but faster.

NumPy's ziggurat divides the density into 256 layers of equal area. Of 64 random bits eight choose a layer, one the sign
and 52 a point across the layer, which is nearly always under the curve. NumPy, and Numba like it, apply the sign by a
branch, which the processor mispredicts half of the time, and that takes longer than everything else. Here it is a
product.

The tables and the random bits are Numba's own. If a version of Numba keeps them elsewhere, its `standard_normal` is
used, which gives the same numbers more slowly. With `BELATED_STRICT=1` the numbers in the tails, three in ten thousand,
may differ from NumPy's in the last bit, and are the same on every processor.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import numpy.typing as npt

from belated._kernels.exp_log import exp, log_rest
from belated._kernels.jit import entry_point, inlined, kernel


def _of_numba(module: str, name: str) -> Any:
    """Return a private object of Numba's generators; None if this version of Numba does not have it."""
    try:
        return getattr(importlib.import_module(f"numba.np.random.{module}"), name, None)
    except ImportError:
        return None


#: For each layer: the scale of a 52-bit point, the bound of points surely inside, and the density below.
WIDTHS, SURE, HEIGHTS = (_of_numba("_constants", f"{name}_double") for name in ("wi", "ki", "fi"))
#: Where the layers end, and its reciprocal.
TAIL, TAIL_SCALE = (_of_numba("_constants", f"ziggurat_nor_{name}") for name in ("r", "inv_r"))
next_uint64, next_double = (_of_numba("generator_core", f"next_{name}") for name in ("uint64", "double"))

_LAYER, _SIGN, _POINT = np.uint64(2**8 - 1), np.uint64(1), np.uint64(2**52 - 1)
_SIGN_AT, _POINT_AT = np.uint64(8), np.uint64(9)


@inlined
def our_normal(rng: np.random.Generator) -> float:
    """Return what `rng.standard_normal()` would."""
    while True:
        bits = next_uint64(rng.bit_generator)
        layer, point = int(np.int64(bits & _LAYER)), int(np.int64((bits >> _POINT_AT) & _POINT))
        x = (1.0 - 2.0 * np.int64((bits >> _SIGN_AT) & _SIGN)) * (point * WIDTHS[layer])
        if point < SURE[layer]:
            return float(x)
        if layer == 0:
            return from_tail(rng, point)
        if under_curve(rng, layer, x):
            return float(x)


@kernel
def from_tail(rng: np.random.Generator, point: int) -> float:
    """Return a number from the tail; the sign is a bit of `point`."""
    while True:
        beyond = -TAIL_SCALE * log_rest(next_double(rng.bit_generator))
        y = -log_rest(next_double(rng.bit_generator))
        if y + y > beyond * beyond:
            return float(-(TAIL + beyond) if (point >> 8) & 1 else TAIL + beyond)


@kernel
def under_curve(rng: np.random.Generator, layer: int, x: float) -> bool:
    """Return whether a point at x, at a random height within the layer, is under the density."""
    top, bottom = HEIGHTS[layer - 1], HEIGHTS[layer]
    return bool((top - bottom) * next_double(rng.bit_generator) + bottom < exp(-0.5 * x * x))


@inlined
def numba_normal(rng: np.random.Generator) -> float:
    """Return a standard normal number as Numba draws it."""
    return rng.standard_normal()


_NEEDED = (WIDTHS, SURE, HEIGHTS, TAIL, TAIL_SCALE, next_uint64, next_double)
standard_normal: Any = numba_normal if any(each is None for each in _NEEDED) else our_normal


@entry_point
def fill(rng: np.random.Generator, numbers: npt.NDArray[np.float64]) -> None:
    """Set `numbers` to those that `rng.standard_normal` would return."""
    for i in range(numbers.size):
        numbers[i] = standard_normal(rng)


def standard_normals(rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Return what `rng.standard_normal(shape)` would.

    >>> one, other = np.random.default_rng(0), np.random.default_rng(0)
    >>> bool((standard_normals(one, (2, 3)) == other.standard_normal((2, 3))).all())
    True
    """
    numbers = np.empty(shape)
    fill(rng, numbers.reshape(-1))
    return numbers
