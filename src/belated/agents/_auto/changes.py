"""Detecting rewards of a table that change over time or depend on the step: eight numbers for each pair.

The rewards of a pair that have arrived since their number was last a power of two are compared with all earlier ones.
If rewards do not change, the two means differ by more than Hoeffding's bound with probability at most 2e⁻²². Once they
do, the regression forgets: with each trajectory that arrives, earlier rewards count 1 % less.

If all steps share a regression although the rewards of a pair depend on the step, and a line through them fits
significantly better, the line is used. docs/math/auto-psvi.md derives both.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from belated._kernels.jit import entry_point, inlined, kernel
from belated.agents._auto.rule import ROUNDING, Rule
from belated.agents._auto.table import Counts
from belated.errors import InvalidInputError
from belated.types import Floats, Ints

#: The numbers of each pair: weight, sum and sum of squares of its rewards, which decay after a change; number and sum
#: of the rewards since their number was a power of two; and, decaying, the sums of h, h² and h·r over the steps h of
#: the rewards.
COUNT, SUM, SQUARES, LATE, LATE_SUM, STEPS, STEP_SQUARES, STEP_REWARDS = range(8)
NUMBERS = 8
#: Those that decay.
FADING = (COUNT, SUM, SQUARES, STEPS, STEP_SQUARES, STEP_REWARDS)
#: A test is wrong with probability at most 2e⁻²², and all those of a pair's first million rewards with at most 1.2e−7.
EVIDENCE = 22.0
#: Rewards lie on a line if it leaves at most this fraction of Σ(r − r̄)².
ON_LINE = 1e-6
#: Number of trajectories after which the weight of a reward has decayed to 1/e.
MEMORY = 100.0


@inlined
def about_means(known: Floats, pair: int) -> tuple[float, float, float]:
    """Return Σ(h − h̄)², Σ(h − h̄)(r − r̄) and Σ(r − r̄)² of a pair; zeros if its steps or rewards are all equal."""
    n = known[COUNT, pair]
    if n < 2.0:
        return 0.0, 0.0, 0.0
    mean = known[SUM, pair] / n
    steps = known[STEP_SQUARES, pair] - known[STEPS, pair] * known[STEPS, pair] / n
    rewards = known[SQUARES, pair] - n * mean * mean
    if steps < 0.5 or rewards <= ROUNDING * known[SQUARES, pair]:
        return 0.0, 0.0, 0.0
    return steps, known[STEP_REWARDS, pair] - known[STEPS, pair] * mean, rewards


@inlined
def evident_slope(n: float, steps: float, both: float, rewards: float) -> float:
    """Return the slope of rewards over the step, 0 unless it is significant (a likelihood ratio of e²²).

    The residual is assumed to be at least a quarter of Σ(r − r̄)², so that at least 32 rewards are needed: a few may
    lie on a line by chance.
    """
    if rewards == 0.0:
        return 0.0
    left = max(rewards - both * both / steps, 0.25 * rewards)
    return both / steps if 0.5 * n * math.log(rewards / left) > EVIDENCE else 0.0


@kernel
def note_reward(known: Floats, pair: int, step: int, reward: float, span: float, changing: bool) -> bool:
    """Add a reward to `known` (8, pairs), and return whether rewards are `changing` or are found to change now.

    `span` is the range of rewards; with 0 no test is made.
    """
    known[COUNT, pair] += 1.0
    known[SUM, pair] += reward
    known[SQUARES, pair] += reward * reward
    known[STEPS, pair] += step
    known[STEP_SQUARES, pair] += step * step
    known[STEP_REWARDS, pair] += step * reward
    if changing:
        return True
    known[LATE, pair] += 1.0
    known[LATE_SUM, pair] += reward
    late = int(known[LATE, pair])
    early = int(known[COUNT, pair]) - late
    evident = False
    if early > 0 and late & (late - 1) == 0:
        gap = known[LATE_SUM, pair] / late - (known[SUM, pair] - known[LATE_SUM, pair]) / early
        evident = span > 0.0 and gap * gap > 0.5 * EVIDENCE * span * span * (1.0 / early + 1.0 / late)
        if evident:
            steps, both, rewards = about_means(known, pair)
            # if rewards depend on the step, the steps may have changed instead
            evident = evident_slope(known[COUNT, pair], steps, both, rewards) == 0.0
    if late >= early:
        known[LATE, pair] = 0.0
        known[LATE_SUM, pair] = 0.0
    return evident


@kernel
def fade(known: Floats) -> None:
    """Decay the weights of all rewards, but keep a total of at least one per pair."""
    for pair in range(known.shape[1]):
        count = known[COUNT, pair]
        if count > 1.0:
            share = max(1.0 - 1.0 / MEMORY, 1.0 / count)
            for i in FADING:
                known[i, pair] *= share


@entry_point
def note_all(
    known: Floats,
    changed: Ints,
    slot: Ints,
    place: Ints,
    step: Ints,
    begins: npt.NDArray[np.bool_],
    rewards: Floats,
    span: float,
) -> None:
    """Add many rewards in order; `begins` are those before which the rewards of their regression decay.

    A negative `place` is that of a state without a one-hot feature: its reward is not compared with others.
    """
    for i in range(slot.size):
        t = slot[i]
        if begins[i] and changed[t] == 1:
            fade(known[t])
        if place[i] >= 0:
            changed[t] = note_reward(known[t], place[i], step[i], rewards[i], span, changed[t] == 1)


@kernel
def fill_lasting(counts: Counts, known: Floats, reward_sums: Floats, next_rewards: Floats) -> float:
    """Set the rewards in `counts` as if each visit had paid the decayed mean of its pair; return Σr²."""
    squares = 0.0
    next_rewards[:] = 0.0
    for j in range(counts.visits.size):
        n = counts.visits[j]
        if n == 0:
            reward_sums[j] = 0.0
            continue
        if known[COUNT, j] > 0.0:
            mean, square = known[SUM, j] / known[COUNT, j], known[SQUARES, j] / known[COUNT, j]
        else:
            mean = counts.reward_sums[j] / n
            square = mean * mean
        reward_sums[j] = n * mean
        squares += n * square
        for i in range(counts.kinds[j]):
            next_rewards[counts.after[j, i]] += mean * counts.often[j, i]
    return squares


@kernel
def fill_lines(rule: Rule, known: Floats, kinds: Ints, lines: Floats, random: Ints) -> int:
    """Set `lines` (3, pairs): the slope (0 unless significant), the mean step, and the variation explained.

    A pair without a significant slope uses the pooled slope of all pairs, if that is significant. A pair with a single
    next state, by `kinds`, and all rewards on the line is not `random`; return the number of such pairs.
    """
    lines[:] = 0.0
    if not rule.timed:
        return 0
    sure = 0
    n, all_steps, all_both, all_rewards = 0.0, 0.0, 0.0, 0.0
    for j in range(lines.shape[1]):
        steps, both, rewards = about_means(known, j)
        n += known[COUNT, j] if rewards > 0.0 else 0.0
        all_steps, all_both, all_rewards = all_steps + steps, all_both + both, all_rewards + rewards
    common = evident_slope(n, all_steps, all_both, all_rewards)
    for j in range(lines.shape[1]):
        steps, both, rewards = about_means(known, j)
        own = evident_slope(known[COUNT, j], steps, both, rewards)
        slope = own if own != 0.0 else common
        if slope != 0.0 and rewards > 0.0:
            lines[0, j] = slope
            lines[1, j] = known[STEPS, j] / known[COUNT, j]
            lines[2, j] = slope * (2.0 * both - slope * steps)  # the part of Σ(r − r̄)² explained by the line
            if kinds[j] == 1 and rewards - lines[2, j] <= ON_LINE * rewards:
                random[j] = 0
                sure += 1
    return sure


add_reward, fade_all, fill_kept = entry_point(note_reward), entry_point(fade), entry_point(fill_lasting)
fit_lines = entry_point(fill_lines)


class Changes:
    """The eight numbers in a simulator: pairs are added as they occur, at most `limit`."""

    def __init__(self, slots: int, limit: int) -> None:
        self.limit = limit
        self.changed: Ints = np.zeros(slots, np.int64)
        """1 for each regression whose rewards have changed."""
        self._places: dict[tuple[int, int], int] = {}
        self._known: Floats = np.zeros((slots, NUMBERS, 1))

    def note(self, slot: int, feature: int, action: int, step: int, reward: float, span: float) -> None:
        """Add a reward of the state whose only feature is `feature`."""
        place = self._places.get((feature, action))
        if place is None:
            place = len(self._places)
            if place >= self.limit:
                return
            self._places[feature, action] = place
            if place == self._known.shape[2]:
                self._known = np.concatenate([self._known, np.zeros_like(self._known)], axis=2)
        self.changed[slot] = add_reward(self._known[slot], place, step, reward, span, bool(self.changed[slot]))

    def note_all(
        self,
        slot: Ints,
        feature: Ints,
        action: Ints,
        step: Ints,
        begins: npt.NDArray[np.bool_],
        rewards: Floats,
        span: float,
    ) -> None:
        """Add many rewards, replacing all earlier ones; a `feature` of -1 means a state with several features."""
        alone = feature >= 0
        pairs = np.stack([feature[alone], action[alone]], axis=1)
        distinct, firsts, inverse = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(firsts)
        place = np.full(len(slot), -1)
        place[alone] = np.argsort(order)[inverse.ravel()]
        place[place >= self.limit] = -1
        self._places = {(int(f), int(a)): i for i, (f, a) in enumerate(distinct[order][: self.limit])}
        self._known = np.zeros((len(self.changed), NUMBERS, len(self._places) + 1))
        self.changed[:] = 0
        note_all(self._known, self.changed, slot, place, step, begins, rewards, span)

    def fade(self, slot: int) -> None:
        """Decay the rewards of a regression if they have changed."""
        if self.changed[slot]:
            fade_all(self._known[slot])

    def lasting(
        self, slot: int, rule: Rule, counts: Counts, features: Ints, actions: int
    ) -> tuple[Counts, Floats, int]:
        """Return the counts of a regression with its decayed rewards, and the remaining weight of each pair.

        Also return the number of pairs whose rewards differ only by the step, see `fill_lines`.
        """
        visits, pairs = counts.visits.astype(np.float64), self._pairs()
        place = np.searchsorted(features, pairs[:, 0])
        there = np.isin(pairs[:, 0], features)
        known = np.zeros((NUMBERS, visits.size))
        known[:, place[there] * actions + pairs[there, 1]] = self._known[slot, :, : len(pairs)][:, there]
        if not self.changed[slot]:
            lines, random = np.zeros((3, visits.size)), counts.random.copy()
            sure = fit_lines(rule, known, counts.kinds, lines, random)
            return counts._replace(lines=lines, random=random), visits, sure
        sums, nexts = np.zeros_like(counts.reward_sums), np.zeros_like(counts.next_rewards)
        squares = fill_kept(counts, known, sums, nexts)
        random = np.ones_like(counts.random)  # deterministic pairs may have changed, too
        lasting = counts._replace(reward_sums=sums, next_rewards=nexts, reward_squares=squares, random=random)
        return lasting, np.where(known[COUNT] > 0.0, known[COUNT], visits), 0

    def _pairs(self) -> Ints:
        return np.array(list(self._places), np.int64).reshape(-1, 2)

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        known = self._known[:, :, : len(self._places)].copy()
        return {"changes.pairs": self._pairs(), "changes.known": known, "changes.changed": self.changed.copy()}

    def restore(self, memory: dict[str, npt.NDArray[Any]], size: int, actions: int) -> None:
        """Replace everything by what `memory` returned, after checking it."""
        pairs, known, changed = (memory[f"changes.{name}"] for name in ("pairs", "known", "changed"))
        fits = (
            pairs.shape == (len(pairs), 2)
            and len(np.unique(pairs, axis=0)) == len(pairs)
            and bool(((pairs >= 0) & (pairs < (size, actions))).all())
            and known.shape == (len(self.changed), NUMBERS, len(pairs))
            and are_counts(known)
            and changed.shape == self.changed.shape
            and bool(np.isin(changed, (0, 1)).all())
        )
        if not fits:
            raise InvalidInputError("memory must hold changes that are consistent with the problem")
        self._places = {(int(feature), int(action)): i for i, (feature, action) in enumerate(pairs)}
        self._known = np.concatenate([known, np.zeros((*known.shape[:2], 1))], axis=2)
        self.changed = np.array(changed)


def are_counts(known: Floats) -> bool:
    """Whether the numbers of pairs, (..., 8, pairs), have valid counts of all and of recent rewards."""
    count, squares, late, steps = (known[..., i, :] for i in (COUNT, SQUARES, LATE, STEPS))
    return bool(((count >= 0) & (count <= 2**53) & (squares >= 0) & (late >= 0) & (late <= count) & (steps >= 0)).all())
