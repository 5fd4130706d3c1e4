"""The posterior of a reward that is learned by age, with signals that come before it.

z_b are the signals of a decision as they were known at age b, 0 where none had come. What comes after may depend on
them. So each age has regressions on (x, z_{b−1}), from all decisions that have reached its end: of what came, and of
what the signals changed by. The weights of x are each action's own; those of the signals, B_b, are common to all:

    R_b = xᵀα_b + z_{b−1}ᵀβ_b + noise,   z_b − z_{b−1} = Γ_bᵀx + Δ_bᵀz_{b−1} + noise.

A decision in flight is worth what has come plus what is predicted: after age b, V_b(x, z) = aᵀx + gᵀz. Backwards,

    V_{b−1}(x, z) = E[R_b + V_b(x, z_b) | x, z]:   a ← a + α_b + Γ_b g,   g ← g + β_b + Δ_b g,   E[R | x] = V_0(x, 0).

Projections compose: if all decisions had reached all ages, this would be the regression of R on x alone. Nothing is
assumed of the signals, and one that says nothing does not bias. What is gained is variance: what the signals say is
known of all decisions that have reached age b, and only the rest varies as the fewer that are older. The
derivation is in docs/math/silence.md.

All of it is computed from the sums. For each age and block, with A = G_xx + κI and G, M in parts of x and z,

    B = (Σ G_zz − G_zx A⁻¹ G_xz + κI)⁻¹ Σ (M_z − G_zx A⁻¹ M_x),   the weights of x are A⁻¹(M_x − G_xz B + κ t),

where the sums are over the blocks, and t are the weights of x of all blocks together: what is believed of an action
that has not reached an age is what is known of the others.
"""

from __future__ import annotations

import math

import numpy as np

from belated.decisions._aged import UNREACHED, AgedPosterior
from belated.decisions._operations import PosteriorError
from belated.decisions._posterior import Posterior
from belated.types import Floats


def _root(precision: Floats) -> Floats:
    """Return S with SSᵀ = A⁻¹ for each matrix A of a stack: with A = D⁻¹LLᵀD⁻¹ of a unit diagonal, S = DL⁻ᵀ."""
    sizes = 1.0 / np.sqrt(np.einsum("kii->ki", precision))
    scaled, jitter = precision * sizes[:, :, None] * sizes[:, None, :], 0.0
    while jitter < 1.0:
        try:
            lower = np.linalg.cholesky(scaled + jitter * np.eye(scaled.shape[1]))
        except np.linalg.LinAlgError:  # rounding has left it without one
            jitter = max(1e-14, 4.0 * jitter)
            continue
        root: Floats = sizes[:, :, None] * np.linalg.inv(lower).transpose(0, 2, 1)
        return root
    raise PosteriorError("the precision of the posterior has no factor, and nothing can be drawn from it")


