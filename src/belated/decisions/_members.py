"""A posterior of sparse features: members that are draws from it, kept as rewards come, go and change.

Each of J members solves a ridge regression on perturbed rewards and a perturbed prior, by steps in the dual (see
`belated._kernels.sparse_ridge`, whose letters are used here): its solution is a draw from the posterior, exactly. A
reward costs one step on its own row and some on rows that came before, a decision J products with each action, whatever
the number of features d is; memory goes with the features that have been learned and with the rows.

*Residual.* Steps on earlier rows go on until their mean residual is small, or there were too many of them; its root,
averaged over the latest rows, is `residual`, in units of the noise. It is zero where all members are exact draws.

*Noise and width.* If σ is not given, σ and the prior's width τ are those that make the rewards most likely (MacKay,
1992). Both follow from the duals α = β/τ² alone, without a factor. With S = diag(σ²/ω), α* the duals of the posterior
mean and K = τ²XUXᵀ,

    n − m = tr S(K + S)⁻¹ = Σ_i E_j[α_ij √S_i ε_ij],   so many rows are left when m weights are determined,
    q = wᵀ(τ²U)⁻¹w = Σ_i α*_i(y_i − S_iα*_i),          τ² ← τ² q/m,
    Σ ω(y − xᵀw)² = Σ_i ω_i S_i²α*_i²,                  σ² ← that over Σω − rm, r = Σω²/Σω,

where α*_i² is the mean product of the duals of two different members. Where most features are rare and say little, τ
becomes small: they are not explored for their own sake.

*Rows.* A correction changes a row's target, a cancel takes its xβ out of the weights; the steps that follow do the
rest. With forgetting a row's weight ω halves with each half-life up to the latest row, and below 2⁻¹² it is dropped. Of
more rows than `MOST_ROWS` the oldest is closed: what it taught stays in the weights, and its precision, ωx²/σ², becomes
part of the prior's, U; with forgetting it is dropped.

All of it is a function of the order in which rows came; rows that are stepped through again take turns.
"""

from __future__ import annotations

import math
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.jit import entry_point, kernel
from belated._kernels.sparse_ridge import Places, Problem, Singles, add, mixed, standard_normals, step
from belated._util.validate import indices, refuse
from belated.decisions._operations import PosteriorError
from belated.types import Floats, Ints

#: How many rows are kept open at most.
MOST_ROWS = 2**17
#: How many members there are at least: the noise is estimated from pairs of them.
FEWEST = 16
#: Earlier rows are stepped through after a reward in groups of so many, until the root of the mean residual of one is
#: at most so much, or they have taken so many multiplications: some 50 µs, if the weights fit into a cache of so many
#: bytes or if they do not.
GROUP, ENOUGH, WORK, MORE_WORK, CACHE = 8, 0.05, 2**17, 2**18, 2**20
#: From one row to the next: a prime, so that all rows take turns, in an order that is not that of their coming.
_STRIDE = 1_000_003
#: How the width and the noise are weighted at first: as if so many rows and weights had been as expected.
_DOUBT = 2.0
#: Below this weight a row is dropped.
_GONE = 2.0**-12
#: Added to the seed of prior draws and of the noise.
_PRIOR, _NOISE = 1, 2


class Row(NamedTuple):
    """The features of a chosen action, and whose they are."""

    name: int
    """64 bits of a digest of the decision's id."""
    number: int
    """Of the decision: the noise of the row is a function of it."""
    salt: int
    """Of the action if it has weights of its own, else 0: features with different salts are different ones."""
    places: Places
    values: Singles


class SparseOffer(NamedTuple):
    """The features of the actions of a request that are not zero: those of action a are `begins[a]:ends[a]`."""

    begins: Ints
    ends: Ints
    places: Places
    """Each at most once in an action."""
    values: Singles
    salts: Ints
    """One of each action; features with different salts have weights of their own."""

    def packed(self, order: list[int]) -> bytes:
        """Return the features of some actions as `unpacked` reads them."""
        parts = [(self.places[i:j], self.values[i:j]) for i, j in ((self.begins[a], self.ends[a]) for a in order)]
        return b"".join(
            len(places).to_bytes(4, "little") + places.tobytes() + values.tobytes() for places, values in parts
        )


