"""The posterior of a Gaussian linear model, computed from exact sums (see `_sums`).

For the weights θ of a block, with its sums G = Σ w xxᵀ and b = Σ w xy,

    θ̂ = (G + κI)⁻¹ b,   θ ~ N(θ̂, σ²(G + κI)⁻¹),

and the blocks are independent: one block for all actions, or one for each. If the noise σ is given, κ = λσ² with the
prior precision λ. If it is estimated, the result should not depend on units: κ is λ times the mean of ‖x‖², rounded to
a power of two, and

    σ² = Σ w (y − xᵀθ̂)² / (Σ w − r m),   m = Σ tr (G + κI)⁻¹G,   r = Σ w² / Σ w,

the residual sum of squares over the residual degrees of freedom, with m effective parameters; a half-forgotten row
still has its full noise. It is unbiased without forgetting and under the right prior; the bias from weights larger than
the prior expects falls with the square of the number of rows. MacKay (1992) derives it from the evidence.

For draws, [θ̂ S] is cached, with a root S of (G + κI)⁻¹ = SSᵀ. A new row is a rank-one update (Potter's square-root
update) in O(d²). The root is recomputed from the sums from time to time, when a row is removed, and when a row is so
large that rounding relative to it would matter. As the sums decay, the prior would decay with them, so it is renewed
eight times per half-life.

If features have very different scales or are nearly collinear, floats cannot represent the factor of G + κI. It is then
computed by LDLᵀ in integers with as many bits as necessary. A posterior that still is not finite raises
`PosteriorError`, and nothing is drawn from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from belated._kernels.gaussian import dot
from belated._kernels.jit import EntryPoint, entry_point, fast_sums, kernel
from belated._util.validate import array, indices
from belated.decisions._operations import PosteriorError
from belated.decisions._sums import UNIT_BITS, Integers, Sums, fixed
from belated.types import Floats, Ints

#: Maximum number of rank-one updates before a root is recomputed, and per call.
_LONGEST, _AT_ONCE = 512, 48
#: How often per half-life the prior is renewed.
_RENEWALS = 8
#: After this many half-lives without data everything is forgotten.
_FORGOTTEN = 500.0
#: Jitter relative to the largest variance: keeps the covariance of identical actions positive definite. Its root is
#: smaller than any real spread.
_JITTER = 1e-14
#: Up to this many actions, or the dimension, a root of the scores' covariance is computed; with more, one of the
#: weights'.
_MANY = 64
_TINY = float(np.finfo(float).tiny)
#: If a row shrinks a variance by more than this factor, the root is recomputed.
_LEAP = 1e6
#: Trace of the inverse of G + κI, scaled to a unit diagonal, above which floats do not suffice; and the maximum
#: dimension for which integers are then used, since they take about d³/10 microseconds.
_DELICATE, _SMALL = 1e9, 128
#: Maximum number of iterative refinements; two are usual.
_REFINEMENTS = 10
#: Bits of the integers beyond those needed for the smallest eigenvalue.
_SPARE = 96

#: A row that is not in the cache yet: x, weight and reward.
_Late = tuple[Floats, float, float]


class Distribution(NamedTuple):
    """The joint distribution of the scores of actions with common weights: `mean + root @ z`."""

    mean: Floats
    root: Floats
    width: float
    """The largest standard deviation."""


class Posterior:
    """The posterior of one or more independent blocks of weights.

    Parameters
    ----------
    dimension
        Length d of a feature vector.
    scale
        ν, a factor on the standard deviations of draws.
    noise
        σ, or None to estimate it from the residuals.
    ridge
        λ, the prior precision of the weights; if the noise is estimated, relative to it and to the features' length.
    blocks
        Initial number of blocks; more are added when they get their first row.
    own
        Number of leading features that count towards ‖x‖, to which the prior is relative; all by default.
    """

    def __init__(
        self,
        dimension: int,
        *,
        scale: float = 1.0,
        noise: float | None = None,
        ridge: float = 1.0,
        blocks: int = 1,
        own: int | None = None,
    ) -> None:
        from scipy.linalg import lapack  # imported here so that importing this module does not load SciPy

        self._potrf, self._potrs, self._trtri = lapack.dpotrf, lapack.dpotrs, lapack.dtrtri
        self.dimension, self.sums = dimension, Sums(dimension, own)
        self.cache = np.zeros((0, dimension, 1 + dimension))
        self._accounts = np.zeros((0, 5))
        """For each block: bᵀθ̂, tr SSᵀ, rank-one updates since its root was computed, and see `account`."""
        self._totals = np.zeros(2)
        """Sums of the last two columns."""
        self._estimated: float | None = None  # σ, as long as nothing changes
        self._late: dict[int, list[_Late] | None] = {}
        self.rho = ridge
        self.retries = 0
        """How often a factor had to be computed in integers."""
        self._delicate: set[int] = set()
        """Blocks whose factor is computed in integers."""
        like = np.zeros((2, 3))
        given = np.frombuffer(bytes(16))  # as rows of the log are: read only
        self._take_in = cast(EntryPoint, take_in).compiled_for(like, like[0], like[0], 1.0, given, 1.0, 1.0)
        self._account = cast(EntryPoint, account).compiled_for(like, like[0], like[0], 1.0)
        self._one = np.zeros(1 + dimension)
        self._normals = self._one[1:]
        self._first = np.eye(1, 1 + dimension)[0]
        self.sums.grow(blocks - 1)
        self.configure(scale=scale, noise=noise, ridge=ridge)

    @property
    def ages(self) -> tuple[Posterior, ...]:
        """The posteriors that learn: only this one."""
        return (self,)

    @property
    def is_late(self) -> bool:
        """Whether the cache is behind the sums."""
        return bool(self._late)

    @property
    def epoch(self) -> int:
        """The time that row weights are relative to, in half-lives."""
        return self.sums.epoch

    def configure(self, *, scale: float, noise: float | None, ridge: float) -> None:
        """Change the prior, noise or scale: the sums do not depend on them."""
        self._scale, self._noise, self._ridge = scale, noise, ridge
        self._reset()

    def grow(self, block: int) -> None:
        """Allocate blocks up to this one, doubling the room so that growing one by one is cheap."""
        more, d = block + 1 - self.sums.blocks, self.dimension
        if more > 0:
            first = self.sums.blocks
            self.sums.grow(block)
            if block >= len(self.cache):
                room = np.zeros((max(block + 1, 2 * len(self.cache)), d, 1 + d))
                accounts = np.zeros((len(room), 5))
                room[:first], accounts[:first] = self.cache[:first], self._accounts[:first]
                self.cache, self._accounts = room, accounts
            self.cache[first : block + 1, range(d), range(1, 1 + d)] = 1.0 / math.sqrt(self.rho)
            self._accounts[first : block + 1] = 0.0, d / self.rho, 0.0, 0.0, 0.0

    def learn(self, block: int, x: Floats, reward: float, time: float = 0.0) -> None:
        """Add a row with the decision time `time`, in half-lives. Allocates blocks up to this one."""
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
        if block in self._delicate:
            self._late[block] = None
        else:
            self._late.setdefault(block, [])
            self._corrected.add(block)

    def unlearn(self, block: int, x: Floats, reward: float, time: float = 0.0) -> None:
        """Remove a row."""
        self.sums.unlearn(block, x, self._weight(time), reward)
        self._late[block] = None

    def draw(self, rows: Floats, rng: np.random.Generator, now: float = 0.0) -> Floats:
        """Return a draw of the scores of actions that share the first block, in units of νσ; the mean if νσ is 0."""
        sigma, given = self._sigma(now), self._one
        rng.standard_normal(out=self._normals)
        if sigma > _TINY:
            given[0] = 1.0 / sigma
        else:
            given[:] = self._first
        scores: Floats = rows.dot(self.cache[0].dot(given))  # xᵀ(θ̂/σ + Sz)
        return scores

    def distribution(self, rows: Floats, now: float = 0.0) -> Distribution:
        """Return the distribution at time `now` of the scores of actions that share the first block."""
        sigma = self._sigma(now)
        mixed = rows.dot(self.cache[0])
        return self.law(rows, mixed[:, 0], mixed[:, 1:], lambda: self.cache[0, :, 1:], sigma)

    def law(
        self, rows: Floats, mean: Floats, root: Floats, weights_root: Callable[[], Floats], sigma: float = 1.0
    ) -> Distribution:
        """Return the distribution of scores `mean + sigma * root @ z`; `weights_root` is for many actions.

        S depends on the order of updates, so a root is computed that does not: equal sums and random numbers give equal
        draws.
        """
        if len(rows) <= max(_MANY, self.dimension):
            lower, largest = self._lower(root)
            lower *= sigma
            return Distribution(mean, lower, sigma * math.sqrt(largest))
        largest = float(np.einsum("kj,kj->k", root, root).max())
        lower, _ = self._lower(weights_root())
        return Distribution(mean, sigma * (rows @ lower), sigma * math.sqrt(largest))

    def _lower(self, root: Floats) -> tuple[Floats, float]:
        """Return the lower triangular L with the same LLᵀ as `root`, and the largest entry of its diagonal."""
        covariance = root @ root.T
        variances = covariance.reshape(-1)[:: len(root) + 1]
        largest = max(variances.tolist())
        variances += _JITTER * largest + _TINY
        lower, failed = self._potrf(covariance.T, lower=1, overwrite_a=1)  # symmetric: Fortran order, in place
        if failed:
            raise PosteriorError("the covariance of the scores is not positive definite, so nothing can be drawn")
        return lower, largest

    def scores(self, x: Floats, blocks: Ints, now: float = 0.0) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the scores in contexts `x`, for actions that each have their own block.

        Both have shape (contexts, actions); the scores are independent. Block -1 stands for an action without data.
        """
        sigma = self._sigma(now)
        known = blocks >= 0
        whole = bool(known.all())
        mixed = x @ self.cache[blocks if whole else blocks[known]]  # xᵀθ̂, xᵀS: (actions, contexts, 1 + d)
        mean, root = mixed[:, :, 0].T, mixed[:, :, 1:]
        spread = np.sqrt(np.einsum("kij,kij->ik", root, root))
        if not whole:
            means, spreads = np.zeros((len(x), len(blocks))), np.empty((len(x), len(blocks)))
            spreads[:] = np.sqrt(np.einsum("ij,ij->i", x, x) / self.rho)[:, None]
            means[:, known], spreads[:, known] = mean, spread
            mean, spread = means, spreads
        return mean, spread * sigma

    def _sigma(self, now: float) -> float:
        """Return νσ, times √2ᵀ after T half-lives of decay."""
        sigma = self._scale * self.noise(now)
        return sigma * self.stretch(now) if now else sigma

    def stretch(self, now: float) -> float:
        """Return the factor by which the weights' standard deviation has grown since the epoch, as the rows decayed."""
        return math.exp2(0.5 * self._age(now)) if now else 1.0

    def mean(self, block: int = 0, now: float = 0.0) -> Floats:
        """Return θ̂ of a block, solved from the sums with iterative refinement, accurate to the last bits."""
        if not 0 <= block < self.sums.blocks:
            return np.zeros(self.dimension)
        rho = self._rho_at(now)
        precision, roots = self._precision(block, rho)
        lower, failed = self._potrf(precision, lower=1)
        if failed and self.dimension > _SMALL:
            lower = self._enlarged(precision)
        exact, solved = self._exact(block, rho), np.zeros(self.dimension)
        for _ in range(0 if failed and self.dimension <= _SMALL else _REFINEMENTS):
            change: Floats = self._potrs(lower, _residual(exact, solved) * roots, lower=1)[0] * roots
            solved += change
            if (np.abs(change) <= 2.0**-52 * np.abs(solved)).all():
                return solved
        return solved if self.dimension > _SMALL else _solve_exactly(exact, rho)[0]

    def noise(self, now: float = 0.0) -> float:
        """Return σ, given or estimated; the estimate includes one extra row with the rewards' mean square."""
        if self._late or now:
            self.freshen(now)
        if self._estimated is None:
            self._estimated = self._estimate(now) if self._noise is None else self._noise
        return self._estimated

    def _estimate(self, now: float) -> float:
        squares, weight = self.sums.squares, self.sums.total_weight
        if weight <= 0.0 or squares <= 0.0:
            return 1.0
        explained, settled = self._totals.tolist()
        fade, residual = self.fade(now) if now else 1.0, max(squares - explained, 1e-12 * squares)
        left = max(fade * (weight - self.sums.mean_weight * settled), 0.0)
        return math.sqrt((squares / weight + fade * residual) / (1.0 + left))

    @property
    def stages(self) -> tuple[Posterior, ...]:
        """The posteriors of the reward: only this one."""
        return (self,)

    def increments(self, block: int, x: Floats, now: float = 0.0) -> list[tuple[float, float]]:
        """Return the posterior mean and variance of the reward for features x, as a list with one age."""
        sigma = self.noise(now) * self.stretch(now)
        mixed = x @ self.cache[block]
        return [(float(mixed[0]), sigma**2 * float(mixed[1:] @ mixed[1:]))]

    @property
    def explained(self) -> float:
        """Σ bᵀθ̂ over the blocks; the cache must be up to date."""
        return math.fsum(self._accounts[: self.sums.blocks, 0].tolist())

    def count(self, now: float) -> tuple[float, float]:
        """Return Σ w and Σ w y² at time `now`."""
        fade = self.fade(now)
        return fade * self.sums.total_weight, fade * self.sums.squares

    def fade(self, now: float) -> float:
        """Return the remaining weight of a row that had weight 1 at the epoch."""
        return math.exp2(-self._age(now)) if now else 1.0

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the exact sums as arrays for `restore`."""
        return self.sums.state()

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Continue from what `state` returned, after checking it."""
        self.sums.restore(arrays)
        self._reset()

    def cached(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was computed from the sums, for `restore_cached`, so that even rounding is reproduced."""
        self.freshen(0.0)
        fits, traces, updates = self._accounts[: self.sums.blocks, :3].T.copy()
        delicate = np.array(sorted(self._delicate), np.int64)
        cache, counts = self.cache[: self.sums.blocks].copy(), updates.astype(np.int64)
        return {"cache": cache, "updates": counts, "fits": fits, "traces": traces, "delicate": delicate}

    def restore_cached(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Continue with what `cached` returned, after `restore`."""
        blocks, d = self.sums.blocks, self.dimension
        self.cache = array("cache", arrays["cache"], (blocks, d, 1 + d)).copy()
        self._accounts = np.zeros((blocks, 5))
        self._accounts[:, 0] = array("fits", arrays["fits"], (blocks,))
        self._accounts[:, 1] = array("traces", arrays["traces"], (blocks,))
        self._accounts[:, 2] = indices("updates", arrays["updates"], (blocks,), _LONGEST + 1)
        self._delicate = set(indices("delicate", arrays["delicate"], (None,), blocks).tolist())
        for block in range(blocks):
            self._account(self.cache[block], self._accounts[block], self._totals, self.rho)
        self._add_up()
        self._late = {}
        self._estimated = None

    def _reset(self) -> None:
        blocks, d = self.sums.blocks, self.dimension
        self.cache = np.zeros((blocks, d, 1 + d))  # [θ̂ S]
        self._accounts = np.zeros((blocks, 5))
        self._totals = np.zeros(2)
        self._estimated = None
        self._late = dict.fromkeys(range(blocks))
        self._corrected: set[int] = set()
        self._delicate = set()
        self.rho = self._rho_at(0.0)

    def _weight(self, time: float) -> float:
        if time == 0.0:
            return 1.0
        epoch = self.sums.epoch
        weight = self.sums.weight(time)
        if epoch != self.sums.epoch:
            self._reset()
        return weight

    def _age(self, now: float) -> float:
        """Return how many half-lives `now` is after the epoch."""
        return min(now - self.sums.epoch, _FORGOTTEN)

    def _rho_at(self, now: float) -> float:
        """Return κ relative to the sums: it grows as they decay."""
        kappa = self._ridge * (self.sums.scale if self._noise is None else self._noise * self._noise)
        return kappa * math.exp2(math.floor(_RENEWALS * self._age(now)) / _RENEWALS) if now else kappa

    def _precision(self, block: int, rho: float) -> tuple[Floats, Floats]:
        """Return G + ρI scaled to a unit diagonal, and the scale of its rows and columns."""
        precision = self.sums.gram(block)
        precision.flat[:: self.dimension + 1] += rho
        roots = 1.0 / np.sqrt(precision.diagonal())
        return precision * roots[:, None] * roots, roots

    def _exact(self, block: int, rho: float) -> Integers:
        """Return [G + ρI, b] in units of 2⁻²⁸⁰."""
        exact = self.sums.exact(block)
        exact.flat[:: self.dimension + 2] += fixed(rho)
        return exact

    def freshen(self, now: float) -> tuple[int, ...]:
        """Update the cache; return the blocks that had changed."""
        self._estimated = None
        rho = self._rho_at(now)
        if rho != self.rho:
            self.rho, self._late = rho, dict.fromkeys(range(self.sums.blocks))
        if not self._late:
            return ()
        late, self._late = self._late, {}
        try:
            self._bring_in(late)
            explained, settled = self._totals.tolist()
            if not math.isfinite(explained + settled):
                raise PosteriorError(
                    "the posterior is not finite, and nothing can be drawn from it; the sums of the rewards are intact"
                )
        except BaseException:
            self._late = dict.fromkeys(range(self.sums.blocks))
            raise
        return tuple(late)

    def _bring_in(self, late: Mapping[int, list[_Late] | None]) -> None:
        """Add late rows to their blocks, or recompute a block."""
        cache, accounts, totals, rho, renewed = self.cache, self._accounts, self._totals, self.rho, False
        for block, rows in late.items():
            some, kept = cache[block], accounts[block]
            is_kept = rows is not None and kept[2] + len(rows) <= _LONGEST
            for x, weight, reward in rows if is_kept and rows else ():
                is_kept = is_kept and self._take_in(some, kept, totals, rho, x, weight, reward)
            if not is_kept:
                self._renew(block)
                renewed = True
            elif block in self._corrected:
                self._solve(block)
        self._corrected.clear()
        if renewed:
            self._add_up()

    def _add_up(self) -> None:
        """Recompute the totals of all blocks, so that rounding errors do not accumulate."""
        self._totals[:] = self._accounts[: self.sums.blocks, 3:].sum(axis=0)

    def _solve(self, block: int) -> None:
        """Compute θ̂ from S and the sums."""
        cache, kept = self.cache[block], self._accounts[block]
        half = self.sums.moment(block) @ cache[:, 1:]
        cache[:, 0] = cache[:, 1:] @ half
        kept[0] = half @ half
        self._account(cache, kept, self._totals, self.rho)

    def _renew(self, block: int) -> None:
        """Compute [θ̂ S] from the sums: with G + ρI = D⁻¹LLᵀD⁻¹, S = DL⁻ᵀ."""
        cache, kept, (precision, roots) = self.cache[block], self._accounts[block], self._precision(block, self.rho)
        lower, failed = self._potrf(precision, lower=1)
        inverse = None if failed else self._trtri(lower, lower=1)[0]
        delicate = inverse is None or np.einsum("ij,ij->", inverse, inverse) > _DELICATE
        self._delicate.discard(block)
        kept[2] = 0.0
        self.retries += delicate
        if delicate and self.dimension <= _SMALL:
            self._delicate.add(block)
            cache[:, 0], cache[:, 1:], kept[0] = _solve_exactly(self._exact(block, self.rho), self.rho)
        else:
            if inverse is None:
                inverse = self._trtri(self._enlarged(precision), lower=1)[0]
            np.multiply(roots[:, None], inverse.T, out=cache[:, 1:])
            self._solve(block)
        kept[1] = np.einsum("ij,ij->", cache[:, 1:], cache[:, 1:])
        self._account(cache, kept, self._totals, self.rho)

    def _enlarged(self, precision: Floats) -> Floats:
        """Return the Cholesky factor of a slightly larger matrix, if rounding has made `precision` indefinite."""
        jitter = 1e-15 * self.dimension
        while jitter < 1.0:
            lower, failed = self._potrf(precision + jitter * np.eye(self.dimension), lower=1)
            if not failed:
                return np.asarray(lower)
            jitter *= 4.0
        raise PosteriorError("the posterior precision is not positive definite: its sums are damaged")


@entry_point
def take_in(cache: Floats, kept: Floats, totals: Floats, rho: float, x: Floats, weight: float, reward: float) -> bool:
    """Add a row to a block by a rank-one update; return False, and leave it to `_renew`, if the row is too large.

    With v = Sᵀx, g = 1 + w‖v‖², γ = (1 − 1/√g)/‖v‖² = w/(g + √g) and e = y − xᵀθ̂,

    S(I − γvvᵀ) is a root of (S⁻ᵀS⁻¹ + wxxᵀ)⁻¹,   θ̂ moves by Sv·we/g,   Σwy² − bᵀθ̂ grows by we²/g,
    and tr SSᵀ falls by w‖Sv‖²/g.
    """
    ahead = np.empty(1 + x.size)
    multiply_left(x, cache, ahead)  # xᵀθ̂, v
    error = reward - ahead[0]
    ahead[0] = 0.0
    growth = 1.0 + weight * dot(ahead, ahead)
    if not growth < _LEAP:
        return False
    move, shrink, squares = weight * error / growth, weight / (growth + np.sqrt(growth)), 0.0
    for i in range(x.size):
        row = cache[i]
        along = dot(row, ahead)  # (Sv)ᵢ
        add_multiple(row, -shrink * along, ahead)  # S −= Sv·γvᵀ
        row[0] += move * along
        squares += along * along
    kept[0] += weight * (reward * reward - error * error / growth)
    kept[1] -= weight / growth * squares
    kept[2] += 1.0
    add_account(cache, kept, totals, rho)
    return True


@fast_sums
def multiply_left(x: Floats, rows: Floats, out: Floats) -> None:
    """Set `out` to Σ xᵢ rowsᵢ, four rows at a time; many of them may be multiplied by 0."""
    fours = x.size - x.size % 4
    out[:] = 0.0
    for i in range(0, fours, 4):
        x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
        if x0 != 0.0 or x1 != 0.0 or x2 != 0.0 or x3 != 0.0:
            row0, row1, row2, row3 = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
            for j in range(out.size):
                out[j] += x0 * row0[j] + x1 * row1[j] + x2 * row2[j] + x3 * row3[j]
    for i in range(fours, x.size):
        add_multiple(out, x[i], rows[i])


@fast_sums
def add_multiple(out: Floats, factor: float, row: Floats) -> None:
    for j in range(out.size):
        out[j] += factor * row[j]


@kernel
def add_account(cache: Floats, kept: Floats, totals: Floats, rho: float) -> None:
    """Set what a block explains of Σ w y², and how many of its weights are settled by its rows; the totals follow.

    Since Gθ̂ = b − κθ̂, Σ w (y − xᵀθ̂)² = Σ w y² − bᵀθ̂ − κ‖θ̂‖²; and tr (G + κI)⁻¹G = d − κ tr SSᵀ.
    """
    mean = cache[:, 0]
    explained, settled = kept[0] + rho * dot(mean, mean), mean.size - rho * kept[1]
    totals[0] += explained - kept[3]
    totals[1] += settled - kept[4]
    kept[3], kept[4] = explained, settled


account = entry_point(add_account)


def _residual(exact: Integers, solved: Floats) -> Floats:
    """Return b − Aθ for exact [A b], rounded only at the end."""
    shift = 600 - math.frexp(float(np.abs(solved).max()))[1]
    given = np.array([int(math.ldexp(each, shift)) for each in solved.tolist()], object)
    left = (exact[:, -1] << shift) - exact[:, :-1].dot(given)
    return np.array(left / (1 << (shift + UNIT_BITS)), float)


def _solve_exactly(exact: Integers, rho: float) -> tuple[Floats, Floats, float]:
    """Return θ̂, S and bᵀθ̂ from [G + ρI, b], by LDLᵀ in integers.

    Rows and columns are first divided by powers of two, so that the diagonal is between 1 and 4. The smallest
    eigenvalue is then at least ρ over the largest entry; twice its bits, plus a margin, keep the rounding error far
    below that of floats.
    """
    d, square = len(exact), exact[:, :-1]
    diagonal = [int(each) for each in square.diagonal()]
    sizes = np.array([max(each.bit_length() - 1, 0) // 2 for each in diagonal], object)
    bits = _SPARE + 2 * (max(diagonal).bit_length() - fixed(rho).bit_length() + 1)
    left = (square << bits) >> (sizes[:, None] + sizes)
    half = (exact[:, -1] << bits) >> sizes
    inverse = np.zeros((d, d), object)  # of L
    inverse.flat[:: d + 1] = 1 << bits
    pivots = []
    for j in range(d):
        pivot, column = left[j, j], left[j + 1 :, j]
        if pivot <= 0:
            raise PosteriorError("the posterior precision is not positive definite: its sums are damaged")
        factor = (column << bits) // pivot
        left[j + 1 :, j + 1 :] -= np.multiply.outer(factor, column) >> bits
        inverse[j + 1 :, : j + 1] -= np.multiply.outer(factor, inverse[j, : j + 1]) >> bits
        half[j + 1 :] -= (factor * half[j]) >> bits
        pivots.append(pivot)
    one = 1 << bits
    mean = inverse.T.dot((half << bits) // np.array(pivots, object)) >> bits
    widths = np.sqrt(np.array([pivot / one for pivot in pivots]))
    halves = np.array(half / one, float) / widths * 2.0 ** (-UNIT_BITS // 2)
    root = np.array(inverse.T / one, float) / widths * 2.0 ** (UNIT_BITS // 2 - sizes.astype(float))[:, None]
    return np.array(mean / (one << sizes), float), root, float(halves @ halves)
