"""Updating a factor by many observations at once: that of Ω + XXᵀ, by blocks of Householder reflections.

A Givens rotation for each row of U and each observation costs 3rd² flops, on two numbers at a time. A reflection
handles all r observations at once,

    [U_kk; x_k] → [√(U_kk² + ‖x_k‖²); 0],

and `WIDTH` reflections together act on the rest of U and X as I − VTVᵀ (Schreiber and Van Loan, 1989): products of
matrices. Unlike a new factorisation of UᵀU + XXᵀ this never squares the condition number.
"""

from __future__ import annotations

import sys

import numpy as np

from belated._kernels.gaussian import rank_one_update
from belated._kernels.jit import STRICT, fast_sums, inlined, kernel
from belated.types import Floats, Ints

#: Number of reflections applied together.
WIDTH = 16
#: Number of observations from which reflections are faster than rotations; `make bench ARGS=--large` measures it.
#: Matrix products round differently on different processors, so strict mode uses only rotations.
BLOCK_FROM = sys.maxsize if STRICT else 16


@fast_sums
def reflect_panel(factor: Floats, first: int, panel: Floats, triangle: Floats) -> None:
    """Eliminate the columns of X in `panel` (one per row), leaving V in it and T in `triangle`."""
    for c in range(panel.shape[0]):
        v, k = panel[c], first + c
        square = 0.0
        for a in range(v.size):
            square += v[a] * v[a]
        diagonal = factor[k, k]
        grown = np.sqrt(diagonal * diagonal + square)
        tau = 0.0
        if square > 0.0:  # v = x/(U_kk − grown), where U_kk − grown = −‖x‖²/(U_kk + grown) does not cancel
            tau = square / ((diagonal + grown) * grown)
            stretch = -(diagonal + grown) / square
            for a in range(v.size):
                v[a] *= stretch
        factor[k, k] = grown
        for j in range(c + 1, panel.shape[0]):
            x = panel[j]
            along = factor[k, first + j]
            for a in range(v.size):
                along += v[a] * x[a]
            along *= tau
            factor[k, first + j] -= along
            for a in range(v.size):
                x[a] -= along * v[a]
        for i in range(c):
            u = panel[i]
            common = 0.0
            for a in range(v.size):
                common += u[a] * v[a]
            triangle[i, c] = common
        for i in range(c):  # T ← [T, −τTVᵀv; 0, τ]
            total = 0.0
            for j in range(i, c):
                total += triangle[i, j] * triangle[j, c]
            triangle[i, c] = -tau * total
        triangle[c, c] = tau


@kernel
def block_update(factor: Floats, x: Floats) -> None:
    """Replace U by the factor of UᵀU + XXᵀ for the columns of X, shape (d, r); `x` is overwritten."""
    d = factor.shape[0]
    for first in range(0, d, WIDTH):
        rest = min(first + WIDTH, d)
        panel, below = x[first:rest], x[rest:]
        triangle = np.zeros((rest - first, rest - first))
        reflect_panel(factor, first, panel, triangle)
        if rest == d:
            break
        shares = np.dot(below, panel.T.copy())  # (U_rest + VᵀX_rest)ᵀ
        for i in range(shares.shape[0]):
            for c in range(shares.shape[1]):
                shares[i, c] += factor[first + c, rest + i]
        shares = np.dot(shares, triangle)
        for c in range(shares.shape[1]):
            row = factor[first + c, rest:]
            for i in range(row.size):
                row[i] -= shares[i, c]
        below -= np.dot(shares, panel)


@kernel
def sort(pairs: Ints) -> None:
    """Insertion sort: there are at most a few hundred, and Numba's own sort takes a second to compile."""
    for end in range(1, pairs.size):
        pair, place = pairs[end], end
        while place > 0 and pairs[place - 1] > pair:
            pairs[place] = pairs[place - 1]
            place -= 1
        pairs[place] = pair


@kernel
def merge_visits(rows: Floats, pairs: Ints, start: int, noise: float, x: Floats) -> int:
    """Set x to √n·φ/σ for the n equal `pairs` from index `start` on; return the index of the next different one."""
    end = start + 1
    while end < pairs.size and pairs[end] == pairs[start]:
        end += 1
    row = rows[pairs[start]]
    if pairs.size == 1:
        for i in range(x.size):
            x[i] = row[i] / noise
    else:
        weight = np.sqrt(float(end - start)) / noise
        for i in range(x.size):
            x[i] = weight * row[i]
    return end


@kernel
def add_few_visits(factor: Floats, rows: Floats, pairs: Ints, noise: float, x: Floats) -> None:
    """Replace U by the factor of Ω + Σφφᵀ/σ² over `pairs`, row numbers, which are sorted; `x` (d,) is work space.

    Visits of the same row are merged. Uses no reflections, so there is much less to compile than in `add_visits`.
    """
    sort(pairs)
    start = 0
    while start < pairs.size:
        start = merge_visits(rows, pairs, start, noise, x)
        rank_one_update(factor, x)


@inlined
def add_visits(factor: Floats, rows: Floats, pairs: Ints, noise: float, x: Floats) -> None:
    """Do the same, but handle many different rows as one block of observations."""
    if pairs.size < BLOCK_FROM:
        add_few_visits(factor, rows, pairs, noise, x)
    else:
        add_many_visits(factor, rows, pairs, noise, x)


@kernel
def add_many_visits(factor: Floats, rows: Floats, pairs: Ints, noise: float, x: Floats) -> None:
    """Use a block if the visits have at least `BLOCK_FROM` different rows."""
    sort(pairs)
    distinct = 1
    for a in range(1, pairs.size):
        if pairs[a] != pairs[a - 1]:
            distinct += 1
    if distinct < BLOCK_FROM:
        add_few_visits(factor, rows, pairs, noise, x)
        return
    block, start = np.empty((x.size, distinct)), 0
    for column in range(distinct):
        start = merge_visits(rows, pairs, start, noise, x)
        for i in range(x.size):
            block[i, column] = x[i]
    block_update(factor, block)