class SignalledPosterior(AgedPosterior):
    """Posteriors of what comes at each age, given the signals before, and draws of what comes of a decision.

    `ages` are those of R_1, of each signal's change at age 1, of R_2 and so on; the last is that of R_B. Their features
    are x and the signals before.
    """

    def __init__(
        self, ages: int, signals: int, dimension: int, *, scale: float, noise: float | None, ridge: float, blocks: int
    ) -> None:
        self.signals = signals
        super().__init__(ages, dimension, scale=scale, noise=noise, ridge=ridge, blocks=blocks)
        self.ages = tuple(Posterior(dimension + signals, blocks=blocks) for _ in range((ages - 1) * (1 + signals) + 1))
        self.stages = self.ages[:: 1 + signals]
        self._grams = np.zeros((ages, 0, dimension + signals, dimension + signals))
        self._moments = np.zeros((ages, 0, dimension + signals, 1 + signals))
        self._kappas: list[float] = []
        self._paths: list[Floats] = []
        self.gains = np.zeros((ages, signals))
        """g: what a signal of 1 at the end of each age tells of what is still to come."""
        self.changes = np.zeros((ages, signals))
        """The variances of the signals' changes, given what was known before."""
        self.configure(scale=scale, noise=noise, ridge=ridge)

    def configure(self, *, scale: float, noise: float | None, ridge: float) -> None:
        """Change the prior, noise or scale; those of the signals are estimated."""
        super().configure(scale=scale, noise=noise, ridge=ridge)
        for place, part in enumerate(self.ages):
            if place % (1 + self.signals):
                part.configure(scale=scale, noise=None, ridge=ridge)

    def mean(self, block: int = 0, now: float = 0.0) -> Floats:
        """Return the weights of E[R | x] of a block."""
        self._freshen(now)
        return self._joined[block, :, 0].copy() if 0 <= block < self._blocks else self._common.copy()

    def increments(self, block: int, x: Floats, now: float = 0.0) -> list[tuple[float, float]]:
        """Return mean and variance of what is believed to come of features x at each age."""
        self._freshen(now)
        d, found = self.dimension, []
        for age, path in enumerate(self._paths):
            root = x @ self._joined[block, :, 1 + age * d : 1 + age * d + d]
            spread = self._variances[age] * self.stages[age].stretch(now) ** 2
            found.append((float(x @ path[block]), spread * float(root @ root)))
        return found

    def _freshen(self, now: float) -> Floats:
        blocks = self.ages[0].sums.blocks
        if not (now or self._stale or self._blocks < blocks or any(part.is_late for part in self.ages)):
            return self._widths
        anew, self._stale = self._stale, True  # unless all goes well
        self._read(blocks, anew, now)
        self._solve(blocks, now)
        stretches = [part.stretch(now) for part in self.stages]
        self._widths = np.repeat(
            [self._scale * math.sqrt(v) * s for v, s in zip(self._variances, stretches, strict=True)], self.dimension
        )
        self._blocks, self._stale = blocks, False
        return self._widths

    def _read(self, blocks: int, anew: bool, now: float) -> None:
        """Take over the sums of blocks that have changed."""
        width, d, known = 1 + self.signals, self.dimension + self.signals, self._grams.shape[1]
        if blocks > known:
            more = max(blocks, 2 * known) - known
            self._grams = np.concatenate([self._grams, np.zeros((len(self.stages), more, d, d))], axis=1)
            self._moments = np.concatenate([self._moments, np.zeros((len(self.stages), more, d, width))], axis=1)
        for place, part in enumerate(self.ages):
            age, output = divmod(place, width)
            changed = part.read(now)
            for block in range(blocks) if anew else changed:
                if output == 0:
                    self._grams[age, block] = part.sums.gram(block)
                self._moments[age, block, :, output] = part.sums.moment(block)
        self._kappas = [part.rho for part in self.stages]

    def _solve(self, blocks: int, now: float) -> None:
        """Compute [weights, S_1, …, S_B] of each block, and the variances."""
        d, m, ages = self.dimension, self.signals, len(self.stages)
        weights, pooled, commons = [], [], []  # of x in each block, of the signals, and of x in all blocks together
        roots = np.zeros((blocks, d, ages * d))
        rests = np.zeros((ages, 1 + m))
        frees = np.zeros(ages)
        for age, kappa in enumerate(self._kappas):
            gram, moment = self._grams[age, :blocks], self._moments[age, :blocks]
            precision = gram[:, :d, :d] + kappa * np.eye(d)
            root = _root(precision)
            inverse = root @ root.transpose(0, 2, 1)
            cross, right = inverse @ gram[:, :d, d:], inverse @ moment[:, :d]
            left = (gram[:, d:, d:] - gram[:, d:, :d] @ cross).sum(axis=0) + kappa * np.eye(m)
            slopes = np.linalg.solve(left, (moment[:, d:] - gram[:, d:, :d] @ right).sum(axis=0))
            free = moment[:, :d] - gram[:, :d, d:] @ slopes
            common = np.linalg.solve(gram[:, :d, :d].sum(axis=0) + kappa * np.eye(d), free.sum(axis=0))
            own = inverse @ (free + kappa * common)
            weights.append(own)
            pooled.append(slopes)
            commons.append(common)
            roots[:, :, age * d : age * d + d] = root
            explained = np.einsum("kij,kij->j", moment[:, :d], own)
            explained += np.einsum("ij,ij->j", moment[:, d:].sum(axis=0), slopes)
            group = self.ages[age * (1 + m) : (age + 1) * (1 + m)]
            squares = np.array([part.sums.squares for part in group] + [0.0] * (1 + m - len(group)))
            rests[age] = np.maximum(squares - explained, 1e-12 * squares)
            frees[age] = float(np.einsum("kij,kji->", inverse, gram[:, :d, :d]))
            frees[age] += m - kappa * float(np.trace(np.linalg.inv(left)))
        if not np.isfinite(rests).all():
            raise PosteriorError("the posterior is not finite, and nothing can be drawn from it; the sums are intact")
        self._estimate(rests, frees, now)
        gain, total, common = np.zeros(m), np.zeros((blocks, d)), np.zeros(d)
        paths: list[Floats] = []
        for age in reversed(range(ages)):
            self.gains[age] = gain
            total = total + weights[age][:, :, 0] + weights[age][:, :, 1:] @ gain
            common = common + commons[age][:, 0] + commons[age][:, 1:] @ gain
            gain = gain + pooled[age][:, 0] + pooled[age][:, 1:] @ gain
        known = np.zeros((blocks, d, m))  # E[z_{b−1} | x] = xᵀ known
        for age in range(ages):
            paths.append(weights[age][:, :, 0] + known @ pooled[age][:, 0])
            known = known + weights[age][:, :, 1:] + known @ pooled[age][:, 1:]
        self._paths, self._common = paths, common
        self._joined = np.concatenate([total[:, :, None], roots], axis=2)
        told = (self.gains**2 * self.changes).sum(axis=1)
        self._variances = [float(v) for v in self._noises + told]

    def _estimate(self, rests: Floats, frees: Floats, now: float) -> None:
        """Estimate the variances of what comes and of the signals' changes, given what was known before."""
        m, ages = self.signals, len(self.stages)
        counts = [part.count(now) for part in self.stages]
        seen = [squares / weight for weight, squares in counts if weight > 0.0]
        usual = math.fsum(seen) / len(seen) if seen else 0.0
        self._noises = np.zeros(ages)
        self.changes = np.zeros((ages, m))
        for age, (weight, squares) in enumerate(counts):
            part = self.stages[age]
            left = 1.0 + max(weight - part.fade(now) * part.sums.mean_weight * frees[age], 0.0)
            if self._given:
                self._noises[age] = part.noise(now) ** 2
            elif usual <= 0.0:
                self._noises[age] = 1.0 / ages
            elif weight <= 0.0:
                self._noises[age] = UNREACHED * usual
            else:
                own = (usual + squares) / (1.0 + weight)
                self._noises[age] = (own + part.fade(now) * rests[age, 0]) / left
            for signal in range(m) if age < ages - 1 and weight > 0.0 else ():
                of_signal = self.ages[age * (1 + m) + 1 + signal].count(now)[1] / weight
                self.changes[age, signal] = (of_signal + part.fade(now) * rests[age, 1 + signal]) / left

    def worth(self) -> Floats:
        """Return which part of what is unknown of a reward each signal tells before it comes.

        Given x, the variance of R is Σ_b σ_b² + Σ_bj g_bj² τ_bj², with τ_bj² that of signal j's change at age b: the
        second sum is what the signals tell.
        """
        self._freshen(0.0)
        told = (self.gains**2 * self.changes).sum(axis=0)
        whole = float(self._noises.sum() + told.sum())
        share: Floats = told / whole if whole > 0.0 else np.zeros(self.signals)
        return share
