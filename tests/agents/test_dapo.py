"""DAPO against a transcription in NumPy, and its parts against what they ought to be."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from belated._kernels.streams import stream
from belated.agents import DelayedDAPO
from belated.delays import FeedbackQueue, Poisson
from belated.environments import AdversarialMDP, FiniteMDP, RandomLinearMDP
from belated.errors import InvalidInputError
from belated.types import Feedback, Floats, TablePolicy, Trajectory

SMALL = RandomLinearMDP(states=3, actions=2, dimension=3, horizon=3, seed=4)
KNOWN = FiniteMDP(SMALL.transitions, SMALL.rewards, start=[0.2, 0.5, 0.3], known_dynamics=True)
UNKNOWN = FiniteMDP(SMALL.transitions, SMALL.rewards, start=[0.2, 0.5, 0.3])
SHAPE = (3, 3, 2)


def some_policy(seed: int) -> Floats:
    return np.random.default_rng(seed).dirichlet(np.ones(2), size=(3, 3))


def extreme(low: Floats, high: Floats, values: Floats, sign: int) -> Floats:
    """Return, for each row of bounds, the greatest (`sign` 1) or least (−1) mean of `values`."""
    order = np.argsort(-sign * values, kind="stable")
    room = 1 - low.sum(axis=-1, keepdims=True)
    width = (high - low)[..., order]
    before = width.cumsum(axis=-1) - width
    more = np.clip(room - before, 0, width)
    mean: Floats = low @ values + more @ values[order]
    return mean


class Transcription:
    """DAPO as its docstring has it, all sums over all that has arrived."""

    def __init__(self, mdp: FiniteMDP, settings: DelayedDAPO) -> None:
        self.mdp, self.settings = mdp, settings
        self.counts, self.starts = np.zeros((*SHAPE, 3)), np.zeros(3)
        self.total = np.zeros(SHAPE)
        self.played: list[Floats] = []

    def bounds(self, counts: Floats) -> tuple[Floats, Floats]:
        n = counts.sum(axis=-1, keepdims=True)
        log_term = math.log(math.prod(SHAPE) * self.settings.episodes / self.settings.delta)
        mean, m = counts / np.maximum(n, 1), np.maximum(n - 1, 1)
        width = self.settings.confidence * (2 * np.sqrt(mean * log_term / m) + 14 * log_term / (3 * m))
        return np.where(n > 0, np.maximum(mean - width, 0), 0), np.where(n > 0, np.minimum(mean + width, 1), 1)

    def reach(self, policy: Floats, sign: int) -> Floats:
        found = np.zeros((3, 3))
        for h, s in itertools.product(range(3), range(3)):
            chance: Floats = np.eye(3)[s]
            for t in range(h - 1, -1, -1):
                chance = (policy[t] * extreme(self.low[t], self.high[t], chance, sign)).sum(axis=-1)
            found[h, s] = extreme(self.start_low, self.start_high, chance, sign)
        return found

    def learn(self, batch: list[tuple[int, Trajectory]]) -> None:
        now = self.policy()
        for _, t in batch:
            self.starts[t.rows[0]] += 1
            for h in range(3):
                self.counts[h, t.rows[h], t.actions[h], t.rows[h + 1]] += 1
        self.low, self.high = self.bounds(self.counts)
        self.start_low, self.start_high = self.bounds(self.starts)
        if self.mdp.problem.dynamics is not None:
            self.low = self.high = np.array(self.mdp.transitions)
            self.start_low = self.start_high = np.array(self.mdp.start)
        for episode, t in batch:
            self.total += self.estimate(self.played[episode], now, t) - self.bonus(self.played[episode], now)

    def estimate(self, past: Floats, now: Floats, t: Trajectory) -> Floats:
        gamma = self.settings.exploration
        assert gamma is not None
        adapted, seen = past / np.maximum(past, now), self.reach(past, 1)[..., np.newaxis] * past + gamma
        costs = np.zeros(SHAPE)
        for h in range(3):
            costs[h, t.rows[h], t.actions[h]] = (1 - t.rewards[h:]).sum()
        estimated: Floats = adapted * costs / seen
        return estimated

    def bonus(self, past: Floats, now: Floats) -> Floats:
        gamma = self.settings.exploration
        assert gamma is not None
        most, least = (self.reach(past, sign)[..., np.newaxis] for sign in (1, -1))
        paid = past / np.maximum(past, now) * now * (9 * gamma + 3 * (most - least) * past) / (most * past + gamma)
        b = self.settings.bonus_scale * paid.sum(axis=-1)
        found, value = np.zeros(SHAPE), np.zeros(3)
        for h in (2, 1, 0):
            found[h] = b[h][:, np.newaxis] + extreme(self.low[h], self.high[h], value, 1)
            value = (now[h] * found[h]).sum(axis=-1)
        return found

    def policy(self) -> Floats:
        assert self.settings.step_size is not None
        weights = np.exp(-self.settings.step_size * (self.total - self.total.min(axis=2, keepdims=True)))
        policy: Floats = weights / weights.sum(axis=2, keepdims=True)
        return policy


@pytest.mark.parametrize("mdp", [KNOWN, UNKNOWN], ids=["known", "unknown"])
@pytest.mark.parametrize("bonus_scale", [1.0, 0.1, 0.0])
def test_it_does_what_its_transcription_does(mdp: FiniteMDP, bonus_scale: float) -> None:
    settings = DelayedDAPO(
        step_size=0.2, exploration=0.1, confidence=0.02, episodes=40, delta=0.1, bonus_scale=bonus_scale
    )
    agent, other = settings.start(mdp.problem), Transcription(mdp, settings)
    rng, world = stream(0, "agent"), stream(0, "environment")
    buffer: FeedbackQueue[Trajectory] = FeedbackQueue()
    moved = 0.0
    for k, delay in enumerate(Poisson(4).sample(stream(0, "delay"), 40)):
        batch = sorted(buffer.arrived(k), key=lambda each: each[0])
        agent.learn([Feedback(*each) for each in reversed(batch)])
        other.learn(batch)
        table = agent.plan(rng).actions
        other.played.append(other.policy())
        np.testing.assert_allclose(agent.policy(), other.played[-1], rtol=1e-8, atol=1e-12, err_msg=f"episode {k}")
        buffer.add(k, int(delay), mdp.rollout(TablePolicy(table), world))
        moved = max(moved, float(np.abs(other.played[-1] - 0.5).max()))
    assert moved > 0.2


def all_paths(policy: Floats) -> list[tuple[float, Trajectory]]:
    found = []
    for states in itertools.product(range(3), repeat=4):
        for actions in itertools.product(range(2), repeat=3):
            chance = float(KNOWN.start[states[0]])
            for h, (s, a) in enumerate(zip(states, actions, strict=False)):
                chance *= policy[h, s, a] * KNOWN.transitions[h, s, a, states[h + 1]]
            rewards = np.array([KNOWN.rewards[h, states[h], actions[h]] for h in range(3)])
            found.append((chance, Trajectory(np.array(states), np.array(actions), rewards)))
    return found


@pytest.mark.parametrize("moved", [False, True])
def test_the_estimate_is_unbiased_but_for_how_far_the_policy_moved(moved: bool) -> None:
    """With γ → 0, E Q̂ = ρ·Q: all of Q where π' likes an action less than π did, π/π' of it elsewhere."""
    settings = DelayedDAPO(step_size=1.0, exploration=1e-300, bonus_scale=0.0)
    agent, past = settings.start(KNOWN.problem), some_policy(0)
    now = some_policy(1) if moved else past
    expected = np.zeros(SHAPE)
    for chance, trajectory in all_paths(past):
        scores = np.zeros(SHAPE)
        settings.improve(agent.model, past, now, trajectory, agent.rates, scores)
        expected -= chance * scores
    q, value = np.zeros(SHAPE), np.zeros(3)
    for h in (2, 1, 0):
        q[h] = 1 - KNOWN.rewards[h] + KNOWN.transitions[h] @ value
        value = (past[h] * q[h]).sum(axis=1)
    np.testing.assert_allclose(expected, q * np.minimum(past / now, 1), rtol=1e-8)
    assert moved == (np.abs(expected - q).max() > 0.01)


def test_the_bonus_is_largest_where_the_past_policy_seldom_came() -> None:
    """From state 0 action 0 leads to state 1, action 1 to state 2; a policy that takes action 0 hardly sees state 2."""
    distribution = np.zeros((3, 2, 3))
    distribution[0, 0, 1] = distribution[0, 1, 2] = 1
    distribution[1:, :, 0] = 1
    mdp = FiniteMDP(distribution, np.ones((3, 2)), horizon=2, known_dynamics=True)
    settings = DelayedDAPO(step_size=1.0, exploration=0.01)
    agent, past, scores = settings.start(mdp.problem), np.full((2, 3, 2), 0.5), np.zeros((2, 3, 2))
    past[0, 0] = 0.99, 0.01
    trajectory = mdp.rollout(TablePolicy(np.zeros((2, 3), np.int64)), np.random.default_rng(0))
    settings.improve(agent.model, past, past, trajectory, agent.rates, scores)  # rewards of 1 cost nothing
    b = 6 * 0.01
    seen, unseen = (2 * 0.5 * b / (chance * 0.5 + 0.01) for chance in (0.99, 0.01))
    first = 0.99 * b / (0.99 + 0.01) + 0.01 * b / (0.01 + 0.01)
    np.testing.assert_allclose(scores[0, 0], [first + seen, first + unseen], rtol=1e-12)
    assert unseen > 10 * seen


def test_the_rates_of_the_theory() -> None:
    problem = AdversarialMDP(states=5, actions=3, horizon=4).problem
    eta, gamma = DelayedDAPO(episodes=100, mean_delay=9).rates(problem)
    assert eta == pytest.approx((16 * 15 * 100 + 256 * (100 + 900)) ** -0.5)
    assert gamma == pytest.approx(8 * eta)
    assert DelayedDAPO(step_size=0.5).rates(problem) == (0.5, 4.0)
    assert DelayedDAPO(step_size=0.5, exploration=0.25).rates(problem) == (0.5, 0.25)


@pytest.mark.parametrize("bonus_scale", [-0.1, math.nan, "1", None, True])
def test_a_bad_bonus_is_refused(bonus_scale: Any) -> None:
    with pytest.raises(InvalidInputError, match="bonus_scale must be a finite number >= 0, got"):
        DelayedDAPO(bonus_scale=bonus_scale)
