"""A posterior on sparse features: its mean and draws from it, updated as rewards are added, removed and corrected.

The mean ŵ solves a ridge regression, by coordinate steps in the dual (see `belated._kernels.sparse_ridge`, whose
notation is used here). Each of J deviations δ_j solves the same regression on noise alone, with a prior draw: then ŵ +
δ_j and ŵ − δ_j are exact draws from the posterior. Mean and deviations are the members of one problem. A reward costs
one step on its own row and some on earlier rows, a decision J + 1 inner products per action, whatever the number of
features d; memory grows with the features that have occurred and with the rows.

*Residual.* Steps on earlier rows continue until their mean squared residual is small or a budget is spent; its root,
averaged over the latest rows, is `residual`, in units of the noise. It is zero if all members are exact draws.

*Noise and width.* If σ is not given, σ and the prior's width τ maximise the marginal likelihood (MacKay, 1992). Both
follow from the duals α = β/τ² alone, without a factorisation. With S = diag(σ²/ω), α* the duals of the posterior mean
and K = τ²XUXᵀ,

    n − m = tr S(K + S)⁻¹ = Σ_i E_j[α_ij √S_i ε_ij],   the residual degrees of freedom for m effective parameters,
    q = ŵᵀ(τ²U)⁻¹ŵ = Σ_i α*_i(y_i − S_iα*_i),          τ² ← τ² q/m,
    Σ ω(y − xᵀŵ)² = Σ_i ω_i S_i²α*_i²,                  σ² ← that over Σω − rm, r = Σω²/Σω.

*Rare features.* Learning about a feature that never recurs is useless, so it should not be explored for its own sake.
By Good and Turing, each of the N_c features seen in c rows is expected r_c = (c + 1)N_{c+1}/N_c times in as many
further rows, for c = 1 and 2; other c are extrapolated on the line through both. In a decision, deviations of a feature
are multiplied by r/(1 + r), those of a new feature as if it had been seen once. If features keep recurring, the factor
is one.

*Free information.* If actions differ from one decision to the next, the greedy action is about as informative as any
other, and exploring costs reward without benefit. So in a decision all deviations are multiplied by 1 − i/max i, where
i = ½ log(1 + v/σ²) is the information gained about the weights from a row whose score has variance v, for the action
with the largest mean. If that action is well known and others are not, as in a bandit with a few fixed actions, the
factor is close to one.

*Rows.* A correction changes a row's target, a cancellation subtracts its xβ from the weights; the steps that follow do
the rest. With forgetting, a row's weight ω halves with each half-life up to the latest row, and the row is dropped
below 2⁻¹². Beyond `MOST_ROWS` rows the oldest is closed: its effect stays in the weights, and its precision, ωx²/σ², is
added to the prior precision, 1/U; with forgetting it is dropped.

Everything is a deterministic function of the rows in their order; earlier rows are revisited in turn.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.jit import EntryPoint, borrowed, entry_point, kernel
from belated._kernels.sparse_ridge import Places, Problem, Singles, add, mixed, standard_normals, step
from belated._util.validate import indices, refuse
from belated.decisions._encoding import PER_ACTION, Encoding
from belated.decisions._operations import LARGEST, PosteriorError
from belated.types import Floats, Ints

#: Maximum number of open rows.
MOST_ROWS = 2**17
#: Minimum number of draws: the noise is estimated from them.
FEWEST = 16
#: After a reward, earlier rows are revisited in groups of this size, until the root mean square residual of a group is
#: at most this, or a budget of multiplications is spent (about 50 µs), which depends on whether the weights fit into a
#: cache of this many bytes.
GROUP, ENOUGH, WORK, MORE_WORK, CACHE = 8, 0.05, 2**17, 2**18, 2**20
#: Stride from one revisited row to the next: a prime, so that all rows take turns in an order unrelated to arrival.
_STRIDE = 1_000_003
#: Number of rows at which the width moves halfway, on the log scale, to its new estimate.
_DOUBT = 100.0
#: The width stays within this factor of its initial value relative to the noise: a width of zero could never grow.
_LEAST = 0.2
#: Rows below this weight are dropped.
_GONE = 2.0**-12
#: Offsets of the seeds of prior draws and of the noise.
_PRIOR, _NOISE = 1, 2


class Row(NamedTuple):
    """The features of a chosen action, with the keys of its decision and action."""

    name: int
    """64 bits of a digest of the decision's id."""
    number: int
    """Number of the decision, which seeds the noise of the row."""
    salt: int
    """Hash of the action if each action has its own weights, else 0: features with different salts are distinct."""
    places: Places
    values: Singles