def unpacked(content: bytes, slot: int) -> tuple[Places, Singles]:
    """Return the features of an action of a ranking: their places and values."""
    at = 0
    for _ in range(slot):
        at += 4 + 8 * int.from_bytes(content[at : at + 4], "little")
    size = int.from_bytes(content[at : at + 4], "little")
    return np.frombuffer(content, np.int32, size, at + 4), np.frombuffer(content, np.float32, size, at + 4 + 4 * size)


@lru_cache(maxsize=100_000)
def digest(text: str) -> int:
    """Return 63 bits that stand for a text: the id of a decision, or the name of an action with weights of its own."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


class _Arrays(NamedTuple):
    """All arrays; the first n rows and the first m slots of them are in use."""

    begins: Ints
    ends: Ints
    targets: Singles
    weights: Singles
    keys: Ints
    times: Floats
    names: Ints
    duals: Singles
    slots: Places
    values: Singles
    features: Ints
    relative: Singles
    members: Singles
    table: Places


@kernel
def slot_of(table: Places, features: Ints, key: int) -> tuple[int, int]:
    """Return the slot of a feature, -1 if it has none, and where it is or would be in the table."""
    mask = np.uint64(table.size - 1)
    at = mixed(np.uint64(key)) & mask
    while True:
        slot = table[at]
        if slot == 0:
            return -1, int(at)
        if features[slot - 1] == key:
            return int(slot) - 1, int(at)
        at = (at + np.uint64(1)) & mask


@kernel
def problem_of(a: _Arrays, sigma: float, kappa: float, seed: int) -> Problem:
    return Problem(
        a.begins, a.ends, a.slots, a.values, a.targets, a.weights, a.keys, a.relative, sigma, kappa, 1.0, seed
    )  # fmt: skip


@entry_point
def append(
    a: _Arrays, i: int, m: int, used: int, salt: int, places: Places, values: Singles, width: float, seed: int
) -> int:
    """Write the features of row i, giving slots and prior draws to those that have none; return how many slots are."""
    a.begins[i] = used
    for k in range(places.size):
        key = int(places[k]) ^ salt
        slot, at = slot_of(a.table, a.features, key)
        if slot < 0:
            slot = m
            a.table[at], a.features[slot], a.relative[slot] = slot + 1, key, np.float32(1.0)
            draws = a.members[slot]
            standard_normals(seed + _PRIOR, key, draws)
            for j in range(draws.size):
                draws[j] *= np.float32(width)
            m += 1
        a.slots[used + k], a.values[used + k] = slot, values[k]
    a.ends[i] = used + places.size
    return m


@entry_point
def replay(
    a: _Arrays, i: int, n: int, now: float, sigma: float, kappa: float, seed: int, cursor: int, most: int
) -> tuple[int, float]:
    """Step on row i (on none if it is negative) and on others; return how many these were, and their residual."""
    problem, work = problem_of(a, sigma, kappa, seed + _NOISE), np.empty(a.members.shape[1], np.float32)
    if i >= 0:
        a.weights[i] = np.float32(max(2.0 ** (a.times[i] - now), _GONE))
        step(problem, i, a.members, a.duals[i], work)
    total = group = 0.0
    done = 0
    while done < most:
        row = (cursor + done) * _STRIDE % n
        a.weights[row] = np.float32(max(2.0 ** (a.times[row] - now), _GONE))
        residual = step(problem, row, a.members, a.duals[row], work)
        total += residual
        group += residual
        done += 1
        if done % GROUP == 0:
            if group <= GROUP * ENOUGH * ENOUGH:
                break
            group = 0.0
    return done, total / max(done, 1)


@entry_point
def take_out(a: _Arrays, i: int, sign: float) -> None:
    """Take row i out of the weights."""
    add(problem_of(a, 1.0, 1.0, 0), i, a.members, a.duals[i], sign)


@entry_point
def close(a: _Arrays, i: int, kappa: float) -> None:
    """Make the precision of row i, ωx²/σ², a part of the prior's: 1/U grows by ωx²/κ."""
    for k in range(a.begins[i], a.ends[i]):
        slot, x = a.slots[k], a.values[k]
        a.relative[slot] = np.float32(1.0 / (1.0 / a.relative[slot] + a.weights[i] * x * x / kappa))


