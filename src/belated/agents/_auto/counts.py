"""`AutoPSVI` on a finite problem with one-hot features: counts, for each step or for all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.jit import inlined_kernel, kernel
from belated.agents._auto.changes import COUNT, NUMBERS, fade, fill_lasting, note_reward
from belated.agents._auto.rule import Rule, hidden_width, note_outcome
from belated.agents._auto.table import Counts, Draft, fill_spread, play_unseen, sweep
from belated.agents._base import learns, plans
from belated.types import Floats, Ints, TableProblem


class Tables(NamedTuple):
    """All that feedback has taught, for each of T regressions: one for all steps, or one for each."""

    visits: Ints
    """n(s, a), shape (T, S·A)."""
    reward_sums: Floats
    """Rewards received at (s, a), shape (T, S·A)."""
    least: Floats
    """The smallest of them, shape (T, S·A)."""
    most: Floats
    """The largest of them, shape (T, S·A)."""
    kinds: Ints
    """How many different states have followed (s, a), shape (T, S·A)."""
    after: npt.NDArray[np.int32]
    """Which they are, ascending, shape (T, S·A, S)."""
    often: npt.NDArray[np.int32]
    """How often each has followed, shape (T, S·A, S)."""
    next_rewards: Floats
    """Rewards received on the way to s', shape (T, S + 1)."""
    arrivals: Floats
    """How often s' was reached, shape (T, S + 1)."""
    reward_squares: Floats
    """Σr², shape (T,)."""
    seen: Ints
    """1 for each state that has arrived, shape (S,)."""
    outcomes: Ints
    """How many pairs were visited twice or more, and how many of those have had different outcomes."""
    known: Floats
    """What tells of changing rewards, and what is left of them, shape (T, 5, S·A)."""
    changed: Ints
    """1 for each regression whose rewards have changed, shape (T,)."""


class Sizes(NamedTuple):
    """The sizes of the problem."""

    states: int
    actions: int
    horizon: int


class TableWork(NamedTuple):
    """Scratch space, made once so that kernels allocate nothing."""

    values: Floats
    gains: Floats
    means: Floats
    spread: Floats
    q: Floats
    reward_sums: Floats
    next_rewards: Floats


class AutoTableRecord(NamedTuple):
    """Arrays of one agent on a table."""

    table: Sizes
    learned: Tables
    work: TableWork
    rule: Rule


def make_table_record(problem: TableProblem, rule: Rule, slots: int) -> AutoTableRecord:
    """Return the record of an agent that has seen nothing yet, with `slots` regressions."""
    states, horizon = problem.states, problem.horizon
    pairs = states * problem.actions
    learned = Tables(
        visits=np.zeros((slots, pairs), np.int64),
        reward_sums=np.zeros((slots, pairs)),
        least=np.zeros((slots, pairs)),
        most=np.zeros((slots, pairs)),
        kinds=np.zeros((slots, pairs), np.int64),
        after=np.zeros((slots, pairs, states), np.int32),
        often=np.zeros((slots, pairs, states), np.int32),
        next_rewards=np.zeros((slots, states + 1)),
        arrivals=np.zeros((slots, states + 1)),
        reward_squares=np.zeros(slots),
        seen=np.zeros(states, np.int64),
        outcomes=np.zeros(2, np.int64),
        known=np.zeros((slots, NUMBERS, pairs)),
        changed=np.zeros(slots, np.int64),
    )
    work = TableWork(
        np.zeros((horizon + 1, states)),
        np.zeros(states + 1),
        np.zeros(pairs),
        np.zeros((2, pairs)),
        np.zeros(problem.actions),
        np.zeros(pairs),
        np.zeros(states + 1),
    )
    return AutoTableRecord(Sizes(states, problem.actions, horizon), learned, work, rule)


@kernel
def count_outcome(after: npt.NDArray[np.int32], often: npt.NDArray[np.int32], kinds: int, state: int) -> int:
    """Count that `state` followed, keeping the states in order; return how many different ones there are now."""
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


@learns(AutoTableRecord)
@kernel
def learn(agent: AutoTableRecord, episode: int, states: Ints, actions: Ints, rewards: Floats) -> None:
    """Count one late trajectory."""
    learned = agent.learned
    shared = learned.visits.shape[0] == 1
    learned.seen[states[0]] = 1
    for h in range(actions.size):
        g = 0 if shared else h
        if learned.changed[g] == 1 and (h == 0 or not shared):
            fade(learned.known[g])
        j, reward, after = states[h] * agent.table.actions + actions[h], rewards[h], states[h + 1]
        fresh = learned.visits[g, j] == 0
        was_random = learned.least[g, j] < learned.most[g, j] or learned.kinds[g, j] > 1
        learned.least[g, j] = reward if fresh else min(learned.least[g, j], reward)
        learned.most[g, j] = reward if fresh else max(learned.most[g, j], reward)
        learned.visits[g, j] += 1
        learned.reward_sums[g, j] += reward
        learned.kinds[g, j] = count_outcome(learned.after[g, j], learned.often[g, j], learned.kinds[g, j], after)
        random = learned.least[g, j] < learned.most[g, j] or learned.kinds[g, j] > 1
        note_outcome(learned.visits[g, j], was_random, random, learned.outcomes)
        learned.next_rewards[g, after] += reward
        learned.arrivals[g, after] += 1.0
        learned.reward_squares[g] += reward * reward
        learned.seen[after] = 1
        learned.changed[g] = note_reward(learned.known[g], j, reward, agent.rule.span, learned.changed[g] == 1)


@inlined_kernel
def counts_of(
    learned: Tables, g: int, reward_sums: Floats, next_rewards: Floats, reward_squares: float, steps: float
) -> Counts:
    """Return the counts of regression `g` with these rewards."""
    return Counts(
        learned.visits[g],
        reward_sums,
        learned.kinds[g],
        learned.after[g],
        learned.often[g],
        next_rewards,
        learned.arrivals[g],
        reward_squares,
        steps,
    )


@plans(AutoTableRecord)
@kernel
def plan(agent: AutoTableRecord, rng: np.random.Generator, policy: Ints) -> None:
    """Draw the action values of every step from the last to the first, and act greedily on them."""
    learned, work, rule = agent.learned, agent.work, agent.rule
    slots = learned.visits.shape[0]
    hidden = hidden_width(rule, learned.outcomes)
    work.values[rule.horizon] = 0.0
    for g in range(slots - 1, -1, -1):
        first, last = (0, rule.horizon) if slots == 1 else (g, g + 1)
        steps = 0.0
        for s in range(agent.table.states):
            steps += learned.arrivals[g, s]
        counts = counts_of(
            learned, g, learned.reward_sums[g], learned.next_rewards[g], learned.reward_squares[g], steps
        )
        if learned.changed[g] == 1:
            squares = fill_lasting(counts, learned.known[g], work.reward_sums, work.next_rewards)
            counts = counts_of(learned, g, work.reward_sums, work.next_rewards, squares, steps)
        draft = Draft(work.gains, work.means, work.spread, work.q)
        fill_spread(rule, learned.known[g, COUNT], hidden, work.spread)
        sweep(rule, counts, draft, learned.seen, first, last, rng, work.values, policy)
    play_unseen(learned.seen, agent.table.actions, rng, policy)
