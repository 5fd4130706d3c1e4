"""Drawing decisions from the posterior. Logged propensities equal the sampling probabilities.

The scores are drawn n times from the posterior. The fractions of draws that each action wins, mixed with a uniform
distribution of weight `floor`, are the probabilities from which the action is then drawn. Without the floor this is
Thompson sampling.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from belated._kernels.jit import EntryPoint, entry_point, kernel
from belated.decisions._aged import AgedPosterior
from belated.decisions._posterior import Distribution, Posterior
from belated.decisions._revenue import RevenuePosterior, products
from belated.decisions._settings import ModelSettings
from belated.types import Floats, Ints

#: Number of scores drawn at a time: about a megabyte.
_AT_ONCE = 1 << 17
#: Scores nearer than this are equal, and share a win: relative to the largest standard deviation, and to a score.
TIE, ROUNDING = 1e-6, 1e-13


#: A decision to be drawn: its number, its id and the number of actions to rank.
Draw = tuple[int, str, int]
#: The chosen actions, best first, and the probabilities from which they were drawn; None if unknown.
Drawn = tuple[list[int], Floats | None]


#: A random number in [0, 1), and for a ranking one more for each action.
_Uniforms = tuple[float, Floats | None]


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
        self._choose = cast(EntryPoint, choose).compiled_for(np.zeros((2, 2)), 0.0, 0.0, 0.0, np.zeros(2))

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
        rng, draws = self._rng, settings.draws
        if isinstance(posterior, RevenuePosterior):
            chances = scores(posterior.distribution(rows, when), draws, rng)
            drawn = products(chances, scores(posterior.joint_amounts(rows, when), draws, rng))
            width = float(drawn.std(axis=1).max())
        elif draws == 1 and settings.floor == 0.0 and size == 1:
            drawn, width = posterior.draw(rows, rng, when)[:, None], 0.0
        else:
            distribution = posterior.distribution(rows, when)
            drawn, width = scores(distribution, draws, rng), distribution.width
        return self._drawn(drawn, width, settings, self._uniforms(len(rows), size), size)

    def members(self, won: Floats, settings: ModelSettings, number: int, id: str, size: int) -> Drawn:  # noqa: A002
        """Draw a decision from the members of a sparse posterior, given the fraction of members that each action wins.

        Every member is a posterior draw, so the probabilities are those of that many draws.
        """
        self._seek(number, id)
        mix(won, settings.floor)
        uniform, others = self._uniforms(len(won), size)
        order = [pick(won.tolist(), uniform)]
        if others is not None:
            order = rank(won, order[0], others)[:size]
        return order, won if settings.draws > 1 or settings.floor > 0.0 else None

    def _uniforms(self, actions: int, size: int) -> _Uniforms:
        return self._rng.random(), self._rng.random(actions) if size > 1 else None

    def _drawn(self, drawn: Floats, width: float, settings: ModelSettings, given: _Uniforms, size: int) -> Drawn:
        """Return the decision that draws of the scores, shape (actions, draws), and some random numbers lead to."""
        probabilities = np.empty(len(drawn))
        first = self._choose(drawn, width, settings.floor, given[0], probabilities)
        order = [first] if given[1] is None else rank(probabilities, first, given[1])[:size]
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
        parts = 2 if isinstance(posterior, RevenuePosterior) else 1
        drawn: list[Drawn] = []
        for first in range(0, len(x), most):
            some = draws[first : first + most]
            x_some = x[first : first + most]
            mean, spread = posterior.scores(x_some, blocks, when)
            normals, uniforms = np.empty((len(x_some), parts, len(blocks), settings.draws)), []
            for (number, name, size), out in zip(some, normals, strict=True):
                self._seek(number, name)
                self._rng.standard_normal(out=out)
                uniforms.append(self._uniforms(len(blocks), size))
            values, width = spread_scores(mean, spread, normals[:, 0]), spread.max(axis=1)
            if isinstance(posterior, RevenuePosterior):
                values = products(values, spread_scores(*posterior.amounts_of(x_some, blocks, when), normals[:, 1]))
                width = values.std(axis=-1).max(axis=-1)
            for each, near, given, (_, _, size) in zip(values, width.tolist(), uniforms, some, strict=True):
                drawn.append(self._drawn(each, near, settings, given, size))
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


@entry_point
def choose(drawn: Floats, width: float, floor: float, uniform: float, probabilities: Floats) -> int:
    """Fill in the probabilities of actions with these draws of their scores; return one, drawn with `uniform`.

    The scores have the shape (actions, draws), and `width` is their largest standard deviation.
    """
    count_wins(drawn, width, probabilities)
    mix(probabilities, floor)
    return pick(probabilities, uniform)


@kernel
def count_wins(drawn: Floats, width: float, won: Floats) -> None:
    """Set `won` to each action's share of the wins; winners that are equal, for scores of this `width`, share one.

    >>> won = np.zeros(2)
    >>> count_wins(np.array([[1.0, 5.0, 2.0, 0.0], [0.0, 5.0, 1.0, 1.0]]), 0.0, won)
    >>> won.tolist()
    [0.625, 0.375]
    """
    actions, draws = drawn.shape
    bounds, winners = np.full(draws, -np.inf), np.zeros(draws)
    for action in range(actions):
        for i in range(draws):
            bounds[i] = max(bounds[i], drawn[action, i])
    for i in range(draws):
        bounds[i] -= TIE * width + ROUNDING * abs(bounds[i])
    for action in range(actions):
        for i in range(draws):
            winners[i] += drawn[action, i] >= bounds[i]
    for action in range(actions):
        total = 0.0
        for i in range(draws):
            if drawn[action, i] >= bounds[i]:
                total += 1.0 / winners[i]
        won[action] = total / draws


@kernel
def mix(won: Floats, floor: float) -> None:
    """Turn shares of wins into the probabilities (1 − floor)·shares + floor/K of the K actions."""
    if floor > 0.0:
        won *= 1.0 - floor
        won += floor / won.size


@kernel
def pick(probabilities: Sequence[float] | Floats, uniform: float) -> int:
    """Return the action drawn by inversion with `uniform` in [0, 1); never one with probability 0.

    >>> [pick([0.0, 0.25, 0.75, 0.0], u) for u in (0.0, 0.24, 0.26, 1 - 1e-16)]
    [1, 1, 2, 2]
    """
    left, last = uniform, 0
    for place in range(len(probabilities)):
        if probabilities[place] > 0.0:
            if left < probabilities[place]:
                return place
            left -= probabilities[place]
            last = place
    return last  # `uniform` is beyond the sum of the probabilities, by rounding


def rank(probabilities: Floats, first: int, uniforms: Floats) -> list[int]:
    """Return all actions, `first` first, the others drawn without replacement.

    They are in the order of exponential variables whose rates are the probabilities; actions with probability 0 come
    last, in random order. `uniforms` has one number for each action.
    """
    times = -np.log1p(-uniforms)
    keys = np.full(len(times), np.inf)
    np.divide(times, probabilities, out=keys, where=probabilities > 0.0)
    order: list[int] = np.lexsort((times, keys)).tolist()
    order.remove(first)
    return [first, *order]
