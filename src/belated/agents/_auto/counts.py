"""`AutoPSVI` on a finite problem with one-hot features: counts, for each step or for all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.jit import inlined, kernel
from belated.agents._auto.changes import COUNT, NUMBERS, fade, fill_lasting, fill_lines, note_reward
from belated.agents._auto.rule import Rule, note_outcome, random_share
from belated.agents._auto.table import Counts, SweepScratch, fill_spread, play_unseen, sweep
from belated.agents._base import REWARDS, STATES, Arrival
from belated.types import Floats, Ints, TableProblem


class Tables(NamedTuple):
    """Everything learned from feedback, for each of T regressions: one for all steps, or one for each."""

    visits: Ints
    """n(s, a), shape (T, S·A)."""
    reward_sums: Floats
    """Rewards received at (s, a), shape (T, S·A)."""
    least: Floats
    """The minimum reward, shape (T, S·A)."""
    most: Floats
    """The maximum reward, shape (T, S·A)."""
    kinds: Ints
    """Number of distinct next states of (s, a), shape (T, S·A)."""
    after: npt.NDArray[np.int32]
    """The next states, ascending, shape (T, S·A, S + 1); state S is the terminal one."""
    often: npt.NDArray[np.int32]
    """How often each of them occurred, shape (T, S·A, S + 1)."""
    next_rewards: Floats
    """Rewards received on the way to s', shape (T, S + 1)."""
    arrivals: Floats
    """How often s' was reached, shape (T, S + 1)."""
    reward_squares: Floats
    """Σr², shape (T,)."""
    seen: Ints
    """1 for each state that has arrived, shape (S,)."""
    random: Ints
    """1 for each pair with different outcomes, and for all pairs if rewards have changed, shape (T, S·A)."""
    outcomes: Ints
    """Number of pairs visited at least twice, and how many of those had different outcomes."""
    known: Floats
    """Statistics of changing rewards, see `changes`, shape (T, 8, S·A)."""
    changed: Ints
    """1 for each regression whose rewards have changed, shape (T,)."""


class Sizes(NamedTuple):
    """The sizes of the problem."""

    states: int
    actions: int
    horizon: int


class TableWork(NamedTuple):
    """Scratch space, allocated once so that kernels do not allocate."""

    values: Floats
    gains: Floats
    means: Floats
    spread: Floats
    q: Floats
    reward_sums: Floats
    next_rewards: Floats
    lines: Floats
    random: Ints


class AutoTableRecord(NamedTuple):
    """Arrays of one agent on a table."""

    table: Sizes
    learned: Tables
    work: TableWork
    rule: Rule

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        learned, work, rule = self.learned, self.work, self.rule
        slots = learned.visits.shape[0]
        work.values[rule.horizon] = 0.0
        for g in range(slots - 1, -1, -1):
            first, last = (0, rule.horizon) if slots == 1 else (g, g + 1)
            work.random[:] = learned.random[g]
            sure = fill_lines(rule, learned.known[g], learned.kinds[g], work.lines, work.random)
            counts = counts_of(
                learned, g, learned.reward_sums[g], learned.next_rewards[g], learned.reward_squares[g], work
            )
            if learned.changed[g] == 1:
                squares = fill_lasting(counts, learned.known[g], work.reward_sums, work.next_rewards)
                work.lines[:] = 0.0
                work.random[:] = learned.random[g]
                sure = 0
                counts = counts_of(learned, g, work.reward_sums, work.next_rewards, squares, work)
            share = random_share(rule, learned.outcomes, sure)
            draft = SweepScratch(work.gains, work.means, work.spread, work.q)
            known = learned.known[g, COUNT]
            fill_spread(rule, known, work.random, self.table.actions, share, rng, work.spread)
            sweep(rule, counts, draft, learned.seen, first, last, rng, work.values, policy)
        play_unseen(learned.seen, self.table.actions, rng, policy)

    def learn(self, arrival: Arrival) -> None:
        """Count one late trajectory.

        Rewards that arrive after their states are compared with others in the order of arrival.
        """
        learned, states = self.learned, arrival.states
        shared, terminal = learned.visits.shape[0] == 1, learned.seen.size
        learned.seen[states[0]] = 1
        for step in range(arrival.actions.size):
            g = 0 if shared else arrival.first + step
            j, after = states[step] * self.table.actions + arrival.actions[step], states[step + 1]
            learned.seen[after] = 1
            if arrival.terminated and step == arrival.actions.size - 1:
                after = terminal
            was_random = outcomes_differ(learned, g, j)
            visits = 0
            if arrival.part != REWARDS:
                learned.visits[g, j] += 1
                visits = learned.visits[g, j]
                kinds = learned.kinds[g, j]
                learned.kinds[g, j] = count_outcome(learned.after[g, j], learned.often[g, j], kinds, after)
                learned.arrivals[g, after] += 1.0
            if arrival.part != STATES:
                if learned.changed[g] == 1 and (step == 0 or not shared):
                    fade(learned.known[g])
                span = self.rule.span if self.rule.forgetting else 0.0
                count_reward(learned, g, j, after, arrival.first + step, arrival.rewards[step], span)
            random = outcomes_differ(learned, g, j)
            note_outcome(visits, was_random, random, learned.outcomes)
            if random:
                learned.random[g, j] = 1

    def settle(self) -> None:
        """Do nothing: `learn` defers no work."""


