"""Delayed OPPO, and what it shares with DAPO: occupancy measures, confidence sets, the memory of policies under way."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from belated import checks
from belated.algorithms import DelayedDAPO, DelayedOPPO, RandomPolicy, TabularUCBVI, load_agent, save_agent
from belated.algorithms.occupancy import (
    Model,
    PolicyOptimisation,
    confidence_bounds,
    extreme_mean,
    occupancy,
    occupancy_bound,
    rank,
)
from belated.delays import Constant, DelayBuffer, Poisson
from belated.environments import AdversarialMDP, FiniteMDP, RandomLinearMDP
from belated.errors import InvalidInputError
from belated.rng import stream
from belated.runner import simulate
from belated.types import Dynamics, Feedback, Floats, Ints, Policy, Problem, Trajectory

SMALL = RandomLinearMDP(states=3, actions=2, dimension=3, horizon=3, seed=4)
EACH = pytest.mark.parametrize("settings", [DelayedOPPO(step_size=0.1), DelayedDAPO(step_size=0.1)], ids=str)


def told(mdp: FiniteMDP) -> FiniteMDP:
    """Return `mdp` with a random start and dynamics that the agent may know."""
    start = np.random.default_rng(1).dirichlet(np.ones(mdp.states))
    return FiniteMDP(mdp.transitions, mdp.rewards, start=start, known_dynamics=True)


def some_policy(shape: tuple[int, ...], seed: int = 0) -> Floats:
    return np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), size=shape[:-1])


def some_model(horizon: int, states: int, actions: int, rng: np.random.Generator, width: float = 0.3) -> Model:
    """Return bounds around random dynamics, which are within them."""
    law, start = rng.dirichlet(np.ones(states), size=(horizon, states, actions)), rng.dirichlet(np.ones(states))
    below, above = rng.random((2, *law.shape)) * width
    return Model(np.maximum(law - below, 0), np.minimum(law + above, 1), start * 0.8, np.minimum(start + 0.1, 1), False)


def paths(mdp: FiniteMDP, policy: Floats) -> list[tuple[float, Trajectory]]:
    """Return every trajectory of `policy` with its probability."""
    found = []
    steps = range(mdp.horizon)
    for states in itertools.product(range(mdp.states), repeat=mdp.horizon + 1):
        for actions in itertools.product(range(mdp.actions), repeat=mdp.horizon):
            chance = float(mdp.start[states[0]])
            for h in steps:
                chance *= policy[h, states[h], actions[h]] * mdp.transitions[h, states[h], actions[h], states[h + 1]]
            if chance > 0:
                rewards = np.array([mdp.rewards[h, states[h], actions[h]] for h in steps])
                found.append((chance, Trajectory(np.array(states), np.array(actions), rewards)))
    return found


def action_costs(mdp: FiniteMDP, policy: Floats) -> Floats:
    """Return Q_h(s, a) of `policy` in costs 1 − r."""
    q, value = np.zeros(policy.shape), np.zeros(mdp.states)
    for h in reversed(range(mdp.horizon)):
        q[h] = 1 - mdp.rewards[h] + mdp.transitions[h] @ value
        value = (policy[h] * q[h]).sum(axis=1)
    return q


def naive_mean(low: Floats, high: Floats, values: Floats, upper: bool) -> float:
    law = low.copy()
    for s in sorted(range(len(values)), key=lambda s: values[s], reverse=upper):
        law[s] = min(high[s], low[s] + max(1 - law.sum(), 0))
    return float(law @ values)


def naive_reach(model: Model, policy: Floats, upper: bool) -> Floats:
    horizon, states, actions = policy.shape
    reached = np.zeros((horizon, states))
    for h, s in itertools.product(range(horizon), range(states)):
        chance = np.eye(states)[s]
        for t in reversed(range(h)):
            chance = np.array(
                [
                    sum(
                        policy[t, x, a] * naive_mean(model.low[t, x, a], model.high[t, x, a], chance, upper)
                        for a in range(actions)
                    )
                    for x in range(states)
                ]
            )
        reached[h, s] = naive_mean(model.start_low, model.start_high, chance, upper)
    return reached


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
            after = [t.states[h + 1] for t in self.seen if (t.states[h], t.actions[h]) == (s, a)]
            low[h, s, a], high[h, s, a] = self.bounds(after)
        return Model(low, high, *self.bounds([t.states[0] for t in self.seen]), False)

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
            s, a = int(t.states[h]), int(t.actions[h])
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
    buffer: DelayBuffer[Trajectory] = DelayBuffer()
    for k, delay in enumerate(delays):
        batch = sorted(buffer.arrived(k), key=lambda each: each[0])
        agent.learn([Feedback(*each) for each in reversed(batch)])
        if batch:
            naive.learn(batch)
        table = agent.plan(ours).actions
        np.testing.assert_array_equal(table, naive.plan(theirs), err_msg=f"episode {k}")
        np.testing.assert_allclose(agent.policy(), naive.played[-1], rtol=1e-9)
        buffer.add(k, int(delay), mdp.rollout(Policy(table), world))
    assert np.abs(agent.policy() - 0.5).max() > 0.2


@pytest.mark.parametrize("upper", [True, False])
def test_the_extreme_mean_solves_its_linear_programme(upper: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        values, law = rng.random(5), rng.dirichlet(np.ones(5))
        low, high = np.maximum(law - rng.random(5) * 0.3, 0), np.minimum(law + rng.random(5) * 0.3, 1)
        order = np.zeros(5, np.int64)
        rank(values, upper, order)
        sign = -1 if upper else 1
        best = linprog(sign * values, A_eq=np.ones((1, 5)), b_eq=[1], bounds=list(zip(low, high, strict=True)))
        assert extreme_mean(low, high, order, values) == pytest.approx(sign * best.fun, abs=1e-9)


@pytest.mark.parametrize("values", [[0.3, 0.1, 0.3, 0.2], [1.0, 1.0], [2.0]])
def test_ranks_leave_ties_in_place(values: list[float]) -> None:
    order = np.full(len(values), 7)
    for largest_first in (True, False):
        rank(np.array(values), largest_first, order)
        assert order.tolist() == sorted(range(len(values)), key=lambda i: values[i], reverse=largest_first)


def test_occupancy_is_the_sum_over_all_paths() -> None:
    mdp, policy = told(SMALL), some_policy((3, 3, 2))
    expected = np.zeros((3, 3))
    for chance, trajectory in paths(mdp, policy):
        expected[np.arange(3), trajectory.states[:-1]] += chance
    law, reached = np.array(mdp.transitions), np.zeros((3, 3))
    occupancy(Model(law, law, mdp.start, mdp.start, True), policy, reached)
    np.testing.assert_allclose(reached, expected, rtol=1e-12)
    wide = np.zeros((3, 3))
    for upper in (True, False):  # bounds that agree leave no choice
        occupancy_bound(Model(law, law, mdp.start, mdp.start, False), policy, upper, wide)
        np.testing.assert_allclose(wide, expected, rtol=1e-12)


def test_the_bounds_of_the_occupancy_hold_and_are_reached() -> None:
    rng = np.random.default_rng(2)
    for _ in range(5):
        model, policy = some_model(3, 3, 2, rng), some_policy((3, 3, 2), seed=5)
        most, least, reached = np.zeros((3, 3, 3))
        occupancy_bound(model, policy, True, most)
        occupancy_bound(model, policy, False, least)
        np.testing.assert_allclose(most, naive_reach(model, policy, True), rtol=1e-12)
        np.testing.assert_allclose(least, naive_reach(model, policy, False), rtol=1e-12)
        nearest = np.full((2, 3), np.inf)
        for _ in range(200):
            law, start = corner(model.low, model.high, rng), corner(model.start_low, model.start_high, rng)
            occupancy(Model(law, law, start, start, True), policy, reached)
            assert (reached <= most + 1e-12).all() and (reached >= least - 1e-12).all()
            nearest = np.minimum(nearest, [most[0] - reached[0], reached[0] - least[0]])
        assert nearest.max() < 1e-9  # the start alone has few corners: all of them are met


def corner(low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
    """Return a law within the bounds, filled up in a random order in each row."""
    law = low.copy().reshape(-1, low.shape[-1])
    for row, top in zip(law, high.reshape(law.shape), strict=True):
        for s in rng.permutation(row.size):
            row[s] = min(top[s], row[s] + max(1 - row.sum(), 0))
    return law.reshape(low.shape)


def test_confidence_bounds() -> None:
    low, high = np.zeros((2, 2))
    confidence_bounds(np.array([0, 0]), 3.0, 1.0, low, high)
    assert (low.tolist(), high.tolist()) == ([0, 0], [1, 1])
    confidence_bounds(np.array([1, 3]), 3.0, 0.0, low, high)
    assert low.tolist() == high.tolist() == [0.25, 0.75]
    confidence_bounds(np.array([250, 751]), 3.0, 0.5, low, high)
    mean = 250 / 1001
    width = 0.5 * (2 * math.sqrt(mean * 3 / 1000) + 14 * 3 / 3000)
    assert (low[0], high[0]) == (pytest.approx(mean - width), pytest.approx(mean + width))


def test_the_sets_hold_the_truth_and_the_occupancy_is_bounded() -> None:
    mdp, rng = FiniteMDP(SMALL.transitions, SMALL.rewards), np.random.default_rng(0)
    agent, explorer = DelayedOPPO(confidence=0.2).start(mdp.problem), RandomPolicy().start(mdp.problem)
    agent.learn([Feedback(k, mdp.rollout(explorer.plan(rng), rng)) for k in range(400)])
    agent.plan(rng)
    assert (agent.model.low <= mdp.transitions + 1e-12).all() and (mdp.transitions <= agent.model.high + 1e-12).all()
    law, policy = np.array(mdp.transitions), some_policy((3, 3, 2))
    true, most, least = np.zeros((3, 3, 3))
    occupancy(Model(law, law, mdp.start, mdp.start, True), policy, true)
    occupancy_bound(agent.model, policy, True, most)
    occupancy_bound(agent.model, policy, False, least)
    assert (least <= true + 1e-12).all() and (true <= most + 1e-12).all()
    assert (most[1:] - least[1:]).min() > 1e-3
    assert (most[1:] - least[1:]).max() < 0.9


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


class Told:
    """The same algorithm, told uniform dynamics, so that the checks go through that half of the code, too."""

    def __init__(self, settings: PolicyOptimisation) -> None:
        self.settings = settings

    def start(self, problem: Problem) -> Any:
        shape = (1, problem.states, problem.actions, problem.states)
        law = Dynamics(np.full(shape, 1 / problem.states), np.full(problem.states, 1 / problem.states))
        return self.settings.start(Problem(problem.features, problem.horizon, law))


@pytest.mark.parametrize("check", checks.ALL, ids=lambda check: check.__name__)
@EACH
def test_it_keeps_the_contract_of_an_agent(settings: PolicyOptimisation, check: checks.Check) -> None:
    check(settings)
    if check is not checks.survives_a_round_trip:  # which asks for the settings by their class
        check(Told(settings))


@EACH
def test_policies_are_kept_until_their_feedback_comes(settings: PolicyOptimisation) -> None:
    agent, rng = settings.start(SMALL.problem), np.random.default_rng(0)
    tables = [agent.plan(rng) for _ in range(4)]
    assert sorted(agent.in_flight) == [0, 1, 2, 3]
    agent.learn([Feedback(2, SMALL.rollout(tables[2], rng)), Feedback(0, SMALL.rollout(tables[0], rng))])
    assert sorted(agent.in_flight) == [0, 1, 2, 3]
    assert [episode for episode, _ in agent.arrived] == [0, 2]
    agent.plan(rng)
    assert sorted(agent.in_flight) == [1, 3, 4]
    assert agent.arrived == []


@EACH
def test_feedback_of_an_episode_it_has_not_planned_is_that_of_random_actions(settings: PolicyOptimisation) -> None:
    rng = np.random.default_rng(0)
    foreign = Feedback(3, SMALL.rollout(Policy(np.ones((3, 3), np.int64)), rng))
    agent, other = settings.start(SMALL.problem), settings.start(SMALL.problem)
    agent.learn([foreign])
    agent.plan(rng)
    other.plan(rng)  # before anything has arrived its policy is uniform
    other.learn([Feedback(0, foreign.trajectory)])
    other.plan(rng)
    np.testing.assert_array_equal(agent.scores, other.scores)
    assert np.abs(agent.scores).max() > 0


@EACH
def test_going_on_is_never_having_stopped(settings: PolicyOptimisation, tmp_path: Path) -> None:
    agent, rng, world = settings.start(told(SMALL).problem), stream(0, "agent"), stream(0, "environment")
    late = [Feedback(k, SMALL.rollout(agent.plan(rng), world)) for k in range(6)]
    agent.learn(late[:2])
    agent.plan(rng)
    agent.learn(late[4:1:-1])
    save_agent(tmp_path / "agent.npz", agent, rng)
    copy, copied = load_agent(tmp_path / "agent.npz")
    assert copied is not None
    assert repr(copy) == repr(agent)
    for name, values in agent.memory().items():
        np.testing.assert_array_equal(copy.memory()[name], values, err_msg=name)
    for batch in ([], late[5:]):
        agent.learn(batch)
        copy.learn(batch)
        np.testing.assert_array_equal(agent.plan(rng).actions, copy.plan(copied).actions)
        np.testing.assert_array_equal(agent.scores, copy.scores)


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("scores", np.full((3, 3, 2), np.nan), "must be finite"),
        ("scores", np.zeros((3, 2)), "must have shape"),
        ("followed", np.full((3, 3, 2, 3), -1), "must hold whole numbers"),
        ("starts", np.zeros(2, np.int64), "must have shape"),
        ("planned", np.array([-1]), "must hold whole numbers"),
        ("under_way.episodes", np.array([0, 1, 9]), r"must hold whole numbers in 0\.\.2, got 9"),
        ("under_way.episodes", np.array([0, 1, 1]), "must be episodes that are all different"),
        ("under_way.policies", np.ones((3, 3, 3, 2)), "must sum to one"),
        ("waiting.episodes", np.array([0, 1]), r"states.* must have shape \(2, 4\), got \(1, 4\)"),
        ("waiting.states", np.full((1, 4), 3), r"must hold whole numbers in 0\.\.2, got 3"),
        ("waiting.actions", np.full((1, 3), 2), r"must hold whole numbers in 0\.\.1, got 2"),
        ("waiting.rewards", np.full((1, 3), np.inf), "must be finite"),
    ],
)
def test_memory_that_does_not_fit_is_refused_and_changes_nothing(name: str, wrong: Any, message: str) -> None:
    agent, rng = DelayedOPPO().start(SMALL.problem), np.random.default_rng(0)
    late = [Feedback(k, SMALL.rollout(agent.plan(rng), rng)) for k in range(3)]
    agent.learn(late[1:2])
    before = {key: values.copy() for key, values in agent.memory().items()}
    with pytest.raises(InvalidInputError, match=message):
        agent.restore({**before, name: wrong})
    with pytest.raises(InvalidInputError, match="memory must hold the arrays"):
        agent.restore({key: values for key, values in before.items() if key != name})
    for key, values in agent.memory().items():
        np.testing.assert_array_equal(values, before[key], err_msg=key)


def test_only_an_algorithm_with_rates_and_an_update_can_start() -> None:
    with pytest.raises(TypeError, match="must define rates"):
        PolicyOptimisation().start(SMALL.problem)
    agent = DelayedOPPO().start(SMALL.problem)
    with pytest.raises(TypeError, match="must define improve"):
        none, policy = np.zeros((3, 3, 2)), some_policy((3, 3, 2))
        trajectory = SMALL.rollout(SMALL.optimal_policy(), np.random.default_rng(0))
        PolicyOptimisation().improve(agent.model, policy, policy, trajectory, agent.rates, none)
    with pytest.raises(InvalidInputError, match=r"rng must be a numpy\.random\.Generator"):
        agent.plan(0)  # type: ignore[arg-type]
    assert agent.planned == 0


def test_what_happens_in_a_run_depends_on_the_seed_alone() -> None:
    mdp = AdversarialMDP(states=2, actions=2, horizon=2, period=50)
    runs = [simulate(mdp, DelayedOPPO(step_size=0.1), Constant(3), episodes=60, seed=s) for s in (1, 1, 2)]
    assert runs[0].equals(runs[1])
    assert not runs[0].equals(runs[2])
