"""Learning by age: from the reward that a play has received so far, and from silence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated._kernels.by_age import NEGLIGIBLE, Chain, link, new_chain, noise
from belated._kernels.gaussian import add_to_diagonal, dot, draw, rank_one_update, solve, solve_transposed
from belated._kernels.jit import copy, kernel
from belated._kernels.planning import linear_values
from belated._util.validate import check_room, flag, integer, real
from belated.agents import _invariants as invariants
from belated.agents._base import SIGNAL, Arrival
from belated.agents._regression import Table, Work, context_of, make_table, make_work
from belated.agents._silent import SilentSettings, play_largest
from belated.types import Floats, Ints, TableProblem


@dataclass(frozen=True, kw_only=True)
class LearnByAge(SilentSettings):
    """Posterior sampling for linear bandits whose rewards arrive in increments, or whose zeros are never reported.

    The window of W rounds is divided at the ages e₁ < … < e_B = W. The reward of a play is the sum of its increments
    over the ages, so its mean is the sum of their means, and each is estimated by a separate linear regression on
    **all** plays older than e_b, whatever happened before. A play that has been silent for half of the window has thus
    already contributed half of its information. What was observed of a play before, s_{b−1} (its reward so far and,
    with `signals`, its signal), predicts the increment c_b = s_b − s_{b−1} of age b, in about the same way for all
    actions: with covariances over the n plays older than e_b,

        Δ_b = (C_ss + λ/n diag C_ss)⁻¹ C_sc,   ε_b = c_b − mean c_b − Δ_bᵀ(s_{b−1} − mean s_{b−1}).

    A unit of s_b adds g_b to the final reward: g_B = (1, 0) and g_{b−1} = g_b + Δ_b g_b, less than 1 if one event
    excludes another, more if one leads to the next. The remainder, g_bᵀε_b, is regressed on x: V_b = λ_bI + Σxxᵀ and
    θ̂_b = V_b⁻¹Σx g_bᵀε_b. The agent draws θ̃_b from N(θ̂_b, ν²σ_b²V_b⁻¹) for every age and plays the largest xᵀΣθ̃_b.
    The prior for an age with little data is thus the average over plays that began alike. Its weight is λ plays at
    first; whenever the number of plays older than e_b has doubled, λ_b is estimated from the evidence of the weights
    θ̂_b. σ_b² is the variance of g_bᵀε_b, estimated with one extra play of the usual square; an age that no play has
    reached has a hundredth of that. The ages end at e_b = W(b/B)², rounded.

    Nothing is assumed about the delays: rewards may be of any size, arrive in several reports and be reversed, and
    actions may be fast or slow. Only what arrives after the window is missed. With one age, a play is learned when its
    window is over, which is posterior sampling with a constant delay of W. The derivation is in docs/math/by-age.md.

    The agent must know what it plays, so it plans for a context: with a single context use `plan(rng)`, with several
    `plan_from(rng, state)`. Feedback of rounds that it did not plan is not learned.

    Examples
    --------
    >>> from belated import Constant, DelayByReward, Geometric, LinearBandit, Lossy, simulate
    >>> shop = LinearBandit(actions=10, dimension=3, reward="conversion")
    >>> silence = DelayByReward(zero=Lossy(Constant(0), missing=1.0), positive=Geometric(20))
    >>> rows = simulate(shop, LearnByAge(window=100), silence, episodes=200, seed=0)
    >>> LearnByAge(window=100, ages=8).cuts().tolist()
    [2, 6, 14, 25, 39, 56, 77, 100]
    """

    kind: ClassVar[str] = "by-age"

    window: int = 100
    """W: rewards with a delay of more than W rounds are not learned."""
    ages: int = 24
    """B, the number of ages in the window; fewer if it has fewer rounds."""
    scale: float = 1.0
    """ν, the width of the draws in posterior standard deviations; 0 draws the mean."""
    ridge: float = 1.0
    """λ, the initial prior weight, in plays, of the assumption that an action is like all others."""
    signals: bool = False
    """Whether it learns from a signal, reported in trajectories with the part "signal", whose values add up."""

    def __post_init__(self) -> None:
        integer("window", self.window, at_least=0)
        integer("ages", self.ages, at_least=1, at_most=1000)
        real("scale", self.scale, at_least=0)
        real("ridge", self.ridge, above=0)
        flag("signals", self.signals)

    @property
    def hears_signals(self) -> bool:
        return bool(self.signals)

    def cuts(self) -> Ints:
        """Return e₁ < … < e_B, the ends of the ages."""
        share = np.arange(1, self.ages + 1) / self.ages
        return np.unique(np.rint(self.window * share**2).astype(np.int64))

    def record(self, problem: TableProblem) -> ByAgeRecord:
        d, cuts, plays, k = problem.dimension, self.cuts(), int(self.window) + 1, 2 if self.signals else 1
        check_room("the factors of ages × d × d", cuts.size, d, d)
        check_room("the window × ages", plays, cuts.size, k)
        length = float(np.mean((problem.features**2).sum(axis=-1)))  # ‖φ‖², so that the scale of φ does not matter
        prior = float(self.ridge) * (length or 1.0)
        learned = ByAgeLearned(
            factor=np.tile(math.sqrt(prior) * np.eye(d), (cuts.size, 1, 1)),
            features=np.zeros((cuts.size, d)),
            moments=np.zeros((cuts.size, 2 * k, d)),
            plays=np.zeros(cuts.size, np.int64),
            sums=np.zeros((cuts.size, 2 * k)),
            products=np.zeros((cuts.size, 2 * k, 2 * k)),
            pairs=np.zeros(plays, np.int64),
            reported=np.zeros((plays, cuts.size, k)),
            planned=np.zeros(1, np.int64),
            ridges=np.full(cuts.size, prior),
        )
        return ByAgeRecord(
            table=make_table(problem),
            learned=learned,
            work=make_work(problem),
            total=np.zeros(d),
            square=np.zeros((d, d)),
            known=np.zeros(2 * k),
            chain=new_chain(cuts.size, k),
            covariances=np.zeros((cuts.size, 2 * k, 2 * k)),
            counts=np.zeros(cuts.size),
            cuts=cuts,
            scale=float(self.scale),
            ridge=float(self.ridge),
            prior=prior,
        )

    def check_learned(self, learned: ByAgeLearned, problem: TableProblem) -> None:
        invariants.factor("factor", learned.factor)
        invariants.require(learned.ridges > 0, "ridges", "are positive")
        invariants.counts("planned", learned.planned)
        invariants.counts("plays", learned.plays)
        invariants.within("pairs", learned.pairs, problem.states * problem.actions)
        squares = np.diagonal(learned.products, axis1=1, axis2=2)
        invariants.require(squares >= 0, "products", "have squares that are not negative")
        reached = np.maximum(learned.planned[0] - 1 - self.cuts(), 0)  # the last play is added when the next is planned
        invariants.require(learned.plays == reached, "plays", "count those older than each age")


class ByAgeLearned(NamedTuple):
    """What plays and reports change; one row for each age, except for the plays in the window.

    v = (s_{b−1}, c_b) is what was observed of a play before an age, and at that age: 2k numbers.
    """

    factor: Floats
    """U_b with V_b = U_bᵀU_b, shape (B, d, d)."""
    features: Floats
    """Σx, shape (B, d)."""
    moments: Floats
    """Σvxᵀ, shape (B, 2k, d)."""
    plays: Ints
    """n_b, the number of plays older than e_b, shape (B,)."""
    sums: Floats
    """Σv, shape (B, 2k)."""
    products: Floats
    """Σvvᵀ, shape (B, 2k, 2k)."""
    pairs: Ints
    """The pairs played in the last W + 1 rounds; that of round k is at index k mod (W + 1)."""
    reported: Floats
    """c_b of these plays so far, shape (W + 1, B, k)."""
    planned: Ints
    """Number of rounds planned, shape (1,)."""
    ridges: Floats
    """λ_b, in units of x², shape (B,)."""


class ByAgeRecord(NamedTuple):
    table: Table
    learned: ByAgeLearned
    work: Work
    total: Floats
    """Work space for Σθ̃_b, shape (d,)."""
    square: Floats
    """Work space of shape (d, d)."""
    known: Floats
    """Work space for v, shape (2k,)."""
    chain: Chain
    covariances: Floats
    """Covariances of v at each age, shape (B, 2k, 2k)."""
    counts: Floats
    """Number of plays in each covariance."""
    cuts: Ints
    scale: float
    ridge: float
    prior: float
    """λ of an age that no play has reached."""

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Learn from the plays that complete an age now; choose in the context `start`, or the only one."""
        learned, work = self.learned, self.work
        state = context_of(self.table, start)
        come_of_age(self)
        usual = look_back(self)
        link(self.chain, self.counts, self.covariances, self.ridge)
        self.total[:] = 0.0
        for b in range(self.cuts.size if usual > 0.0 else 0):  # else no play has a reward yet
            n, k = self.counts[b], self.chain.gains.shape[1]
            work.moment[:] = 0.0
            for j in range(2 * k if n > 0.0 else 0):  # Σx g_bᵀε_b
                weight = -self.chain.passed[b, j] if j < k else self.chain.gains[b, j - k]
                for i in range(work.moment.size):
                    work.moment[i] += weight * (
                        learned.moments[b, j, i] - learned.sums[b, j] / n * learned.features[b, i]
                    )
            variance = noise(n * self.chain.variances[b], learned.products[b, k, k], n, 0.0, usual)
            plays = learned.plays[b]
            if plays > 0 and plays & (plays - 1) == 0:  # whenever their number has doubled
                reweigh(self, b, variance)
            solve_transposed(learned.factor[b], work.moment)
            # θ̃_b ~ N(θ̂_b, ν²σ_b²V_b⁻¹)
            draw(learned.factor[b], work.moment, self.scale * np.sqrt(variance), rng, work.weights)
            for i in range(work.weights.size):
                self.total[i] += work.weights[i]
        linear_values(self.table.columns, self.total, state * self.table.actions, work.q[: self.table.actions])
        place = learned.planned[0] % learned.pairs.size
        learned.pairs[place] = play_largest(self.table, work, state, rng, policy)
        learned.reported[place] = 0.0
        learned.planned[0] += 1

    def learn(self, arrival: Arrival) -> None:
        """Record a report of a play at its age; it counts once the play has completed that age."""
        learned = self.learned
        delay = learned.planned[0] - 1 - arrival.episode
        if delay < 0 or delay > self.cuts[-1]:  # not planned by this agent, or too late
            return
        b = 0
        while self.cuts[b] < delay:
            b += 1
        which = 1 if arrival.part == SIGNAL else 0
        learned.reported[arrival.episode % learned.pairs.size, b, which] += arrival.rewards[0]

    def settle(self) -> None:
        """Do nothing here: `plan` does it, since plays grow older by planning."""


