"""Sums of products that are exact, so that what is taken back leaves no trace.

For each block of weights, with features x, rewards y and weights w (1 without forgetting),

    G = Σ w xxᵀ,   b = Σ w xy,   and for all blocks together   Σ w y²,   Σ w‖x‖²,   Σ w,   Σ w².

Correcting a reward adds −w xy_old and w xy_new, in O(d), and taking a row back subtracts what it added. No addition is
rounded: the sums are integers, in units of a fixed power of two. So neither the order of the rows nor the groups they
are added in make a difference, and after a row of any size is taken back every bit is as if it had never come.

A number is written in digits of 24 bits, from −2²³ to 2²³: x = Σ xₛ 2^(24s − 20) with s ≥ −5, so that features and
rewards count as multiples of 2⁻¹⁴⁰, and doubles from about 2⁻¹⁵ to 8 have three digits. A product of two digits is at
most 2⁴⁶, and a sum of 128 of them 2⁵³: BLAS adds them without rounding, one product of matrices for a pair of digits.
The results are added to limbs of 48 bits in 64-bit integers, whose overflow is carried on in time. Only limbs that were
ever reached take memory, four or five for features of usual sizes.

Forgetting halves the weight of a decision with each half-life. Rather than decay the sums, a row at time t, in
half-lives, is added with the weight 2ᵗ, relative to a moment, the epoch, that moves by the bits of a limb at a time:
limbs change their names, and nothing is rounded. w is a float, and wx the exact sum of two. What falls below about
2⁻²⁴⁰ of a unit weight is dropped: without forgetting nothing does.
"""

from __future__ import annotations

import math
from operator import itemgetter
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from belated._kernels.jit import EntryPoint, entry_point
from belated._util.validate import indices, integer, refuse
from belated.types import Floats, Ints

#: Bits of a digit, and of a limb: two digits. The digit at place 0 has this many bits behind the point.
_DIGIT, _LIMB, _BEHIND = 24, 48, 20
#: The lowest place of a digit of a feature or a reward, and the lowest limb: that of a product of two such digits.
_LAST, _LOWEST = -5, -5
#: The units of exact sums are 2 to the power of minus this.
UNIT_BITS = 2 * _BEHIND - _LIMB * _LOWEST
_QUANTUM, _UNIT = 2.0 ** (_DIGIT * _LAST - _BEHIND), 2.0**-UNIT_BITS
#: Rows that are added at a time: so many products of digits are added exactly.
_ROWS = 128
#: Rows of all blocks that may wait, and numbers in them: beyond that no block lets its rows wait.
_WAITING, _NUMBERS = 1 << 16, 1 << 22
#: A limb can take so many additions before its overflow must be carried on. Each is of 2⁵⁶ at most: a double has up to
#: four digits that are not 0, so four pairs of them have the same place, and rows are added in two parts if they fade.
_ADDITIONS = 64
#: The weights of rows that are learned, taken back and corrected while nothing is forgotten.
_PLAIN = {(1.0, 1.0), (-1.0, -1.0), (0.0, 1.0), (0.0, -1.0)}
#: Weights below this count for nothing: the products of their rows are below the lowest limb.
_FAINT = 2.0**-500
#: No limb is as high as this: products are below 2²⁰⁰.
_HIGHEST = 12
#: Bytes of a total, as an integer of two's complement.
_BYTES = 128

#: Python's integers, which have as many bits as it takes.
Integers = npt.NDArray[np.object_]
#: A row that is not in the sums yet: x, y, its weight in G and that in b; what is taken back is negative.
_Row = tuple[Floats, float, float, float]
_of_weights = itemgetter(2, 3)