class SparseOffer(NamedTuple):
    """The nonzero features of the actions of a request: those of action a are `begins[a]:ends[a]`."""

    begins: Ints
    ends: Ints
    places: Places
    """Feature indices, each at most once per action."""
    values: Singles
    salts: Ints
    """One for each action; features with different salts have separate weights."""

    def row(self, action: int, name: int, number: int) -> Row:
        """Return the features of an action as a row."""
        some = slice(self.begins[action], self.ends[action])
        return Row(name, number, int(self.salts[action]), self.places[some], self.values[some])

    def packed(self, order: list[int]) -> bytes:
        """Return the features of the actions in `order` as bytes for `unpacked`."""
        parts = [(self.places[i:j], self.values[i:j]) for i, j in ((self.begins[a], self.ends[a]) for a in order)]
        return b"".join(
            len(places).to_bytes(4, "little") + places.tobytes() + values.tobytes() for places, values in parts
        )


def unpacked(content: bytes, slot: int) -> tuple[Places, Singles]:
    """Return indices and values of the features of one action of a ranking."""
    at = 0
    for _ in range(slot):
        at += 4 + 8 * int.from_bytes(content[at : at + 4], "little")
    size = int.from_bytes(content[at : at + 4], "little")
    return np.frombuffer(content, np.int32, size, at + 4), np.frombuffer(content, np.float32, size, at + 4 + 4 * size)


