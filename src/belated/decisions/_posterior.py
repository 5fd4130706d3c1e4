"""The posterior of a Gaussian linear model, and the exact sums it is computed from.

**Sums.** For each block of weights, with features x, rewards y and weights w (1 without forgetting),

    G = Σ w xxᵀ,   b = Σ w xy,   and for all blocks together   Σ w y²,   Σ w‖x‖²,   Σ w,   Σ w².

Correcting a reward changes b by w x(y_new − y_old), in O(d), and taking a row back subtracts what it added. Every sum
is kept as two floats, the second for what rounding lost: the order of the rows leaves no trace beyond rounding, and a
mistake that is taken back hardly any. Rows are added to G and b in groups, the same groups whenever the log is read
again. Forgetting halves the weight of a decision with each half-life. Rather than decay the sums, a row at time t, in
half-lives, is added with the weight 2ᵗ, and a result at time T is scaled by 2⁻ᵀ: a late reward counts as of its
decision, exactly.

**Posterior.** For the weights θ of a block,

    θ̂ = (G + κI)⁻¹ b,   θ ~ N(θ̂, σ²(G + κI)⁻¹),

and the blocks are independent: one block for all actions, or one for each. If the noise σ is given, κ = λσ² with the
ridge λ. If it is estimated, the result should not depend on units: κ is λ times the mean of ‖x‖², to the next power of
two. Then

    σ² = Σ w (y − xᵀθ̂)² / (Σ w − r m),   m = Σ tr (G + κI)⁻¹G,   r = Σ w² / Σ w,

the residual sum of squares over the degrees of freedom that are left when m weights are determined; a row that is half
forgotten has its whole noise. It is unbiased if nothing is forgotten and the prior is right; the bias from weights
larger than the prior expects falls with the square of the rows. MacKay (1992) derives it from the evidence.

For draws [θ̂ S] is cached, with a root S of (G + κI)⁻¹ = SSᵀ. A new row changes it by a matrix of rank one (Potter's
square-root update), in O(d²); from time to time, and when a row is taken back, it is computed again from the sums. When
these fade, the prior would fade with them, so it is renewed eight times per half-life.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._util.validate import array, indices, integer, refuse
from belated.types import Floats, Ints

#: Rows that are added at a time; one that is so much larger than the others is added by itself, since rounding
#: relative to it would spoil them.
_ROWS, _OUTLIER = 32, 16.0
#: Weights are relative to a moment that moves by so many half-lives: a power of two, so nothing is lost.
_EPOCH = 64
#: Rows by which a root is updated before it is computed again, in all and at a time.
_LONGEST, _AT_ONCE = 512, 16
#: The prior is renewed so often per half-life.
_RENEWALS = 8
#: After so many half-lives without news all is forgotten.
_FORGOTTEN = 500.0
#: Of the largest variance: keeps the covariance of equal actions positive definite. Its root is below any real spread.
_JITTER = 1e-14
#: Up to so many actions, or the dimension, a root of their covariance is computed; with more, one of the weights'.
_MANY = 64
_TINY = float(np.finfo(float).tiny)
#: Scores nearer than this are equal, and share a win: relative to the largest standard deviation, and to a score.
TIE, ROUNDING = 1e-6, 1e-13


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
        return self._total(self._gram[:, block], block, of_gram=True)

    def moment(self, block: int) -> Floats:
        """Return b of a block."""
        return self._total(self._moment[:, block], block, of_gram=False)

    def _total(self, sums: Floats, block: int, *, of_gram: bool) -> Floats:
        if self._rows[block]:
            sums = sums.copy()
            _add_rows(self._rows[block], sums if of_gram else None, None if of_gram else sums)
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
        """Return all sums, bit for bit, as arrays that `restore` takes."""
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
        """Continue from what `state` returned, after checking it."""
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


class Distribution(NamedTuple):
    """The joint distribution of the scores of actions that share a block: `mean + root @ z`."""

    mean: Floats
    root: Floats
    width: float
    """The largest standard deviation."""
    distinct: bool = False
    """Whether no action's score follows from the others', so that two cannot be equal."""


class Posterior:
    """Blocks of weights of one dimension, and what is known about them.

    Parameters
    ----------
    dimension
        Length d of a feature vector.
    scale
        ν, multiplies the standard deviations of draws.
    noise
        σ, or None to estimate it from the residuals.
    ridge
        λ, the prior precision of the weights; if the noise is estimated, in units of it and of the features' length.
    blocks
        How many there are at first; others come into being when they learn.
    """

    def __init__(
        self, dimension: int, *, scale: float = 1.0, noise: float | None = None, ridge: float = 1.0, blocks: int = 1
    ) -> None:
        from scipy.linalg import blas, lapack  # here, since a program that only imports this need not wait for SciPy

        self._ger, self._potrf, self._potrs, self._trtri = blas.dger, lapack.dpotrf, lapack.dpotrs, lapack.dtrtri
        self.dimension, self.sums = dimension, Sums(dimension)
        self._cache = np.zeros((0, dimension, 1 + dimension))
        self._fits: list[float] = []
        self._traces: list[float] = []
        self._explained: list[float] = []
        self._settled: list[float] = []
        self._updates: list[int] = []
        self._totals, self._rho = (0.0, 0.0), ridge
        self.retries = 0
        """How often rounding left a matrix without a factor."""
        self._one = np.zeros(1 + dimension)
        self._normals = self._one[1:]
        self._first = np.eye(1, 1 + dimension)[0]
        self.sums.grow(blocks - 1)
        self.configure(scale=scale, noise=noise, ridge=ridge)

    def configure(self, *, scale: float, noise: float | None, ridge: float) -> None:
        """Change the prior, noise or scale: the sums do not depend on them."""
        self._scale, self._noise, self._ridge = scale, noise, ridge
        self._reset()

    def grow(self, block: int) -> None:
        """Make room for blocks up to this one."""
        more, d = block + 1 - self.sums.blocks, self.dimension
        if more > 0:
            self.sums.grow(block)
            fresh = np.zeros((more, d, 1 + d))
            fresh[:, range(d), range(1, 1 + d)] = 1.0 / math.sqrt(self._rho)
            self._cache = np.concatenate([self._cache, fresh])
            self._fits += [0.0] * more
            self._traces += [d / self._rho] * more
            self._explained += [0.0] * more
            self._settled += [0.0] * more
            self._updates += [0] * more

    def learn(self, block: int, x: Floats, reward: float, time: float = 0.0) -> None:
        """Add a row that was decided at `time`, in half-lives. Blocks up to this one come into being."""
        if block >= self.sums.blocks:
            self.grow(block)
        weight = 1.0 if time == 0.0 else self._weight(time)
        self.sums.learn(block, x, weight, reward)
        late = self._late.setdefault(block, [])
        if late is not None:
            late.append((x, weight, reward))
            if len(late) > _AT_ONCE:
                self._late[block] = None

    def correct(self, block: int, x: Floats, old: float, new: float, time: float = 0.0) -> None:
        """Replace the reward of a row."""
        self.sums.correct(block, x, self._weight(time), old, new)
        self._late.setdefault(block, [])
        self._corrected.add(block)

    def unlearn(self, block: int, x: Floats, reward: float, time: float = 0.0) -> None:
        """Take a row back."""
        self.sums.unlearn(block, x, self._weight(time), reward)
        self._late[block] = None

    def draw(self, rows: Floats, rng: np.random.Generator, now: float = 0.0) -> Floats:
        """Return a draw of the scores of actions that share the first block, in units of νσ; the mean if that is 0."""
        sigma, given = self._sigma(now), self._one
        rng.standard_normal(out=self._normals)
        if sigma > _TINY:
            given[0] = 1.0 / sigma
        else:
            given[:] = self._first
        scores: Floats = rows.dot(self._cache[0].dot(given))  # xᵀ(θ̂/σ + Sz)
        return scores

    def distribution(self, rows: Floats, now: float = 0.0) -> Distribution:
        """Return the distribution at time `now` of the scores of actions that share the first block.

        S depends on the way there, so a root is computed that does not: with the same sums and random numbers the
        same is drawn.
        """
        sigma = self._sigma(now)
        mixed = rows.dot(self._cache[0])
        mean, root = mixed[:, 0], mixed[:, 1:]
        if len(rows) <= max(_MANY, self.dimension):
            lower, largest = self._lower(root)
            width, least = sigma * math.sqrt(largest), sigma * min(lower.diagonal().tolist())
            near = TIE * width + ROUNDING * max(map(abs, mean.tolist()))
            lower *= sigma
            return Distribution(mean, lower, width, least > 1000.0 * near)
        largest = float(np.einsum("kj,kj->k", root, root).max())
        lower, _ = self._lower(self._cache[0, :, 1:])
        return Distribution(mean, sigma * (rows @ lower), sigma * math.sqrt(largest))

    def scores(self, x: Floats, blocks: Ints, now: float = 0.0) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the scores, in contexts `x`, of actions with blocks of their own.

        The scores have the shape (contexts, actions), and are independent. A block of -1 is of an action about which
        nothing is known.
        """
        sigma = self._sigma(now)
        known = blocks >= 0
        whole = bool(known.all())
        mixed = x @ self._cache[blocks if whole else blocks[known]]  # xᵀθ̂, xᵀS: (actions, contexts, 1 + d)
        mean, root = mixed[:, :, 0].T, mixed[:, :, 1:]
        spread = np.sqrt(np.einsum("kij,kij->ik", root, root))
        if not whole:
            means, spreads = np.zeros((len(x), len(blocks))), np.empty((len(x), len(blocks)))
            spreads[:] = np.sqrt(np.einsum("ij,ij->i", x, x) / self._rho)[:, None]
            means[:, known], spreads[:, known] = mean, spread
            mean, spread = means, spreads
        return mean, spread * sigma

    def _sigma(self, now: float) -> float:
        """Return νσ, times the root of 2ᵀ if the sums fade."""
        sigma = self._scale * self.noise(now)
        return sigma * math.exp2(0.5 * self._age(now)) if now else sigma

    def _lower(self, root: Floats) -> tuple[Floats, float]:
        """Return the lower triangular L with the same LLᵀ as `root`, and the largest entry of its diagonal."""
        covariance = root @ root.T
        variances = covariance.reshape(-1)[:: len(root) + 1]
        largest = max(variances.tolist())
        variances += _JITTER * largest + _TINY
        return self._potrf(covariance.T, lower=1, overwrite_a=1)[0], largest  # it is symmetric; this way in place

    def mean(self, block: int = 0, now: float = 0.0) -> Floats:
        """Return θ̂ of a block, solved from the sums."""
        if not 0 <= block < self.sums.blocks:
            return np.zeros(self.dimension)
        precision, roots = self._precision(block, self._rho_at(now))
        solved: Floats = self._potrs(self._cholesky(precision), self.sums.moment(block) * roots, lower=1)[0]
        return solved * roots

    def noise(self, now: float = 0.0) -> float:
        """Return σ, given or estimated: as if there were one more row, of the rewards' mean square."""
        if self._late or now:
            self._freshen(now)
        if self._noise is not None:
            return self._noise
        squares, weight = self.sums.squares, self.sums.total_weight
        if weight <= 0.0 or squares <= 0.0:
            return 1.0
        fade = math.exp2(-self._age(now)) if now else 1.0
        explained, settled = self._totals
        residual = max(squares - explained, 1e-12 * squares)
        left = max(fade * (weight - self.sums.mean_weight * settled), 0.0)
        return math.sqrt((squares / weight + fade * residual) / (1.0 + left))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the sums, bit for bit, as arrays that `restore` takes."""
        return self.sums.state()

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Continue from what `state` returned, after checking it."""
        self.sums.restore(arrays)
        self._reset()

    def cached(self) -> dict[str, npt.NDArray[Any]]:
        """Return what is computed from the sums, for `restore_cached`: then even the rounding is the same."""
        self._freshen(0.0)
        updates, fits, traces = np.array(self._updates), np.array(self._fits), np.array(self._traces)
        return {"cache": self._cache.copy(), "updates": updates, "fits": fits, "traces": traces}

    def restore_cached(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Continue with what `cached` returned, after `restore`."""
        blocks, d = self.sums.blocks, self.dimension
        self._cache = array("cache", arrays["cache"], (blocks, d, 1 + d)).copy()
        self._updates = indices("updates", arrays["updates"], (blocks,), _LONGEST + 1).tolist()
        self._fits = array("fits", arrays["fits"], (blocks,)).tolist()
        self._traces = array("traces", arrays["traces"], (blocks,)).tolist()
        if self._noise is None:
            for block in range(blocks):
                self._account(block)
            self._totals = math.fsum(self._explained), math.fsum(self._settled)
        self._late.clear()

    def _reset(self) -> None:
        blocks, d = self.sums.blocks, self.dimension
        self._cache = np.zeros((blocks, d, 1 + d))  # [θ̂ S]
        self._fits = [0.0] * blocks  # bᵀθ̂ of each block
        self._traces = [0.0] * blocks  # tr SSᵀ of each, if the noise is estimated
        self._explained, self._settled = [0.0] * blocks, [0.0] * blocks  # of each block: see `_account`
        self._totals = 0.0, 0.0  # the sums of both
        self._updates = [0] * blocks  # of each root since it was computed
        self._late: dict[int, list[tuple[Floats, float, float]] | None] = dict.fromkeys(range(blocks))
        self._corrected: set[int] = set()
        self._rho = self._rho_at(0.0)

    def _weight(self, time: float) -> float:
        if time == 0.0:
            return 1.0
        epoch = self.sums.epoch
        weight = self.sums.weight(time)
        if epoch != self.sums.epoch:
            self._reset()
        return weight

    def _age(self, now: float) -> float:
        """Return how many half-lives `now` is after the moment that weights are relative to."""
        return min(now - self.sums.epoch, _FORGOTTEN)

    def _rho_at(self, now: float) -> float:
        """Return κ relative to the sums: it grows as they fade."""
        kappa = self._ridge * (self.sums.scale if self._noise is None else self._noise * self._noise)
        return kappa * math.exp2(math.floor(_RENEWALS * self._age(now)) / _RENEWALS) if now else kappa

    def _precision(self, block: int, rho: float) -> tuple[Floats, Floats]:
        """Return G + ρI with a unit diagonal, and by what its rows and columns were multiplied to get that."""
        precision = self.sums.gram(block)
        precision.flat[:: self.dimension + 1] += rho
        roots = 1.0 / np.sqrt(np.maximum(precision.diagonal(), _TINY))
        return precision * roots[:, None] * roots, roots

    def _freshen(self, now: float) -> None:
        """Bring what is cached up to date."""
        rho = self._rho_at(now)
        if rho != self._rho:
            self._rho, self._late = rho, dict.fromkeys(range(self.sums.blocks))
        anew = False
        for block, late in self._late.items():
            if late is None or self._updates[block] + len(late) > _LONGEST:
                self._factor(block)
                self._solve(block)
                anew = True
            else:
                for x, weight, reward in late:
                    self._update(block, x, weight, reward)
                if block in self._corrected:
                    self._solve(block)
            if self._noise is None:
                self._account(block)
        if anew:
            self._totals = math.fsum(self._explained), math.fsum(self._settled)
        self._late = {}
        if self._corrected:
            self._corrected = set()

    def _solve(self, block: int) -> None:
        root = self._cache[block, :, 1:]
        half = self.sums.moment(block) @ root
        self._cache[block, :, 0] = root @ half
        self._fits[block] = float(half @ half)

    def _account(self, block: int) -> None:
        """Compute what a block explains of Σ w y², and how many of its weights are settled by its rows.

        Since Gθ̂ = b − κθ̂, Σ w (y − xᵀθ̂)² = Σ w y² − bᵀθ̂ − κ‖θ̂‖²; and tr (G + κI)⁻¹G = d − κ tr SSᵀ.
        """
        mean = self._cache[block, :, 0]
        explained = self._fits[block] + self._rho * float(mean.dot(mean))
        settled = self.dimension - self._rho * self._traces[block]
        total, weights = self._totals
        self._totals = total - self._explained[block] + explained, weights - self._settled[block] + settled
        self._explained[block], self._settled[block] = explained, settled

    def _factor(self, block: int) -> None:
        """Compute S from G: with G + ρI = D⁻¹LLᵀD⁻¹, S = DL⁻ᵀ."""
        precision, roots = self._precision(block, self._rho)
        lower = self._cholesky(precision)
        inverse, _ = self._trtri(lower, lower=1)
        root = self._cache[block, :, 1:] = roots[:, None] * inverse.T
        self._traces[block] = float(np.einsum("ij,ij->", root, root))
        self._updates[block] = 0

    def _cholesky(self, precision: Floats) -> Floats:
        """Return L; of a matrix that rounding has left without one, that of a slightly larger matrix."""
        jitter = 0.0
        while True:
            given = precision + jitter * np.eye(self.dimension) if jitter else precision
            lower, failed = self._potrf(given, lower=1)
            if not failed:
                return np.asarray(lower)
            self.retries += 1
            jitter = max(4.0 * jitter, 1e-15 * self.dimension)

    def _update(self, block: int, x: Floats, weight: float, reward: float) -> None:
        """Bring in a row. With v = Sᵀx, g = 1 + w‖v‖², γ = (1 − 1/√g)/‖v‖² = w/(g + √g) and e = y − xᵀθ̂,

        S(I − γvvᵀ) is a root of (S⁻ᵀS⁻¹ + wxxᵀ)⁻¹,   θ̂ moves by Sv·we/g,   Σwy² − bᵀθ̂ grows by we²/g,
        and tr SSᵀ falls by w‖Sv‖²/g.
        """
        cache = self._cache[block]
        ahead = x.dot(cache)  # xᵀθ̂, v; `dot` is the faster way to ask for small products
        error = reward - float(ahead[0])
        ahead[0] = 0.0
        growth = 1.0 + weight * float(ahead.dot(ahead))
        self._fits[block] += weight * (reward * reward - error * error / growth)
        along = cache.dot(ahead)  # Sv
        if self._noise is None:
            self._traces[block] -= weight / growth * float(along.dot(along))
        change = ahead * (-weight / (growth + math.sqrt(growth)))  # −γv
        change[0] = weight * error / growth
        self._ger(1.0, change, along, a=cache.T, overwrite_a=1)  # [θ̂ S] += Sv·[we/g, −γvᵀ], in place
        self._updates[block] += 1