class Sums:
    """The sums of a number of blocks of one dimension."""

    def __init__(self, dimension: int, own: int | None = None) -> None:
        self.dimension = dimension
        self._own = dimension if own is None else own
        """How many features count for the length ‖x‖."""
        self._length = cast(EntryPoint, squared_length).compiled_for(np.frombuffer(bytes(16)), 2)
        self.blocks = 0
        self.epoch = 0
        """A row at time t has the weight 2^(t − epoch)."""
        self._limbs: dict[int, Ints] = {}
        """[G b] of all blocks, shape (room, d, d + 1), in units of 2^(48·name − 40)."""
        self._room = 0
        self._squares = self._lengths = self._weight = self._weight_squares = 0  # in units of 2⁻²⁸⁰
        self._rows: list[list[_Row]] = []
        self._waiting, self._most_waiting = 0, min(_WAITING, _NUMBERS // dimension)
        self._added: list[int] = []
        """How often something was added to a block since its overflow was carried on."""

    def grow(self, block: int) -> None:
        """Make room for blocks up to this one, and as many again, so that growing one by one costs no more."""
        more = block + 1 - self.blocks
        if more <= 0:
            return
        self.blocks += more
        self._rows += [[] for _ in range(more)]
        self._added += [0] * more
        if self.blocks > self._room:
            self._room = self.blocks if self._room == 0 else max(self.blocks, 2 * self._room)
            for name, limb in self._limbs.items():
                self._limbs[name] = self._zeros()
                self._limbs[name][: len(limb)] = limb

    def _zeros(self) -> Ints:
        return np.zeros((self._room, self.dimension, self.dimension + 1), np.int64)

    def weight(self, time: float) -> float:
        """Return the weight of a row decided at `time`; the moment it is relative to may move for that."""
        if time == 0.0:
            return 1.0
        whole = math.floor(time)
        moved = (whole - self.epoch) // _LIMB
        if moved > 0:
            for block in range(self.blocks):
                self._settle(block)
            self._limbs = {name - moved: limb for name, limb in self._limbs.items() if name - moved >= _LOWEST}
            self._squares >>= moved * _LIMB
            self._lengths >>= moved * _LIMB
            self._weight >>= moved * _LIMB
            self._weight_squares >>= 2 * moved * _LIMB
            self.epoch += moved * _LIMB
        weight = math.ldexp(math.exp2(time - whole), max(whole - self.epoch, -2000))
        return weight if weight > _FAINT else 0.0

    def learn(self, block: int, x: Floats, weight: float, reward: float, sign: int = 1) -> None:
        """Add a row, or take it back if the sign is -1."""
        self._append(block, (x, reward, sign * weight, sign * weight))
        length = self._length(x, self._own)
        if reward:
            self._squares += sign * fixed(weight * (reward * reward))
        self._lengths += sign * fixed(weight * length)
        if weight == 1.0:
            self._weight += sign * _ONE
            self._weight_squares += sign * _ONE
        else:
            self._weight += sign * fixed(weight)
            self._weight_squares += sign * fixed(weight * weight)

    def unlearn(self, block: int, x: Floats, weight: float, reward: float) -> None:
        """Take a row back."""
        self.learn(block, x, weight, reward, -1)

    def correct(self, block: int, x: Floats, weight: float, old: float, new: float) -> None:
        """Replace the reward of a row."""
        self._append(block, (x, old, 0.0, -weight))
        self._append(block, (x, new, 0.0, weight))
        self._squares += fixed(weight * (new * new)) - fixed(weight * (old * old))

    def _append(self, block: int, row: _Row) -> None:
        rows = self._rows[block]
        rows.append(row)
        self._waiting += 1
        if len(rows) >= _ROWS or self._waiting > self._most_waiting:
            self._flush(block)

    def _flush(self, block: int) -> None:
        """Add the rows that wait."""
        rows, d = self._rows[block], self.dimension
        if not rows:
            return
        self._rows[block] = []
        self._waiting -= len(rows)
        table = np.empty((len(rows), d + 1))
        table[:, :d] = np.concatenate([row[0] for row in rows]).reshape(-1, d)
        table[:, d] = [row[1] for row in rows]
        pairs = set(map(_of_weights, rows))
        if pairs <= _PLAIN:  # nothing is forgotten
            first, digits = _digits(table, _LAST)
            weights = None if pairs == {(1.0, 1.0)} else _weights(rows, d)
            weighted = digits if weights is None else [each * weights for each in digits]
            self._add_products(block, first, digits, first, weighted)
        else:
            table /= _QUANTUM
            np.rint(table, out=table)
            table *= _QUANTUM
            first, left = _digits(table[:, :d], _LAST)
            for each in _two_product(_weights(rows, d), table):
                self._add_products(block, first, left, *_digits(each, 2 * _LOWEST - first))
        self._added[block] += 1
        if self._added[block] >= _ADDITIONS:
            self._carry_on(block)

    def _add_products(self, block: int, first: int, left: list[Floats], second: int, right: list[Floats]) -> None:
        """Add Σ xₛ zₜ 2^(24(s + t) − 40) to the limbs, of all rows and pairs of digits, by their s + t.

        The digits begin at the places `first` and `second` and go down. If both are the same, xₜᵀxₛ is the transpose of
        xₛᵀxₜ, and BLAS needs half the time for xₛᵀxₛ. The last digit is often that of a few small numbers only.
        """
        alike, size, last = left is right, len(right), right[-1]
        few = np.flatnonzero(last.any(axis=1))
        for down in range(len(left) + size - 1):
            name, odd = divmod(first + second - down, 2)
            if name < _LOWEST:
                break
            limb, above = self._limb(name)[block], self._limb(name + odd)[block]
            for s in range(max(0, down + 1 - size), min(len(left), down // 2 + 1 if alike else down + 1)):
                t = down - s
                some = few if t == size - 1 and 2 * len(few) < len(last) else slice(None)
                add_digits(left[s][some].T @ right[t][some], alike and s != t, bool(odd), limb, above)

    def _limb(self, name: int) -> Ints:
        if name not in self._limbs:
            self._limbs[name] = self._zeros()
        return self._limbs[name]

    def _carry_on(self, block: int) -> None:
        """Bring every limb of a block back to 48 bits, which is the only such way to write a number."""
        name, last = min(self._limbs, default=0), max(self._limbs, default=-1)
        while name <= last:
            over = _carry(self._limb(name)[block], _LIMB)
            if over.any():
                self._limb(name + 1)[block] += over
                last = max(last, name + 1)
            name += 1
        self._added[block] = 0

    def _settle(self, block: int) -> None:
        self._flush(block)
        if self._added[block]:
            self._carry_on(block)

    def gram(self, block: int) -> Floats:
        """Return G of a block, to the last bit or two."""
        return self._total(block, slice(self.dimension))

    def moment(self, block: int) -> Floats:
        """Return b of a block, to the last bit or two."""
        return self._total(block, self.dimension)

    def _total(self, block: int, columns: int | slice) -> Floats:
        self._settle(block)
        total: Floats = np.zeros((self.dimension, self.dimension + 1))[:, columns]
        for name in sorted(self._limbs):
            total += self._limbs[name][block, :, columns] * 2.0 ** (_LIMB * name - 2 * _BEHIND)
        return total

    def exact(self, block: int) -> Integers:
        """Return [G b] of a block as Python's integers, in units of 2⁻²⁸⁰."""
        self._settle(block)
        total = np.zeros((self.dimension, self.dimension + 1), object)
        for name, limb in self._limbs.items():
            total += limb[block].astype(object) << _LIMB * (name - _LOWEST)
        return total

    @property
    def squares(self) -> float:
        """Σ w y²."""
        return self._squares * _UNIT

    @property
    def scale(self) -> float:
        """The mean of ‖x‖², to the next power of two; 1 as long as it is not known."""
        if self._lengths <= 0 or self._weight <= 0:
            return 1.0
        part, bits = math.frexp(self._lengths / self._weight)
        return math.ldexp(1.0 if part * part >= 0.5 else 0.5, bits)

    @property
    def total_weight(self) -> float:
        """Σ w."""
        return self._weight * _UNIT

    @property
    def mean_weight(self) -> float:
        """Σ w² / Σ w, the mean weight of a row where it counts; 1 without forgetting."""
        return self._weight_squares / self._weight if self._weight > 0 else 1.0

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all sums, bit for bit, as arrays that `restore` takes; how they came about leaves no trace."""
        for block in range(self.blocks):
            self._settle(block)
        used = {name: limb[: self.blocks] for name, limb in sorted(self._limbs.items()) if limb[: self.blocks].any()}
        totals = (self._squares, self._lengths, self._weight, self._weight_squares)
        shape = (len(used), self.blocks, self.dimension, self.dimension + 1)
        return {
            "names": np.array(list(used), np.int64),
            "limbs": np.array(list(used.values()), np.int64).reshape(shape),
            "totals": np.array([list(each.to_bytes(_BYTES, "little", signed=True)) for each in totals], np.uint8),
            "epoch": np.array(self.epoch),
        }

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Continue from what `state` returned, after checking it."""
        d, half = self.dimension, 1 << (_LIMB - 1)
        names = indices("names", arrays["names"], (None,), _HIGHEST, least=_LOWEST).tolist()
        limbs = indices("limbs", arrays["limbs"], (len(names), None, d, d + 1), half, least=-half)
        totals = indices("totals", arrays["totals"], (4, _BYTES), 256).astype(np.uint8)
        epoch = integer("epoch", arrays["epoch"][()], at_least=0)
        if len(set(names)) < len(names):
            raise refuse("names", names, "different")
        scales = 2.0 ** (_LIMB * np.array(names, float) - 2 * _BEHIND)
        gram = np.einsum("n,nkij->kij", scales, limbs[..., :d])
        if not np.allclose(gram, gram.swapaxes(1, 2), rtol=1e-9, atol=1e-9 * float(np.abs(gram).max(initial=0.0))):
            raise refuse("limbs", limbs, "symmetric")
        if np.einsum("kii->ki", gram).min(initial=0.0) < 0.0:
            raise refuse("limbs", limbs, "sums of squares on the diagonal")
        self.blocks = self._room = limbs.shape[1]
        self.epoch = epoch
        self._limbs = {name: limb.copy() for name, limb in zip(names, limbs, strict=True)}
        self._squares, self._lengths, self._weight, self._weight_squares = (
            int.from_bytes(each.tobytes(), "little", signed=True) for each in totals
        )
        self._rows, self._added, self._waiting = [[] for _ in range(self.blocks)], [0] * self.blocks, 0


def _weights(rows: list[_Row], d: int) -> Floats:
    """Return the weights of x and y, one row each."""
    weights = np.empty((len(rows), d + 1))
    weights[:, :d] = np.array([row[2] for row in rows])[:, None]
    weights[:, d] = [row[3] for row in rows]
    return weights


def fixed(value: float) -> int:
    """Return a number in units of exact sums."""
    return int(math.ldexp(value, UNIT_BITS))


_ONE = fixed(1.0)


@entry_point
def squared_length(x: Floats, own: int) -> float:
    """Return the sum of the first squares, added one by one: the same on every processor."""
    total = 0.0
    for i in range(own):
        total += x[i] * x[i]
    return total


@entry_point
def add_digits(products: Floats, twice: bool, odd: bool, limb: Ints, above: Ints) -> None:
    """Add sums of products, whole numbers, to a limb; those of an `odd` place are 2²⁴ times as much, and go to two.

    Those that are to be added `twice` the second time as their transpose.
    """
    for i in range(limb.shape[0]):
        for j in range(limb.shape[1]):
            number = np.int64(products[i, j])
            if twice:
                number += np.int64(products[j, i])
            if odd:
                over = (number + (1 << (_DIGIT - 1))) >> _DIGIT
                above[i, j] += over
                number = (number - (over << _DIGIT)) << _DIGIT
            limb[i, j] += number


def _digits(values: Floats, last: int) -> tuple[int, list[Floats]]:
    """Return the first place of the digits of numbers, and the digits from there down, to the place `last` at most.

    What is below that is rounded. A digit does not depend on the other numbers: in places above its first it is 0.
    """
    peak = max(float(values.max()), -float(values.min()))
    first = max(-((_DIGIT - 1 - _BEHIND - math.frexp(peak)[1]) // _DIGIT), last) if peak else last
    left = values * 2.0 ** (_BEHIND - _DIGIT * first)
    digits = [np.rint(left)]
    for _ in range(first - last):
        left -= digits[-1]
        if not left.any():
            break
        left *= 2.0**_DIGIT
        digits.append(np.rint(left))
    return first, digits


def _carry(numbers: Ints, bits: int) -> Ints:
    """Leave the last bits of numbers, as signed numbers, in their place; return the rest."""
    over = numbers + (1 << (bits - 1))
    over >>= bits
    numbers -= over << bits
    return over


def _two_product(one: Floats, two: Floats) -> tuple[Floats, Floats]:
    """Return the products and what rounding lost of them, exactly (Dekker 1971)."""
    product = one * two
    (high, low), (upper, lower) = _halves(one), _halves(two)
    return product, ((high * upper - product) + high * lower + low * upper) + low * lower


def _halves(values: Floats) -> tuple[Floats, Floats]:
    """Return two numbers of 26 bits each whose sum is the given one."""
    part = values * (2.0**27 + 1.0)
    high = part - (part - values)
    return high, values - high
