"""The sums that make the posterior of a Gaussian linear model: exact, free of order, taken back at will.

For each block of weights, with features x, rewards y and weights w (1 without forgetting),

    G = Σ w xxᵀ,   b = Σ w xy,   and for all blocks together   Σ w y²,   Σ w‖x‖²,   Σ w,   Σ w².

Correcting a reward changes b by w x(y_new − y_old), in O(d), and taking a row back subtracts what it added. Every sum
is kept with what rounding lost, as two floats: the order of the rows leaves no trace beyond rounding, and a blunder
that is taken back hardly any. Rows are added to G and b a few at a time, the same few whenever the log is read again.

Forgetting halves the weight of a decision with each half-life. Rather than decay the sums, a row at time t, in
half-lives, is added with the weight 2ᵗ, and what is asked for at time T is scaled by 2⁻ᵀ: a late reward counts as of
its decision, exactly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from belated._util.validate import array, indices, integer, refuse
from belated.types import Floats

#: Rows that are added at a time; one that is so much larger than the others is added by itself, since rounding
#: relative to it would spoil them.
_ROWS, _OUTLIER = 32, 16.0
#: Weights are relative to a moment that moves by so many half-lives: a power of two, so nothing is lost.
_EPOCH = 64


class Sums:
    """The sums of a number of blocks of one dimension."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.blocks = 0
        self.epoch = 0
        """A row at time t has the weight 2^(t − epoch)."""
        self._gram = np.zeros((2, 0, dimension, dimension))
        self._moment = np.zeros((2, 0, dimension))
        self._squares = [0.0, 0.0]
        self._lengths = [0.0, 0.0]
        self._weight = [0.0, 0.0]
        self._weight_squares = [0.0, 0.0]
        self._rows: list[list[tuple[Floats, float, float]]] = []
        """Of each block, not in the sums yet: x, its weight in G and that in b; what is taken back is negative."""

    def grow(self, block: int) -> None:
        """Make room for blocks up to this one."""
        more, d = block + 1 - self.blocks, self.dimension
        if more <= 0:
            return
        self._gram = np.concatenate([self._gram, np.zeros((2, more, d, d))], axis=1)
        self._moment = np.concatenate([self._moment, np.zeros((2, more, d))], axis=1)
        self._rows += [[] for _ in range(more)]
        self.blocks += more

    def weight(self, time: float) -> float:
        """Return the weight of a row decided at `time`; the moment it is relative to may move for that."""
        if time == 0.0:
            return 1.0
        whole = math.floor(time)
        epoch = whole - whole % _EPOCH
        if epoch > self.epoch:
            shift = self.epoch - epoch
            self._gram, self._moment = np.ldexp(self._gram, shift), np.ldexp(self._moment, shift)
            self._squares = [math.ldexp(part, shift) for part in self._squares]
            self._lengths = [math.ldexp(part, shift) for part in self._lengths]
            self._weight = [math.ldexp(part, shift) for part in self._weight]
            self._weight_squares = [math.ldexp(part, 2 * shift) for part in self._weight_squares]
            self._rows = [[(x, math.ldexp(g, shift), math.ldexp(r, shift)) for x, g, r in rows] for rows in self._rows]
            self.epoch = epoch
        return math.ldexp(math.exp2(time - whole), max(whole - self.epoch, -2000))

    def learn(self, block: int, x: Floats, weight: float, reward: float) -> None:
        """Add a row."""
        self._add(block, x, weight, weight * reward)
        _two_sum(self._squares, weight * reward * reward)
        _two_sum(self._lengths, weight * float(x.dot(x)))
        if weight == 1.0 and self._weight[1] == 0.0:  # nearly always; integers are exact
            self._weight[0] += 1.0
            self._weight_squares[0] += 1.0
        else:
            _two_sum(self._weight, weight)
            _two_sum(self._weight_squares, weight * weight)

    def unlearn(self, block: int, x: Floats, weight: float, reward: float) -> None:
        """Take a row back."""
        self._add(block, x, -weight, -weight * reward)
        _two_sum(self._squares, -weight * reward * reward)
        _two_sum(self._lengths, -weight * float(x @ x))
        _two_sum(self._weight, -weight)
        _two_sum(self._weight_squares, -weight * weight)

    def correct(self, block: int, x: Floats, weight: float, old: float, new: float) -> None:
        """Replace the reward of a row."""
        self._add(block, x, 0.0, -weight * old)
        self._add(block, x, 0.0, weight * new)
        _two_sum(self._squares, -weight * old * old)
        _two_sum(self._squares, weight * new * new)

    def _add(self, block: int, x: Floats, gram: float, moment: float) -> None:
        rows = self._rows[block]
        rows.append((x, gram, moment))
        if len(rows) == _ROWS:
            _add_rows(rows, self._gram[:, block], self._moment[:, block])
            rows.clear()

    def gram(self, block: int) -> Floats:
        """Return G of a block."""
        sums = self._gram[:, block]
        if self._rows[block]:
            sums = sums.copy()
            _add_rows(self._rows[block], sums, None)
        total: Floats = sums[0] + sums[1]
        return total

    def moment(self, block: int) -> Floats:
        """Return b of a block."""
        sums = self._moment[:, block]
        if self._rows[block]:
            sums = sums.copy()
            _add_rows(self._rows[block], None, sums)
        total: Floats = sums[0] + sums[1]
        return total

    @property
    def squares(self) -> float:
        """Σ w y²."""
        return self._squares[0] + self._squares[1]

    @property
    def scale(self) -> float:
        """The mean of ‖x‖², to the next power of two; 1 as long as it is not known."""
        lengths, weight = self._lengths[0] + self._lengths[1], self._weight[0] + self._weight[1]
        if lengths <= 0.0 or weight <= 0.0:
            return 1.0
        return math.exp2(round(math.log2(lengths / weight)))

    @property
    def total_weight(self) -> float:
        """Σ w."""
        return self._weight[0] + self._weight[1]

    @property
    def mean_weight(self) -> float:
        """Σ w² / Σ w, the mean weight of a row where it counts; 1 without forgetting."""
        weight = self.total_weight
        return (self._weight_squares[0] + self._weight_squares[1]) / weight if weight > 0.0 else 1.0

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all, bit for bit, as arrays that `restore` takes."""
        waiting = [(block, *row) for block, rows in enumerate(self._rows) for row in rows]
        return {
            "gram": self._gram.copy(),
            "moment": self._moment.copy(),
            "totals": np.array([self._squares, self._lengths, self._weight, self._weight_squares]),
            "epoch": np.array(self.epoch),
            "owners": np.array([block for block, *_ in waiting], np.int64),
            "rows": np.array([x for _, x, _, _ in waiting]).reshape(-1, self.dimension),
            "weights": np.array([row[2:] for row in waiting]).reshape(-1, 2),
        }

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Go on from what `state` returned, after checking it."""
        d = self.dimension
        gram = array("gram", arrays["gram"], (2, None, d, d))
        blocks = gram.shape[1]
        moment = array("moment", arrays["moment"], (2, blocks, d))
        totals = array("totals", arrays["totals"], (4, 2))
        epoch = integer("epoch", arrays["epoch"][()], at_least=0)
        owners = indices("owners", arrays["owners"], (None,), max(blocks, 1))
        rows = array("rows", arrays["rows"], (len(owners), d))
        weights = array("weights", arrays["weights"], (len(owners), 2))
        if not np.allclose(gram, gram.swapaxes(2, 3), rtol=1e-9, atol=1e-9 * float(np.abs(gram).max(initial=0.0))):
            raise refuse("gram", gram, "symmetric")
        self.blocks, self.epoch, self._gram, self._moment = blocks, epoch, gram.copy(), moment.copy()
        self._squares, self._lengths, self._weight, self._weight_squares = totals.tolist()
        self._rows = [[] for _ in range(blocks)]
        for block, row, (gram_weight, moment_weight) in zip(owners, rows, weights.tolist(), strict=True):
            self._rows[block].append((row, gram_weight, moment_weight))


