"""Drawing decisions from the posterior. Logged propensities equal the sampling probabilities.

The scores are drawn n times from the posterior. The fractions of draws that each action wins, mixed with a uniform
distribution of weight `floor`, are the probabilities from which the action is then drawn. Without the floor this is
Thompson sampling.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from belated.decisions._aged import AgedPosterior
from belated.decisions._posterior import ROUNDING, TIE, Distribution, Posterior
from belated.decisions._revenue import RevenuePosterior, products
from belated.decisions._settings import ModelSettings
from belated.types import Floats, Ints

#: Number of scores drawn at a time: about a megabyte.
_AT_ONCE = 1 << 17


#: A decision to be drawn: its number, its id and the number of actions to rank.
Draw = tuple[int, str, int]
#: The chosen actions, best first, and the probabilities from which they were drawn; None if unknown.
Drawn = tuple[list[int], Floats | None]


class Sampler:
    """Draws the decisions of one model.

    The random numbers are a function of the decision's number, so replaying the log draws the same actions. In a
    `shared` store two processes may use a number at the same time; there the id is part of the seed, too.
    """

    def __init__(self, name: str, seed: int, *, shared: bool) -> None:
        digest = hashlib.blake2b(f"{name}/{seed}".encode(), digest_size=16).digest()
        key = np.frombuffer(digest, np.uint64)
        self._bits = np.random.Philox(key=key)
        self._rng = np.random.Generator(self._bits)
        self._counter = [0, 0, 0, 0]
        state = {"counter": self._counter, "key": key.tolist()}  # lists: NumPy reads them element by element
        self._state: Any = {**self._bits.state, "state": state, "buffer": [0, 0, 0, 0]}
        self._shared = shared

    def _seek(self, number: int, id: str) -> None:  # noqa: A002
        """Move the generator to the random numbers of a decision."""
        self._counter[2] = number
        if self._shared:
            self._counter[3] = int.from_bytes(hashlib.blake2b(id.encode(), digest_size=8).digest(), "little")
        self._bits.state = self._state

    def uniforms(self, number: int, id: str, count: int) -> list[float]:  # noqa: A002
        """Return a decision's random numbers, in [0, 1)."""
        self._seek(number, id)
        drawn: list[float] = self._rng.random(count).tolist()
        return drawn

    def joint(
        self,
        posterior: Posterior | AgedPosterior,
        settings: ModelSettings,
        rows: Floats,
        when: float,
        number: int,
        id: str,  # noqa: A002
        size: int,
    ) -> Drawn:
        """Draw a decision at time `when`: a ranking of `size` actions with features `rows` and common weights."""
        self._seek(number, id)
        rng, draws, floor = self._rng, settings.draws, settings.floor
        if isinstance(posterior, RevenuePosterior):
            chances = scores(posterior.distribution(rows, when), draws, rng)
            drawn = products(chances, scores(posterior.joint_amounts(rows, when), draws, rng))
            probabilities = mixture(shares(drawn, float(drawn.std(axis=1).max())), floor)
        elif draws == 1 and floor == 0.0 and size == 1:
            return [best(posterior.draw(rows, rng, when), rng)], None
        else:
            distribution = posterior.distribution(rows, when)
            drawn = scores(distribution, draws, rng)
            probabilities = mixture(
                distinct_shares(drawn) if distribution.distinct else shares(drawn, distribution.width), floor
            )
        order = rank(probabilities, rng.random(1 if size == 1 else 1 + len(rows)).tolist(), size)
        return order, probabilities if draws > 1 or floor > 0.0 else None

    def members(self, won: Floats, settings: ModelSettings, number: int, id: str, size: int) -> Drawn:  # noqa: A002
        """Draw a decision from the members of a sparse posterior, given the fraction of members that each action wins.

        Every member is a posterior draw, so the probabilities are those of that many draws.
        """
        self._seek(number, id)
        probabilities = mixture(won, settings.floor)
        order = rank(probabilities, self._rng.random(1 if size == 1 else 1 + len(won)).tolist(), size)
        return order, probabilities if settings.draws > 1 or settings.floor > 0.0 else None

    def separate(
        self,
        posterior: Posterior | AgedPosterior,
        settings: ModelSettings,
        blocks: Ints,
        x: Floats,
        when: float,
        draws: Sequence[Draw],
    ) -> list[Drawn]:
        """Draw decisions in contexts `x`, shape (decisions, d), among actions that each have their own weights."""
        most = max(1, _AT_ONCE // (len(blocks) * settings.draws))
        known, rng = settings.draws > 1 or settings.floor > 0.0, self._rng
        parts = 2 if isinstance(posterior, RevenuePosterior) else 1
        drawn: list[Drawn] = []
        for first in range(0, len(x), most):
            some = draws[first : first + most]
            x_some = x[first : first + most]
            mean, spread = posterior.scores(x_some, blocks, when)
            normals, uniforms = np.empty((len(x_some), parts, len(blocks), settings.draws)), []
            for (number, name, size), out in zip(some, normals, strict=True):
                self._seek(number, name)
                rng.standard_normal(out=out)
                uniforms.append(rng.random(1 if size == 1 else 1 + len(blocks)).tolist())
            values, width = spread_scores(mean, spread, normals[:, 0]), spread.max(axis=1)
            if isinstance(posterior, RevenuePosterior):
                values = products(values, spread_scores(*posterior.amounts_of(x_some, blocks, when), normals[:, 1]))
                width = values.std(axis=-1).max(axis=-1)
            won = shares(values, width)
            triples = zip(mixture(won, settings.floor), uniforms, some, strict=True)
            drawn += [(rank(each, given, size), each if known else None) for each, given, (_, _, size) in triples]
        return drawn


def scores(distribution: Distribution, draws: int, rng: np.random.Generator) -> Floats:
    """Return draws of all scores, shape (actions, draws)."""
    out: Floats = distribution.root.dot(rng.standard_normal((distribution.root.shape[1], draws)))
    out += distribution.mean[:, None]
    return out


def spread_scores(mean: Floats, spread: Floats, normals: Floats) -> Floats:
    """Return draws of independent scores, mean + spread·z, overwriting `normals`."""
    normals *= spread[..., None]
    normals += mean[..., None]
    return normals


def shares(drawn: Floats, width: Floats | float = 0.0) -> Floats:
    """Return the fraction of draws that each action wins; actions that tie, at this `width` of the scores, share a win.

    `drawn` has shape (..., actions, draws), `width` (...).

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
    """Return what `shares` does, for scores that cannot tie.

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
    """Return the action drawn by inversion with `uniform` in [0, 1); never one with probability 0.

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
    return last  # `uniform` is beyond the sum of the probabilities, by rounding


def best(drawn: Floats, rng: np.random.Generator) -> int:
    """Return the action with the largest score of one draw; ties are broken uniformly at random."""
    values: list[float] = drawn.tolist()
    largest = max(values)
    bound = largest - ROUNDING * abs(largest)
    place = values.index(largest)
    values[place] = -math.inf
    if max(values) < bound:  # no ties: the usual case
        return place
    return int(rng.choice(np.flatnonzero(drawn >= bound)))


def rank(probabilities: Floats, uniforms: Sequence[float], size: int) -> list[int]:
    """Return `size` different actions, drawn without replacement.

    The first is drawn like a single choice. The others are in the order of exponential variables whose rates are the
    probabilities; actions with probability 0 come last, in random order. `uniforms` has one number for the first action
    and, for a longer ranking, one for each action.
    """
    first = pick(probabilities, uniforms[0])
    if size == 1:
        return [first]
    times = -np.log1p(-np.asarray(uniforms[1:]))
    keys = np.full(len(times), np.inf)
    np.divide(times, probabilities, out=keys, where=probabilities > 0.0)
    order: list[int] = np.lexsort((times, keys)).tolist()
    order.remove(first)
    return [first, *order[: size - 1]]
