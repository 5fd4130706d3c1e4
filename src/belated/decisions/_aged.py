"""The posterior of a reward that is learned by age, from rewards and signals that come bit by bit.

s_b is what has come of a decision up to age b: its reward so far, and its signals. What came at an age,
c_b = s_b − s_{b−1}, is regressed on the features x of the decision and on s_{b−1}, from all decisions that have reached
the end of age b: a `Posterior` for each number of c_b. The weights of x are each action's own. The slopes Δ_b of
s_{b−1} are common to all, and `belated._kernels.by_age`, which agents use, too, has what follows: with the gains g_b,

    E[R | x] = Σ_b xᵀα_b,   α_b = A_b⁻¹(M_x − G_xs Δ_b + κt)g_b,   A_b = G_xx + κI,

with the sums of the decision's block, and t the weights of all blocks together, if there are several. Draws have the
covariance Σ_b σ_b²A_b⁻¹: with S_b a root of each A_b⁻¹, [Σ α_b, S_1, …, S_B] is all that a draw takes. It is kept side
by side, so that a decision takes as many calls as with one posterior. The derivation is in docs/math/by-age.md.

All this is read from what the posteriors have cached, [θ̂ S] with SSᵀ = (G + κI)⁻¹ for features (x, s). With its rows
S_x and S_s, and θ̂ = (θ̂_x, θ̂_s),

    K = (S_s S_sᵀ)⁻¹ = C_ss + κI,   C_sc = K θ̂_s,   v = S_x S_sᵀK,
    A⁻¹(M_x − G_xs Δ) = θ̂_x + v(Δ − θ̂_s),   A⁻¹ = (S_x − vS_s)(S_x − vS_s)ᵀ,

where C_ss and C_sc are what x leaves of Σ ssᵀ and Σ scᵀ in a block.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from belated._kernels.by_age import link, new_chain, noise
from belated.decisions._posterior import Distribution, Posterior
from belated.types import Floats, Ints


class AgedPosterior:
    """Posteriors of what comes at each age, and draws of what comes of a decision in all.

    `ages` learn what the reward changed by at the first age, what each signal did, then those of the second age and so
    on; the last is that of the reward at the last age. Their features are x, the reward so far, and the signals. The
    parameters are those of `Posterior`.
    """

    def __init__(
        self,
        ages: int,
        dimension: int,
        *,
        signals: int = 0,
        scale: float,
        noise: float | None,
        ridge: float,
        blocks: int,
    ) -> None:
        self.dimension, self.numbers = dimension, 1 + signals
        count = (ages - 1) * self.numbers + 1
        self.ages = tuple(Posterior(dimension + self.numbers, own=dimension, blocks=blocks) for _ in range(count))
        """What they learn is noticed."""
        self.stages = self.ages[:: self.numbers]
        """Those of the increments of the reward."""
        self._shrinks = blocks != 1  # towards the weights of all blocks
        self.chain = new_chain(ages, self.numbers)
        """What early ages say of later ones: `gains` and `slopes`."""
        self._covariances = np.zeros((ages, 2 * self.numbers, 2 * self.numbers))
        """Those of (s_{b−1}, c_b) beside the features."""
        self._stored = np.zeros((ages, 0, dimension + self.numbers, self.numbers + dimension + self.numbers))
        """[θ̂ of each number, S] of each age and block."""
        self._joined = np.zeros((0, dimension, 1))
        """[Σ α_b, S_1, …, S_B] of each block."""
        self._common = np.zeros(dimension)
        self._own = np.zeros((ages, 0, dimension, self.numbers))
        """A⁻¹(M_x − G_xs Δ + κt) of each age and block."""
        self._blocks = 0
        self._variances: list[float] = []
        self._widths = np.zeros(0)
        self._stale = True
        self.configure(scale=scale, noise=noise, ridge=ridge)

    def configure(self, *, scale: float, noise: float | None, ridge: float) -> None:
        """Change the prior, noise or scale.

        A given σ² is that of the whole reward, and a given prior that of its weights: each age has an equal part. Those
        of signals are estimated.
        """
        self._scale, self._given, ages = scale, noise is not None, len(self.stages)
        for part in self.ages:
            if noise is None:
                part.configure(scale=scale, noise=None, ridge=ridge)
            else:  # all numbers of an age have the same prior, since they share S
                part.configure(scale=scale, noise=noise / math.sqrt(ages), ridge=ridge * ages)
        self._stale = True

    @property
    def epoch(self) -> int:
        return max(part.epoch for part in self.ages)

    @property
    def retries(self) -> int:
        return sum(part.retries for part in self.ages)

    def grow(self, block: int) -> None:
        """Make room for blocks up to this one."""
        for part in self.ages:
            part.grow(block)

    def mean(self, block: int = 0, now: float = 0.0) -> Floats:
        """Return the weights of E[R | x] of a block."""
        self._freshen(now)
        return self._joined[block, :, 0].copy() if 0 <= block < self._blocks else self._common.copy()

    def noise(self, now: float = 0.0) -> float:
        """Return σ of the whole reward, given or estimated."""
        return math.sqrt(math.fsum(self.variances(now)))

    def variances(self, now: float = 0.0) -> list[float]:
        """Return σ_b² of each age, given or estimated."""
        self._freshen(now)
        return self._variances

    def increments(self, block: int, x: Floats, now: float = 0.0) -> list[tuple[float, float]]:
        """Return mean and variance of what is believed to come of features x at each age."""
        self._freshen(now)
        size, found = self.dimension + self.numbers, []
        known = np.zeros((self.dimension, self.numbers))  # E[s_{b−1} | x] = xᵀ known
        for age, own in enumerate(self._own[:, block]):
            change = own + known @ self.chain.slopes[age]
            known = known + change
            root = x @ self._joined[block, :, 1 + age * size : 1 + age * size + size]
            spread = self._variances[age] * self.stages[age].stretch(now) ** 2
            found.append((float(x @ change[:, 0]), spread * float(root @ root)))
        return found

    def worth(self) -> Floats:
        """Return which part of what is unknown of a reward each signal tells before it comes.

        Given x, the variance of R is Σ_b g_bᵀΣ_b g_b, with Σ_b that of c_b given what was known before, and that of
        signal j at age b adds g_bj²Σ_bjj.
        """
        self._freshen(0.0)
        k, slopes = self.numbers, self.chain.slopes
        before, cross, change = (
            self._covariances[:, :k, :k], self._covariances[:, :k, k:], self._covariances[:, k:, k:]
        )  # fmt: skip
        left = change + slopes.swapaxes(1, 2) @ (before @ slopes - 2.0 * cross)  # Σ_b
        told = np.einsum("bj,bjj->j", self.chain.gains**2, np.maximum(left, 0.0))
        whole = float(told.sum())
        share: Floats = told[1:] / whole if whole > 0.0 else np.zeros(k - 1)
        return share

    def draw(self, rows: Floats, rng: np.random.Generator, now: float = 0.0) -> Floats:
        """Return a draw of the scores of actions that share the first block: the sum of a draw for each age."""
        widths = self._freshen(now)
        given = np.concatenate([[1.0], rng.standard_normal(len(widths)) * widths])
        scores: Floats = rows.dot(self._joined[0].dot(given))
        return scores

    def distribution(self, rows: Floats, now: float = 0.0) -> Distribution:
        """Return the distribution at time `now` of the scores of actions that share the first block."""
        widths = self._freshen(now)
        mixed = rows.dot(self._joined[0])
        law = self.stages[0].law
        return law(rows, mixed[:, 0], mixed[:, 1:] * widths, lambda: self._joined[0, :, 1:] * widths)

    def scores(self, x: Floats, blocks: Ints, now: float = 0.0) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the scores of actions with blocks of their own: see `Posterior`."""
        widths = self._freshen(now)
        known = blocks >= 0
        whole = bool(known.all())
        mixed = x @ self._joined[blocks if whole else blocks[known]]  # (actions, contexts, 1 + ages·(d + k))
        mean, root = mixed[:, :, 0].T, mixed[:, :, 1:]
        spread = np.sqrt((root * root) @ (widths * widths)).T
        if not whole:
            means, spreads = np.empty((len(x), len(blocks))), np.empty((len(x), len(blocks)))
            means[:] = (x @ self._common)[:, None]
            spreads[:] = np.sqrt(np.einsum("ij,ij->i", x, x) * self._prior(now))[:, None]
            means[:, known], spreads[:, known] = mean, spread
            mean, spread = means, spreads
        return mean, spread

    def _prior(self, now: float) -> float:
        """Return the variance of a score of which nothing is known, for features of length 1."""
        pairs = zip(self.variances(now), self.stages, strict=True)
        return self._scale**2 * sum(variance * part.stretch(now) ** 2 / part.rho for variance, part in pairs)

    def _freshen(self, now: float) -> Floats:
        """Bring what is joined up to date; return νσ_b, times the root of 2ᵀ if the sums fade, d + k times each."""
        blocks = self.ages[0].sums.blocks
        if now or self._stale or self._blocks < blocks or any(part.is_late for part in self.ages):
            anew, self._stale = self._stale, True  # unless all goes well
            self._read(blocks, anew, now)
            self._solve(blocks, now)
            widths = [
                self._scale * math.sqrt(variance) * part.stretch(now)
                for variance, part in zip(self._variances, self.stages, strict=True)
            ]
            self._widths = np.repeat(widths, self.dimension + self.numbers)
            self._blocks, self._stale = blocks, False
        return self._widths

    def _read(self, blocks: int, anew: bool, now: float) -> None:
        """Take over [θ̂ S] of blocks that have changed."""
        k, known = self.numbers, self._stored.shape[1]
        if blocks > known:
            room = np.zeros((len(self.stages), max(blocks, 2 * known), *self._stored.shape[2:]))
            room[:, :known] = self._stored
            self._stored = room
        first = 0 if anew else self._blocks
        for place, part in enumerate(self.ages):
            age, number = divmod(place, k)
            changed = [*part.freshen(now), *range(first, blocks)]
            self._stored[age, changed, :, number] = part.cache[changed, :, 0]
            if number == 0:
                self._stored[age, changed, :, k:] = part.cache[changed, :, 1:]

    def _solve(self, blocks: int, now: float) -> None:
        """Compute the chain, the weights of each block, and the variances."""
        d, k, ages = self.dimension, self.numbers, len(self.stages)
        stored = self._stored[:, :blocks]
        fits, slopes, root, below = (
            stored[:, :, :d, :k],
            stored[:, :, d:, :k],
            stored[:, :, :d, k:],
            stored[:, :, d:, k:],
        )
        kappa = np.array([part.rho for part in self.stages])
        inner = np.linalg.inv(below @ below.swapaxes(2, 3))  # K
        along = root @ below.swapaxes(2, 3) @ inner  # v
        root = root - along @ below
        fade = np.array([part.fade(now) for part in self.stages])
        weights = np.array([part.sums.total_weight for part in self.stages])
        covariances = np.zeros((ages, 2 * k, 2 * k))
        squares, explained = np.zeros((ages, k)), np.zeros((ages, k))
        for place, part in enumerate(self.ages):
            squares[divmod(place, k)], explained[divmod(place, k)] = part.sums.squares, part.explained
        pulled = inner @ slopes  # C_sc of each block
        before = inner.sum(axis=1) - blocks * kappa[:, None, None] * np.eye(k)
        covariances[:, :k, :k] = np.where(np.abs(before) > 1e-10 * blocks * kappa[:, None, None], before, 0.0)
        covariances[:, :k, k:] = pulled.sum(axis=1)
        left = squares - explained + np.einsum("bnik,bnik->bk", slopes, pulled)  # what x leaves of Σ c²
        covariances[:, range(k, 2 * k), range(k, 2 * k)] = np.maximum(left, 1e-12 * squares)
        covariances /= np.maximum(weights, 1e-300)[:, None, None]
        counts = fade * weights
        link(self.chain, counts, covariances, 1.0)
        settled = blocks * d - kappa * np.einsum("bnij,bnij->b", root, root)
        settled *= fade * [part.sums.mean_weight for part in self.stages]
        self._estimate(counts, fade * squares[:, 0], settled)
        own = fits + along @ (self.chain.slopes[:, None] - slopes)  # A⁻¹(M_x − G_xs Δ), of each number
        common = np.zeros((ages, d, k))
        if self._shrinks:
            inverse = root @ root.swapaxes(2, 3)
            precision = np.linalg.inv(inverse)
            free = (precision @ own).sum(axis=1)
            gram = precision.sum(axis=1) - (blocks - 1) * kappa[:, None, None] * np.eye(d)
            common = np.linalg.solve(gram, free)
            own = own + kappa[:, None, None, None] * (inverse @ common[:, None])
        gains = self.chain.gains
        self._common = np.einsum("bdk,bk->d", common, gains)
        self._own, self._covariances = own, covariances
        total = np.einsum("bndk,bk->nd", own, gains)
        self._joined = np.concatenate([total[:, :, None], *root], axis=2)

    def _estimate(self, counts: Floats, squares: Floats, settled: Floats) -> None:
        """Estimate the variance of what each age adds to what is known."""
        reached = counts > 0.0
        usual = float(np.mean(squares[reached] / counts[reached])) if reached.any() else 0.0
        if self._given:
            self._variances = [part.noise() ** 2 for part in self.stages]
        elif usual <= 0.0:  # nothing has come yet
            self._variances = [1.0 / len(counts)] * len(counts)
        else:
            rests = counts * self.chain.variances
            self._variances = [float(noise(*each, usual)) for each in zip(rests, squares, counts, settled, strict=True)]

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the sums of all ages, bit for bit, as arrays that `restore` takes."""
        return _named(part.state() for part in self.ages)

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Continue from what `state` returned, after checking it."""
        for part, some in zip(self.ages, self._split(arrays), strict=True):
            part.restore(some)
        self._stale = True

    def cached(self) -> dict[str, npt.NDArray[Any]]:
        """Return what is computed from the sums, for `restore_cached`."""
        self._freshen(0.0)
        return _named(part.cached() for part in self.ages)

    def restore_cached(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Continue with what `cached` returned, after `restore`."""
        for part, some in zip(self.ages, self._split(arrays), strict=True):
            part.restore_cached(some)
        self._stale = True

    def _split(self, arrays: dict[str, npt.NDArray[Any]]) -> list[dict[str, npt.NDArray[Any]]]:
        found: list[dict[str, npt.NDArray[Any]]] = [{} for _ in self.ages]
        for name, each in arrays.items():
            kind, _, age = name.rpartition(" of age ")
            if kind:
                found[int(age)][kind] = each
        return found


def _named(parts: Iterable[dict[str, npt.NDArray[Any]]]) -> dict[str, npt.NDArray[Any]]:
    return {f"{name} of age {age}": each for age, some in enumerate(parts) for name, each in some.items()}
