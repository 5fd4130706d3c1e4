"""Exact sums of products, so that a removed row leaves no trace.

For each block of weights, with features x, rewards y and weights w (1 without forgetting),

    G = Σ w xxᵀ,   b = Σ w xy,   and for all blocks together   Σ w y²,   Σ w‖x‖²,   Σ w,   Σ w².

Correcting a reward adds −w xy_old and w xy_new, in O(d), and removing a row subtracts what it added. No addition is
rounded: the sums are integers, in units of a fixed power of two. So neither the order nor the grouping of the rows
makes a difference, and after a row of any size is removed every bit is as if the row had never been added.

A number is written in digits of 24 bits, from −2²³ to 2²³: x = Σ xₛ 2^(24s − 20) with s ≥ −5, so that features and
rewards count as multiples of 2⁻¹⁴⁰, and doubles from about 2⁻¹⁵ to 8 have three digits. A product of two digits is at
most 2⁴⁶, and a sum of 128 of them 2⁵³: BLAS adds them without rounding, one product of matrices for a pair of digits.
The results are added to limbs of 48 bits in 64-bit integers, with carries before they overflow. Only limbs in use take
memory, four or five for features of usual magnitudes.

Forgetting halves the weight of a decision with each half-life. Instead of decaying the sums, a row at time t, in
half-lives, is added with the weight 2ᵗ relative to an epoch that advances by the bits of a limb at a time: limbs are
renumbered, and nothing is rounded. w is a float, and wx the exact sum of two floats. Anything below about 2⁻²⁴⁰ of a
unit weight is dropped, which never happens without forgetting.
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

#: Bits of a digit, and of a limb (two digits). The digit at place 0 has this many fractional bits.
_DIGIT, _LIMB, _BEHIND = 24, 48, 20
#: The lowest digit of a feature or reward, and the lowest limb: that of a product of two such digits.
_LAST, _LOWEST = -5, -5
#: Exact sums are in units of 2 to minus this power.
UNIT_BITS = 2 * _BEHIND - _LIMB * _LOWEST
_QUANTUM, _UNIT = 2.0 ** (_DIGIT * _LAST - _BEHIND), 2.0**-UNIT_BITS
#: Maximum number of rows added at a time: so many products of digits can be added exactly.
_ROWS = 128
#: Maximum number of rows that all blocks may buffer, and of values in them.
_WAITING, _NUMBERS = 1 << 16, 1 << 22
#: Number of additions to a limb before carries are needed. Each is at most 2⁵⁶: a double has up to four nonzero digits,
#: so four pairs of them share a place, and decaying rows are added in two parts.
_ADDITIONS = 64
#: The weights of added, removed and corrected rows without forgetting.
_PLAIN = {(1.0, 1.0), (-1.0, -1.0), (0.0, 1.0), (0.0, -1.0)}
#: Rows with a smaller weight are ignored: their products are below the lowest limb.
_FAINT = 2.0**-500
#: Upper bound on the limbs: products are below 2²⁰⁰.
_HIGHEST = 12
#: Bytes of a total as a two's-complement integer.
_BYTES = 128

#: Arrays of Python integers, which have arbitrary precision.
Integers = npt.NDArray[np.object_]
#: A buffered row: x, y, its weight in G and its weight in b; negative for removals.
_Row = tuple[Floats, float, float, float]
_of_weights = itemgetter(2, 3)


class Sums:
    """Exact sums for a number of blocks of the same dimension."""

    def __init__(self, dimension: int, own: int | None = None) -> None:
        self.dimension = dimension
        self._own = dimension if own is None else own
        """Number of leading features that count towards ‖x‖."""
        self._length = cast(EntryPoint, squared_length).compiled_for(np.frombuffer(bytes(16)), 2)
        self.blocks = 0
        self.epoch = 0
        """A row at time t has the weight 2^(t − epoch)."""
        self._limbs: dict[int, Ints] = {}
        """[G b] of all blocks by limb number n, shape (room, d, d + 1), in units of 2^(48n − 40)."""
        self._room = 0
        self._squares = self._lengths = self._weight = self._weight_squares = 0  # in units of 2⁻²⁸⁰
        self._rows: list[list[_Row]] = []
        self._waiting, self._most_waiting = 0, min(_WAITING, _NUMBERS // dimension)
        self._added: list[int] = []
        """For each block, the number of additions since the last carry."""

    def grow(self, block: int) -> None:
        """Allocate blocks up to this one, doubling the room so that growing one by one is cheap."""
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
        """Return the weight of a row with decision time `time`, advancing the epoch if necessary."""
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
        """Add a row, or remove it if `sign` is -1."""
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
        """Remove a row."""
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
        """Add a block's buffered rows to its limbs."""
        rows, d = self._rows[block], self.dimension
        if not rows:
            return
        self._rows[block] = []
        self._waiting -= len(rows)
        table = np.empty((len(rows), d + 1))
        table[:, :d] = np.concatenate([row[0] for row in rows]).reshape(-1, d)
        table[:, d] = [row[1] for row in rows]
        pairs = set(map(_of_weights, rows))
        if pairs <= _PLAIN:  # no forgetting
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
        """Add Σ xₛ zₜ 2^(24(s + t) − 40) over all rows and pairs of digits to the limbs, grouped by s + t.

        The digits begin at the places `first` and `second` and go down. If `left` is `right`, xₜᵀxₛ is the transpose of
        xₛᵀxₜ, and BLAS needs half the time for xₛᵀxₛ. The last digit is often nonzero for a few small numbers only.
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
        """Carry until every limb of a block has 48 bits, which is a canonical form."""
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
        """Return G of a block, accurate to the last bit or two."""
        return self._total(block, slice(self.dimension))

    def moment(self, block: int) -> Floats:
        """Return b of a block, accurate to the last bit or two."""
        return self._total(block, self.dimension)

    def _total(self, block: int, columns: int | slice) -> Floats:
        self._settle(block)
        total: Floats = np.zeros((self.dimension, self.dimension + 1))[:, columns]
        for name in sorted(self._limbs):
            total += self._limbs[name][block, :, columns] * 2.0 ** (_LIMB * name - 2 * _BEHIND)
        return total

    def exact(self, block: int) -> Integers:
        """Return [G b] of a block as Python integers, in units of 2⁻²⁸⁰."""
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
        """The mean of ‖x‖², rounded to a power of two; 1 without data."""
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
        """Σ w² / Σ w, the weighted mean of the weights; 1 without forgetting."""
        return self._weight_squares / self._weight if self._weight > 0 else 1.0

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the exact sums as arrays for `restore`, in a form that does not depend on the order of additions."""
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
    """Return the weights in G and in b, one row per buffered row."""
    weights = np.empty((len(rows), d + 1))
    weights[:, :d] = np.array([row[2] for row in rows])[:, None]
    weights[:, d] = [row[3] for row in rows]
    return weights


