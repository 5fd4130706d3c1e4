"""Delayed OPPO against its transcription, its estimate, its rates, and what it becomes on small problems."""

from __future__ import annotations

import math

import numpy as np
import pytest
from occupancies import SMALL, naive_mean, naive_reach, paths, some_policy, told

from belated._kernels.streams import stream
from belated.agents import DelayedDAPO, DelayedOPPO, RandomPolicy, TabularUCBVI
from belated.agents._occupancy import (
    Model,
    PolicyOptimisation,
)
from belated.delays import Constant, FeedbackQueue, Poisson
from belated.environments import AdversarialMDP, FiniteMDP
from belated.runner import simulate
from belated.types import Feedback, Floats, Ints, TablePolicy, Trajectory

EACH = pytest.mark.parametrize("settings", [DelayedOPPO(step_size=0.1), DelayedDAPO(step_size=0.1)], ids=str)


def action_costs(mdp: FiniteMDP, policy: Floats) -> Floats:
    """Return Q_h(s, a) of `policy` in costs 1 − r."""
    q, value = np.zeros(policy.shape), np.zeros(mdp.states)
    for h in reversed(range(mdp.horizon)):
        q[h] = 1 - mdp.rewards[h] + mdp.transitions[h] @ value
        value = (policy[h] * q[h]).sum(axis=1)
    return q


class NaiveOPPO:
    """Delayed OPPO in loops, from everything it has ever seen."""

    def __init__(self, mdp: FiniteMDP, settings: PolicyOptimisation) -> None:
        self.mdp, self.settings = mdp, settings
        self.shape = (mdp.horizon, mdp.states, mdp.actions)
        self.played: list[Floats] = []
        self.seen: list[Trajectory] = []
        self.losses = np.zeros(self.shape)

    def model(self) -> Model:
        if self.mdp.problem.dynamics is not None:
            return Model(self.mdp.transitions, self.mdp.transitions, self.mdp.start, self.mdp.start, True)
        low, high = np.zeros((*self.shape, self.mdp.states)), np.ones((*self.shape, self.mdp.states))
        for h, s, a in np.ndindex(self.shape):
            after = [t.rows[h + 1] for t in self.seen if (t.rows[h], t.actions[h]) == (s, a)]
            low[h, s, a], high[h, s, a] = self.bounds(after)
        return Model(low, high, *self.bounds([t.rows[0] for t in self.seen]), False)

    def bounds(self, came: list[int]) -> tuple[Floats, Floats]:
        states = self.mdp.states
        if not came:
            return np.zeros(states), np.ones(states)
        log_term = np.log(math.prod(self.shape) * self.settings.episodes / self.settings.delta)
        mean, n = np.bincount(came, minlength=states) / len(came), max(len(came) - 1, 1)
        width = self.settings.confidence * (2 * np.sqrt(mean * log_term / n) + 14 * log_term / (3 * n))
        return np.maximum(mean - width, 0), np.minimum(mean + width, 1)

    def policy(self) -> Floats:
        weights = np.exp(-(self.losses - self.losses.min(axis=2, keepdims=True)))
        policy: Floats = weights / weights.sum(axis=2, keepdims=True)
        return policy

    def loss(self, model: Model, past: Floats, now: Floats, t: Trajectory) -> Floats:
        """Return η times what a trajectory costs."""
        eta, gamma = self.settings.step_size, self.settings.exploration
        assert eta is not None and gamma is not None
        reached = naive_reach(model, past, True)
        q, value = np.zeros(self.shape), np.zeros(self.mdp.states)
        for h in reversed(range(self.mdp.horizon)):
            for s, a in np.ndindex(self.shape[1:]):
                q[h, s, a] = naive_mean(model.low[h, s, a], model.high[h, s, a], value, False)
            s, a = int(t.rows[h]), int(t.actions[h])
            q[h, s, a] += (1 - t.rewards[h]) / (reached[h, s] * past[h, s, a] + gamma)
            value = (past[h] * q[h]).sum(axis=1)
        return eta * q

    def learn(self, batch: list[tuple[int, Trajectory]]) -> None:
        now = self.policy()
        self.seen += [trajectory for _, trajectory in batch]
        model = self.model()
        for episode, trajectory in batch:
            self.losses += self.loss(model, self.played[episode], now, trajectory)

    def plan(self, rng: np.random.Generator) -> Ints:
        policy = self.policy()
        self.played.append(policy)
        draws = rng.random(self.shape[:2])
        return np.asarray((draws[..., np.newaxis] >= policy.cumsum(axis=2)[..., :-1]).sum(axis=2))


@pytest.mark.parametrize("known", [True, False])
def test_it_does_what_its_transcription_does(known: bool) -> None:
    mdp = told(SMALL) if known else FiniteMDP(SMALL.transitions, SMALL.rewards, start=[0.5, 0.5, 0])
    settings = DelayedOPPO(step_size=0.2, exploration=0.1, confidence=0.02, episodes=30)
    agent, naive = settings.start(mdp.problem), NaiveOPPO(mdp, settings)
    ours, theirs, world = stream(0, "agent"), stream(0, "agent"), stream(0, "environment")
    delays = Poisson(3).sample(stream(0, "delay"), 30)
    buffer: FeedbackQueue[Trajectory] = FeedbackQueue()
    for k, delay in enumerate(delays):
        batch = sorted(buffer.arrived(k), key=lambda each: each[0])
        agent.learn([Feedback(*each) for each in reversed(batch)])
        if batch:
            naive.learn(batch)
        table = agent.plan(ours).actions
        np.testing.assert_array_equal(table, naive.plan(theirs), err_msg=f"episode {k}")
        np.testing.assert_allclose(agent.policy(), naive.played[-1], rtol=1e-9)
        buffer.add(k, int(delay), mdp.rollout(TablePolicy(table), world))
    assert np.abs(agent.policy() - 0.5).max() > 0.2


