"""The posterior of revenue: rewards that are mostly zero and otherwise skewed.

This is a hurdle model: a reward is the probability of a positive reward times an amount. Whether the reward is positive
is regressed on the features like any reward, by the inherited `Posterior`. The logarithms of positive rewards are
regressed on the same features:

    P(r > 0 | x) = xᵀp,   log r | r > 0 ~ N(c + xᵀa, σ²),   a ~ N(0, σ²/κ I) of each block,

and a draw of the score is the product of a draw of the probability and of exp(xᵀa); exp(c + σ²/2) is common to all
actions. A large sale changes the log amount only a little, where it would change a mean of rewards a lot.

Sales are few, so the prior matters. c is the mean logarithm of all sales, σ² is estimated with an extra row of square
1, and κ is λ times the mean of ‖x‖², where λ maximises the marginal likelihood over `RIDGES`: with the eigenvalues w of
G = Σ xxᵀ, the sums u = Σ x(y − c) in its eigenbasis and Q = Σ(y − c)² − Σ u²/(w + κ), over all blocks,

    log p(y | κ) = −½ Σ log(1 + w/κ) − ½(n + 1) log(Q + 1) + constant,   σ² = (Q + 1)/(n + 1).

If amounts do not depend on the action, λ is large, and only the probabilities matter. Everything is a function of exact
sums (of the features followed by a 1), so corrections and cancellations leave no trace. Decaying rows are multiplied by
their remaining weight.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from belated.decisions._posterior import Distribution, Posterior
from belated.decisions._sums import Sums
from belated.types import Floats, Ints

#: Candidates for λ, the prior precision of amounts relative to their noise and to the features' length.
RIDGES: Floats = np.array([1.0, 4.0, 16.0, 64.0, 256.0, 1024.0])
#: Suffix of the arrays of amounts, beside those of probabilities.
_OF_AMOUNTS = " of amounts"


class Amounts:
    """Regressions of the logarithms of amounts, one for each block, with a common mean, noise and prior."""

    def __init__(self, dimension: int, blocks: int) -> None:
        self.dimension, self.sums = dimension, Sums(dimension + 1, own=dimension)
        self.sums.grow(blocks - 1)
        self._reset()

    def _reset(self) -> None:
        d = self.dimension
        self._values, self._vectors = np.zeros((0, d)), np.zeros((0, d, d))  # eigendecomposition of G
        self._moments = np.zeros((0, d, 2))  # Σ xy and Σ x in the eigenbasis
        self._totals = np.zeros((0, 2))  # Σ y and n
        self._late = set(range(self.sums.blocks))
        self._when = -1.0
        self.centre = self.variance = 0.0
        self._kappa = 1.0
        self._weights, self._precisions = np.zeros((0, d)), np.ones((0, d))
        self._make_room()

    def _make_room(self) -> None:
        """Grow the arrays to hold all blocks, doubling the room so that growing one by one is cheap."""
        known, blocks = len(self._values), self.sums.blocks
        if blocks > known:
            for name in ("_values", "_vectors", "_moments", "_totals", "_weights", "_precisions"):
                before = getattr(self, name)
                made = np.zeros((max(blocks, 2 * known), *before.shape[1:]))
                made[:known] = before
                setattr(self, name, made)
            self._vectors[known:], self._precisions[known:] = np.eye(self.dimension), self._kappa

    def grow(self, block: int) -> None:
        if block >= self.sums.blocks:
            self.sums.grow(block)
            self._make_room()

    def learn(self, block: int, x: Floats, amount: float, time: float, sign: int = 1) -> None:
        """Add a sale with the decision time `time`, in half-lives, or remove it."""
        self.grow(block)
        epoch = self.sums.epoch
        weight = self.sums.weight(time)
        if epoch != self.sums.epoch:
            self._late = set(range(self.sums.blocks))
        change = self.sums.learn if sign > 0 else self.sums.unlearn
        change(block, np.append(x, 1.0), weight, math.log(amount))
        self._late.add(block)

    def freshen(self, now: float, fade: float) -> None:
        """Update everything computed from the sums, whose remaining weight is `fade`."""
        if not self._late and now == self._when:
            return
        d = self.dimension
        for block in self._late:
            gram, moment = self.sums.gram(block), self.sums.moment(block)
            self._values[block], vectors = np.linalg.eigh(gram[:d, :d])
            self._vectors[block] = vectors
            self._moments[block] = vectors.T @ np.stack([moment[:d], gram[:d, d]], axis=1)
            self._totals[block] = moment[d], gram[d, d]
        self._late.clear()
        self._when = now
        total, n = fade * self._totals.sum(axis=0)
        if n <= 0.0:
            self.centre = self.variance = 0.0
            self._weights = np.zeros_like(self._values)
            self._precisions = np.ones_like(self._values)
            return
        self.centre = total / n
        values = fade * np.maximum(self._values, 0.0)
        u = fade * (self._moments[..., 0] - self.centre * self._moments[..., 1])
        spread = max(fade * self.sums.squares - n * self.centre**2, 0.0)
        kappas = RIDGES * self.sums.scale
        precisions = values + kappas[:, None, None]
        rests = np.maximum(spread - (u * u / precisions).sum(axis=(1, 2)), 0.0)
        evidence = -0.5 * np.log1p(values / kappas[:, None, None]).sum(axis=(1, 2)) - 0.5 * (n + 1.0) * np.log1p(rests)
        chosen = int(evidence.argmax())
        self._kappa, self.variance = float(kappas[chosen]), float((rests[chosen] + 1.0) / (n + 1.0))
        self._precisions = precisions[chosen]
        self._weights = u / self._precisions

    def scores(self, x: Floats, blocks: Ints) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the log amounts in contexts `x`, without c, shape (contexts, actions).

        Block -1 stands for an action without data.
        """
        known = np.maximum(blocks, 0)
        if not len(self._values):
            return np.zeros((len(x), len(blocks))), np.zeros((len(x), len(blocks)))
        turned = x @ self._vectors[known]  # (actions, contexts, d)
        mean = np.einsum("kij,kj->ik", turned, self._weights[known])
        variance = np.einsum("kij,kj->ik", turned * turned, 1.0 / self._precisions[known])
        if (blocks < 0).any():
            mean[:, blocks < 0] = 0.0
            variance[:, blocks < 0] = (np.einsum("ij,ij->i", x, x) / self._kappa)[:, None]
        return mean, np.sqrt(self.variance * variance)

    def root(self) -> tuple[Floats, Floats]:
        """Return the weights of the first block, and a root of their covariance."""
        vectors = self._vectors[0]
        return vectors @ self._weights[0], vectors * np.sqrt(self.variance / self._precisions[0])

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        self.sums.restore(arrays)
        self._reset()


