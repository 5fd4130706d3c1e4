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

from typing import Any, NamedTuple

import numpy.typing as npt

from belated.types import Floats, Ints


class Law(NamedTuple):
    """The joint law of the actions' scores: `mean + root @ z`, or `mean + spread * z` if they are independent."""

    mean: Floats
    root: Floats | None
    spread: Floats | None


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
        raise NotImplementedError

    def learn(self, block: int, x: Floats, reward: float, time: float = 0.0) -> None:
        """Add a row that was decided at `time`, in half-lives. Blocks up to this one come into being."""
        raise NotImplementedError

    def correct(self, block: int, x: Floats, old: float, new: float, time: float = 0.0) -> None:
        """Replace the reward of a row."""
        raise NotImplementedError

    def unlearn(self, block: int, x: Floats, reward: float, time: float = 0.0) -> None:
        """Take a row back."""
        raise NotImplementedError

    def law(self, rows: Floats, blocks: Ints | None = None, now: float = 0.0) -> Law:
        """Return the law of the scores of the actions with these features, shape (actions, d), at time `now`.

        `blocks` are the actions' own; None: all share the first.
        """
        raise NotImplementedError

    def mean(self, block: int = 0, now: float = 0.0) -> Floats:
        """Return θ̂ of a block, solved from the sums."""
        raise NotImplementedError

    def noise(self, now: float = 0.0) -> float:
        """Return σ, given or estimated."""
        raise NotImplementedError

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the sums, bit for bit, as arrays that `restore` takes."""
        raise NotImplementedError

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Go on from what `state` returned, after checking it."""
        raise NotImplementedError