def digest(text: str) -> int:
    """Return a 63-bit hash of a text, such as the id of a decision."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


@lru_cache(maxsize=100_000)
def salt_of(action: str) -> int:
    """Return the salt of an action that has its own weights."""
    return digest(action)


def sparse_offer(encoding: Encoding, context: Any, offer: Mapping[str, Mapping[str, Any]]) -> SparseOffer:
    """Return the sparse features of actions; actions with their own weights have different salts."""
    begins, ends, places, values = encoding.rows(context, offer)
    if values.size and max(-values.min(), values.max()) > LARGEST:  # their squares must fit into 32-bit floats
        raise refuse("the products of features", float(np.abs(values).max()), f"of magnitude at most {LARGEST:g}")
    if encoding.weights == PER_ACTION:
        begins, ends = begins.repeat(len(offer)), ends.repeat(len(offer))
        salts = np.array([salt_of(name) for name in offer], np.int64)
    else:
        salts = np.zeros(len(offer), np.int64)
    return SparseOffer(begins, ends, places, values.astype(np.float32), salts)


class _Arrays(NamedTuple):
    """All arrays; the first n rows and the first m feature slots are in use."""

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
    counts: Places
    members: Singles
    """The mean in the first column, then the deviations."""
    table: Places
    frequencies: Ints
    """Number of features seen in c rows, for c = 0 … 3; entry 0 is unused."""
    damping: Singles
    """Factor on the deviations of a feature seen in c rows."""


@kernel
def slot_of(table: Places, features: Ints, key: int) -> tuple[int, int]:
    """Return the slot of a feature, or -1, and its index in the hash table, or the free index where it belongs."""
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
        a.begins, a.ends, a.slots, a.values, a.targets, a.weights, a.keys, a.relative, sigma, kappa, 1.0, seed, True
    )  # fmt: skip


@kernel
def count(a: _Arrays, slot: int, change: int) -> None:
    """Change the number of rows that contain a feature."""
    before = a.counts[slot]
    a.counts[slot] = before + change
    if before < 4:
        a.frequencies[before] -= 1
    if before + change < 4:
        a.frequencies[before + change] += 1


@kernel
def damp(a: _Arrays) -> None:
    """Compute the factors r/(1 + r) on the deviations of features: see *rare features*."""
    once, twice, thrice = a.frequencies[1] + 1.0, a.frequencies[2] + 1.0, a.frequencies[3] + 1.0
    first, second = 2.0 * twice / once, 3.0 * thrice / twice
    slope = min(max(second - first, 0.0), 1.0)
    for c in range(a.damping.size):
        again = first + slope * (max(c, 1) - 1)
        a.damping[c] = np.float32(again / (1.0 + again))


@kernel
def append(a: _Arrays, i: int, m: int, used: int, size: int, salt: int, width: float, seed: int) -> int:
    """Replace the `size` features of row i, which begin at `used`, by their slots; return the new number of slots.

    New features get a slot with prior draws.
    """
    a.begins[i] = used
    for k in range(used, used + size):
        key = int(a.slots[k]) ^ salt
        slot, at = slot_of(a.table, a.features, key)
        if slot < 0:
            slot = m
            a.table[at], a.features[slot], a.relative[slot], a.counts[slot] = slot + 1, key, np.float32(1.0), 0
            draws = a.members[slot]
            standard_normals(seed + _PRIOR, key, draws)
            draws[0] = np.float32(0.0)
            for j in range(1, draws.size):
                draws[j] *= np.float32(width)
            m += 1
        count(a, slot, 1)
        a.slots[k] = slot
    a.ends[i] = used + size
    damp(a)
    return m


@kernel
def run_through(
    a: _Arrays, i: int, n: int, now: float, sigma: float, kappa: float, seed: int, cursor: int, most: int, enough: float
) -> tuple[int, float]:
    """Step on row i (unless it is negative) and on earlier rows; return the number of the latter, and their residual.

    Stops when the root mean square residual of a group is at most `enough`.
    """
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
            if group <= GROUP * enough * enough:
                break
            group = 0.0
    return done, total / max(done, 1)


@entry_point
def step_through(
    a: _Arrays, i: int, n: int, now: float, sigma: float, kappa: float, seed: int, cursor: int, most: int, enough: float
) -> tuple[int, float]:
    return run_through(borrowed(a), i, n, now, sigma, kappa, seed, cursor, most, enough)


@entry_point
def bring_in(
    a: _Arrays, i: int, m: int, used: int, size: int, salt: int, width: float,
    now: float, sigma: float, kappa: float, seed: int, cursor: int, most: int, enough: float,
) -> tuple[int, int, float]:  # fmt: skip
    """Append row i and step on it and on others; return the new number of slots and the results of `run_through`.

    One call, since passing the arrays from Python takes as long as a few steps.
    """
    a = borrowed(a)
    m = append(a, i, m, used, size, salt, width, seed)
    steps, square = run_through(a, i, i + 1, now, sigma, kappa, seed, cursor, most, enough)
    return m, steps, square


@entry_point
def take_out(a: _Arrays, i: int) -> None:
    """Remove row i from the weights and from the feature counts."""
    add(problem_of(a, 1.0, 1.0, 0), i, a.members, a.duals[i], -1.0)
    for k in range(a.begins[i], a.ends[i]):
        count(a, a.slots[k], -1)
    damp(a)


@entry_point
def close(a: _Arrays, i: int, kappa: float) -> None:
    """Add the precision of row i, ωx²/σ², to the prior precision: 1/U grows by ωx²/κ."""
    for k in range(a.begins[i], a.ends[i]):
        slot, x = a.slots[k], a.values[k]
        a.relative[slot] = np.float32(1.0 / (1.0 / a.relative[slot] + a.weights[i] * x * x / kappa))


@entry_point
def amend(a: _Arrays, salt: int, places: Places, values: Singles, target: float, added: float, kappa: float) -> None:
    """Correct the mean for a closed row: for a change of its target, or for its removal.

    The row's precision is in U: ŵ moves by U x e/κ, where e is `added` or, if that is nan, xᵀŵ − y.
    """
    change = added
    if math.isnan(added):
        change = -target
        for k in range(places.size):
            slot, _ = slot_of(a.table, a.features, int(places[k]) ^ salt)
            if slot >= 0:
                change += values[k] * a.members[slot, 0]
    for k in range(places.size):
        slot, _ = slot_of(a.table, a.features, int(places[k]) ^ salt)
        if slot >= 0:
            a.members[slot, 0] += np.float32(a.relative[slot] * values[k] * change / kappa)


@entry_point
def statistics(a: _Arrays, n: int, sigma: float, tau: float, seed: int) -> tuple[float, float, float, float, float]:
    """Return Σω, Σω², n − m, q and the residual sum of squares: see the top of this module."""
    noise = np.empty(a.members.shape[1], np.float32)
    total = squares = left = quadratic = rest = 0.0
    for i in range(n):
        omega = np.float64(a.weights[i])
        standard_normals(seed + _NOISE, a.keys[i], noise)
        spread = sigma * sigma / omega
        along = 0.0
        for j in range(1, noise.size):
            along += np.float64(a.duals[i, j]) * noise[j]
        alpha = np.float64(a.duals[i, 0]) / (tau * tau)
        total += omega
        squares += omega * omega
        left += math.sqrt(spread) * along / (tau * tau * (noise.size - 1))
        quadratic += alpha * (a.targets[i, 0] - spread * alpha)
        rest += omega * (spread * alpha) ** 2
    return total, squares, left, quadratic, rest


@entry_point
def widen(a: _Arrays, m: int, more: float, seed: int) -> None:
    """Add `more`·√U·z to the deviations, after the prior's width has changed by `more`."""
    noise = np.empty(a.members.shape[1], np.float32)
    for slot in range(m):
        standard_normals(seed + _PRIOR, a.features[slot], noise)
        scale = np.float32(more * math.sqrt(a.relative[slot]))
        for j in range(1, noise.size):
            a.members[slot, j] += scale * noise[j]