def test_with_known_dynamics_the_estimate_is_unbiased() -> None:
    """Weighed by its probability, what each trajectory changes sums to −ηQ as γ → 0."""
    mdp = told(SMALL)
    settings = DelayedOPPO(step_size=1.0, exploration=1e-300)
    agent, past = settings.start(mdp.problem), some_policy((3, 3, 2))
    expected = np.zeros((3, 3, 2))
    for chance, trajectory in paths(mdp, past):
        scores = np.zeros((3, 3, 2))
        settings.improve(agent.model, past, past, trajectory, agent.rates, scores)
        expected -= chance * scores
    np.testing.assert_allclose(expected, action_costs(mdp, past), rtol=1e-8)


@pytest.mark.parametrize("algorithm", [DelayedOPPO, DelayedDAPO])
def test_with_one_state_and_step_it_is_exp3_ix(algorithm: type[PolicyOptimisation]) -> None:
    eta, gamma, rewards = 0.3, 0.15, np.random.default_rng(0).random((50, 1, 1, 4))
    mdp = AdversarialMDP.from_tables(np.ones((1, 4, 1)), rewards, known_dynamics=True)
    agent = algorithm(step_size=eta, exploration=gamma).start(mdp.problem)
    losses, ours, world = np.zeros(4), stream(3, "agent"), stream(3, "environment")
    theirs = stream(3, "agent")
    for k in range(50):
        weights = np.exp(-eta * losses)
        policy = weights / weights.sum()
        table = agent.plan(ours)
        arm = int((theirs.random() >= policy.cumsum()[:-1]).sum())
        assert table.actions.tolist() == [[arm]]
        np.testing.assert_allclose(agent.policy()[0, 0], policy, rtol=1e-9)
        agent.learn([Feedback(k, mdp.rollout(table, world, episode=k))])
        losses[arm] += (1 - rewards[k, 0, 0, arm]) / (policy[arm] + gamma)


def test_with_one_state_every_step_is_a_bandit_of_its_own() -> None:
    eta, gamma, rewards = 0.2, 0.1, np.random.default_rng(1).random((40, 3, 1, 3))
    mdp = AdversarialMDP.from_tables(np.ones((1, 3, 1)), rewards, known_dynamics=True)
    agent, rng = DelayedOPPO(step_size=eta, exploration=gamma).start(mdp.problem), stream(0, "agent")
    losses = np.zeros((3, 3))
    for k in range(40):
        table = agent.plan(rng)
        weights = np.exp(-eta * losses)
        policy = weights / weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(agent.policy()[:, 0], policy, rtol=1e-9)
        agent.learn([Feedback(k, mdp.rollout(table, rng, episode=k))])
        for h, a in enumerate(table.actions[:, 0]):
            losses[h, a] += (1 - rewards[k, h, 0, a]) / (policy[h, a] + gamma)


def test_the_rates_of_the_theory() -> None:
    problem = AdversarialMDP(states=5, actions=3, horizon=4).problem
    eta, gamma = DelayedOPPO(episodes=100, mean_delay=9).rates(problem)
    assert gamma == pytest.approx((4 * math.sqrt(math.log(3) * 1000) / 1500) ** (2 / 3))
    assert eta == pytest.approx(math.sqrt(gamma * math.log(3) / 1000) / 4)
    # neither term of the bound can be made smaller by a little change
    bound = [
        4 * math.log(3) / (eta * x) + eta * x * 64 * 1000 / (gamma * y) + gamma * y * 4 * 15 * 100
        for x, y in ((1, 1), (1.1, 1), (0.9, 1), (1, 1.1), (1, 0.9))
    ]
    assert min(bound) == bound[0]
    assert DelayedOPPO(step_size=0.5, exploration=0.25).rates(problem) == (0.5, 0.25)


def test_it_learns_and_is_not_lured() -> None:
    mdp = AdversarialMDP(states=2, actions=3, horizon=2, adversary="trap", period=800, seed=1)
    settings = {
        "oppo": DelayedOPPO(step_size=0.1, exploration=0.05, confidence=0.01),
        "dapo": DelayedDAPO(step_size=0.03, exploration=0.05, confidence=0.01, bonus_scale=0.1),
        "ucbvi": TabularUCBVI(bonus_scale=0.002),
        "random": RandomPolicy(),
    }
    regret = {
        name: np.mean(
            [simulate(mdp, each, Poisson(10), episodes=800, seed=s, record_every=800)["regret"][-1] for s in range(2)]
        )
        for name, each in settings.items()
    }
    assert regret["oppo"] < min(0.3 * regret["random"], regret["ucbvi"])
    assert regret["dapo"] < 0.6 * regret["random"]


def test_what_happens_in_a_run_depends_on_the_seed_alone() -> None:
    mdp = AdversarialMDP(states=2, actions=2, horizon=2, period=50)
    runs = [simulate(mdp, DelayedOPPO(step_size=0.1), Constant(3), episodes=60, seed=s) for s in (1, 1, 2)]
    assert runs[0].equals(runs[1])
    assert not runs[0].equals(runs[2])