def make_table_record(problem: TableProblem, rule: Rule, slots: int) -> AutoTableRecord:
    states, horizon = problem.states, problem.horizon
    pairs = states * problem.actions
    learned = Tables(
        visits=np.zeros((slots, pairs), np.int64),
        reward_sums=np.zeros((slots, pairs)),
        least=np.zeros((slots, pairs)),
        most=np.zeros((slots, pairs)),
        kinds=np.zeros((slots, pairs), np.int64),
        after=np.zeros((slots, pairs, states + 1), np.int32),
        often=np.zeros((slots, pairs, states + 1), np.int32),
        next_rewards=np.zeros((slots, states + 1)),
        arrivals=np.zeros((slots, states + 1)),
        reward_squares=np.zeros(slots),
        seen=np.zeros(states, np.int64),
        random=np.zeros((slots, pairs), np.int64),
        outcomes=np.zeros(2, np.int64),
        known=np.zeros((slots, NUMBERS, pairs)),
        changed=np.zeros(slots, np.int64),
    )
    work = TableWork(
        np.zeros((horizon + 1, states)),
        np.zeros(states + 1),
        np.zeros(pairs),
        np.zeros((3, pairs)),
        np.zeros(problem.actions),
        np.zeros(pairs),
        np.zeros(states + 1),
        np.zeros((3, pairs)),
        np.zeros(pairs, np.int64),
    )
    return AutoTableRecord(Sizes(states, problem.actions, horizon), learned, work, rule)


@kernel
def count_outcome(after: npt.NDArray[np.int32], often: npt.NDArray[np.int32], kinds: int, state: int) -> int:
    """Count `state` as a next state, keeping the states sorted; return the number of distinct ones."""
    place = 0
    while place < kinds and after[place] < state:
        place += 1
    if place < kinds and after[place] == state:
        often[place] += 1
        return kinds
    for i in range(kinds, place, -1):
        after[i] = after[i - 1]
        often[i] = often[i - 1]
    after[place] = state
    often[place] = 1
    return kinds + 1


@inlined
def outcomes_differ(learned: Tables, g: int, j: int) -> bool:
    return bool(learned.least[g, j] < learned.most[g, j] or learned.kinds[g, j] > 1)


@kernel
def count_reward(learned: Tables, g: int, j: int, after: int, step: int, reward: float, span: float) -> None:
    """Count a reward of the pair `j`, received on the way to the state `after`."""
    fresh = learned.known[g, COUNT, j] == 0.0
    learned.least[g, j] = reward if fresh else min(learned.least[g, j], reward)
    learned.most[g, j] = reward if fresh else max(learned.most[g, j], reward)
    learned.reward_sums[g, j] += reward
    learned.next_rewards[g, after] += reward
    learned.reward_squares[g] += reward * reward
    changed = learned.changed[g] == 1
    learned.changed[g] = note_reward(learned.known[g], j, step, reward, span, changed)
    if learned.changed[g] == 1 and not changed:
        learned.random[g] = 1


@inlined
def counts_of(
    learned: Tables, g: int, reward_sums: Floats, next_rewards: Floats, reward_squares: float, work: TableWork
) -> Counts:
    """Return the counts of regression `g` with these rewards, and the lines and random pairs in `work`."""
    return Counts(
        learned.visits[g],
        reward_sums,
        learned.kinds[g],
        learned.after[g],
        learned.often[g],
        next_rewards,
        learned.arrivals[g],
        reward_squares,
        work.random,
        work.lines,
    )