@kernel
def add_scores(
    a: _Arrays, offer: SparseOffer, action: int, width: float, seed: int, damped: bool, noise: Singles, out: Singles
) -> None:
    """Set `out` to the mean and the deviations of an action's score."""
    out[:] = np.float32(0.0)
    rarest, first = a.damping.size - 1, offer.begins[action]
    slots = np.empty(offer.ends[action] - first, np.int32)
    for k in range(slots.size):  # a separate loop, so that the lookups can overlap
        slots[k], _ = slot_of(a.table, a.features, int(offer.places[first + k]) ^ int(offer.salts[action]))
    for k in range(first, offer.ends[action]):
        x, slot = offer.values[k], slots[k - first]
        if slot >= 0:
            weights = a.members[slot]
            out[0] += x * weights[0]
            if damped:
                x *= a.damping[min(a.counts[slot], rarest)]
            for j in range(1, out.size):
                out[j] += x * weights[j]
        else:  # an unseen feature: drawn from the prior
            standard_normals(seed + _PRIOR, int(offer.places[k]) ^ int(offer.salts[action]), noise)
            x *= np.float32(width)
            if damped:
                x *= a.damping[0]
            for j in range(1, out.size):
                out[j] += x * noise[j]


@entry_point
def score(a: _Arrays, offer: SparseOffer, width: float, seed: int, out: Singles) -> None:
    """Set `out` to the means and deviations of the actions' scores, shape (actions, members)."""
    noise = np.empty(out.shape[1], np.float32)
    for action in range(len(out)):
        add_scores(a, offer, action, width, seed, False, noise, out[action])


