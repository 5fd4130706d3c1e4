"""Probabilities that are true: the action is drawn from the very numbers that are written down.

Draw the scores n times from the posterior; the winners' shares, mixed with a uniform part of size `floor`, are the
probabilities, and the action is drawn from them. Without the floor its distribution is that of Thompson sampling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from belated.decisions._posterior import ROUNDING, TIE, Distribution
from belated.types import Floats


def scores(distribution: Distribution, draws: int, rng: np.random.Generator) -> Floats:
    """Return draws of all scores, shape (actions, draws)."""
    out: Floats = distribution.root.dot(rng.standard_normal((distribution.root.shape[1], draws)))
    out += distribution.mean[:, None]
    return out


def spread_scores(mean: Floats, spread: Floats, normals: Floats) -> Floats:
    """Return draws of scores that are independent, in the place of the normals: mean + spread·z."""
    normals *= spread[..., None]
    normals += mean[..., None]
    return normals


def shares(drawn: Floats, width: Floats | float = 0.0) -> Floats:
    """Return each action's share of the wins; winners that are equal, for scores of this `width`, share one.

    The scores have the shape (..., actions, draws), the widths (...).

    >>> shares(np.array([[1.0, 5.0, 2.0, 0.0], [0.0, 5.0, 1.0, 1.0]])).tolist()
    [0.625, 0.375]
    """
    largest = np.maximum.reduce(drawn, axis=-2, keepdims=True)
    near = TIE * width + ROUNDING * abs(largest[..., 0, 0])
    wins: Any = drawn >= largest - (near if drawn.ndim == 2 else near[..., None, None])
    draws = drawn.shape[-1]
    if np.count_nonzero(wins) > largest.size:  # ties
        wins = wins / np.add.reduce(wins, axis=-2, keepdims=True)
    return np.asarray(np.add.reduce(wins, axis=-1, dtype=np.float64) / draws)


def distinct_shares(drawn: Floats) -> Floats:
    """Return what `shares` does, of scores that cannot be equal.

    >>> distinct_shares(np.array([[1.0, 5.0, 2.0, 0.0], [0.0, 4.0, 1.0, 1.0]])).tolist()
    [0.75, 0.25]
    """
    actions, draws = drawn.shape
    won: Floats = np.bincount(drawn.argmax(axis=0), minlength=actions) / draws
    return won


def mixture(won: Floats, floor: float) -> Floats:
    """Return the probabilities (1 − floor)·shares + floor/K of the K actions."""
    if floor > 0.0:
        won *= 1.0 - floor
        won += floor / won.shape[-1]
    return won


def pick(probabilities: Floats, uniform: float) -> int:
    """Return the action that `uniform`, in [0, 1), falls on; never one of probability 0.

    >>> [pick(np.array([0.0, 0.25, 0.75, 0.0]), u) for u in (0.0, 0.24, 0.26, 1 - 1e-16)]
    [1, 1, 2, 2]
    """
    left, last = uniform, 0
    for place, each in enumerate(probabilities.tolist()):
        if each > 0.0:
            if left < each:
                return place
            left -= each
            last = place
    return last  # rounding


def best(drawn: Floats, rng: np.random.Generator) -> int:
    """Return the action with the largest of the scores of one draw; equal ones are as likely."""
    values: list[float] = drawn.tolist()
    largest = max(values)
    bound = largest - ROUNDING * abs(largest)
    place = values.index(largest)
    values[place] = -math.inf
    if max(values) < bound:  # nearly always
        return place
    return int(rng.choice(np.flatnonzero(drawn >= bound)))


def rank(probabilities: Floats, uniforms: Sequence[float]) -> list[int]:
    """Return different actions, one for each of `uniforms`: drawn from the probabilities of those that are left."""
    if len(uniforms) == 1:
        return [pick(probabilities, uniforms[0])]
    left = probabilities.copy()
    order: list[int] = []
    for uniform in uniforms:
        if left.sum() <= 0.0:  # nobody else ever won: the rest are as good as one another
            left = np.ones(len(left))
            left[order] = 0.0
        order.append(pick(left / left.sum(), uniform))
        left[order[-1]] = 0.0
    return order
