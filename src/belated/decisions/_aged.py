"""The posterior of a reward that is learned by age: a sum of independent posteriors, one for each age.

What came of a decision is R = Σ R_b over the ages b, and each E[R_b | x] is a linear regression of its own, a
`Posterior`, from all decisions that have reached the end of age b. For the weights θ = Σ θ_b of the sum,

    θ ~ N(Σ θ̂_b, Σ σ_b²(G_b + κI)⁻¹),

and with S_b a root of each, [Σ θ̂_b, σ_1 S_1, …, σ_B S_B] is all that a draw takes: it is kept side by side, so that a
decision takes as many calls as with one posterior. See docs/math/silence.md.

σ_b² is estimated as ever, from the residuals of age b and one more row. The mean square of that row is that of the age,
itself as if there were one more decision, of the mean square of all ages. So an age in which nothing has ever come
is known the better the more decisions have passed it. An age that no decision has reached yet is taken to be nearly
alike for all actions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from belated.decisions._posterior import Distribution, Posterior
from belated.types import Floats, Ints

#: The variance of an age that no decision has reached, in parts of the usual mean square: actions are believed to
#: differ in it by a tenth of what one reward differs from another.
UNREACHED = 0.01


class AgedPosterior:
    """Posteriors of the increments at each age, and draws from their sum. The parameters are those of `Posterior`."""

    def __init__(
        self, ages: int, dimension: int, *, scale: float, noise: float | None, ridge: float, blocks: int
    ) -> None:
        self.dimension = dimension
        self.ages = tuple(Posterior(dimension, blocks=blocks) for _ in range(ages))
        """One for each age. What they learn is noticed."""
        self.stages = self.ages
        """Those of the increments of the reward."""
        self._joined = np.zeros((0, dimension, 1 + ages * dimension))
        """[Σ θ̂_b, S_1, …, S_B] of each block."""
        self._means = np.zeros((0, ages, dimension))
        self._blocks = 0
        self._variances: list[float] = []
        self._widths = np.zeros(0)
        self._stale = True
        self.configure(scale=scale, noise=noise, ridge=ridge)

    def configure(self, *, scale: float, noise: float | None, ridge: float) -> None:
        """Change the prior, noise or scale.

        A given σ² is that of the whole reward, and a given prior that of its weights: each age has an equal part.
        """
        self._scale, self._given, ages = scale, noise is not None, len(self.stages)
        for part in self.stages:
            if noise is None:
                part.configure(scale=scale, noise=None, ridge=ridge)
            else:
                part.configure(scale=scale, noise=noise / math.sqrt(ages), ridge=ridge * ages)
        self._stale = True

    @property
    def epoch(self) -> int:
        return max(part.epoch for part in self.ages)

    @property
    def retries(self) -> int:
        """See `Posterior`."""
        return sum(part.retries for part in self.ages)

    def grow(self, block: int) -> None:
        """Make room for blocks up to this one."""
        for part in self.ages:
            part.grow(block)

    def mean(self, block: int = 0, now: float = 0.0) -> Floats:
        """Return Σ θ̂_b of a block, each solved from the sums."""
        total: Floats = np.sum([part.mean(block, now) for part in self.ages], axis=0)
        return total

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
        found = []
        for variance, part in zip(self._variances, self.stages, strict=True):
            mixed = x @ part.cache[block]
            found.append((float(mixed[0]), variance * part.stretch(now) ** 2 * float(mixed[1:] @ mixed[1:])))
        return found

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
        mixed = x @ self._joined[blocks if whole else blocks[known]]  # (actions, contexts, 1 + ages·d)
        mean, root = mixed[:, :, 0].T, mixed[:, :, 1:]
        spread = np.sqrt((root * root) @ (widths * widths)).T
        if not whole:
            means, spreads = np.zeros((len(x), len(blocks))), np.empty((len(x), len(blocks)))
            prior = self._prior(now)
            spreads[:] = np.sqrt(np.einsum("ij,ij->i", x, x) * prior)[:, None]
            means[:, known], spreads[:, known] = mean, spread
            mean, spread = means, spreads
        return mean, spread

    def _prior(self, now: float) -> float:
        """Return the variance of a score of which nothing is known, for features of length 1."""
        pairs = zip(self.variances(now), self.stages, strict=True)
        return self._scale**2 * sum(variance * part.stretch(now) ** 2 / part.rho for variance, part in pairs)

    def _freshen(self, now: float) -> Floats:
        """Bring what is joined up to date; return νσ_b, times the root of 2ᵀ if the sums fade, d times each."""
        grown = self._blocks < self.ages[0].sums.blocks
        if now or grown or self._stale or any(part.is_late for part in self.ages):
            self._join(now)
            self._variances = self._estimated(now)
            widths = [
                self._scale * math.sqrt(variance) * part.stretch(now)
                for variance, part in zip(self._variances, self.ages, strict=True)
            ]
            self._widths, self._stale = np.repeat(widths, self.dimension), False
        return self._widths

    def _estimated(self, now: float) -> list[float]:
        ages = self.stages
        if self._given:
            return [part.noise(now) ** 2 for part in ages]
        counts = [part.count(now) for part in ages]  # Σ w and Σ w y² of each
        seen = [squares / weight for weight, squares in counts if weight > 0.0]
        usual = math.fsum(seen) / len(seen) if seen else 0.0
        if usual <= 0.0:  # nothing has come yet
            return [1.0 / len(ages)] * len(ages)
        return [
            part.variance(now, (usual + squares) / (1.0 + weight)) if weight > 0.0 else UNREACHED * usual
            for part, (weight, squares) in zip(ages, counts, strict=True)
        ]

    def _join(self, now: float) -> None:
        """Put the roots and means of the ages side by side, where they have changed."""
        blocks, d = self.ages[0].sums.blocks, self.dimension
        anew, self._stale = self._stale, True  # unless all goes well
        changed = [part.freshen(now) for part in self.ages]
        if blocks > len(self._joined):
            room = max(blocks, 2 * len(self._joined))
            self._joined = np.zeros((room, d, 1 + len(self.ages) * d))
            self._means = np.zeros((room, len(self.ages), d))
            anew = True
        first = 0 if anew else self._blocks
        for age, (part, some) in enumerate(zip(self.ages, changed, strict=True)):
            columns = slice(1 + age * d, 1 + age * d + d)
            if first < blocks:
                self._joined[first:blocks, :, columns] = part.cache[first:blocks, :, 1:]
                self._means[first:blocks, age] = part.cache[first:blocks, :, 0]
            for block in some:
                self._joined[block, :, columns] = part.cache[block, :, 1:]
                self._means[block, age] = part.cache[block, :, 0]
        if first < blocks:
            self._joined[first:blocks, :, 0] = self._means[first:blocks].sum(axis=1)
        for block in set().union(*changed):
            self._joined[block, :, 0] = self._means[block].sum(axis=0)
        self._blocks = blocks

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