@entry_point
def amend(a: _Arrays, salt: int, places: Places, values: Singles, target: float, added: float, kappa: float) -> None:
    """Change the weights by what a closed row would change: by the target's change, or without a row at all.

    Its precision is in U: w moves by U x δ/κ, where δ is `added` or, if that is not a number, xᵀw − y.
    """
    for j in range(a.members.shape[1]):
        change = added
        if math.isnan(added):
            change = -target
            for k in range(places.size):
                slot, _ = slot_of(a.table, a.features, int(places[k]) ^ salt)
                if slot >= 0:
                    change += values[k] * a.members[slot, j]
        for k in range(places.size):
            slot, _ = slot_of(a.table, a.features, int(places[k]) ^ salt)
            if slot >= 0:
                a.members[slot, j] += np.float32(a.relative[slot] * values[k] * change / kappa)


@entry_point
def statistics(a: _Arrays, n: int, sigma: float, tau: float, seed: int) -> tuple[float, float, float, float, float]:
    """Return Σω, Σω², n − m, q and the residual sum of squares: see the top of this module."""
    noise = np.empty(a.members.shape[1], np.float32)
    members = noise.size
    total = squares = left = quadratic = rest = 0.0
    for i in range(n):
        omega = np.float64(a.weights[i])
        standard_normals(seed + _NOISE, a.keys[i], noise)
        spread = sigma * sigma / omega
        sum1 = sum2 = along = 0.0
        for j in range(members):
            alpha = np.float64(a.duals[i, j]) / (tau * tau)
            sum1 += alpha
            sum2 += alpha * alpha
            along += alpha * noise[j]
        square = (sum1 * sum1 - sum2) / (members * (members - 1))
        total += omega
        squares += omega * omega
        left += math.sqrt(spread) * along / members
        quadratic += sum1 / members * a.targets[i, 0] - spread * square
        rest += omega * spread * spread * square
    return total, squares, left, quadratic, rest


@entry_point
def widen(a: _Arrays, m: int, more: float, seed: int) -> None:
    """Add `more`·√U·z to the weights: the prior's width has changed by so much."""
    noise = np.empty(a.members.shape[1], np.float32)
    for slot in range(m):
        standard_normals(seed + _PRIOR, a.features[slot], noise)
        scale = np.float32(more * math.sqrt(a.relative[slot]))
        for j in range(noise.size):
            a.members[slot, j] += scale * noise[j]


@kernel
def add_scores(
    a: _Arrays, offer: SparseOffer, action: int, width: float, seed: int, noise: Singles, out: Singles
) -> None:
    """Set `out` to the scores of an action in each member."""
    out[:] = np.float32(0.0)
    for k in range(offer.begins[action], offer.ends[action]):
        key = int(offer.places[k]) ^ int(offer.salts[action])
        x = offer.values[k]
        slot, _ = slot_of(a.table, a.features, key)
        if slot >= 0:
            weights = a.members[slot]
            for j in range(out.size):
                out[j] += x * weights[j]
        else:  # nothing is known of it: it is drawn from the prior
            standard_normals(seed + _PRIOR, key, noise)
            x *= np.float32(width)
            for j in range(out.size):
                out[j] += x * noise[j]


@entry_point
def score(a: _Arrays, offer: SparseOffer, width: float, seed: int, out: Singles) -> None:
    """Set `out` to the scores of the actions in each member, shape (actions, members)."""
    noise = np.empty(out.shape[1], np.float32)
    for action in range(len(out)):
        add_scores(a, offer, action, width, seed, noise, out[action])


