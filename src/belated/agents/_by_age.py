"""Learning by age: what a play has brought so far teaches at once, and silence with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated._kernels.gaussian import draw, rank_one_update, solve_transposed
from belated._kernels.jit import copy, kernel
from belated._kernels.planning import greedy, linear_values
from belated._util.validate import check_room, integer, real
from belated.agents import _invariants as invariants
from belated.agents._base import Arrival, CompiledSettings
from belated.agents._regression import Table, Work, context_of, make_table, make_work
from belated.types import Feedback, Floats, Ints, Problem, TableProblem

#: A variance that is smaller than so much of the mean square is rounding.
NEGLIGIBLE = 1e-12


@dataclass(frozen=True, kw_only=True)
class LearnByAge(CompiledSettings):
    """Posterior sampling for linear bandits whose reward comes bit by bit, or whose lack is never reported.

    The window of W rounds is cut at the ages e₁ < … < e_B = W. The reward of a play is the sum of what came at each
    age, R = ΣR_b, so E[R | x] = ΣE[R_b | x], and each term is a linear regression of its own on **all** plays older
    than e_b, whatever came of them before. A play that has been silent for half of the window thus teaches half of what
    it will teach. What came of a play before, Z_b = R₁ + … + R_{b−1}, tells something of R_b, and the same for all
    actions: with averages over the n plays older than e_b,

        β_b = n/(n + λ) · cov(Z_b, R_b)/var(Z_b),   ε_b = R_b − mean R_b − β_b(Z_b − mean Z_b).

    What is left, ε_b, is regressed on x: V_b = λI + Σxxᵀ and θ̂_b = V_b⁻¹Σxε_b. It draws θ̃_b from
    N(θ̂_b, ν²var(ε_b)V_b⁻¹) for every age and plays the largest xᵀΣw_bθ̃_b, where w_b = (1 + β_{b+1})…(1 + β_B) is what
    a unit at age b is worth in the end: less if an event excludes another, more if one leads to the next. An age of
    which little is known is thus taken to bring what it brings on average to plays that began alike, a guess that is
    worth λ plays; one that nothing has reached counts for nothing. The cuts are e_b = W(b/B)², rounded.

    Nothing is assumed of the delays: rewards may be of any size, come in several reports and be taken back, and actions
    may be fast or slow. Only what comes later than the window is missed. With one age it learns a play when its window
    is over, which is posterior sampling with a constant delay of W. The derivation is in docs/math/by-age.md.

    The agent has to know what it plays, so it plans from a context: with one context `plan(rng)` does, with several
    only `plan_from(rng, state)`. Feedback of rounds that it did not plan is not learned.

    Examples
    --------
    >>> from belated import Constant, DelayByReward, Geometric, LinearBandit, Lossy, simulate
    >>> shop = LinearBandit(actions=10, dimension=3, reward="conversion")
    >>> silence = DelayByReward(zero=Lossy(Constant(0), missing=1.0), positive=Geometric(20))
    >>> rows = simulate(shop, LearnByAge(window=100), silence, episodes=200, seed=0)
    >>> LearnByAge(window=100).cuts().tolist()
    [2, 6, 14, 25, 39, 56, 77, 100]
    """

    kind: ClassVar[str] = "by-age"
    learns_from_plans: ClassVar[bool] = True
    adds_reports: ClassVar[bool] = True

    window: int = 100
    """W: what comes with a delay of more than W rounds is not learned."""
    ages: int = 8
    """B, the number of ages that the window is cut into; fewer if it has not as many rounds."""
    scale: float = 1.0
    """ν, the width of the draws in posterior standard deviations; 0 draws the mean."""
    ridge: float = 1.0
    """λ, how many plays the guess is worth that an action is like all others."""

    def __post_init__(self) -> None:
        integer("window", self.window, at_least=0)
        integer("ages", self.ages, at_least=1, at_most=1000)
        real("scale", self.scale, at_least=0)
        real("ridge", self.ridge, above=0)

    @property
    def one_step(self) -> bool:
        return True

    def cuts(self) -> Ints:
        """Return e₁ < … < e_B, the ages at which the window is cut."""
        share = np.arange(1, self.ages + 1) / self.ages
        return np.unique(np.rint(self.window * share**2).astype(np.int64))

    def check_feedback(self, batch: Sequence[Feedback], problem: Problem) -> list[Feedback]:
        return self.check_reports(batch, problem)

    def record(self, problem: TableProblem) -> ByAgeRecord:
        d, cuts, plays = problem.dimension, self.cuts(), int(self.window) + 1
        check_room("the factors of ages × d × d", cuts.size, d, d)
        check_room("the window × ages", plays, cuts.size)
        learned = ByAgeLearned(
            factor=np.tile(math.sqrt(self.ridge) * np.eye(d), (cuts.size, 1, 1)),
            moment=np.zeros((cuts.size, d)),
            features=np.zeros((cuts.size, d)),
            plays=np.zeros(cuts.size, np.int64),
            before=np.zeros((cuts.size, d)),
            sums=np.zeros((cuts.size, 5)),
            pairs=np.zeros(plays, np.int64),
            reported=np.zeros((plays, cuts.size)),
            planned=np.zeros(1, np.int64),
        )
        return ByAgeRecord(
            table=make_table(problem),
            learned=learned,
            work=make_work(problem),
            total=np.zeros(d),
            cuts=cuts,
            scale=float(self.scale),
            ridge=float(self.ridge),
        )

    def check_learned(self, learned: ByAgeLearned, problem: TableProblem) -> None:
        invariants.factor("factor", learned.factor)
        invariants.counts("planned", learned.planned)
        invariants.counts("plays", learned.plays)
        invariants.within("pairs", learned.pairs, problem.states * problem.actions)
        invariants.require(learned.sums[:, [1, 3]] >= 0, "sums", "have sums of squares that are not negative")
        reached = np.maximum(learned.planned[0] - 1 - self.cuts(), 0)  # the last one comes in when the next is planned
        invariants.require(learned.plays == reached, "plays", "count those older than each age")


class ByAgeLearned(NamedTuple):
    """What plays and reports change; a row for each age, but for those of the plays in the window."""

    factor: Floats
    """U_b with V_b = U_bᵀU_b, shape (B, d, d)."""
    moment: Floats
    """ΣxR_b, shape (B, d)."""
    features: Floats
    """Σx, shape (B, d)."""
    plays: Ints
    """n_b, the plays older than e_b, shape (B,)."""
    before: Floats
    """ΣxZ_b, shape (B, d)."""
    sums: Floats
    """ΣR_b, ΣR_b², ΣZ_b, ΣZ_b² and ΣZ_bR_b, shape (B, 5)."""
    pairs: Ints
    """What was played in the last W + 1 rounds, the pair of round k in place k mod (W + 1)."""
    reported: Floats
    """R_b of these plays so far, shape (W + 1, B)."""
    planned: Ints
    """How many rounds have been planned, shape (1,)."""


class ByAgeRecord(NamedTuple):
    """Arrays of one agent."""

    table: Table
    learned: ByAgeLearned
    work: Work
    total: Floats
    """Work space for Σw_bθ̃_b, shape (d,)."""
    cuts: Ints
    scale: float
    ridge: float

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Learn from the plays that reach an age now, choose in the context `start` or in the only one, and note it."""
        learned, work, actions = self.learned, self.work, self.table.actions
        state = context_of(self.table, start)
        first = state * actions
        come_of_age(self)
        self.total[:] = 0.0
        worth = 1.0  # w_b
        for b in range(self.cuts.size - 1, -1, -1):
            left = remainder(learned, b, self.ridge)
            if left.variance > 0.0:  # else all plays brought the same
                for i in range(work.moment.size):  # Σxε_b
                    work.moment[i] = learned.moment[b, i] - left.mean * learned.features[b, i]
                    work.moment[i] -= left.slope * (learned.before[b, i] - left.mean_before * learned.features[b, i])
                solve_transposed(learned.factor[b], work.moment)
                deviation = self.scale * np.sqrt(left.variance)
                draw(learned.factor[b], work.moment, deviation, rng, work.weights)  # θ̃_b ~ N(θ̂_b, ν²var(ε_b)V_b⁻¹)
                for i in range(work.weights.size):
                    self.total[i] += worth * work.weights[i]
            worth *= 1.0 + left.slope
        q = work.q[:actions]
        linear_values(self.table.columns, self.total, first, q)  # xᵀΣw_bθ̃_b
        greedy(q, np.inf, False, rng, work.values[0, state : state + 1], policy[0, state : state + 1])
        place = learned.planned[0] % learned.pairs.size
        learned.pairs[place] = first + policy[0, state]
        learned.reported[place] = 0.0
        learned.planned[0] += 1

    def learn(self, arrival: Arrival) -> None:
        """Note what was reported of a play at its age; it counts when the play is older than that age."""
        learned = self.learned
        delay = learned.planned[0] - 1 - arrival.episode
        if delay < 0 or delay > self.cuts[-1]:  # a round that this agent did not plan, or too late
            return
        b = 0
        while self.cuts[b] < delay:
            b += 1
        learned.reported[arrival.episode % learned.pairs.size, b] += arrival.rewards[0]

    def settle(self) -> None:
        """Nothing is put off: `plan` does it, since plays grow older by planning."""