@kernel
def reweigh(agent: ByAgeRecord, b: int, variance: float) -> None:
    """Estimate λ_b = 1/v anew, where vσ_b² is the prior variance of a weight: a fixed-point step of the evidence.

    v is the mean of θ̂²/σ_b² over the γ_b weights that the plays determine, and one more whose square is the prior's.
    """
    learned, work = agent.learned, agent.work
    factor, ridge, d = learned.factor[b], learned.ridges[b], work.moment.size
    copy(work.moment, work.weights)
    solve_transposed(factor, work.weights)
    solve(factor, work.weights)  # θ̂_b
    trace = 0.0  # of V_b⁻¹ = U⁻¹U⁻ᵀ
    for i in range(d):
        work.vector[:] = 0.0
        work.vector[i] = 1.0
        solve_transposed(factor, work.vector)
        trace += dot(work.vector, work.vector)
    determined = d - ridge * trace  # γ_b
    learned.ridges[b] = (1.0 + determined) / (1.0 / agent.prior + dot(work.weights, work.weights) / variance)
    add_to_diagonal(factor, learned.ridges[b] - ridge, agent.square)


@kernel
def look_back(agent: ByAgeRecord) -> float:
    """Compute the covariances of every age; return the mean over the ages of the mean squared increment."""
    learned, k = agent.learned, agent.chain.gains.shape[1]
    usual, reached = 0.0, 0
    for b in range(agent.cuts.size):
        n = float(learned.plays[b])
        agent.counts[b] = n
        if n == 0.0:
            continue
        usual += learned.products[b, k, k] / n
        reached += 1
        for i in range(2 * k):
            for j in range(2 * k):
                cov = learned.products[b, i, j] / n - learned.sums[b, i] / n * (learned.sums[b, j] / n)
                rounding = NEGLIGIBLE * np.sqrt(learned.products[b, i, i] / n * (learned.products[b, j, j] / n))
                agent.covariances[b, i, j] = cov if abs(cov) > rounding else 0.0
    return usual / max(reached, 1)


@kernel
def come_of_age(agent: ByAgeRecord) -> None:
    """Add the play that completes age b in this round to the sums of age b, for every b."""
    learned, work, v = agent.learned, agent.work, agent.known
    k = agent.chain.gains.shape[1]
    for b in range(agent.cuts.size):
        play = learned.planned[0] - 1 - agent.cuts[b]
        if play < 0:
            break
        place = play % learned.pairs.size
        x = agent.table.rows[learned.pairs[place]]
        v[:] = 0.0
        for j in range(k):
            for c in range(b):
                v[j] += learned.reported[place, c, j]  # s_{b−1}
            v[k + j] = learned.reported[place, b, j]  # c_b
        for j in range(2 * k):
            if v[j] != 0.0:
                for i in range(x.size):
                    learned.moments[b, j, i] += v[j] * x[i]
                learned.sums[b, j] += v[j]
                for i in range(2 * k):
                    learned.products[b, j, i] += v[j] * v[i]
        for i in range(x.size):
            learned.features[b, i] += x[i]
        learned.plays[b] += 1
        copy(x, work.vector)
        rank_one_update(learned.factor[b], work.vector)  # V_b ← V_b + xxᵀ