@entry_point
def count_wins(a: _Arrays, offer: SparseOffer, width: float, seed: int, scale: float, out: Floats) -> None:
    """Set `out` to the share of members in which each action is the best, deviations being `scale` times as wide.

    Actions that are equal but for rounding share a win.
    """
    actions, members = out.size, a.members.shape[1]
    noise, scores = np.empty(members, np.float32), np.empty((actions, members), np.float32)
    for action in range(actions):
        add_scores(a, offer, action, width, seed, noise, scores[action])
        if scale != 1.0:
            mean = np.float32(0.0)
            for j in range(members):
                mean += scores[action, j]
            mean /= np.float32(members)
            for j in range(members):
                scores[action, j] = mean + np.float32(scale) * (scores[action, j] - mean)
        out[action] = 0.0
    for j in range(members):
        best, size = scores[0, j], abs(scores[0, j])
        for action in range(1, actions):
            best, size = max(best, scores[action, j]), max(size, abs(scores[action, j]))
        if not size < np.inf:
            out[0] = np.nan
            return
        near, winners = best - np.float32(1e-6) * size, 0
        for action in range(actions):
            winners += scores[action, j] >= near
        for action in range(actions):
            if scores[action, j] >= near:
                out[action] += 1.0 / (winners * members)


@entry_point
def compact(a: _Arrays, slots: Places, values: Singles, n: int) -> None:
    """Move the features of the first n rows into other arrays, one row after the other."""
    used = 0
    for i in range(n):
        begin, a.begins[i] = a.begins[i], used
        for k in range(begin, a.ends[i]):
            slots[used], values[used] = a.slots[k], a.values[k]
            used += 1
        a.ends[i] = used


@entry_point
def rehash(table: Places, features: Ints, m: int) -> None:
    """Fill an empty table with the slots of the first m features."""
    for slot in range(m):
        _, at = slot_of(table, features, features[slot])
        table[at] = slot + 1