class Remainder(NamedTuple):
    """What of R_b does not follow from what came before, ε_b, over the plays older than e_b."""

    mean: float
    """That of R_b."""
    mean_before: float
    """That of Z_b."""
    slope: float
    """β_b."""
    variance: float
    """That of ε_b; 0 if no play is old enough."""


@kernel
def remainder(learned: ByAgeLearned, b: int, ridge: float) -> Remainder:
    n, sums = learned.plays[b], learned.sums[b]
    if n == 0:
        return Remainder(0.0, 0.0, 0.0, 0.0)
    mean, mean_before = sums[0] / n, sums[2] / n
    variance, variance_before = sums[1] / n - mean * mean, sums[3] / n - mean_before * mean_before
    shared = sums[4] / n - mean * mean_before  # cov(Z_b, R_b)
    slope = 0.0
    if variance_before > NEGLIGIBLE * sums[3] / n:  # else Z_b is the same of all plays but for rounding
        slope = n / (n + ridge) * shared / variance_before
    left = variance - 2.0 * slope * shared + slope * slope * variance_before
    return Remainder(mean, mean_before, slope, left if left > NEGLIGIBLE * sums[1] / n else 0.0)


@kernel
def come_of_age(agent: ByAgeRecord) -> None:
    """Add the play that reaches age e_b with this round to the sums of age b, for every b."""
    learned, work = agent.learned, agent.work
    for b in range(agent.cuts.size):
        play = learned.planned[0] - 1 - agent.cuts[b]
        if play < 0:
            break
        place = play % learned.pairs.size
        x, reward, before = agent.table.rows[learned.pairs[place]], learned.reported[place, b], 0.0  # R_b, Z_b
        for c in range(b):
            before += learned.reported[place, c]
        for i in range(x.size):
            learned.moment[b, i] += reward * x[i]
            learned.before[b, i] += before * x[i]
            learned.features[b, i] += x[i]
        learned.plays[b] += 1
        learned.sums[b, 0] += reward
        learned.sums[b, 1] += reward * reward
        learned.sums[b, 2] += before
        learned.sums[b, 3] += before * before
        learned.sums[b, 4] += before * reward
        copy(x, work.vector)
        rank_one_update(learned.factor[b], work.vector)  # V_b ← V_b + xxᵀ
