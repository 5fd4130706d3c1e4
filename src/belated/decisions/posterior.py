"""The posterior of a Gaussian linear model, kept as the sums that make it: exact, free of order, taken back at will.

With features x, rewards y and weights w (1 without forgetting), one *block* of weights θ has

    G = Σ w xxᵀ,   b = Σ w xy,   θ̂ = (G + κI)⁻¹ b,   θ ~ N(θ̂, σ²(G + κI)⁻¹),

and the blocks are independent: one block for all actions, or one for each. κ is the ridge λ if the noise is
estimated, with σ² from the residuals Σ w y² − Σ bᵀθ̂, and λσ² if it is given. Correcting a reward changes b alone, by
w x(y_new − y_old), in O(d). Every sum is kept with what rounding lost, as two floats: 32 digits, so that the order of
the rewards leaves no trace, and a blunder that is taken back hardly any.

For draws a root S of (G + κI)⁻¹ = SSᵀ is cached. A new row x changes it by a multiple of (Sv)vᵀ, v = Sᵀx (Potter's
square-root update), in O(d²); now and then, and when a row is taken back, it is computed again from G.

Forgetting halves the weight of a decision with each half-life. Rather than decay the sums, a row at time t (in
half-lives) is added with the weight 2ᵗ, and what is asked for at time T is scaled by 2⁻ᵀ: a late reward counts as of
its decision, exactly. Only the prior would fade relative to the sums, so it is renewed eight times per half-life.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated.types import Floats, Ints
from belated.validate import array, integer, refuse

#: Rows by which a root is updated before it is computed again, in all and at a time.
_LONGEST, _AT_ONCE = 128, 16
#: The prior is renewed so often per half-life; weights are relative to a moment that moves by so many half-lives.
_RENEWALS, _EPOCH = 8, 64
#: After so many half-lives without news all is forgotten.
_FORGOTTEN = 500.0
#: Of the largest variance: keeps the covariance of equal actions positive definite. Its root is below any real spread.
_JITTER = 1e-14
_TINY = float(np.finfo(float).tiny)


class Law(NamedTuple):
    """The joint law of the actions' scores: `mean + root @ z`, or `mean + spread * z` if they are independent."""

    mean: Floats
    root: Floats | None
    spread: Floats | None
    width: float
    """The largest standard deviation."""


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
        Prior precision λ.
    """

    def __init__(self, dimension: int, *, scale: float = 1.0, noise: float | None = None, ridge: float = 1.0) -> None:
        self.dimension = dimension
        self._gram = np.zeros((2, 0, dimension, dimension))  # G, and what rounding lost
        self._moment = np.zeros((2, 0, dimension))  # b
        self._totals = np.zeros((2, 2))  # Σwy² and Σw
        self._epoch = 0  # a row at time t has the weight 2^(t − epoch)
        self._work = np.empty((3, dimension, dimension))
        self.configure(scale=scale, noise=noise, ridge=ridge)

    def configure(self, *, scale: float, noise: float | None, ridge: float) -> None:
        """Go on with another prior, noise or scale: the sums do not depend on them."""
        self._scale, self._noise, self._ridge = scale, noise, ridge
        self._kappa = ridge if noise is None else ridge * noise * noise
        self._reset_cache()

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return int(self._gram.shape[1])

    def learn(self, block: int, x: Floats, reward: float, time: float = 0.0) -> None:
        """Add a row that was decided at `time`, in half-lives. Blocks up to this one come into being."""
        weight = self._weight(time)
        self.grow(block)
        scaled = weight * x
        np.multiply(scaled[:, None], x, out=self._work[0])
        self._add_gram(block)
        self._add_reward(block, scaled, weight, reward, 1.0)
        late = self._late.setdefault(block, [])
        if late is not None:
            late.append((x, weight))
            if len(late) > _AT_ONCE:
                self._late[block] = None

    def correct(self, block: int, x: Floats, old: float, new: float, time: float = 0.0) -> None:
        """Replace the reward of a row."""
        weight = self._weight(time)
        scaled = weight * x
        self._add_reward(block, scaled, weight, old, -1.0)
        self._add_reward(block, scaled, weight, new, 1.0)
        self._late.setdefault(block, [])

    def unlearn(self, block: int, x: Floats, reward: float, time: float = 0.0) -> None:
        """Take a row back."""
        weight = self._weight(time)
        scaled = weight * x
        np.multiply(-scaled[:, None], x, out=self._work[0])
        self._add_gram(block)
        self._add_reward(block, scaled, weight, reward, -1.0)
        self._late[block] = None

    def law(self, rows: Floats, blocks: Ints | None = None, now: float = 0.0) -> Law:
        """Return the law of the scores of the actions with these features, shape (actions, d), at time `now`.

        `blocks` are the actions' own, -1 for one about which nothing is known; None: all share the first.
        """
        if blocks is None:
            self.grow(0)
        sigma = self._scale * self.noise(now) * 2.0 ** (0.5 * self._age(now))  # νσ, and the root of 2ᵀ
        return self._joint(rows, sigma) if blocks is None else self._independent(rows, blocks, sigma)

    def _joint(self, rows: Floats, sigma: float) -> Law:
        mean, root = rows @ self._mean[0], rows @ self._root[0]
        if 2 * len(rows) > self.dimension:
            width = math.sqrt(float(np.einsum("kj,kj->k", root, root).max()))
            return Law(mean, sigma * root, None, sigma * width)
        covariance = root @ root.T  # few actions: a root of theirs needs fewer normal numbers
        largest = float(covariance.diagonal().max())
        covariance.flat[:: len(rows) + 1] += _JITTER * largest + _TINY
        return Law(mean, sigma * np.linalg.cholesky(covariance), None, sigma * math.sqrt(largest))

    def _independent(self, rows: Floats, blocks: Ints, sigma: float) -> Law:
        mean, spread = np.zeros(len(rows)), np.sqrt(np.einsum("kj,kj->k", rows, rows) / self._rho)
        known = blocks >= 0
        if not known.all():
            rows, blocks = rows[known], blocks[known]
        mixed = np.matmul(rows[:, None, :], self._root[blocks])[:, 0]
        spread[known] = np.sqrt(np.einsum("kj,kj->k", mixed, mixed))
        mean[known] = np.einsum("kj,kj->k", rows, self._mean[blocks])
        spread *= sigma
        return Law(mean, None, spread, float(spread.max()))

    def mean(self, block: int = 0, now: float = 0.0) -> Floats:
        """Return θ̂ of a block, solved from the sums."""
        if not 0 <= block < self.blocks:
            return np.zeros(self.dimension)
        precision, roots = self._precision(block, self._rho_at(now))
        solved: Floats = np.linalg.solve(precision, self._moment[:, block].sum(axis=0) * roots) * roots
        return solved

    def noise(self, now: float = 0.0) -> float:
        """Return σ, given or estimated."""
        self._freshen(now)
        if self._noise is not None:
            return self._noise
        squares, weight = float(self._totals[:, 0].sum()), float(self._totals[:, 1].sum())
        if weight <= 0.0 or squares <= 0.0:
            return 1.0
        return math.sqrt(self._noise_square(squares, weight, 2.0 ** -self._age(now)))

    def _noise_square(self, squares: float, weight: float, fade: float) -> float:
        residual = max(squares - float(self._fit.sum()), 1e-12 * squares)
        return (squares / weight + fade * residual) / (1.0 + fade * weight)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the sums, bit for bit, as arrays that `restore` takes."""
        return {
            "gram": self._gram.copy(),
            "moment": self._moment.copy(),
            "totals": self._totals.copy(),
            "epoch": np.array(self._epoch),
        }

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Go on from what `state` returned, after checking it."""
        d = self.dimension
        gram = array("gram", arrays["gram"], (2, None, d, d))
        moment = array("moment", arrays["moment"], (2, gram.shape[1], d))
        totals = array("totals", arrays["totals"], (2, 2))
        epoch = integer("epoch", arrays["epoch"][()], at_least=0)
        if gram.size and np.einsum("bii->bi", gram[0]).min() < 0.0:
            raise refuse("gram", gram, "a sum of squares, which has no negative diagonal")
        self._gram, self._moment, self._totals, self._epoch = gram.copy(), moment.copy(), totals.copy(), epoch
        self._reset_cache()

    def _reset_cache(self) -> None:
        b, d = self.blocks, self.dimension
        self._root, self._mean, self._fit = np.zeros((b, d, d)), np.zeros((b, d)), np.zeros(b)
        self._updates = [0] * b  # of each root since it was computed
        self._late: dict[int, list[tuple[Floats, float]] | None] = dict.fromkeys(range(b))  # None: compute it again
        self._rho = self._rho_at(0.0)

    def grow(self, block: int) -> None:
        """Make room for blocks up to this one."""
        have = self.blocks
        if block < have:
            return
        more, d = block + 1 - have, self.dimension
        self._gram = np.concatenate([self._gram, np.zeros((2, more, d, d))], axis=1)
        self._moment = np.concatenate([self._moment, np.zeros((2, more, d))], axis=1)
        self._root = np.concatenate([self._root, np.broadcast_to(np.eye(d) / math.sqrt(self._rho), (more, d, d))])
        self._mean = np.concatenate([self._mean, np.zeros((more, d))])
        self._fit = np.concatenate([self._fit, np.zeros(more)])
        self._updates.extend([0] * more)

    def _weight(self, time: float) -> float:
        if time == 0.0:
            return 1.0
        whole = math.floor(time)
        epoch = whole - whole % _EPOCH
        if epoch > self._epoch:
            for sums in (self._gram, self._moment, self._totals):
                np.ldexp(sums, self._epoch - epoch, out=sums)  # a power of two: exact
            self._epoch = epoch
            self._reset_cache()
        return math.ldexp(math.exp2(time - whole), max(whole - self._epoch, -2000))

    def _age(self, now: float) -> float:
        """Return how many half-lives `now` is after the moment that weights are relative to."""
        return min(now - self._epoch, _FORGOTTEN) if now else 0.0

    def _rho_at(self, now: float) -> float:
        """Return κ relative to the sums: it grows as they fade."""
        return self._kappa * 2.0 ** (math.floor(_RENEWALS * self._age(now)) / _RENEWALS)

    def _add_gram(self, block: int) -> None:
        """Add the matrix in the first work space, and what rounding lost to the second part (Knuth's two-sum)."""
        term, total, part = self._work
        high, low = self._gram[0, block], self._gram[1, block]
        np.add(high, term, out=total)
        np.subtract(total, high, out=part)
        np.subtract(term, part, out=term)
        np.subtract(total, part, out=part)
        np.subtract(high, part, out=part)
        np.add(term, part, out=term)
        np.add(low, term, out=low)
        high[:] = total

    def _add_reward(self, block: int, scaled: Floats, weight: float, reward: float, sign: float) -> None:
        high, low = self._moment[0, block], self._moment[1, block]
        term = scaled * (sign * reward)
        total = high + term
        part = total - high
        low += (high - (total - part)) + (term - part)
        high[:] = total
        for column, value in enumerate((weight * reward * reward, weight)):
            _two_sum(self._totals, column, sign * value)

    def _precision(self, block: int, rho: float) -> tuple[Floats, Floats]:
        """Return G + ρI with a unit diagonal, and by what its rows and columns were multiplied to get that."""
        precision: Floats = self._gram[:, block].sum(axis=0)
        precision.flat[:: self.dimension + 1] += rho
        roots = 1.0 / np.sqrt(np.maximum(precision.diagonal(), _TINY))
        return precision * roots[:, None] * roots, roots

    def _freshen(self, now: float) -> None:
        """Bring the cached roots and means up to date."""
        rho = self._rho_at(now)
        if rho != self._rho:
            self._rho, self._late = rho, dict.fromkeys(range(self.blocks))
        if not self._late:
            return
        for block, late in self._late.items():
            if late is None or self._updates[block] + len(late) > _LONGEST:
                self._factor(block)
            else:
                for x, weight in late:
                    self._update_root(block, x, weight)
            root = self._root[block]
            half = (self._moment[0, block] + self._moment[1, block]) @ root  # Sᵀb
            self._mean[block] = root @ half  # θ̂ = SSᵀb
            self._fit[block] = half @ half  # bᵀθ̂
        self._late = {}

    def _factor(self, block: int) -> None:
        """Compute S from G: with G + ρI = D⁻¹LLᵀD⁻¹, S = DL⁻ᵀ."""
        precision, roots = self._precision(block, self._rho)
        jitter = 0.0
        while True:
            try:
                lower = np.linalg.cholesky(precision + jitter * np.eye(self.dimension))
                break
            except np.linalg.LinAlgError:
                jitter = max(4.0 * jitter, 1e-15 * self.dimension)
        self._root[block] = roots[:, None] * np.linalg.inv(lower).T
        self._updates[block] = 0

    def _update_root(self, block: int, x: Floats, weight: float) -> None:
        """Bring in a row: S(I − γvvᵀ) is a root of (S⁻ᵀS⁻¹ + wxxᵀ)⁻¹, with γ = (1 − 1/√(1 + w‖v‖²))/‖v‖²."""
        root = self._root[block]
        v = x @ root
        square = float(v @ v)
        if square > 0.0:
            gamma = (1.0 - 1.0 / math.sqrt(1.0 + weight * square)) / square
            np.multiply((root @ v)[:, None], gamma * v, out=self._work[1])
            np.subtract(root, self._work[1], out=root)
        self._updates[block] += 1


def _two_sum(sums: Floats, column: int, term: float) -> None:
    high = float(sums[0, column])
    total = high + term
    part = total - high
    sums[1, column] += (high - (total - part)) + (term - part)
    sums[0, column] = total