class SparsePosterior:
    """Members of the posterior of weights on sparse features: see the top of this module.

    Parameters
    ----------
    dimension
        Number of features d that a place can name.
    draws
        How many members there are, 16 at least.
    scale
        ν, multiplies the standard deviations of draws.
    noise
        σ, or None to estimate it, and the prior's width, from the rewards.
    ridge
        λ: if the noise is given, the prior precision 1/τ² of the weights; else where its estimate starts, in units of
        the noise and of the features' mean length.
    seed
        Of the members.
    """

    retries = 0

    def __init__(
        self,
        dimension: int,
        *,
        draws: int = 32,
        scale: float = 1.0,
        noise: float | None = None,
        ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.dimension, self.seed = dimension, seed
        self._scale, self._noise, self._ridge = scale, noise, ridge
        self._sigma = 1.0 if noise is None else noise
        self._tau = 1.0 / math.sqrt(ridge)
        members = max(draws, FEWEST)
        self._a = _Arrays(
            np.zeros(64, np.int64), np.zeros(64, np.int64), np.zeros((64, 1), np.float32), np.zeros(64, np.float32),
            np.zeros(64, np.int64), np.zeros(64), np.zeros(64, np.int64), np.zeros((64, members), np.float32),
            np.zeros(256, np.int32), np.zeros(256, np.float32), np.zeros(64, np.int64), np.zeros(64, np.float32),
            np.zeros((64, members), np.float32), np.zeros(256, np.int32),
        )  # fmt: skip
        self._slots = self._used = self._live = self._cursor = self._closed = 0
        self._fitted = 0
        """How many rows there were when noise and width were estimated."""
        self._squares = self._length = 0.0
        """Σ y² and Σ |x|² of all rows that have come."""
        self._seen = 0
        self._latest = -math.inf
        self._square_residual = 0.0
        self._index: dict[int, int] = {}
        """Where the row of each decision is, oldest first."""
        self.steps = 0
        """How many rows have been stepped through, since this object was made."""

    @property
    def ages(self) -> tuple[SparsePosterior, ...]:
        """The posteriors that learn: this one."""
        return (self,)

    @property
    def stages(self) -> tuple[SparsePosterior, ...]:
        return (self,)

    @property
    def rows(self) -> int:
        """How many rows are open."""
        return len(self._index)

    @property
    def features(self) -> int:
        """How many features have been learned."""
        return self._slots

    @property
    def residual(self) -> float:
        """How far members are from exact draws: the root mean square of the latest residuals, in units of the noise."""
        return math.sqrt(self._square_residual)

    @property
    def width(self) -> float:
        """τ, the prior standard deviation of a weight."""
        return self._tau

    @property
    def epoch(self) -> float:
        return self._latest

    def configure(self, *, scale: float, noise: float | None, ridge: float) -> None:
        """Change the scale; the others cannot change while a model lives."""
        self._scale = scale

    def grow(self, block: int) -> None:
        """Do nothing: features get their place when they are learned."""

    def learn(self, block: int, x: Row, reward: float, time: float = 0.0) -> None:
        """Add a row that was decided at `time`, in half-lives."""
        n, size = len(self._index), x.places.size
        if time > self._latest:
            self._latest = time
            while self._index and self._a.times[next(iter(self._index.values()))] < time + math.log2(_GONE):
                self._drop(next(iter(self._index)))
                n -= 1
        if n == MOST_ROWS:
            self._close(next(iter(self._index)))
            n -= 1
        self._make_room(n + 1, self._slots + size, self._used + size)
        a = self._a
        a.targets[n, 0], a.keys[n], a.times[n], a.names[n] = reward, x.number, time, x.name
        a.duals[n] = 0.0
        self._seen += 1
        self._squares += reward * reward
        values = x.values
        self._length += float(values.dot(values))
        if self._fitted == 0 and self._noise is None:
            self._fit()
        self._slots = self._append(n, x)
        self._used += size
        self._live += size
        self._index[x.name] = n
        self._replay(n)
        n += 1
        if self._noise is None and n >= self._fitted + max(1, self._fitted // 8):
            self._fit()

    def correct(self, block: int, x: Row, old: float, new: float, time: float = 0.0) -> None:
        """Replace the reward of a row."""
        self._squares += new * new - old * old
        i = self._index.get(x.name)
        if i is None:
            if self._closed:
                amend(self._a, x.salt, x.places, x.values, old, new - old, self._kappa)
            return
        self._a.targets[i, 0] = new
        self._replay(i)

    def unlearn(self, block: int, x: Row, reward: float, time: float = 0.0) -> None:
        """Take a row back."""
        self._squares -= reward * reward
        self._seen -= 1
        self._length -= float(x.values.dot(x.values))
        if x.name in self._index:
            self._drop(x.name)
            self._replay(-1)
        elif self._closed:
            amend(self._a, x.salt, x.places, x.values, reward, math.nan, self._kappa)

    def shares(self, offer: SparseOffer) -> Floats:
        """Return the share of members in which each action is the best."""
        won = np.empty(offer.begins.size)
        count_wins(self._a, offer, self._tau, self.seed, self._scale, won)
        if won[0] != won[0]:
            raise PosteriorError("the weights are not finite, and nothing can be drawn from them")
        return won

    def scores(self, offer: SparseOffer) -> Singles:
        """Return the scores of the actions in each member, shape (actions, members)."""
        out = np.empty((offer.begins.size, self._a.members.shape[1]), np.float32)
        score(self._a, offer, self._tau, self.seed, out)
        return out

    def noise(self, now: float = 0.0) -> float:
        """Return σ, given or estimated."""
        return self._sigma

    def settle(self, tolerance: float, most: int = 1000) -> int:
        """Sweep over all rows until the residual is small; return how many sweeps that took."""
        n = len(self._index)
        for sweeps in range(most):
            if n == 0 or (sweeps and self.residual <= tolerance):
                return sweeps
            self._replay(-1, n)
        return most

    def summary(self) -> dict[str, float]:
        """Return figures for those who watch."""
        return {"residual": self.residual, "width": self._tau, "features": self._slots, "rows": len(self._index)}

    def mean(self, salt: int = 0) -> Floats:
        """Return the mean of the members' weights of all features with a salt; 0 for those that were never learned."""
        mean = np.zeros(self.dimension)
        places = self._a.features[: self._slots] ^ salt
        mine = (places >= 0) & (places < self.dimension)
        mean[places[mine]] = self._a.members[: self._slots][mine].mean(axis=1, dtype=np.float64)
        return mean

    @property
    def size(self) -> int:
        """About how many bytes `state` returns."""
        members = int(self._a.members.shape[1])
        return self._slots * (12 + 4 * members) + len(self._index) * (48 + 4 * members) + 8 * self._live

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything, bit for bit, as arrays that `restore` takes."""
        a, n, m = self._a, len(self._index), self._slots
        spans = list(zip(a.begins[:n].tolist(), a.ends[:n].tolist(), strict=True))
        nothing = [np.zeros(0, np.int32)]
        return {
            "sizes": a.ends[:n] - a.begins[:n],
            "places": np.concatenate([a.slots[i:j] for i, j in spans] or nothing).astype(np.int32),
            "values": np.concatenate([a.values[i:j] for i, j in spans] or nothing).astype(np.float32),
            "order": np.array(list(self._index.values()), np.int64),
            **{name: getattr(a, name)[:n].copy() for name in _OF_ROWS},
            **{name: getattr(a, name)[:m].copy() for name in _OF_SLOTS},
            "counts": np.array([getattr(self, name) for name in _COUNTS], np.int64),
            "numbers": np.array([getattr(self, name) for name in _NUMBERS]),
        }

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Continue from what `state` returned, after checking it."""
        sizes, (m, members) = arrays["sizes"], arrays["members"].shape
        n, used = len(sizes), int(sizes.sum())
        if members != self._a.members.shape[1] or sizes.min(initial=0) < 0:
            raise refuse("members", members, f"{self._a.members.shape[1]}, with rows of as many features as there are")
        self._slots = self._used = self._live = 0
        self._index = {}
        self._make_room(n, m, used)
        a = self._a
        for name, shape in zip(_OF_ROWS, ((n, 1), (n,), (n,), (n,), (n,), (n, members)), strict=True):
            getattr(a, name)[:n] = _checked(name, arrays[name], shape, getattr(a, name).dtype)
        for name, shape in zip(_OF_SLOTS, ((m,), (m,), (m, members)), strict=True):
            getattr(a, name)[:m] = _checked(name, arrays[name], shape, getattr(a, name).dtype)
        a.ends[:n] = np.cumsum(sizes)
        a.begins[:n] = a.ends[:n] - sizes
        a.slots[:used] = indices("places", arrays["places"], (used,), m)
        a.values[:used] = _checked("values", arrays["values"], (used,), a.values.dtype)
        order = indices("order", arrays["order"], (n,), n)
        for name, value in zip(_COUNTS, _checked("counts", arrays["counts"], (4,), np.dtype(np.int64)), strict=True):
            setattr(self, name, int(value))
        for name, value in zip(_NUMBERS, arrays["numbers"].tolist(), strict=True):
            setattr(self, name, float(value))
        self._slots, self._used, self._live = m, used, used
        a.table[:] = 0
        rehash(a.table, a.features, m)
        self._index = dict(zip(a.names[order].tolist(), order.tolist(), strict=True))
        if len(self._index) < n:
            raise refuse("names", n, "different ones")

    def cached(self) -> dict[str, npt.NDArray[Any]]:
        """Return nothing: all is in the state."""
        return {}

    def restore_cached(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Do nothing."""

    @property
    def _kappa(self) -> float:
        return (self._sigma / self._tau) ** 2

    def _append(self, i: int, x: Row) -> int:
        a, at = self._a, (self._slots, self._used)
        return int(append(a, i, *at, x.salt, x.places, x.values, self._tau, self.seed))

    def _replay(self, i: int, most: int = 0) -> None:
        n = len(self._index)
        if n == 0:
            return
        members = self._a.members.shape[1]
        if most == 0:  # a step takes 2·J multiplications for each feature
            work = MORE_WORK if 4 * self._slots * members <= CACHE else WORK
            most = max(GROUP, work * n // (2 * members * max(self._live, 1)))
        steps, square = replay(
            self._a, i, n, self._latest, self._sigma, self._kappa, self.seed, self._cursor, most
        )  # fmt: skip
        self._cursor += steps
        self.steps += steps
        self._square_residual += 0.1 * (square - self._square_residual)

    def _fit(self) -> None:
        """Estimate noise and width."""
        n = len(self._index)
        usual = self._squares / max(self._seen, 1) or 1.0
        length = self._length / max(self._seen, 1) or 1.0
        sigma, tau = self._sigma, self._tau
        if self._fitted == 0:
            sigma = math.sqrt(usual)
            tau = sigma / math.sqrt(self._ridge * length)
        else:
            total, squares, left, quadratic, rest = statistics(self._a, n, sigma, tau, self.seed)
            settled = min(max(n - left, 0.0), n)
            free = max(total - squares / total * settled, 0.0)
            sigma = math.sqrt((usual + max(rest, 0.0)) / (1.0 + free))
            if not self._closed:
                ratio = (max(quadratic, 0.0) + _DOUBT) / (settled + _DOUBT)
                tau *= min(max(math.sqrt(ratio), 0.5), 2.0)
        if self._slots:
            widen(self._a, self._slots, tau - self._tau, self.seed)
        self._sigma, self._tau, self._fitted = sigma, tau, max(n, 1)
        self._replay(-1, min(2 * n, 4096))

    def _drop(self, name: int) -> None:
        """Take a row out of the weights and of memory."""
        take_out(self._a, self._index[name], -1.0)
        self._release(name)

    def _close(self, name: int) -> None:
        close(self._a, self._index[name], self._kappa)
        self._closed += 1
        self._release(name)

    def _release(self, name: int) -> None:
        """Give the place of a row to the last one."""
        a, i = self._a, self._index.pop(name)
        self._live -= int(a.ends[i] - a.begins[i])
        last = len(self._index)
        if i < last:
            for each in a[:8]:  # those of rows
                each[i] = each[last]
            self._index[int(a.names[i])] = i

    def _make_room(self, rows: int, slots: int, used: int) -> None:
        """Let the arrays hold so many rows, slots and features of rows."""
        a = self._a
        if used > a.slots.size:
            size = 2 * (used - self._used + self._live)
            a = a._replace(slots=np.zeros(size, np.int32), values=np.zeros(size, np.float32))
            compact(self._a, a.slots, a.values, len(self._index))
            self._used = self._live
        if rows > a.begins.size:
            size = max(rows, 2 * a.begins.size)
            a = a._replace(**{name: _longer(getattr(a, name), size) for name in ("begins", "ends", *_OF_ROWS)})
        if slots > a.features.size:
            size = max(slots, 2 * a.features.size)
            more = {name: _longer(getattr(a, name), size) for name in ("features", "relative", "members")}
            a = a._replace(**more)
        if 2 * slots > a.table.size:
            a = a._replace(table=np.zeros(1 << (4 * slots).bit_length(), np.int32))
            rehash(a.table, a.features, self._slots)
        self._a = a


_OF_ROWS = ("targets", "weights", "keys", "times", "names", "duals")
_OF_SLOTS = ("features", "relative", "members")
_COUNTS = ("_cursor", "_closed", "_fitted", "_seen")
_NUMBERS = ("_sigma", "_tau", "_squares", "_length", "_latest", "_square_residual")


def _checked(name: str, given: npt.NDArray[Any], shape: tuple[int, ...], kind: np.dtype[Any]) -> npt.NDArray[Any]:
    if given.shape != shape or given.dtype != kind:
        raise refuse(name, f"{given.dtype}, of shape {given.shape}", f"{kind}, of shape {shape}")
    return given


def _longer(given: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    made = np.zeros((size, *given.shape[1:]), given.dtype)
    made[: len(given)] = given
    return made
