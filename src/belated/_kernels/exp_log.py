"""Exponential and logarithm for kernels: the C library's or, with `BELATED_STRICT=1`, portable ones.

C libraries may round them differently on different processors. In strict mode they consist only of sums, products and
quotients, whose results IEEE 754 determines; they are within two units in the last place of the true value.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from belated._kernels.jit import STRICT, kernel

#: log 2, rounded, and as two parts, the first with few enough bits for exact products with an exponent.
LN2, LN2_HIGH, LN2_LOW = math.log(2.0), float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
ROOT_HALF = math.sqrt(0.5)
#: Where the exponential overflows, and where it underflows.
LARGEST, LEAST = math.log(1.7976931348623157e308), -745.2
#: 1/n! for the exponential, and 2/(2n + 1) for the logarithm, the highest power first.
EXP_TERMS = tuple(1.0 / math.factorial(n) for n in range(13, -1, -1))
LOG_TERMS = tuple(2.0 / (2 * n + 1) for n in range(11, 0, -1))


@kernel
def strict_exp(x: float) -> float:
    """Return eˣ as 2ᵏeʳ with |r| ≤ log(2)/2, and eʳ by its series.

    >>> strict_exp(1.0)
    2.718281828459045
    """
    if x > LARGEST:
        return np.inf
    if x < LEAST:
        return 0.0
    if x != x:
        return x
    k = math.floor(x / LN2 + 0.5)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    total = 0.0
    for term in EXP_TERMS:
        total = total * r + term
    return math.ldexp(total, int(k))


@kernel
def strict_log(x: float) -> float:
    """Return log x as k·log 2 + log(1 + f) with √½ ≤ 1 + f < √2, and log(1 + f) by the series of atanh f/(2 + f).

    >>> strict_log(10.0)
    2.302585092994046
    """
    if x == 0.0:
        return -np.inf
    if not x > 0.0 or x == np.inf:
        return x if x == np.inf else np.nan
    mantissa, k = math.frexp(x)
    if mantissa < ROOT_HALF:
        mantissa, k = 2.0 * mantissa, k - 1
    f = mantissa - 1.0
    s = f / (2.0 + f)
    z, half_square, rest = s * s, 0.5 * f * f, 0.0
    for term in LOG_TERMS:
        rest = (rest + term) * z
    return k * LN2_HIGH - ((half_square - (s * (half_square + rest) + k * LN2_LOW)) - f)


@kernel
def strict_log_rest(u: float) -> float:
    """Return log(1 − u) for a multiple u of 2⁻⁵³ below 1, as uniform numbers are: then 1 − u is exact."""
    return strict_log(1.0 - u)


@kernel
def library_log_rest(u: float) -> float:
    """Return log(1 − u)."""
    return float(np.log1p(-u))


exp: Callable[[float], float] = strict_exp if STRICT else np.exp
log: Callable[[float], float] = strict_log if STRICT else np.log
log_rest: Callable[[float], float] = strict_log_rest if STRICT else library_log_rest