@kernel
def worth(scores: Singles, sigma: float) -> float:
    """Return 1 − i/max i: the fraction of the largest possible information that the greedy action does not bring.

    A row whose score has variance v carries the information i = ½ log(1 + v/σ²) about the weights.
    """
    greedy, most, best = 0.0, 0.0, np.float32(-np.inf)
    for action in range(len(scores)):
        variance = 0.0
        for j in range(1, scores.shape[1]):
            variance += scores[action, j] * scores[action, j]
        told = math.log1p(variance / ((scores.shape[1] - 1) * sigma * sigma))
        most = max(most, told)
        if scores[action, 0] > best:
            best, greedy = scores[action, 0], told
    return 1.0 - greedy / most if most > 0.0 else 1.0


@entry_point
def count_wins(
    a: _Arrays, offer: SparseOffer, width: float, sigma: float, seed: int, scale: float, out: Floats
) -> None:
    """Set `out` to the fraction of draws in which each action is the best, with deviations scaled by `scale`.

    See *rare features* and *free information* at the top of this module. Actions that are equal up to rounding share a
    win.
    """
    a, offer = borrowed(a), borrowed(offer)
    actions, members = out.size, a.members.shape[1]
    noise, scores = np.empty(members, np.float32), np.empty((actions, members), np.float32)
    for action in range(actions):
        add_scores(a, offer, action, width, seed, True, noise, scores[action])
        out[action] = 0.0
    scale *= worth(scores, sigma)
    drawn, draws = np.empty(actions, np.float32), 2 * (members - 1)
    for j in range(draws):
        sign, column = np.float32(scale if j % 2 else -scale), 1 + j // 2
        best, size = np.float32(-np.inf), np.float32(0.0)
        for action in range(actions):
            drawn[action] = scores[action, 0] + sign * scores[action, column]
            best, size = max(best, drawn[action]), max(size, abs(drawn[action]))
        if not size < np.inf:
            out[0] = np.nan
            return
        near, winners = best - np.float32(1e-6) * size, 0
        for action in range(actions):
            winners += drawn[action] >= near
        for action in range(actions):
            if drawn[action] >= near:
                out[action] += 1.0 / (winners * draws)


@entry_point
def compact(a: _Arrays, slots: Places, values: Singles, n: int) -> None:
    """Copy the features of the first n rows contiguously into other arrays."""
    used = 0
    for i in range(n):
        begin, a.begins[i] = a.begins[i], used
        for k in range(begin, a.ends[i]):
            slots[used], values[used] = a.slots[k], a.values[k]
            used += 1
        a.ends[i] = used


@entry_point
def rehash(table: Places, features: Ints, m: int) -> None:
    """Fill an empty hash table with the slots of the first m features."""
    for slot in range(m):
        _, at = slot_of(table, features, features[slot])
        table[at] = slot + 1


