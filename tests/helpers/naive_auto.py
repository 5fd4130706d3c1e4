"""The rule of AutoPSVI written down line by line, in plain NumPy, as slowly as it reads.

Every trajectory is kept, and Φ, y, Ω, the residuals and the leverages are rebuilt from scratch for each step of each
plan. Nothing is shared with the library but the order in which random numbers are drawn.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Squared residuals that sum to less than this part of the squared targets count as none.
ROUNDING = 1e-10


class Step(NamedTuple):
    """One step that has arrived; `after` is None where it ended the episode."""

    state: int
    action: int
    reward: float
    after: int | None


class Fit(NamedTuple):
    """The regression of a step, rebuilt from all the data."""

    precision: Floats
    mean: Floats
    errors: float
    """The sum of the squared residuals."""
    leverages: Floats
    """h of each visit."""


def centred(seen: Floats) -> Floats:
    """Return steps and rewards less their means."""
    return np.asarray(seen - seen.mean(axis=1, keepdims=True))


def evident_slope(about_means: Floats) -> float:
    """Return the slope of least squares through steps and rewards about their means, 0 unless it is evident."""
    when, rewards = about_means
    if not len(when):
        return 0.0
    slope = float(np.linalg.lstsq(when[:, np.newaxis], rewards, rcond=None)[0][0])
    whole, left = float(np.sum(rewards**2)), float(np.sum((rewards - slope * when) ** 2))
    return slope if len(when) / 2 * math.log(whole / max(left, whole / 4)) > 22 else 0.0


class NaiveAuto:
    """What does not depend on how the weights are drawn; `features` has shape (S, A, d)."""

    def __init__(
        self,
        features: npt.ArrayLike,
        horizon: int,
        *,
        shared: bool,
        reward_range: tuple[float, float] = (0.0, 1.0),
        optimistic: bool = True,
        ridge: float | None = None,
        residual: float = 0.3,
        hidden: float = 0.3,
        slab: float = 1.0,
        rarity: float = 1.0,
        capped: bool = True,
        hurried: bool = True,
        weighted: bool = True,
        prior: float = 0.1,
        forgetting: bool = True,
        timed: bool = True,
    ) -> None:
        self.features: Floats = np.asarray(features, np.float64)
        self.S, self.A, self.d = self.features.shape
        self.H, self.shared = horizon, shared
        self.low, self.high = min(reward_range[0], 0.0), max(reward_range[1], 0.0)
        self.slope = self.high if optimistic else 0.0
        self.R = float(np.linalg.norm(self.features, axis=-1).max())
        self.ridge = (horizon**-3 if ridge is None else ridge) * self.R**2
        r = reward_range[1] - reward_range[0]
        self.residual, self.hidden, self.tau = residual, hidden * r, prior * horizon * r
        self.slab, self.rarity, self.capped = slab * r, rarity, capped
        self.gamma = 1 - 1 / horizon**2 if hurried and horizon > 1 else 1.0
        self.weighted, self.forgetting, self.timed, self.r = weighted, forgetting, timed, r
        self.episodes: list[list[Step]] = []
        self.values: Floats = np.zeros((horizon + 1, self.S))

    def observe(self, steps: list[Step]) -> None:
        """Take in an episode that has arrived."""
        self.episodes.append(steps)

    def data(self, h: int) -> list[Step]:
        """Return the steps that the regression of step `h` knows."""
        if self.shared:
            return [step for episode in self.episodes for step in episode]
        return [episode[h] for episode in self.episodes if h < len(episode)]

    def steps_to_go(self, h: int) -> float:
        """Return Σγⁱ over the steps from `h` on."""
        return sum(self.gamma**i for i in range(self.H - h))

    def share(self) -> float:
        """Return p̂."""
        if not self.weighted:
            return 1.0
        repeated = random = 0
        for h in range(1 if self.shared else self.H):
            outcomes: dict[tuple[int, int], list[Any]] = {}
            for step in self.data(h):
                outcomes.setdefault((step.state, step.action), []).append((step.reward, step.after))
            repeated += sum(len(seen) >= 2 for seen in outcomes.values())
            random += sum(len(set(seen)) >= 2 for seen in outcomes.values()) - len(self.sure(h))
        return (0.5 + random) / (1 + repeated)

    def sure(self, h: int) -> set[tuple[int, int]]:
        """Return the pairs whose outcomes have differed by the step alone; on regressions nobody looks for them."""
        return set()

    def sigma(self, fit: Fit, leverage: float, visits: int) -> float:
        """Return σ₀ of a regression of so many visits, with Σℓ over them."""
        most = math.sqrt((fit.errors + 2 * self.r**2) / (visits - leverage + 2)) / self.r if self.capped else math.inf
        return self.hidden * min(math.sqrt(self.share()), most)

    def width(self, fit: Fit, visits: float) -> float:
        """Return s."""
        return self.residual * math.sqrt(fit.errors / visits) if visits else 0.0

    def fit(self, h: int) -> Fit:
        """Regress r + γV(s') − v₀ on the features."""
        return self.regress(h, self.data(h))

    def regress(self, h: int, steps: list[Step], more: float = 0.0) -> Fit:
        """Regress the targets of these steps; `more` squared errors do not show in them."""
        phi = np.array([self.features[step.state, step.action] for step in steps]).reshape(-1, self.d)
        following = [0.0 if step.after is None else self.values[h + 1, step.after] for step in steps]
        y = np.array([step.reward for step in steps]) + self.gamma * np.array(following)
        y = y - self.slope * self.steps_to_go(h)
        precision = phi.T @ phi + self.ridge * np.eye(self.d)
        mean = np.linalg.solve(precision, phi.T @ y)
        errors = np.sum((y - phi @ mean) ** 2) + more
        if errors <= ROUNDING * (np.sum(y**2) + more):
            errors = 0.0
        leverages = np.einsum("ni,ij,nj->n", phi, np.linalg.inv(precision), phi)
        return Fit(precision, mean, float(errors), leverages)

    def set_values(self, h: int, gains: Floats, choice: Floats | float = 0.0) -> Ints:
        """Set V of step `h` from φᵀw (S, A), and return the greedy actions, with noise of the `choice` alone."""
        left = self.steps_to_go(h)
        self.values[h] = np.clip(self.slope * left + gains.max(axis=1), self.low * left, self.high * left)
        return np.asarray((gains + choice).argmax(axis=1), np.int64)


class NaiveTable(NaiveAuto):
    """One-hot features: one normal number for each action of each state that has been seen; and rewards may change."""

    def differ(self, rewards: list[float]) -> bool:
        """Tell whether the last of these rewards makes it evident that they have changed."""
        early = 1
        while 2 * early < len(rewards):
            early *= 2
        late = len(rewards) - early
        if not self.forgetting or late not in [2**i for i in range(30)]:
            return False
        gap = abs(float(np.mean(rewards[early:])) - float(np.mean(rewards[:early])))
        return gap > self.r * math.sqrt(22 / 2 * (1 / early + 1 / late))

    def lasting(self, h: int) -> dict[tuple[int, int], Floats] | None:
        """Return how many rewards of each pair count, their sum and that of their squares, if they have changed."""
        changed, heard = False, dict[tuple[int, int], list[float]]()
        kept: dict[tuple[int, int], Floats] = {}
        for episode in self.episodes:
            steps = episode if self.shared else episode[h : h + 1]
            if changed and steps:
                kept = {pair: known * max(0.99, 1 / max(known[0], 1)) for pair, known in kept.items()}
            for step in steps:
                pair, r = (step.state, step.action), step.reward
                kept[pair] = kept.get(pair, np.zeros(3)) + np.array([1.0, r, r * r])
                heard.setdefault(pair, []).append(r)
                changed = changed or self.differ(heard[pair])
        return kept if changed else None

    def lines(self, h: int) -> dict[tuple[int, int], tuple[Floats, float]]:
        """Return the steps and rewards of each pair whose rewards depend on the step, and the slope."""
        paid: dict[tuple[int, int], list[tuple[int, float]]] = {}
        for episode in self.episodes:
            for i, step in enumerate(episode):
                if self.timed and (self.shared or i == h):
                    paid.setdefault((step.state, step.action), []).append((i, step.reward))
        differ = {pair: np.array(seen).T for pair, seen in paid.items() if np.ptp(np.array(seen), axis=0).min() > 1e-5}
        common = evident_slope(np.concatenate([np.zeros((2, 0)), *map(centred, differ.values())], axis=1))
        slopes = {pair: evident_slope(centred(seen)) or common for pair, seen in differ.items()}
        return {pair: (differ[pair], slope) for pair, slope in slopes.items() if slope}

    def sure(self, h: int) -> set[tuple[int, int]]:
        """Return the pairs whose outcomes have differed by the step alone: one state after, and rewards on a line."""
        found = set()
        for pair, (seen, slope) in self.lines(h).items() if self.lasting(h) is None else ():
            when, rewards = centred(seen)
            after = {step.after for step in self.data(h) if (step.state, step.action) == pair}
            if len(after) == 1 and np.sum((rewards - slope * when) ** 2) <= 1e-6 * np.sum(rewards**2):
                found.add(pair)
        return found

    def moved(self, h: int) -> tuple[list[Step], float]:
        """Return the steps, with rewards that lie on a line moved to step `h`, and what the lines explain."""
        shifts, total = dict[tuple[int, int], float](), 0.0
        for pair, (seen, slope) in self.lines(h).items():
            (middle, mean), (when, rewards) = seen.mean(axis=1), centred(seen)
            shifts[pair] = float(np.clip(mean + slope * (h - middle), self.low, self.high) - mean)
            total += float(np.sum(rewards**2) - np.sum((rewards - slope * when) ** 2))
        return [s._replace(reward=s.reward + shifts.get((s.state, s.action), 0.0)) for s in self.data(h)], total

    def fit(self, h: int) -> Fit:
        """Regress; if rewards have changed, each visit of a pair pays the mean of what has not been forgotten."""
        kept = self.lasting(h)
        if kept is None:
            steps, explained = self.moved(h)
            return self.regress(h, steps, more=-explained)
        means = {pair: known / known[0] for pair, known in kept.items()}
        steps = [step._replace(reward=float(means[step.state, step.action][1])) for step in self.data(h)]
        hidden = [means[step.state, step.action] for step in steps]
        return self.regress(h, steps, more=sum(float(mean[2] - mean[1] ** 2) for mean in hidden))

    def known(self, h: int) -> Floats:
        """Return how many rewards of each feature count."""
        kept = self.lasting(h)
        if kept is None:
            return sum((self.features[step.state, step.action] for step in self.data(h)), np.zeros(self.d))
        return sum((known[0] * self.features[pair] for pair, known in kept.items()), np.zeros(self.d))

    def random(self, h: int) -> npt.NDArray[np.bool_]:
        """Tell of which pairs the outcomes have differed, (S, A): of all once rewards have changed."""
        if self.lasting(h) is not None:
            return np.ones((self.S, self.A), np.bool_)
        outcomes = {(step.state, step.action, step.reward, step.after) for step in self.data(h)}
        sure = self.sure(h)
        pairs = [each[:2] for each in outcomes if each[:2] not in sure]
        return np.array([[pairs.count((s, a)) > 1 for a in range(self.A)] for s in range(self.S)])

    def hidden_widths(self, h: int, counts: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return σ₀ of every pair, and the one that is noise of the choice alone, both (S, A)."""
        share, random = self.share(), self.random(h)
        sigma, local = np.where(random, self.hidden, 0.0), np.zeros((self.S, self.A))
        for s in range(self.S):
            for a in range(self.A):
                n = counts[s, a]
                if n and not random[s, a]:
                    chance = share * 2 / (n + 1) / (share * 2 / (n + 1) + 1 - share)
                    if rng.random() < chance:
                        if rng.random() < math.sqrt(share):
                            sigma[s, a] = self.hidden
                        else:
                            local[s, a] = self.slab
        return sigma, local

    def plan(self, rng: np.random.Generator) -> Ints:
        """Return the policy, shape (H, S)."""
        seen = {s for episode in self.episodes for step in episode for s in (step.state, step.after) if s is not None}
        policy = np.zeros((self.H, self.S), np.int64)
        for h in reversed(range(self.H)):
            fit, known, lam = self.fit(h), self.known(h), self.ridge
            counts = self.features @ known
            if not self.shared or h == self.H - 1:
                sigma, local = self.hidden_widths(h, counts, rng)
            random = self.random(h)
            s2 = self.width(fit, sum(bool(random[step.state, step.action]) for step in self.data(h))) ** 2
            gains, choice = np.zeros((self.S, self.A)), np.zeros((self.S, self.A))
            for s in range(self.S):
                for a in range(self.A if s in seen else 0):
                    n, normal = counts[s, a], rng.standard_normal()
                    kappa2 = 1 + self.rarity * max(math.log(counts[s].mean() / n), 0) if n else 1.0
                    shown = s2 * n**2 / (n + lam) ** 3 if random[s, a] else 0.0
                    variance = kappa2 * (shown + sigma[s, a] ** 2 * n / (n + lam) ** 3)
                    variance += (self.tau * lam / (n + lam)) ** 2
                    gains[s, a] = self.features[s, a] @ fit.mean + math.sqrt(variance) * normal
                    if local[s, a] > 0:
                        deviation = local[s, a] * math.sqrt(kappa2 * n / (n + lam) ** 3)
                        choice[s, a] = deviation * rng.standard_normal()
            policy[h] = self.set_values(h, gains, choice)
        for h in range(self.H):
            for s in range(self.S):
                if s not in seen:
                    policy[h, s] = int(rng.random() * self.A)
        return policy


class NaiveLinear(NaiveAuto):
    """Any features: three normal vectors for each step. The weights n·h of D are renewed when episodes have doubled."""

    weighed_at = 0
    weights: dict[tuple[int, int, int], float] = {}  # noqa: RUF012

    def renew(self) -> None:
        """Compute n·h of every pair again if it is time to; a pair that is new since then has weight 1."""
        slots = range(1 if self.shared else self.H)
        due = len(self.episodes) > self.weighed_at and len(self.episodes) >= 2 * self.weighed_at
        if due:
            self.weights, self.weighed_at = {}, len(self.episodes)
        for g in slots:
            steps = self.data(g)
            leverages = self.fit(g).leverages
            for step, leverage in zip(steps, leverages, strict=True):
                key = (g, step.state, step.action)
                if due:
                    self.weights[key] = self.weights.get(key, 0.0) + float(leverage)
                else:
                    self.weights.setdefault(key, 1.0)

    def root(self, g: int) -> Floats:
        """Return the triangular B with BᵀB = D, by a QR decomposition that does not square anything."""
        rows = [np.sqrt(w) * self.features[s, a] for (slot, s, a), w in self.weights.items() if slot == g]
        upper = np.linalg.qr(np.array([*rows, *(1e-9 * self.R * np.eye(self.d))]), mode="r")
        return np.asarray(upper * np.sign(np.diag(upper))[:, np.newaxis], np.float64)

    def plan(self, rng: np.random.Generator) -> Ints:
        """Return the policy, shape (H, S)."""
        self.renew()
        policy = np.zeros((self.H, self.S), np.int64)
        for h in reversed(range(self.H)):
            fit, g, visits = self.fit(h), 0 if self.shared else h, len(self.data(h))
            sigma = self.sigma(fit, sum(w for (slot, _, _), w in self.weights.items() if slot == g), visits)
            inverse = np.linalg.inv(fit.precision)
            z = [rng.standard_normal(self.d) for _ in range(3)]
            noise = np.linalg.solve(np.linalg.cholesky(fit.precision).T, z[0])
            w = fit.mean + self.width(fit, visits) * (noise - self.ridge * inverse @ noise)
            w = w + inverse @ (sigma * self.root(g).T @ z[1] + self.tau / self.R * self.ridge * z[2])
            policy[h] = self.set_values(h, self.features @ w)
        return policy