def _add_rows(rows: list[tuple[Floats, float, float]], gram: Floats | None, moment: Floats | None) -> None:
    """Add rows to the sums G and b, as many at a time as rounding allows."""
    table = np.array([row[0] for row in rows])
    peaks = np.maximum.reduce(np.abs(table), axis=1)
    if gram is not None:
        weights = np.array([row[1] for row in rows])
        for part, given in _groups(table, weights, peaks * peaks * np.abs(weights)):
            _add(gram, (part * given[:, None]).T @ part)
    if moment is not None:
        weights = np.array([row[2] for row in rows])
        for part, given in _groups(table, weights, peaks * np.abs(weights)):
            _add(moment, given @ part)


def _groups(table: Floats, weights: Floats, sizes: Floats) -> list[tuple[Floats, Floats]]:
    """Return rows that may be added together, with their weights: those of usual size, and each outlier by itself."""
    values: list[float] = sizes.tolist()
    least = min(values)
    if least > 0.0 and max(values) <= _OUTLIER * least:  # nearly always
        return [(table, weights)]
    some = sorted(size for size in values if size > 0.0)
    if not some:
        return []
    largest = _OUTLIER * some[len(some) // 2]
    usual = [place for place, size in enumerate(values) if 0.0 < size <= largest]
    groups = [usual, *([place] for place, size in enumerate(values) if size > largest)]
    return [(table[group], weights[group]) for group in groups]


def _add(sums: Floats, term: Floats) -> None:
    """Add a term, keeping what rounding loses: Knuth's two-sum, by which total + lost = high + term exactly.

    In place as far as it goes, since the sums of large blocks do not fit the processor's fast memory many times over.
    """
    high, low = sums
    total = high + term
    part = total - high
    term -= part
    np.subtract(total, part, out=part)
    np.subtract(high, part, out=part)
    part += term
    low += part  # (high − (total − part)) + (term − part)
    high[:] = total


def _two_sum(sums: list[float], term: float) -> None:
    high = sums[0]
    total = high + term
    part = total - high
    sums[1] += (high - (total - part)) + (term - part)
    sums[0] = total
