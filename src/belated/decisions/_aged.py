"""The posterior of a reward that is learned by age, from rewards and signals that arrive in increments.

s_b is what was observed of a decision up to age b: its reward so far, and its signals. The increment of an age, c_b =
s_b − s_{b−1}, is regressed on the features x of the decision and on s_{b−1}, using all decisions that have reached the
end of age b: one `Posterior` for each component of c_b. The weights of x are separate for each action. The slopes Δ_b
of s_{b−1} are common to all actions, and are computed in `belated._kernels.by_age`, which agents use, too. With the
gains g_b,

    E[R | x] = Σ_b xᵀα_b,   α_b = A_b⁻¹(M_x − G_xs Δ_b + κt)g_b,   A_b = G_xx + κI,

with the sums of the decision's block, and t the weights pooled over all blocks, if there are several. Draws have the
covariance Σ_b σ_b²A_b⁻¹: with a root S_b of each A_b⁻¹, a draw needs only [Σ α_b, S_1, …, S_B]. It is stored as one
matrix, so that a decision takes as many calls as with a single posterior. The derivation is in docs/math/by-age.md.

All of this follows from the caches of the posteriors, [θ̂ S] with SSᵀ = (G + κI)⁻¹ for features (x, s). With the rows
S_x and S_s of S, and θ̂ = (θ̂_x, θ̂_s),

    K = (S_s S_sᵀ)⁻¹ = C_ss + κI,   C_sc = K θ̂_s,   v = S_x S_sᵀK,
    A⁻¹(M_x − G_xs Δ) = θ̂_x + v(Δ − θ̂_s),   A⁻¹ = (S_x − vS_s)(S_x − vS_s)ᵀ,

where C_ss and C_sc are Σ ssᵀ and Σ scᵀ of a block after regressing on x.
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
    """Posteriors of the increments of each age, and draws of the total reward of a decision.

    `ages` holds one posterior for the increment of the reward at the first age, one for that of each signal, then those
    of the second age and so on; the last is that of the reward at the last age. Their features are x, the reward so
    far, and the signals. The parameters are those of `Posterior`.
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
        """The posteriors that learn; changes are picked up by the next draw."""
        self.stages = self.ages[:: self.numbers]
        """The posteriors of the reward's increments."""
        self._shrinks = blocks != 1  # towards the pooled weights
        self.chain = new_chain(ages, self.numbers)
        """How earlier ages predict later ones: `gains` and `slopes`."""
        self._covariances = np.zeros((ages, 2 * self.numbers, 2 * self.numbers))
        """Covariances of (s_{b−1}, c_b) given the features."""
        self._stored = np.zeros((ages, 0, dimension + self.numbers, self.numbers + dimension + self.numbers))
        """[θ̂ of each component, S] of each age and block."""
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

        A given σ² is that of the whole reward, and a given prior that of its weights; each age gets an equal part of
        both. Those of signals are estimated.
        """
        self._scale, self._given, ages = scale, noise is not None, len(self.stages)
        for part in self.ages:
            if noise is None:
                part.configure(scale=scale, noise=None, ridge=ridge)
            else:  # all components of an age have the same prior, since they share S
                part.configure(scale=scale, noise=noise / math.sqrt(ages), ridge=ridge * ages)
        self._stale = True

    @property
    def epoch(self) -> int:
        return max(part.epoch for part in self.ages)

    @property
    def retries(self) -> int:
        return sum(part.retries for part in self.ages)

    def grow(self, block: int) -> None:
        """Allocate blocks up to this one."""
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
        """Return the posterior mean and variance of the reward's increment at each age, for features x."""
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
        """Return, for each signal, the fraction of a reward's variance that the signal reveals in advance.

        Given x, the variance of R is Σ_b g_bᵀΣ_b g_b, where Σ_b is the covariance of c_b given s_{b−1}; signal j at age
        b contributes g_bj²Σ_bjj.
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
        """Return mean and standard deviation of the scores of actions with their own blocks: see `Posterior`."""
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
        """Return the prior variance of a score, for features of length 1."""
        pairs = zip(self.variances(now), self.stages, strict=True)
        return self._scale**2 * sum(variance * part.stretch(now) ** 2 / part.rho for variance, part in pairs)

    def _freshen(self, now: float) -> Floats:
        """Update the joined matrix; return νσ_b (times √2ᵀ after T half-lives of decay), repeated d + k times each."""
        blocks = self.ages[0].sums.blocks
        if now or self._stale or self._blocks < blocks or any(part.is_late for part in self.ages):
            anew, self._stale = self._stale, True  # stays stale if anything below fails
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
        """Copy [θ̂ S] of the blocks that have changed."""
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
        left = squares - explained + np.einsum("bnik,bnik->bk", slopes, pulled)  # Σ c² after regressing on x
        covariances[:, range(k, 2 * k), range(k, 2 * k)] = np.maximum(left, 1e-12 * squares)
        covariances /= np.maximum(weights, 1e-300)[:, None, None]
        counts = fade * weights
        link(self.chain, counts, covariances, 1.0)
        settled = blocks * d - kappa * np.einsum("bnij,bnij->b", root, root)
        settled *= fade * [part.sums.mean_weight for part in self.stages]
        self._estimate(counts, fade * squares[:, 0], settled)
        own = fits + along @ (self.chain.slopes[:, None] - slopes)  # A⁻¹(M_x − G_xs Δ), for each component
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
        """Estimate the variance of each age's increment given the ages before."""
        reached = counts > 0.0
        usual = float(np.mean(squares[reached] / counts[reached])) if reached.any() else 0.0
        if self._given:
            self._variances = [part.noise() ** 2 for part in self.stages]
        elif usual <= 0.0:  # no rewards yet
            self._variances = [1.0 / len(counts)] * len(counts)
        else:
            rests = counts * self.chain.variances
            self._variances = [float(noise(*each, usual)) for each in zip(rests, squares, counts, settled, strict=True)]

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the exact sums of all ages as arrays for `restore`."""
        return _named(part.state() for part in self.ages)

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Continue from what `state` returned, after checking it."""
        for part, some in zip(self.ages, self._split(arrays), strict=True):
            part.restore(some)
        self._stale = True

    def cached(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was computed from the sums, for `restore_cached`."""
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