class SparsePosterior:
    """A posterior over the weights of sparse features, held as draws: see the top of this module.

    Parameters
    ----------
    dimension
        Number of features d: feature indices are below it.
    draws
        Number of draws, at least 16.
    scale
        ν, a factor on the standard deviations of draws.
    noise
        σ, or None to estimate it, and the prior's width, from the rewards.
    ridge
        λ: if the noise is given, the prior precision 1/τ² of the weights; otherwise the initial value of its estimate,
        relative to the noise and to the features' mean length.
    seed
        Seed of the members.
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
        members = self._members = 1 + (max(draws, FEWEST) + 1) // 2
        self._a = _Arrays(
            np.zeros(64, np.int64), np.zeros(64, np.int64), np.zeros((64, 1), np.float32), np.zeros(64, np.float32),
            np.zeros(64, np.int64), np.zeros(64), np.zeros(64, np.int64), np.zeros((64, members), np.float32),
            np.zeros(256, np.int32), np.zeros(256, np.float32), np.zeros(64, np.int64), np.zeros(64, np.float32),
            np.zeros(64, np.int32), np.zeros((64, members), np.float32), np.zeros(256, np.int32),
            np.zeros(4, np.int64), np.ones(64, np.float32),
        )  # fmt: skip
        self._slots = self._used = self._live = self._cursor = self._closed = 0
        self._fitted = 0
        """Number of rows when noise and width were last estimated."""
        self._squares = self._length = 0.0
        """Σ y² and Σ |x|² over all rows so far."""
        self._seen = 0
        self._latest = -math.inf
        self._square_residual = 0.0
        self._index: dict[int, int] = {}
        """The row index of each decision, oldest first."""
        self._made: dict[Hashable, Any] = {}
        self.steps = 0
        """Number of steps on rows since this object was created."""

    @property
    def ages(self) -> tuple[Any, ...]:
        """The posteriors that learn: only this one."""
        return (self,)

    @property
    def stages(self) -> tuple[Any, ...]:
        return (self,)

    @property
    def rows(self) -> int:
        """Number of open rows."""
        return len(self._index)

    @property
    def features(self) -> int:
        """Number of features that have occurred."""
        return self._slots

    @property
    def residual(self) -> float:
        """Distance of the members from exact draws: root mean square of the latest residuals, in units of the noise."""
        return math.sqrt(self._square_residual)

    @property
    def width(self) -> float:
        """τ, the prior standard deviation of a weight."""
        return self._tau

    @property
    def epoch(self) -> float:
        return self._latest

    def configure(self, *, scale: float, noise: float | None, ridge: float) -> None:
        """Change the scale; noise and ridge are fixed for the life of a model."""
        self._scale = scale

    def grow(self, block: int) -> None:
        """Do nothing: features get their slots when they first occur."""

    def learn(self, block: int, x: Row, reward: float, time: float = 0.0) -> None:
        """Add a row with the decision time `time`, in half-lives."""
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
        used = self._used
        a.slots[used : used + size], a.values[used : used + size] = x.places, values
        self._used += size
        self._live += size
        self._index[x.name] = n
        n += 1
        self._slots, steps, square = self._compiled(
            bring_in, a, n - 1, self._slots, used, size, x.salt, self._tau, self._latest, self._sigma, self._kappa,
            self.seed, self._cursor, self._most(n), ENOUGH,
        )  # fmt: skip
        self._stepped(steps, square)
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
        """Remove a row."""
        self._squares -= reward * reward
        self._seen -= 1
        self._length -= float(x.values.dot(x.values))
        if x.name in self._index:
            self._drop(x.name)
            self._replay(-1)
        elif self._closed:
            amend(self._a, x.salt, x.places, x.values, reward, math.nan, self._kappa)

    def shares(self, offer: SparseOffer) -> Floats:
        """Return the fraction of draws in which each action is the best."""
        won = np.empty(offer.begins.size)
        kind = offer.begins.flags.num, offer.places.flags.num, offer.values.flags.num  # arrays of the caller
        self._compiled(count_wins, self._a, offer, self._tau, self._sigma, self.seed, self._scale, won, kind=kind)
        if won[0] != won[0]:
            raise PosteriorError("the weights are not finite, so nothing can be drawn from them")
        return won

    def scores(self, offer: SparseOffer) -> Singles:
        """Return draws of the actions' scores, shape (actions, draws), without the factors for rare features."""
        out = np.empty((offer.begins.size, self._a.members.shape[1]), np.float32)
        score(self._a, offer, self._tau, self.seed, out)
        return np.concatenate([out[:, :1] + out[:, 1:], out[:, :1] - out[:, 1:]], axis=1)

    def means(self, offer: SparseOffer) -> Floats:
        """Return the posterior means of the scores."""
        out = np.empty((offer.begins.size, self._a.members.shape[1]), np.float32)
        score(self._a, offer, self._tau, self.seed, out)
        return out[:, 0].astype(np.float64)

    def noise(self, now: float = 0.0) -> float:
        """Return σ, given or estimated."""
        return self._sigma

    def settle(self, tolerance: float, most: int = 1000) -> int:
        """Sweep over all rows until the residual is at most `tolerance`; return the number of sweeps."""
        n = len(self._index)
        for sweeps in range(most if n else 0):
            if self._replay(-1, n, 0.0) <= tolerance:
                return sweeps + 1
        return most if n else 0

    def summary(self) -> dict[str, float]:
        """Return diagnostics for monitoring."""
        return {"residual": self.residual, "width": self._tau, "features": self._slots, "rows": len(self._index)}

    def mean(self, salt: int = 0) -> Floats:
        """Return the mean weights of all features with a salt; 0 for features that never occurred."""
        mean = np.zeros(self.dimension)
        places = self._a.features[: self._slots] ^ salt
        mine = (places >= 0) & (places < self.dimension)
        mean[places[mine]] = self._a.members[: self._slots, 0][mine]
        return mean

    @property
    def size(self) -> int:
        """Approximate size of `state` in bytes."""
        members = int(self._a.members.shape[1])
        return self._slots * (12 + 4 * members) + len(self._index) * (48 + 4 * members) + 8 * self._live

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the exact state as arrays for `restore`."""
        self._compact(self._a.slots.size)
        a, n, m = self._a, len(self._index), self._slots
        return {
            "sizes": a.ends[:n] - a.begins[:n],
            "places": a.slots[: self._live].copy(),
            "values": a.values[: self._live].copy(),
            "order": np.array(list(self._index.values()), np.int64),
            **{name: getattr(a, name)[:n].copy() for name in _OF_ROWS},
            **{name: getattr(a, name)[:m].copy() for name in _OF_SLOTS},
            "totals": np.array([getattr(self, name) for name in _TOTALS], np.int64),
            "numbers": np.array([getattr(self, name) for name in _NUMBERS]),
        }

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Continue from what `state` returned, after checking it."""
        sizes, (m, members) = arrays["sizes"], arrays["members"].shape
        n, used = len(sizes), int(sizes.sum())
        if members != self._a.members.shape[1] or sizes.min(initial=0) < 0:
            raise refuse("members", members, f"{self._a.members.shape[1]}, consistent with the other arrays")
        self._slots = self._used = self._live = 0
        self._index = {}
        self._make_room(n, m, used)
        a = self._a
        for name, shape in zip(_OF_ROWS, ((n, 1), (n,), (n,), (n,), (n,), (n, members)), strict=True):
            getattr(a, name)[:n] = _checked(name, arrays[name], shape, getattr(a, name).dtype)
        for name, shape in zip(_OF_SLOTS, ((m,), (m,), (m,), (m, members)), strict=True):
            getattr(a, name)[:m] = _checked(name, arrays[name], shape, getattr(a, name).dtype)
        a.ends[:n] = np.cumsum(sizes)
        a.begins[:n] = a.ends[:n] - sizes
        a.slots[:used] = indices("places", arrays["places"], (used,), m)
        a.values[:used] = _checked("values", arrays["values"], (used,), a.values.dtype)
        order = indices("order", arrays["order"], (n,), n)
        for name, value in zip(_TOTALS, _checked("totals", arrays["totals"], (4,), np.dtype(np.int64)), strict=True):
            setattr(self, name, int(value))
        for name, value in zip(_NUMBERS, arrays["numbers"].tolist(), strict=True):
            setattr(self, name, float(value))
        self._slots, self._used, self._live = m, used, used
        a.table[:] = 0
        rehash(a.table, a.features, m)
        a.frequencies[:] = np.bincount(a.counts[:m].clip(0, 4), minlength=5)[:4]
        damp(a)
        self._index = dict(zip(a.names[order].tolist(), order.tolist(), strict=True))
        if len(self._index) < n:
            raise refuse("names", n, "different ones")

    def cached(self) -> dict[str, npt.NDArray[Any]]:
        """Return an empty dict: everything is in the state."""
        return {}

    def restore_cached(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Do nothing."""

    def _compiled(self, function: Any, *arguments: Any, kind: Hashable = None) -> Any:
        """Call a kernel with a cached dispatch: inspecting the types of all arrays at every call would take long."""
        made = self._made.get((function, kind))
        if made is None:
            made = self._made[function, kind] = (
                function.compiled_for(*arguments) if isinstance(function, EntryPoint) else function
            )
        return made(*arguments)

    @property
    def _kappa(self) -> float:
        return (self._sigma / self._tau) ** 2

    def _replay(self, i: int, most: int = 0, enough: float = ENOUGH) -> float:
        """Step on row i and on the rows whose turn it is; return the root mean square residual of the latter."""
        n = len(self._index)
        if n == 0:
            return 0.0
        steps, square = self._compiled(
            step_through, self._a, i, n, self._latest, self._sigma, self._kappa, self.seed, self._cursor,
            most or self._most(n), enough,
        )  # fmt: skip
        self._stepped(steps, square)
        return math.sqrt(square)

    def _most(self, n: int) -> int:
        """Return the maximum number of rows to revisit; a step takes 2·J multiplications per feature."""
        members = self._members
        work = MORE_WORK if 4 * self._slots * members <= CACHE else WORK
        return max(GROUP, work * n // (2 * members * max(self._live, 1)))

    def _stepped(self, steps: int, square: float) -> None:
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
                ratio = min(max(quadratic / max(settled, 1e-9 * n), 0.5), 16.0)
                tau *= math.sqrt(ratio) ** (n / (n + _DOUBT))
                usual_tau = sigma / math.sqrt(self._ridge * length)
                tau = min(max(tau, _LEAST * usual_tau), usual_tau / _LEAST)
        if self._slots:
            widen(self._a, self._slots, tau - self._tau, self.seed)
        self._sigma, self._tau, self._fitted = sigma, tau, max(n, 1)
        self._replay(-1, min(2 * n, 4096))

    def _drop(self, name: int) -> None:
        """Remove a row from the weights and from memory."""
        take_out(self._a, self._index[name])
        self._release(name)

    def _close(self, name: int) -> None:
        close(self._a, self._index[name], self._kappa)
        self._closed += 1
        self._release(name)

    def _release(self, name: int) -> None:
        """Free a row by moving the last row into its place."""
        a, i = self._a, self._index.pop(name)
        self._live -= int(a.ends[i] - a.begins[i])
        last = len(self._index)
        if i < last:
            for each in a[:8]:  # the arrays of rows
                each[i] = each[last]
            self._index[int(a.names[i])] = i

    def _compact(self, size: int) -> None:
        """Store the features of the rows contiguously in arrays of this size."""
        slots, values = np.zeros(size, np.int32), np.zeros(size, np.float32)
        compact(self._a, slots, values, len(self._index))
        self._a, self._used = self._a._replace(slots=slots, values=values), self._live

    def _make_room(self, rows: int, slots: int, used: int) -> None:
        """Grow the arrays to hold this many rows, slots and features of rows."""
        a = self._a
        if used > a.slots.size:
            self._compact(2 * (used - self._used + self._live))
            a = self._a
        if rows > a.begins.size:
            size = max(rows, 2 * a.begins.size)
            a = a._replace(**{name: _longer(getattr(a, name), size) for name in ("begins", "ends", *_OF_ROWS)})
        if slots > a.features.size:
            size = max(slots, 2 * a.features.size)
            more = {name: _longer(getattr(a, name), size) for name in _OF_SLOTS}
            a = a._replace(**more)
        if 2 * slots > a.table.size:
            a = a._replace(table=np.zeros(1 << (4 * slots).bit_length(), np.int32))
            rehash(a.table, a.features, self._slots)
        self._a = a


_OF_ROWS = ("targets", "weights", "keys", "times", "names", "duals")
_OF_SLOTS = ("features", "relative", "counts", "members")
_TOTALS = ("_cursor", "_closed", "_fitted", "_seen")
_NUMBERS = ("_sigma", "_tau", "_squares", "_length", "_latest", "_square_residual")


def _checked(name: str, given: npt.NDArray[Any], shape: tuple[int, ...], kind: np.dtype[Any]) -> npt.NDArray[Any]:
    if given.shape != shape or given.dtype != kind:
        raise refuse(name, f"{given.dtype}, of shape {given.shape}", f"{kind}, of shape {shape}")
    return given


def _longer(given: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    made = np.zeros((size, *given.shape[1:]), given.dtype)
    made[: len(given)] = given
    return made
