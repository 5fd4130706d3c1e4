"""Tabular value iteration with upper confidence bounds on late feedback, replanned actively or lazily."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated._kernels.exp_log import log
from belated._kernels.jit import copy, kernel
from belated._kernels.planning import TIES, greedy
from belated._util.validate import check_room, choice, integer, real
from belated.agents import _invariants as invariants
from belated.agents._base import Arrival, CompiledSettings
from belated.types import Floats, Ints, TableProblem

FORMS = ("hoeffding", "bernstein")
UPDATES = ("active", "lazy")


@dataclass(frozen=True, kw_only=True)
class TabularUCBVI(CompiledSettings):
    """UCBVI (Azar et al., 2017) on the feedback that has arrived, with the updates of Howson et al. (2023).

    It counts visits, ignores the features, and plays greedily on Q = min{r̂ + b + P̂V, remaining steps}; for an unseen
    pair Q is the number of remaining steps. With N the arrived visits of (s, a) at step h, L = ln(5SAT/δ) and T = KH,
    the bonus b is `bonus_scale` times

    * ``"hoeffding"`` (UCBVI-CH): 7HL/√N;
    * ``"bernstein"`` (UCBVI-BF): √(8L·Var(V)/N) + 14HL/(3N) + √(8/N · Σ P̂(s')·min{100²H³S²AL²/N'(s'), H²}), where
      s' and Var are under P̂, and N'(s') is how often s' has been visited at step h + 1.

    Feedback is counted as it arrives. ``"active"`` updating plans whenever something has arrived; ``"lazy"`` only when
    the count of some (s, a, h) is at least 1 + 1/α times that of the last plan, and positive if it was zero. In
    between, the last policy is played again.

    The bonuses with their constants and the two ways of updating are from the sources. Our choices: separate counts for
    each step, where Azar et al. pool the steps; rewards, in [0, 1], estimated by their mean without a bonus, where Azar
    et al. know them; a cap of H − h instead of H; no minimum with the Q of earlier plans; no correction term (the last
    one of "bernstein") at the last step, after which every value is zero; and `bonus_scale`, since the constants of the
    theory are far larger than what works best in practice.

    Examples
    --------
    >>> from belated import RiverSwim
    >>> agent = TabularUCBVI(bonus_scale=0.002, updating="lazy").start(RiverSwim().problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (20, 5)
    """

    kind: ClassVar[str] = "tabular-ucbvi"

    bonus_form: str = "hoeffding"
    """The bonus: "hoeffding" or "bernstein"."""
    bonus_scale: float = 1.0
    """Factor on the bonus; 1 is the theory's."""
    delta: float = 0.05
    """δ, the probability that the confidence bounds fail."""
    episodes: int = 1000
    """K, the number of episodes for which the bounds hold; only its logarithm matters."""
    updating: str = "active"
    """When to plan again: "active" or "lazy"."""
    growth: float = 1.0
    """α of lazy updating: a count must grow by the factor 1 + 1/α; 1 means doubling, larger is closer to active."""
    ties: str = "random"
    """How ties between action values are broken: at "random", or by the "first" action, like `numpy.argmax`."""

    def __post_init__(self) -> None:
        choice("bonus_form", self.bonus_form, FORMS)
        real("bonus_scale", self.bonus_scale, at_least=0)
        real("delta", self.delta, above=0, below=1)
        integer("episodes", self.episodes, at_least=1)
        choice("updating", self.updating, UPDATES)
        real("growth", self.growth, above=0)
        choice("ties", self.ties, TIES)

    def record(self, problem: TableProblem) -> TabularRecord:
        states, actions, horizon = problem.states, problem.actions, problem.horizon
        pairs = states * actions
        check_room("the counts of horizon × states × actions × states", horizon, pairs, states)
        learned = Tables(
            visits=np.zeros((horizon, pairs), np.int64),
            followed=np.zeros((horizon, pairs, states), np.int64),
            reward_sums=np.zeros((horizon, pairs)),
            planned_visits=np.full((horizon, pairs), -1),
            policy=np.zeros((horizon, states), np.int64),
            news=np.ones(1, np.int64),
        )
        return TabularRecord(
            learned=learned,
            work=Scratch(values=np.zeros((horizon + 1, states)), q=np.zeros(pairs), spread=np.zeros(states)),
            scale=float(self.bonus_scale),
            log_term=math.log(5 * pairs * int(self.episodes) * horizon) - math.log(self.delta),
            bernstein=self.bonus_form == "bernstein",
            growth=float(self.growth) if self.updating == "lazy" else math.inf,
            first=self.ties == "first",
        )

    def check_learned(self, learned: Tables, problem: TableProblem) -> None:
        invariants.counts("visits", learned.visits)
        invariants.counts("followed", learned.followed)
        invariants.require(learned.followed.sum(axis=-1) == learned.visits, "followed", "add up to the visits")
        invariants.counts("planned_visits", learned.planned_visits, least=-1)
        invariants.require(learned.planned_visits <= learned.visits, "planned_visits", "not exceed the visits")
        invariants.within("policy", learned.policy, problem.actions)
        invariants.within("news", learned.news, 2)
        invariants.reward_sums("reward_sums", learned.reward_sums, learned.visits, problem)


class Tables(NamedTuple):
    """What feedback and planning change; the pair (s, a) is entry s·A + a."""

    visits: Ints
    """N_h(s, a), shape (H, S·A)."""
    followed: Ints
    """N_h(s, a, s'), shape (H, S·A, S)."""
    reward_sums: Floats
    """Rewards received at (s, a), shape (H, S·A)."""
    planned_visits: Ints
    """N_h(s, a) at the last plan; −1 before the first plan, which is then always due."""
    policy: Ints
    """The policy of the last plan, shape (H, S)."""
    news: Ints
    """1 if something has arrived since the counts were last checked, or nothing has been planned; else 0."""


class Scratch(NamedTuple):
    """Scratch space, allocated once so that kernels do not allocate."""

    values: Floats
    q: Floats
    spread: Floats
    """min{100²H³S²AL²/N'(s'), H²} of the next step, shape (S,)."""


class TabularRecord(NamedTuple):
    learned: Tables
    work: Scratch
    scale: float
    log_term: float
    """L."""
    bernstein: bool
    growth: float
    """α; infinite for active updating."""
    first: bool

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Plan by optimistic backward induction if it is due, else play the last policy again."""
        learned, work, horizon = self.learned, self.work, policy.shape[0]
        if learned.news[0] == 1 and has_grown(learned.visits, learned.planned_visits, self.growth):
            work.values[horizon] = 0.0
            for h in range(horizon - 1, -1, -1):
                if self.bernstein:
                    fill_spread(self, h)
                for j in range(work.q.size):
                    seen = learned.visits[h, j] > 0
                    work.q[j] = optimistic_value(self, h, j) if seen else float(horizon - h)
                greedy(work.q, float(horizon - h), self.first, rng, work.values[h], policy[h])
            copy(policy, learned.policy)
            copy(learned.visits, learned.planned_visits)
        learned.news[0] = 0
        copy(learned.policy, policy)

    def learn(self, arrival: Arrival) -> None:
        """Count one late trajectory at every step."""
        learned, states = self.learned, arrival.states
        per_state = learned.visits.shape[1] // learned.followed.shape[2]
        for h in range(arrival.actions.size):
            j = states[h] * per_state + arrival.actions[h]
            learned.visits[h, j] += 1
            learned.followed[h, j, states[h + 1]] += 1
            learned.reward_sums[h, j] += arrival.rewards[h]
        learned.news[0] = 1

    def settle(self) -> None:
        """Do nothing: `learn` defers no work."""

    def information(self, log_determinants: Floats) -> None:
        """Set log det Ω with Ω = I + diag N, as for one-hot features."""
        for h in range(log_determinants.size):
            total = 0.0
            for count in self.learned.visits[h]:
                total += log(1.0 + count)
            log_determinants[h] = total


@kernel
def has_grown(visits: Ints, planned: Ints, growth: float) -> bool:
    """Whether a count N has grown from M to at least (1 + 1/α)M: α(N − M) ≥ M, which avoids rounding 1/α."""
    for h in range(visits.shape[0]):
        for j in range(visits.shape[1]):
            gained = visits[h, j] - planned[h, j]
            if gained > 0 and growth * gained >= planned[h, j]:
                return True
    return False


@kernel
def fill_spread(agent: TabularRecord, h: int) -> None:
    """Set the values that the correction term averages over P̂ at step `h`: the uncertainty about V at step h + 1."""
    visits, spread = agent.learned.visits, agent.work.spread
    horizon, pairs = visits.shape
    states = spread.size
    if h + 1 == horizon:
        spread[:] = 0.0
        return
    actions = pairs // states
    limit = 1e4 * float(horizon) ** 3 * float(states) * float(pairs) * agent.log_term**2  # 100²H³S²AL²
    for s in range(states):
        seen = visits[h + 1, s * actions : (s + 1) * actions].sum()
        spread[s] = min(limit / max(seen, 1), float(horizon) ** 2)


@kernel
def optimistic_value(agent: TabularRecord, h: int, j: int) -> float:
    """Return r̂ + b + P̂V of a visited pair."""
    horizon, log_term, spread = agent.learned.visits.shape[0], agent.log_term, agent.work.spread
    followed, following = agent.learned.followed[h, j], agent.work.values[h + 1]
    n = float(agent.learned.visits[h, j])
    mean = 0.0
    for s in range(following.size):
        mean += followed[s] / n * following[s]
    if agent.bernstein:
        variance, correction = 0.0, 0.0
        for s in range(following.size):
            variance += followed[s] / n * (following[s] - mean) ** 2
            correction += followed[s] / n * spread[s]
        bonus = math.sqrt(8.0 * log_term * variance / n) + 14.0 * horizon * log_term / (3.0 * n)
        bonus += math.sqrt(8.0 * correction / n)
    else:
        bonus = 7.0 * horizon * log_term / math.sqrt(n)
    return float(agent.learned.reward_sums[h, j] / n + agent.scale * bonus + mean)
