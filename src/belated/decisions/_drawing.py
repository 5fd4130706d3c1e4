"""Draw decisions from the posterior, each with random numbers of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from belated.decisions._fold import Fold
from belated.decisions._probabilities import best, distinct_shares, mixture, rank, scores, shares, spread_scores
from belated.decisions._settings import ModelSettings
from belated.types import Floats

#: Scores that are drawn at a time: about a megabyte.
_AT_ONCE = 1 << 17


class Place(NamedTuple):
    """Which random numbers a decision has."""

    number: int
    id: str
    size: int
    """How many actions to rank."""


#: The chosen actions, best first, and what they were drawn from; None if that is not known.
Drawn = tuple[list[int], Floats | None]


class Drawer:
    """Draws the decisions of one model.

    The random numbers belong to a decision's number: with the same log it would be drawn the same. Several processes
    may use a number at the same time; with them, in a `shared` store, they belong to the id, too.
    """

    def __init__(self, name: str, seed: int, *, shared: bool) -> None:
        digest = hashlib.blake2b(f"{name}/{seed}".encode(), digest_size=16).digest()
        key = np.frombuffer(digest, np.uint64)
        self._bits = np.random.Philox(key=key)
        self._rng = np.random.Generator(self._bits)
        self._counter = [0, 0, 0, 0]
        state = {"counter": self._counter, "key": key.tolist()}  # lists, since NumPy reads them one by one
        self._state: Any = {**self._bits.state, "state": state, "buffer": [0, 0, 0, 0]}
        self._shared = shared

    def _seek(self, number: int, id: str) -> None:  # noqa: A002
        """Go to the random numbers of a decision."""
        self._counter[2] = number
        if self._shared:
            self._counter[3] = int.from_bytes(hashlib.blake2b(id.encode(), digest_size=8).digest(), "little")
        self._bits.state = self._state

    def joint(self, fold: Fold, settings: ModelSettings, rows: Floats, when: float, place: Place) -> Drawn:
        """Draw a decision among actions with features `rows` that share weights, at time `when` in half-lives."""
        number, id, size = place  # noqa: A001
        self._seek(number, id)
        rng, draws, floor = self._rng, settings.draws, settings.floor
        if draws == 1 and floor == 0.0 and size == 1:
            return [best(fold.posterior.draw(rows, rng, when), rng)], None
        distribution = fold.posterior.distribution(rows, when)
        drawn = scores(distribution, draws, rng)
        probabilities = mixture(
            distinct_shares(drawn) if distribution.distinct else shares(drawn, distribution.width), floor
        )
        order = rank(probabilities, _uniforms(rng, size))
        return order, probabilities if draws > 1 or floor > 0.0 else None

    def separate(
        self, fold: Fold, settings: ModelSettings, names: Sequence[str], x: Floats, when: float, places: Sequence[Place]
    ) -> list[Drawn]:
        """Draw decisions among actions with blocks of their own, all in contexts `x`, shape (decisions, d)."""
        blocks = np.array([fold.blocks.get(name, -1) for name in names])
        most = max(1, _AT_ONCE // (len(names) * settings.draws))
        drawn: list[Drawn] = []
        for first in range(0, len(x), most):
            some = slice(first, first + most)
            drawn += self._separate(fold, settings, blocks, x[some], when, places[some])
        return drawn

    def _separate(
        self, fold: Fold, settings: ModelSettings, blocks: Any, x: Floats, when: float, places: Sequence[Place]
    ) -> list[Drawn]:
        mean, spread = fold.posterior.scores(x, blocks, when)
        normals, uniforms, rng = np.empty((*mean.shape, settings.draws)), [], self._rng
        for place, out in zip(places, normals, strict=True):
            self._seek(place.number, place.id)
            rng.standard_normal(out=out)
            uniforms.append(_uniforms(rng, place.size))
        won = shares(spread_scores(mean, spread, normals), spread.max(axis=1))
        probabilities = mixture(won, settings.floor)
        known = settings.draws > 1 or settings.floor > 0.0
        pairs = zip(probabilities, uniforms, strict=True)
        return [(rank(each, given), each if known else None) for each, given in pairs]


def _uniforms(rng: np.random.Generator, count: int) -> list[float]:
    return [rng.random()] if count == 1 else rng.random(count).tolist()
