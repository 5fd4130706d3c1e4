"""Learning by age with a prior that was fitted beforehand to other arms: an exact Gaussian filter for each arm.

What comes of a play at B ages is N(μ_a, Σ), and the means of an arm are N(m, C): m, C and Σ are those of other arms.
With T unit lower triangular and TΣTᵀ = D diagonal, (Ty)_b is what is left of y_b when all that came before is known. It
is known of all plays older than e_b, with the noise D_b, independently of all others. So a play that reaches an age
changes what is believed of α_a = Tμ_a by one step of a Kalman filter, and R_a = gᵀα_a with g = T⁻ᵀ1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated._kernels.jit import kernel
from belated._kernels.normals import standard_normal
from belated.agents._base import Arrival
from belated.agents._regression import Table, Work, context_of, make_table, make_work
from belated.agents._silent import SilentSettings, play_largest
from belated.types import Floats, Ints, TableProblem


class Prior(NamedTuple):
    """What is known of other arms, day by day."""

    mean: Floats
    """m, shape (days,)."""
    between: Floats
    """C, the covariance of the means of arms."""
    within: Floats
    """Σ, that of plays of one arm."""

    def at(self, ends: Ints) -> Prior:
        """Return the same of sums over the days up to each of `ends`."""
        groups = np.zeros((ends.size, self.mean.size))
        for b, end in enumerate(ends):
            groups[b, (ends[b - 1] if b else 0) : end] = 1.0
        return Prior(groups @ self.mean, groups @ self.between @ groups.T, groups @ self.within @ groups.T)


@dataclass(frozen=True, kw_only=True)
class FittedByAge(SilentSettings):
    """Posterior sampling with the prior of the shows of `belated_studies.trials.shows`; arms without contexts."""

    kind: ClassVar[str] = "belated_studies.trials.fitted:FittedByAge"

    per_day: int
    """Rounds in a day."""
    ages: int = 24
    """As of `LearnByAge`, in whole days."""
    scale: float = 0.5
    """ν, the width of the draws in posterior standard deviations: 180 days are too few to try 50 shows. Chosen among 1,
    0.7, 0.5, 0.35 and 0.2 on 50 of the 200 other shows, with the prior of the rest and seeds from 5000 on."""

    def ends(self, days: int) -> Ints:
        """Return the days at which ages end."""
        share = np.arange(1, self.ages + 1) / self.ages
        return np.unique(np.maximum(np.rint(days * share**2), 1).astype(np.int64))

    def record(self, problem: TableProblem) -> FittedRecord:
        from belated_studies.trials.shows import fitted_prior  # here, since that module imports this one

        whole, arms = fitted_prior(), problem.actions
        ends = self.ends(whole.mean.size)
        prior = whole.at(ends)
        lower = np.linalg.cholesky(prior.within)
        noises = np.diagonal(lower) ** 2
        turn = np.asarray(np.linalg.inv(lower / np.diagonal(lower)), np.float64)
        window, start = int(ends[-1]) * self.per_day, turn @ prior.between @ turn.T
        learned = FittedLearned(
            mean=np.tile(turn @ prior.mean, (arms, 1)),
            covariance=np.tile(start, (arms, 1, 1)),
            pairs=np.zeros(window + 1, np.int64),
            reported=np.zeros((window + 1, ends.size)),
            planned=np.zeros(1, np.int64),
        )
        gains = np.asarray(np.linalg.solve(turn.T, np.ones(ends.size)), np.float64)
        spread = np.full(arms, float(np.sqrt(gains @ start @ gains)))
        return FittedRecord(
            make_table(problem), learned, make_work(problem), turn, noises, gains, spread, ends * self.per_day,
            float(self.scale),
        )  # fmt: skip


class FittedLearned(NamedTuple):
    """What plays and reports change."""

    mean: Floats
    """That of α, shape (arms, B)."""
    covariance: Floats
    """That of α, shape (arms, B, B)."""
    pairs: Ints
    reported: Floats
    planned: Ints


class FittedRecord(NamedTuple):
    """Arrays of one agent."""

    table: Table
    learned: FittedLearned
    work: Work
    turn: Floats
    """T."""
    noises: Floats
    """D."""
    gains: Floats
    """g."""
    spread: Floats
    """The standard deviation of gᵀα of each arm."""
    cuts: Ints
    scale: float

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        learned = self.learned
        state = context_of(self.table, start)
        for b in range(self.cuts.size):
            play = learned.planned[0] - self.cuts[b]  # a day that is over is known when the next begins
            if play < 0:
                break
            place = play % learned.pairs.size
            left = 0.0
            for c in range(b + 1):
                left += self.turn[b, c] * learned.reported[place, c]
            step(self, learned.pairs[place], b, left)
        for a in range(self.table.actions):
            believed = 0.0
            for b in range(self.cuts.size):
                believed += self.gains[b] * learned.mean[a, b]
            self.work.q[a] = believed + self.scale * self.spread[a] * standard_normal(rng)
        place = learned.planned[0] % learned.pairs.size
        learned.pairs[place] = play_largest(self.table, self.work, state, rng, policy)
        learned.reported[place] = 0.0
        learned.planned[0] += 1

    def learn(self, arrival: Arrival) -> None:
        learned = self.learned
        delay = learned.planned[0] - arrival.episode
        if 0 <= delay <= self.cuts[-1]:
            b = 0
            while self.cuts[b] < delay:
                b += 1
            learned.reported[arrival.episode % learned.pairs.size, b] += arrival.rewards[0]

    def settle(self) -> None:
        """Do nothing: `learn` defers no work."""


@kernel
def step(agent: FittedRecord, arm: int, b: int, left: float) -> None:
    """Learn that α_b of an arm was `left` with the noise D_b: P ← P − P_bP_bᵀ/(P_bb + D_b), and the mean with it."""
    mean, covariance, size = agent.learned.mean[arm], agent.learned.covariance[arm], agent.cuts.size
    whole = covariance[b, b] + agent.noises[b]
    wrong = (left - mean[b]) / whole
    total = 0.0  # gᵀP_b
    for i in range(size):
        mean[i] += covariance[i, b] * wrong
        total += agent.gains[i] * covariance[i, b]
    agent.spread[arm] = np.sqrt(max(agent.spread[arm] ** 2 - total * total / whole, 0.0))
    column = covariance[:, b].copy()
    for i in range(size):
        share = column[i] / whole
        for j in range(size):
            covariance[i, j] -= share * column[j]
