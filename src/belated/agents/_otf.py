"""On-the-fly linear bandits for conversions: successes are reported late, failures never."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated._kernels.exp_log import log
from belated._kernels.gaussian import dot, draw, rank_one_update, solve, solve_transposed
from belated._kernels.jit import copy, kernel
from belated._kernels.planning import linear_values
from belated._util.validate import check_room, integer, real
from belated.agents import _invariants as invariants
from belated.agents._base import Arrival
from belated.agents._ofu import add_widths
from belated.agents._regression import Table, Work, context_of, make_table, make_work
from belated.agents._silent import SilentSettings, play_largest
from belated.types import Floats, Ints, TableProblem


@dataclass(frozen=True, kw_only=True)
class OTF(SilentSettings):
    """Settings and record shared by the two algorithms."""

    samples: ClassVar[bool]
    """Whether weights are sampled, instead of adding a bonus."""

    window: int = 100
    """m: a conversion counts if its delay is at most m rounds."""
    scale: float = 1.0
    """Factor on the exploration width; 1 is the source's."""
    delta: float = 0.05
    """δ, the probability that the confidence bounds fail."""
    ridge: float = 1.0
    """λ, the regularisation."""

    def __post_init__(self) -> None:
        integer("window", self.window, at_least=1)
        real("scale", self.scale, at_least=0)
        real("delta", self.delta, above=0, below=1)
        real("ridge", self.ridge, above=0)

    def record(self, problem: TableProblem) -> OTFRecord:
        d = problem.dimension
        check_room("the factor of d × d", d, d)
        check_room("the window", int(self.window))
        learned = OTFLearned(
            factor=math.sqrt(self.ridge) * np.eye(d),
            moment=np.zeros(d),
            norms=np.zeros(int(self.window)),
            norm_sum=np.zeros(1),
            planned=np.zeros(1, np.int64),
        )
        return OTFRecord(
            table=make_table(problem),
            learned=learned,
            work=make_work(problem),
            solved=np.zeros((d, problem.actions)),
            scale=float(self.scale),
            log_term=-2.0 * math.log(self.delta),
            ridge=float(self.ridge),
            samples=self.samples,
        )

    def check_learned(self, learned: OTFLearned, problem: TableProblem) -> None:
        invariants.factor("factor", learned.factor)
        invariants.counts("planned", learned.planned)
        invariants.require(learned.norms >= 0, "norms", "not be negative")
        total = learned.norms.sum()
        invariants.require(abs(learned.norm_sum - total) <= 1e-6 * (1.0 + total), "norm_sum", "be the sum of the norms")


@dataclass(frozen=True, kw_only=True)
class OTFLinUCB(OTF):
    """OTFLinUCB (Vernade et al., 2020): upper confidence bounds for conversions that are reported late or never.

    Rewards are 0 or 1, and a 0 is never reported: "not yet" looks like "no". So every play counts as a 0 at once, and
    becomes a 1 if its conversion arrives within `window` rounds m. With V = λI + Σxxᵀ over **all** plays and B = Σx
    over those that have converted, θ̂ = V⁻¹B estimates θ times the probability of converting within m. In round t it
    plays the largest

        xᵀθ̂ + (2f + Σ‖x_s‖_{V_s⁻¹}) · ‖x‖_{V⁻¹},   f = √λ + √(2·log(1/δ) + d·log((dλ + t)/(dλ))),

    where the sum is over the last m plays, which may still convert. Actions and θ are assumed to have norms of at most
    1.

    V, B, f, the index and the window are from the source. Its index has the norms in the current V⁻¹; here each norm is
    that at the time of its play (V_s excludes x_s), as in `OTFLinTS`. These are never smaller, so the bound still
    holds, and the cost of a round does not depend on m. Our choices:

    * `scale`, a factor on the whole width, since comparisons need tuned widths;
    * delays are defined as everywhere in this library: the reward of round k with delay D is known in round k + D + 1;
    * a reported 0 changes nothing, and other rewards count with their values;
    * ties are broken at random.

    The agent must know what it plays, so it plans for a context: with a single context use `plan(rng)`, with several
    `plan_from(rng, state)`. Conversions of rounds that it did not plan count in B, but not in V.

    Examples
    --------
    >>> from belated import Constant, DelayByReward, Geometric, LinearBandit, Lossy, simulate
    >>> shop = LinearBandit(actions=10, dimension=3, reward="conversion")
    >>> silence = DelayByReward(zero=Lossy(Constant(0), missing=1.0), positive=Geometric(20))
    >>> rows = simulate(shop, OTFLinUCB(scale=0.1), silence, episodes=200, seed=0)
    >>> rows.filter(rows["sampled_return"] == 0)["delay"].null_count() == (rows["sampled_return"] == 0).sum()
    True
    """

    kind: ClassVar[str] = "otf-linucb"
    samples: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class OTFLinTS(OTF):
    """OTFLinTS (Vernade et al., 2020): Thompson sampling for conversions that are reported late or never.

    The model, V, B, θ̂, f and `window` are those of `OTFLinUCB`. In round t it draws θ̃ from N(θ̂, c·V⁻¹), where

        c = 1 + Σ‖x_s‖_{V_s⁻¹} / f

    has the norms of the last m plays, each in the V_s⁻¹ of its time, and plays the largest xᵀθ̃.

    The covariance c·V⁻¹ is from the source: f appears only in c; it does not widen the draws as it widens the bound of
    OTFLinUCB. Some published code uses squared norms and divides V⁻¹ by c, which narrows the draws the more is in
    flight; we follow the paper. Our choices are `scale`, a factor on the standard deviation, and those of `OTFLinUCB`
    about delays, zeros, ties and contexts.

    Examples
    --------
    >>> from belated import LinearBandit
    >>> shop = LinearBandit(actions=10, dimension=3, reward="conversion")
    >>> agent = OTFLinTS(window=50).start(shop.problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (1, 1)
    """

    kind: ClassVar[str] = "otf-lints"
    samples: ClassVar[bool] = True


