"""Testing for aliased states: what follows a pair depends on what preceded it.

In a Markov table, s' depends only on (s, a). So for each pair, the previous and the next states are split into two
halves each by a bit of a hash, the four combinations are counted, and independence is tested. docs/math/auto-psvi.md
derives the test.
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

#: Minimum count of each half, of previous and of next states, for a pair to be tested.
LEAST = 8
#: The feature of a terminal state.
ENDED = -1


class Aliasing:
    """Four counts for each pair seen in a simulator, for at most `limit` pairs."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.found = False
        """Whether next states have been found to depend on previous ones."""
        self.trajectories = 0
        """Number of trajectories added; the test is repeated each time it doubles."""
        self._places: dict[tuple[int, int], int] = {}
        self._counts: Floats = np.zeros((1, 4))

    def note(self, features: Ints, actions: Ints) -> None:
        """Add a trajectory of states with one feature each; the last one is `ENDED` if it is terminal."""
        if self.found or len(actions) < 2:
            return
        half = (mixed(features.astype(np.uint64)) & np.uint64(1)).astype(np.int64)
        cells = 2 * half[:-2] + half[2:]  # previous and next half
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
                "observations do not identify states: what follows an action also depends on earlier ones, which "
                "a table of observations cannot learn; include more in each observation, such as the last few",
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
        """Replace everything by what `memory` returned, after checking it."""
        pairs, counts, seen = (memory[f"aliasing.{name}"] for name in ("pairs", "counts", "seen"))
        places = {(int(feature), int(action)): i for i, (feature, action) in enumerate(pairs.reshape(-1, 2))}
        fits = pairs.shape == (len(places), 2) and counts.shape == (len(places), 4) and seen.shape == (2,)
        if not fits or not (counts >= 0.0).all() or seen[0] not in (0, 1) or seen[1] < 0:
            raise InvalidInputError("memory must hold counts of the previous and next states of each pair")
        self._places, self.found, self.trajectories = places, bool(seen[0]), int(seen[1])
        self._counts = np.concatenate([counts, np.zeros((1, 4))])


def is_evident(counts: Floats) -> bool:
    """Whether these `counts` (n, 4) together show a significant dependence on previous states.

    For k independent pairs, twice the sum of the log likelihood ratios is approximately χ² with k degrees of freedom,
    which exceeds k + 2√(kL) + 2L with probability at most e^{-L} (Laurent and Massart 2000, lemma 1).
    """
    table = counts.reshape(-1, 2, 2)
    many = np.minimum(table.sum(axis=1).min(axis=1), table.sum(axis=2).min(axis=1)) >= LEAST
    k = int(many.sum())
    return float(dependence(counts[many]).sum()) > 0.5 * k + math.sqrt(k * EVIDENCE) + EVIDENCE


def dependence(counts: Floats) -> Floats:
    """Return log Π (n_ij n / (n_i n_j))^n_ij of each row (n₀₀, n₀₁, n₁₀, n₁₁), the log likelihood ratio of dependence.

    >>> dependence(np.array([[10.0, 10.0, 20.0, 20.0], [8.0, 0.0, 0.0, 8.0]])).round(3).tolist()
    [0.0, 11.09]
    """
    table = counts.reshape(-1, 2, 2)
    margins = _log(table.sum(axis=2)).sum(axis=1) + _log(table.sum(axis=1)).sum(axis=1)
    return np.asarray(_log(table).sum(axis=(1, 2)) - margins + _log(table.sum(axis=(1, 2))))


def _log(n: Floats) -> Floats:
    """Return n·log n."""
    return np.asarray(n * np.log(np.maximum(n, 1.0)))
