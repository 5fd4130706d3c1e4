"""Delayed-PSVI, Delayed-LPSVI and Delayed-UCBVI written down line by line, in plain NumPy, as slowly as they read.

Every agent keeps every trajectory it has ever played, with its delay, and rebuilds Φ, y and Ω from scratch at each
step of each episode. Nothing is shared with the library but the order in which random numbers are drawn.
Steps are counted from 0, so that the cap of Q at step h is H − h.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Two action values closer than this, relative to their size, are a tie.
TIE = 1e-12


class Played(NamedTuple):
    """One past episode and the delay of its feedback."""

    episode: int
    delay: int
    states: Ints
    actions: Ints
    rewards: Floats


class Regression(NamedTuple):
    """The regression of one step, rebuilt from all the data."""

    precision: Floats
    """Ω = ΦΦᵀ/σ² + λI."""
    moment: Floats
    """b = Φy/σ²."""

    def mean(self) -> Floats:
        """Return ŵ = Ω⁻¹b."""
        return np.asarray(np.linalg.solve(self.precision, self.moment), dtype=np.float64)


class NaiveAgent:
    """What the three algorithms share: the data, backward induction and the greedy step.

    If steps are `shared`, the regression of every step has the transitions of all steps; only its targets are its own.
    """

    def __init__(
        self, features: npt.ArrayLike, horizon: int, *, noise: float = 1.0, ridge: float = 1.0, shared: bool = False
    ) -> None:
        self.features: Floats = np.asarray(features, dtype=np.float64)
        self.states, self.actions, self.dimension = self.features.shape
        self.horizon = horizon
        self.noise, self.ridge, self.shared = noise, ridge, shared
        self.data: list[Played] = []
        self.values: Floats = np.zeros((horizon + 1, self.states))
        """V of the last plan; the last row stays zero."""
        self.precision: Floats = np.zeros((horizon, self.dimension, self.dimension))
        """Ω of the last plan."""

    def observe(self, episode: int, delay: int, states: Ints, actions: Ints, rewards: Floats) -> None:
        """Keep the trajectory of `episode`; it is used once its delay has passed."""
        self.data.append(Played(episode, int(delay), states, actions, rewards))

    def arrived(self, episode: int, h: int) -> tuple[Floats, Floats]:
        """Return Φ and y of step `h`, with the indicator 1{τ + delay ≤ k − 1} in front of φ and y."""
        d = self.dimension
        visits = [(played, i) for played in self.data for i in (range(self.horizon) if self.shared else [h])]
        phi: Floats = np.zeros((d, len(visits)))
        y: Floats = np.zeros(len(visits))
        for column, (played, i) in enumerate(visits):
            arrived = 1.0 if played.episode + played.delay <= episode - 1 else 0.0
            following = self.values[h + 1, played.states[i + 1]]
            phi[:, column] = arrived * self.features[played.states[i], played.actions[i]]
            y[column] = arrived * (played.rewards[i] + following)
        return phi, y

    def regression(self, episode: int, h: int) -> Regression:
        """Rebuild Ω and b of step `h`."""
        phi, y = self.arrived(episode, h)
        precision = phi @ phi.T / self.noise**2 + self.ridge * np.eye(self.dimension)
        return Regression(precision, phi @ y / self.noise**2)

    def action_values(self, episode: int, h: int, regression: Regression, rng: np.random.Generator) -> Floats:
        """Return Q_h(s, a) before the cap, shape (S, A)."""
        raise NotImplementedError

    def plan(self, episode: int, rng: np.random.Generator) -> Ints:
        """Return the policy of `episode` (counted from 0), shape (H, S)."""
        policy: Ints = np.zeros((self.horizon, self.states), dtype=np.int64)
        for h in range(self.horizon - 1, -1, -1):
            regression = self.regression(episode, h)
            self.precision[h] = regression.precision
            q = np.minimum(self.action_values(episode, h, regression, rng), self.horizon - h)
            for s in range(self.states):
                self.values[h, s] = best = q[s].max()
                ties = np.flatnonzero(q[s] >= best - TIE * max(1.0, abs(best)))
                policy[h, s] = ties[int(rng.random() * ties.size)] if ties.size > 1 else ties[0]
        return policy


class NaivePSVI(NaiveAgent):
    """Algorithm 1: exact draws from N(ŵ, ν²Ω⁻¹)."""

    def __init__(
        self, features: npt.ArrayLike, horizon: int, *, draws: int = 2, scale: float = 1.0, **common: Any
    ) -> None:
        super().__init__(features, horizon, **common)
        self.draws, self.scale = draws, scale
        self.weights: Floats = np.zeros((horizon, draws, self.dimension))

    def action_values(self, episode: int, h: int, regression: Regression, rng: np.random.Generator) -> Floats:
        """Lines 7-13: the largest of M action values, each linear in a draw w = ŵ + νL⁻ᵀz, where Ω = LLᵀ."""
        lower = np.linalg.cholesky(regression.precision)
        mean = regression.mean()
        for m in range(self.draws):
            z = rng.standard_normal(self.dimension)
            self.weights[h, m] = mean + self.scale * np.linalg.solve(lower.T, z)
        q: Floats = np.max([self.features @ w for w in self.weights[h]], axis=0)
        return q


class NaiveWeightedPSVI(NaivePSVI):
    """The same with Ω = Σ φφᵀ/(σ²v) + λI, where v is the variance of a target by two plain regressions."""

    def regression(self, episode: int, h: int) -> Regression:
        """Rebuild Ω and b of step `h`, visit by visit."""
        phi, y = self.arrived(episode, h)
        plain = np.linalg.inv(phi @ phi.T + self.ridge * np.eye(self.dimension))
        mean, square, most = plain @ phi @ y, plain @ phi @ y**2, (self.horizon - h) ** 2 / 4
        precision, moment = self.ridge * np.eye(self.dimension), np.zeros(self.dimension)
        for x, target in zip(phi.T, y, strict=True):
            leverage = x @ plain @ x
            variance = min(max(x @ square - (x @ mean) ** 2, 0.0), most)
            variance = (variance + leverage * most) / (1.0 + leverage)
            if x.any():
                precision += np.outer(x, x) / (self.noise**2 * variance)
                moment += x * target / (self.noise**2 * variance)
        return Regression(precision, moment)


class NaiveLPSVI(NaiveAgent):
    """Algorithms 2 and 3: exactly N noisy gradient steps on the regression loss, plain or preconditioned with Ω⁻¹."""

    def __init__(
        self,
        features: npt.ArrayLike,
        horizon: int,
        *,
        draws: int = 2,
        steps: int = 40,
        temperature: float = 1.0,
        step_ratio: float = 0.5,
        step_size: float | None = None,
        sampler: str = "plain",
        warm_start: str = "episode",
        **common: Any,
    ) -> None:
        super().__init__(features, horizon, **common)
        self.draws, self.steps, self.temperature = draws, steps, temperature
        self.step_ratio, self.step_size = step_ratio, step_size
        self.sampler, self.warm_start = sampler, warm_start
        self.weights: Floats = np.zeros((horizon, draws, self.dimension))

    def first_weights(self, h: int, m: int) -> Floats:
        """Return w₀ of the m-th chain of step `h`."""
        first: Floats = np.zeros(self.dimension)
        if self.warm_start == "episode":
            first[:] = self.weights[h, m]
        elif self.warm_start == "step" and h < self.horizon - 1:
            first[:] = self.weights[h + 1, m]
        return first

    def langevin(self, regression: Regression, weights: Floats, rng: np.random.Generator) -> Floats:
        """Return w_N of w ← w − ηP∇L(w) + √(2ηγ)P^½ε, where P is the identity or Ω⁻¹."""
        d, precision = self.dimension, regression.precision
        root, largest = np.eye(d), float(np.linalg.eigvalsh(precision)[-1])
        if self.sampler == "preconditioned":
            root, largest = np.linalg.inv(np.linalg.cholesky(precision)).T, 1.0  # P = Ω⁻¹ = L⁻ᵀL⁻¹, PΩ = I
        preconditioner = root @ root.T
        eta = self.step_ratio / largest if self.step_size is None else self.step_size
        for _ in range(self.steps):
            gradient = 2.0 * (precision @ weights - regression.moment)
            noise = root @ rng.standard_normal(d)
            weights = weights - eta * preconditioner @ gradient + np.sqrt(2 * eta * self.temperature) * noise
        return weights

    def action_values(self, episode: int, h: int, regression: Regression, rng: np.random.Generator) -> Floats:
        """Lines 5-8: the largest of M action values, each linear in the end of a chain."""
        for m in range(self.draws):
            self.weights[h, m] = self.langevin(regression, self.first_weights(h, m), rng)
        q: Floats = np.max([self.features @ w for w in self.weights[h]], axis=0)
        return q


class NaiveUCBVI(NaiveAgent):
    """Delayed-UCBVI: the least-squares estimate plus β√(φᵀΩ⁻¹φ)."""

    def __init__(
        self,
        features: npt.ArrayLike,
        horizon: int,
        *,
        bonus: float | None = None,
        bonus_ratio: float = 0.1,
        bonus_form: str = "constant",
        **common: Any,
    ) -> None:
        super().__init__(features, horizon, **common)
        self.bonus, self.bonus_ratio, self.bonus_form = bonus, bonus_ratio, bonus_form

    def beta(self, episode: int, h: int) -> float:
        """Return β of step `h`; the published k and h count from 1."""
        d, horizon, half = self.dimension, self.horizon, self.bonus_ratio / 2
        if self.bonus is not None:
            return self.bonus
        if self.bonus_form == "growing":
            k, step = episode + 1, h + 1
            return float(half * d * np.sqrt(k) * (horizon - step))
        return float(half * d * horizon * np.sqrt(np.log(d * horizon)))

    def action_values(self, episode: int, h: int, regression: Regression, rng: np.random.Generator) -> Floats:
        """Return φᵀŵ + β√(φᵀΩ⁻¹φ)."""
        inverse = np.linalg.inv(regression.precision)
        widths = np.einsum("sai,ij,saj->sa", self.features, inverse, self.features)
        q: Floats = self.features @ regression.mean() + self.beta(episode, h) * np.sqrt(widths)
        return q
