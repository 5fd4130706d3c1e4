"""Evidence that observations do not tell states apart: what follows a pair depends on what came before it.

In a table whose rows are states, s' depends on (s, a) alone. So of each pair it is counted how often each half of the
states came before it together with each half of the states that followed, halves being a bit of a hash, and both are
tested for independence. docs/math/auto-psvi.md derives the test.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from belated.agents._auto.changes import EVIDENCE
from belated.agents._transitions import mixed
from belated.errors import InvalidInputError
from belated.types import Floats, Ints

#: Pairs are tested of which each half of the states came before, and each followed, so many times.
LEAST = 8
#: Stands for a terminal state among the features that followed.
ENDED = -1


class Aliasing:
    """Four counts for each pair that a simulator has shown, of at most `limit` pairs."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.found = False
        """Whether a pair has been found whose next states depend on those before."""
        self.trajectories = 0
        """How many were taken in; the test is made when they have doubled."""
        self._places: dict[tuple[int, int], int] = {}
        self._counts: Floats = np.zeros((1, 4))

    def note(self, features: Ints, actions: Ints) -> None:
        """Take in a trajectory of states that have one feature each, the last one `ENDED` if it is terminal."""
        if self.found or len(actions) < 2:
            return
        half = (mixed(features.astype(np.uint64)) & np.uint64(1)).astype(np.int64)
        cells = 2 * half[:-2] + half[2:]  # what came before, and what followed
        pairs = list(zip(features[1:-1].tolist(), actions[1:].tolist(), strict=True))
        for pair, cell in zip(pairs, cells.tolist(), strict=True):
            place = self._places.get(pair)
            if place is None:
                place = len(self._places)
                if place >= self.limit:
                    continue
                self._places[pair] = place
                if place == len(self._counts):
                    self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
            self._counts[place, cell] += 1.0
        self.trajectories += 1
        if self.trajectories & (self.trajectories - 1) == 0 and is_evident(self._counts[: len(self._places)]):
            self.found = True
            warnings.warn(
                "observations do not tell states apart: what follows an action depends on what came before, too, which "
                "a table of observations cannot learn; let observations hold more, such as the last few of them",
                stacklevel=2,
            )

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        pairs = np.array(list(self._places), np.int64).reshape(-1, 2)
        counts = self._counts[: len(pairs)].copy()
        return {
            "aliasing.pairs": pairs,
            "aliasing.counts": counts,
            "aliasing.seen": np.array([self.found, self.trajectories]),
        }

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        """Replace everything by what `memory` returned, after a look at whether it fits."""
        pairs, counts, seen = (memory[f"aliasing.{name}"] for name in ("pairs", "counts", "seen"))
        places = {(int(feature), int(action)): i for i, (feature, action) in enumerate(pairs.reshape(-1, 2))}
        fits = pairs.shape == (len(places), 2) and counts.shape == (len(places), 4) and seen.shape == (2,)
        if not fits or not (counts >= 0.0).all() or seen[0] not in (0, 1) or seen[1] < 0:
            raise InvalidInputError("memory must hold counts of what came before and followed each pair")
        self._places, self.found, self.trajectories = places, bool(seen[0]), int(seen[1])
        self._counts = np.concatenate([counts, np.zeros((1, 4))])


def is_evident(counts: Floats) -> bool:
    """Whether the pairs of these `counts` (n, 4) together depend on what came before by more than chance allows.

    Of k independent pairs, twice the sum of the log likelihood ratios has about the distribution χ² with k degrees of
    freedom, which exceeds k + 2√(kL) + 2L with probability e^{-L} at most (Laurent and Massart 2000, lemma 1).
    """
    table = counts.reshape(-1, 2, 2)
    many = np.minimum(table.sum(axis=1).min(axis=1), table.sum(axis=2).min(axis=1)) >= LEAST
    k = int(many.sum())
    return float(dependence(counts[many]).sum()) > 0.5 * k + math.sqrt(k * EVIDENCE) + EVIDENCE


def dependence(counts: Floats) -> Floats:
    """Return log Π (n_ij n / (n_i n_j))^n_ij of each row (n₀₀, n₀₁, n₁₀, n₁₁), the likelihood ratio of dependence.

    >>> dependence(np.array([[10.0, 10.0, 20.0, 20.0], [8.0, 0.0, 0.0, 8.0]])).round(3).tolist()
    [0.0, 11.09]
    """
    table = counts.reshape(-1, 2, 2)
    margins = _log(table.sum(axis=2)).sum(axis=1) + _log(table.sum(axis=1)).sum(axis=1)
    return np.asarray(_log(table).sum(axis=(1, 2)) - margins + _log(table.sum(axis=(1, 2))))


def _log(n: Floats) -> Floats:
    """Return n·log n."""
    return np.asarray(n * np.log(np.maximum(n, 1.0)))