def fixed(value: float) -> int:
    """Return a number in the units of exact sums."""
    return int(math.ldexp(value, UNIT_BITS))


_ONE = fixed(1.0)


@entry_point
def squared_length(x: Floats, own: int) -> float:
    """Return the sum of the first `own` squares, added in sequence for the same result on every processor."""
    total = 0.0
    for i in range(own):
        total += x[i] * x[i]
    return total


@entry_point
def add_digits(products: Floats, twice: bool, odd: bool, limb: Ints, above: Ints) -> None:
    """Add sums of products, which are integers, to a limb; those of an `odd` place are shifted by 2²⁴ and span two.

    With `twice` the transpose is added, too.
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
    """Split numbers into digits; return the highest place and the digits from there down, at most to place `last`.

    Lower digits are rounded. The digits of a number do not depend on the other numbers: above its first they are 0.
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
    """Reduce numbers in place to their low `bits`, as signed numbers; return the carries."""
    over = numbers + (1 << (bits - 1))
    over >>= bits
    numbers -= over << bits
    return over


def _two_product(one: Floats, two: Floats) -> tuple[Floats, Floats]:
    """Return the rounded products and their exact rounding errors (Dekker 1971)."""
    product = one * two
    (high, low), (upper, lower) = _halves(one), _halves(two)
    return product, ((high * upper - product) + high * lower + low * upper) + low * lower


def _halves(values: Floats) -> tuple[Floats, Floats]:
    """Split each number into two of 26 bits whose sum is exact."""
    part = values * (2.0**27 + 1.0)
    high = part - (part - values)
    return high, values - high