class RevenuePosterior(Posterior):
    """The posterior of probabilities and of amounts; the parameters are those of `Posterior`.

    A reward of zero or less counts as no sale. The methods of `Posterior` concern the probabilities; `amounts_of` and
    `joint_amounts` give the corresponding factors.
    """

    def __init__(self, dimension: int, *, scale: float = 1.0, ridge: float = 1.0, blocks: int = 1) -> None:
        self.amounts = Amounts(dimension, blocks)
        super().__init__(dimension, scale=scale, ridge=ridge, blocks=blocks)

    def grow(self, block: int) -> None:
        super().grow(block)
        self.amounts.grow(block)

    def learn(self, block: int, x: Floats, reward: float, time: float = 0.0) -> None:
        super().learn(block, x, float(reward > 0.0), time)
        if reward > 0.0:
            self.amounts.learn(block, x, reward, time)

    def correct(self, block: int, x: Floats, old: float, new: float, time: float = 0.0) -> None:
        if (old > 0.0) != (new > 0.0):
            super().correct(block, x, float(old > 0.0), float(new > 0.0), time)
        if old > 0.0:
            self.amounts.learn(block, x, old, time, sign=-1)
        if new > 0.0:
            self.amounts.learn(block, x, new, time)

    def unlearn(self, block: int, x: Floats, reward: float, time: float = 0.0) -> None:
        super().unlearn(block, x, float(reward > 0.0), time)
        if reward > 0.0:
            self.amounts.learn(block, x, reward, time, sign=-1)

    def amounts_of(self, x: Floats, blocks: Ints, now: float = 0.0) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the log amounts that belong to the probabilities of `scores`."""
        self.freshen_amounts(now)
        mean, spread = self.amounts.scores(x, blocks)
        return mean, self._scale * spread

    def joint_amounts(self, rows: Floats, now: float = 0.0) -> Distribution:
        """Return the distribution of the log amounts that belong to the probabilities of `distribution`."""
        self.freshen_amounts(now)
        weights, root = self.amounts.root()
        return self.law(rows, rows @ weights, rows @ root, lambda: root, self._scale)

    def freshen_amounts(self, now: float) -> None:
        sums = self.amounts.sums
        self.amounts.freshen(now, math.exp2(sums.epoch - now) if now else 1.0)

    def increments(self, block: int, x: Floats, now: float = 0.0) -> list[tuple[float, float]]:
        """Return the posterior mean and variance of the reward for features x: a probability times an amount."""
        ((chance, variance),) = super().increments(block, x, now)
        self.freshen_amounts(now)
        mean, spread = (float(each[0, 0]) for each in self.amounts.scores(x[None], np.array([block])))
        amount = math.exp(self.amounts.centre + mean + 0.5 * self.amounts.variance + 0.5 * spread**2)
        more = math.expm1(spread**2)  # Var(amount)/amount²
        return [(chance * amount, amount**2 * (variance * (1.0 + more) + chance**2 * more))]

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the exact sums of both as arrays for `restore`."""
        return super().state() | {name + _OF_AMOUNTS: each for name, each in self.amounts.sums.state().items()}

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Continue from what `state` returned, after checking it."""
        self.amounts.restore(
            {name.removesuffix(_OF_AMOUNTS): each for name, each in arrays.items() if name.endswith(_OF_AMOUNTS)}
        )
        super().restore(arrays)


def products(chances: Floats, amounts: Floats) -> Floats:
    """Return draws of scores from draws of probabilities and of log amounts, shape (…, actions, draws).

    >>> products(np.array([[0.1], [0.2]]), np.array([[800.0], [0.0]])).tolist()
    [[0.1], [0.0]]
    """
    drawn: Floats = chances * np.exp(amounts - amounts.max(axis=-2, keepdims=True))  # up to a common factor
    return drawn