class OTFLearned(NamedTuple):
    """What plays and conversions change."""

    factor: Floats
    """U with V = UᵀU, over all plays, shape (d, d)."""
    moment: Floats
    """B, shape (d,)."""
    norms: Floats
    """‖x_s‖_{V_s⁻¹} of the last m plays, that of round k at index k mod m; 0 before there were m plays."""
    norm_sum: Floats
    """Their sum, shape (1,)."""
    planned: Ints
    """Number of rounds planned, shape (1,)."""


class OTFRecord(NamedTuple):
    table: Table
    learned: OTFLearned
    work: Work
    solved: Floats
    """Work space for U⁻ᵀ times the features of one context, shape (d, A)."""
    scale: float
    log_term: float
    """2·log(1/δ)."""
    ridge: float
    samples: bool

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Choose in the context `start`, or in the only one, and record the play."""
        learned, work, actions = self.learned, self.work, self.table.actions
        state = context_of(self.table, start)
        first = state * actions
        q = work.q[:actions]
        f, in_flight = confidence(self), learned.norm_sum[0]
        copy(learned.moment, work.moment)
        solve_transposed(learned.factor, work.moment)  # half of θ̂ = V⁻¹B: U⁻ᵀ now, U⁻¹ below
        if self.samples:
            deviation = self.scale * np.sqrt(1.0 + in_flight / f)
            draw(learned.factor, work.moment, deviation, rng, work.weights)  # θ̃ ~ N(θ̂, c·V⁻¹)
            linear_values(self.table.columns, work.weights, first, q)
        else:
            solve(learned.factor, work.moment)
            linear_values(self.table.columns, work.moment, first, q)
            width = self.scale * (2.0 * f + in_flight)
            # xᵀθ̂ + (2f + Σ‖x_s‖)‖x‖_{V⁻¹}
            add_widths(learned.factor, self.table.columns, first, width, self.solved, work.other[:actions], q)
        note_play(self, play_largest(self.table, work, state, rng, policy))

    def learn(self, arrival: Arrival) -> None:
        """Count a conversion within the window; its play is already in V."""
        learned = self.learned
        delay = learned.planned[0] - 1 - arrival.episode  # negative if this agent did not plan the round
        if delay > learned.norms.size:
            return
        row = self.table.rows[arrival.states[0] * self.table.actions + arrival.actions[0]]
        for i in range(row.size):
            learned.moment[i] += arrival.rewards[0] * row[i]  # B ← B + x·1(conversion)

    def settle(self) -> None:
        """Do nothing: `learn` defers no work."""


@kernel
def confidence(agent: OTFRecord) -> float:
    """Return f = √λ + √(2·log(1/δ) + d·log((dλ + t)/(dλ))) in round t = 1, 2, ..."""
    d, t = agent.learned.moment.size, agent.learned.planned[0] + 1
    growth = d * log(1.0 + t / (d * agent.ridge))
    return float(np.sqrt(agent.ridge) + np.sqrt(agent.log_term + growth))


@kernel
def note_play(agent: OTFRecord, pair: int) -> None:
    """Add the play of `pair` to the last m norms and to V."""
    learned, work = agent.learned, agent.work
    copy(agent.table.rows[pair], work.vector)
    solve_transposed(learned.factor, work.vector)
    norm = np.sqrt(dot(work.vector, work.vector))  # ‖x‖_{V⁻¹} = ‖U⁻ᵀx‖, before x is in V
    place = learned.planned[0] % learned.norms.size
    learned.norm_sum[0] += norm - learned.norms[place]
    learned.norms[place] = norm
    if place == learned.norms.size - 1:  # once per cycle: sum again, so that rounding errors do not accumulate
        learned.norm_sum[0] = learned.norms.sum()
    copy(agent.table.rows[pair], work.vector)
    rank_one_update(learned.factor, work.vector)  # V ← V + xxᵀ, at once
    learned.planned[0] += 1
