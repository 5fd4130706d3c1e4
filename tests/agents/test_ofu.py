"""Delayed OFU against a transcription with explicit inverses and determinants, and SciPy's logistic fit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import brentq, root
from scipy.special import expit

from belated._kernels.streams import stream
from belated.agents import RandomPolicy
from belated.agents._base import Learner
from belated.agents._ofu import DelayedOFU, add_widths, bonus, factorise
from belated.delays import Constant, DelayDistribution, FeedbackQueue, Lossy, Poisson
from belated.environments import FiniteMDP, RiverSwim
from belated.errors import InvalidInputError
from belated.runner import simulate
from belated.types import Feedback, TablePolicy, TableProblem, Trajectory

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LINKS = pytest.mark.parametrize("link", ["linear", "logistic"])


def bandit(contexts: int, actions: int = 5, dimension: int = 3, seed: int = 0, link: str = "linear") -> FiniteMDP:
    """Return a bandit with rewards of 0 or 1 and contexts drawn uniformly."""
    rng = np.random.default_rng(seed)
    features = rng.dirichlet(np.ones(dimension), size=(contexts, actions))
    transitions = np.full((contexts, actions, contexts), 1 / contexts)
    start = np.full(contexts, 1 / contexts)
    theta = rng.uniform(size=dimension)
    means = features @ theta if link == "linear" else expit(features @ (8 * theta - 4))
    return FiniteMDP(transitions, means, features=features, start=start, horizon=1, bernoulli=True)


class Naive:
    """Delayed OFU as it is written: keeps every round, and fits, inverts and takes determinants again for each plan."""

    def __init__(self, features: Floats, settings: DelayedOFU) -> None:
        self.features, self.settings = features, settings
        self.rounds: list[tuple[int, Floats, float]] = []

    def observe(self, arrival: int, x: Floats, y: float) -> None:
        self.rounds.append((arrival, x, y))

    def upper_bounds(self, k: int) -> tuple[Floats, Floats]:
        """Return θ̂ and the upper confidence bounds (S, A) of round k."""
        s, d = self.settings, self.features.shape[2]
        arrived = [(x, y) for arrival, x, y in self.rounds if arrival <= k - 1]
        x = np.array([each for each, _ in arrived]).reshape(-1, d)
        y = np.array([each for _, each in arrived])
        w = s.ridge * np.eye(d) + x.T @ x
        if s.link == "linear":
            kappa, theta = 1.0, np.linalg.inv(w) @ (x.T @ y)
        else:
            reach = s.norm_bound * max(1.0, np.linalg.norm(self.features, axis=2).max())
            kappa = expit(reach) * (1 - expit(reach))

            def score(theta: Floats) -> Floats:
                return np.asarray(x.T @ (y - expit(x @ theta)) - kappa * s.ridge * theta)

            theta = root(score, np.zeros(d), tol=1e-13).x
            assert np.abs(score(theta)).max() < 1e-9
        sign, log_det = np.linalg.slogdet(w)
        assert sign == 1
        log_ratio = log_det / 2 - math.log(s.delta) - d / 2 * math.log(s.ridge)
        width = math.sqrt(s.ridge) * s.norm_bound + s.noise / kappa * math.sqrt(2 * log_ratio)
        norms = np.sqrt(np.einsum("sai,ij,saj->sa", self.features, np.linalg.inv(w), self.features))
        return theta, self.features @ theta + s.bonus_scale * width * norms

    def plan(self, k: int, rng: np.random.Generator) -> tuple[Floats, Floats, Ints]:
        theta, upper = self.upper_bounds(k)
        policy = np.zeros((1, len(upper)), np.int64)
        for s, row in enumerate(upper):
            ties = np.flatnonzero(row >= row.max() - 1e-12 * max(1.0, abs(row.max())))
            draws = ties.size > 1 and self.settings.ties == "random"
            policy[0, s] = ties[int(rng.random() * ties.size)] if draws else ties[0]
        return theta, upper, policy


def play(
    mdp: FiniteMDP, settings: DelayedOFU, distribution: DelayDistribution, rounds: int
) -> Iterator[tuple[int, Learner, TablePolicy, Trajectory, int, np.random.Generator]]:
    """Play late rounds; yield after each its number, the agent, what was planned and seen, the delay, the stream."""
    agent = settings.start(mdp.problem)
    buffer: FeedbackQueue[Trajectory] = FeedbackQueue()
    rng, world = stream(1, "agent"), stream(1, "environment")
    for k, delay in enumerate(distribution.sample(stream(1, "delay"), rounds)):
        agent.learn([Feedback(*each) for each in buffer.arrived(k)])
        policy = agent.plan(rng)
        trajectory = mdp.rollout(policy, world)
        buffer.add(k, int(delay), trajectory)
        yield k, agent, policy, trajectory, int(delay), rng


def feedback(mdp: FiniteMDP, count: int) -> list[Feedback]:
    rng = stream(3, "explorer")
    tables = (TablePolicy(rng.integers(mdp.actions, size=(1, mdp.states))) for _ in range(count))
    return [Feedback(k, mdp.rollout(table, rng)) for k, table in enumerate(tables)]


SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "unusual": {"norm_bound": 2.5, "noise": 0.2, "delta": 0.3, "ridge": 0.4, "bonus_scale": 0.05, "ties": "first"},
    "narrow": {"norm_bound": 3.0, "ridge": 1e-3, "bonus_scale": 0.0},
}


@LINKS
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
@pytest.mark.parametrize("contexts", [1, 4])
@pytest.mark.parametrize("distribution", [Constant(0), Lossy(Poisson(4), 0.3)], ids=["at-once", "late"])
def test_plans_are_those_of_the_transcription(
    link: str, settings: dict[str, Any], contexts: int, distribution: DelayDistribution
) -> None:
    """Without delay, the linear transcription is OFUL of Abbasi-Yadkori et al. (2011)."""
    mdp, ofu = bandit(contexts, link=link), DelayedOFU(link=link, **settings)
    naive, copy = Naive(mdp.features, ofu), stream(1, "agent")
    for k, agent, policy, trajectory, delay, rng in play(mdp, ofu, distribution, 50):
        theta, upper, planned = naive.plan(k, copy)
        np.testing.assert_allclose(agent.memory()["weights"], theta, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(agent.record.work.values[0], upper.max(axis=1), rtol=1e-8)
        np.testing.assert_array_equal(policy.actions, planned, err_msg=f"round {k}")
        naive.observe(
            k + delay, mdp.features[trajectory.rows[0], trajectory.actions[0]], float(trajectory.rewards[0])
        )
        assert rng.bit_generator.state == copy.bit_generator.state


def test_the_first_bound_by_hand() -> None:
    """Before any reward W = λI, so √β = √λ·m₁ + R√(2·log(1/δ)) and the bound of x is √β‖x‖/√λ."""
    problem = TableProblem(np.array([[[3.0, 4.0]]]), 1)
    agent = DelayedOFU(norm_bound=2.0, noise=0.3, delta=0.1, ridge=4.0).start(problem)
    agent.plan(np.random.default_rng(0))
    root_beta = 2.0 * 2.0 + 0.3 * math.sqrt(2 * math.log(10))
    assert bonus(agent.record) == pytest.approx(root_beta, rel=1e-14)
    assert agent.record.work.values[0, 0] == pytest.approx(root_beta * 5.0 / 2.0, rel=1e-14)


def test_one_logistic_reward_by_hand() -> None:
    """With x = 1 and one reward of 1, θ̂ solves 1 − μ(θ) = κλθ, and κ = μ'(m₁)."""
    agent = DelayedOFU(link="logistic", norm_bound=1.5, ridge=2.0).start(TableProblem(np.ones((1, 1, 1)), 1))
    agent.learn([Feedback(0, Trajectory(np.zeros(2, int), np.zeros(1, int), np.ones(1)))])
    agent.plan(np.random.default_rng(0))
    theta, kappa = float(agent.memory()["weights"][0]), math.exp(1.5) / (1 + math.exp(1.5)) ** 2
    assert agent.record.slope == pytest.approx(kappa, rel=1e-14)
    assert 1 - 1 / (1 + math.exp(-theta)) == pytest.approx(kappa * 2.0 * theta, rel=1e-12)


@pytest.mark.parametrize(("norm", "reach"), [(0.25, 2.0), (1.0, 2.0), (3.0, 6.0)])
def test_the_least_slope_follows_the_features_above_norm_one(norm: float, reach: float) -> None:
    features = np.array([[[norm, 0.0], [0.0, norm / 2]]])
    record = DelayedOFU(link="logistic", norm_bound=2.0).record(TableProblem(features, 1))
    assert record.slope == pytest.approx(expit(reach) * expit(-reach), rel=1e-12)
    assert DelayedOFU(norm_bound=2.0).record(TableProblem(features, 1)).slope == 1.0


def test_widths_are_the_quadratic_form() -> None:
    rng = np.random.default_rng(0)
    d, contexts, actions = 7, 3, 11
    rows = rng.normal(size=(contexts * actions, d))
    data = rng.normal(size=(20, d))
    precision = data.T @ data + 0.3 * np.eye(d)
    factor = np.array(np.linalg.cholesky(precision).T, dtype=np.float64, order="C")
    columns = np.ascontiguousarray(rows.T)
    exact = np.sqrt(np.einsum("ai,ij,aj->a", rows, np.linalg.inv(precision), rows))
    for s in range(contexts):
        q = np.arange(float(actions))
        add_widths(factor, columns, s * actions, 0.5, np.full((d, actions), np.nan), np.empty(actions), q)
        wanted = np.arange(actions) + 0.5 * exact[s * actions : (s + 1) * actions]
        np.testing.assert_allclose(q, wanted, rtol=1e-12)


def test_the_factor_is_that_of_cholesky() -> None:
    data = np.random.default_rng(1).normal(size=(12, 6))
    matrix = data.T @ data
    factor = np.triu(matrix)
    factorise(factor)
    np.testing.assert_allclose(factor, np.linalg.cholesky(matrix).T, rtol=1e-11, atol=1e-12)


def test_a_logistic_fit_needs_no_past_rounds() -> None:
    """What is kept is counted: W and Σxy over all rounds, visits of the pairs that were seen, in order."""
    mdp = bandit(4, link="logistic")
    batch = feedback(mdp, 9)
    agent = DelayedOFU(link="logistic").start(mdp.problem)
    agent.learn(batch)
    memory = agent.memory()
    pairs = [int(t.rows[0] * 5 + t.actions[0]) for t in (each.trajectory for each in batch)]
    seen = np.unique(pairs)
    assert 1 < seen.size < 9, "some pair comes more than once"
    assert list(seen) != list(dict.fromkeys(pairs)), "they do not come in order"
    np.testing.assert_array_equal(memory["visited"], [*seen, *[-1] * (20 - seen.size)])
    np.testing.assert_array_equal(memory["visits"], np.bincount(pairs, minlength=20))
    assert memory["distinct"] == [seen.size]
    assert DelayedOFU().start(mdp.problem).memory()["visits"].size == 0


@pytest.mark.parametrize("ridge", [1e-8, 1.0])
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_a_logistic_fit_settles_from_any_start(ridge: float, scale: float) -> None:
    """Whatever the last θ̂ was, after one plan the score is zero: also where plain Newton steps would diverge."""
    rng = np.random.default_rng(2)
    features = scale * rng.normal(size=(1, 6, 3)) / math.sqrt(3)
    agent = DelayedOFU(link="logistic", ridge=ridge, norm_bound=1e-3).start(TableProblem(features, 1))
    actions, rewards = rng.integers(6, size=40), rng.integers(2, size=40).astype(float)
    states = np.zeros(2, np.int64)
    agent.learn([Feedback(k, Trajectory(states, actions[k : k + 1], rewards[k : k + 1])) for k in range(40)])
    x = features[0, actions]
    fits = []
    for start in (np.zeros(3), np.full(3, 40.0 / scale), rng.normal(size=3) * 10 / scale):
        agent.memory()["weights"][:] = start
        agent.memory()["stale"][:] = 1
        agent.plan(rng)
        theta = agent.memory()["weights"].copy()
        score = x.T @ (rewards - expit(x @ theta)) - agent.record.slope * ridge * theta
        np.testing.assert_allclose(score / scale, 0.0, atol=1e-8)
        fits.append(theta)
    np.testing.assert_allclose(fits[1:], [fits[0]] * 2, rtol=1e-6, atol=1e-8 / scale)


@pytest.mark.parametrize("ridge", [1e-9, 1e-3])
def test_a_logistic_fit_ends_where_rounding_is_all_that_is_left(ridge: float) -> None:
    """An action that always pays: the score n(1 − μ(θ)) − κλθ is known no better than to n·2⁻⁵³."""
    agent = DelayedOFU(link="logistic", ridge=ridge).start(TableProblem(np.ones((1, 1, 1)), 1))
    rounds, states = 10**6, np.zeros(2, np.int64)
    agent.learn([Feedback(0, Trajectory(states, states[:1], np.ones(1)))])
    agent.memory()["visits"][0] = rounds
    agent.memory()["moment"][0] = rounds
    agent.plan(np.random.default_rng(0))
    theta, penalty = float(agent.memory()["weights"][0]), agent.record.slope * ridge
    wanted = brentq(lambda z: math.log(rounds) - math.log1p(math.exp(z)) - math.log(penalty * z), 1.0, 100.0)
    assert theta == pytest.approx(wanted, abs=4 * rounds * 2**-53 / (penalty * wanted))


def test_a_fit_is_made_only_after_an_arrival() -> None:
    mdp, rng = bandit(2, link="logistic"), np.random.default_rng(0)
    agent = DelayedOFU(link="logistic").start(mdp.problem)
    agent.learn(feedback(mdp, 5))
    assert agent.memory()["stale"] == [1]
    agent.plan(rng)
    assert agent.memory()["stale"] == [0]
    before = agent.memory()["weights"].copy()
    agent.memory()["moment"][:] = np.nan  # would be noticed
    agent.plan(rng)
    np.testing.assert_array_equal(agent.memory()["weights"], before)


@LINKS
def test_planning_from_a_context_is_planning_there(link: str) -> None:
    mdp = bandit(4, link=link)
    agents = [DelayedOFU(link=link, bonus_scale=0.1, ties="first").start(mdp.problem) for _ in range(2)]
    rng = np.random.default_rng(7)
    for k, each in enumerate(feedback(mdp, 30)):
        whole, part = agents[0].plan(rng).actions, agents[1].plan_from(rng, k % 4).actions
        assert whole[0, k % 4] == part[0, k % 4]
        assert not np.delete(part, k % 4).any(), "the other contexts are left alone"
        for agent in agents:
            agent.learn([each])


@LINKS
def test_it_learns(link: str) -> None:
    mdp = bandit(2, actions=8, seed=3, link=link)
    settings = DelayedOFU(link=link, norm_bound=2.0, bonus_scale=0.2 if link == "linear" else 0.02)
    late: dict[str, Any] = {"delay": Poisson(10), "episodes": 3000, "seed": 0}
    ours, random = (simulate(mdp, each, **late)["regret"] for each in (settings, RandomPolicy()))
    assert ours[-1] < 0.15 * random[-1]
    assert ours[-1] - ours[1499] < 0.5 * ours[1499]  # sub-linear


def test_the_bounds_hold_about_as_often_as_they_should() -> None:
    """At the theory's width the truth is below its upper bound in every round and for every action, but rarely."""
    mdp = bandit(1, actions=6, seed=5)
    theta = np.linalg.lstsq(mdp.features[0], mdp.rewards[0, 0], rcond=None)[0]
    broken = 0
    for seed in range(20):
        agent = DelayedOFU(norm_bound=float(np.linalg.norm(theta)), delta=0.1).start(mdp.problem)
        rng = np.random.default_rng(seed)
        for k in range(60):
            policy = agent.plan(rng)
            memory, width = agent.memory(), bonus(agent.record)
            distance = memory["factor"] @ (memory["weights"] - theta)
            broken += bool(np.linalg.norm(distance) > width)  # θ* outside the ellipsoid
            agent.learn([Feedback(k, mdp.rollout(policy, rng))])
    assert broken <= 2 * 60


def test_more_than_one_step_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"^the problem's horizon must be 1, since DelayedOFU is .*, got 20$"):
        DelayedOFU().start(RiverSwim().problem)


def test_a_logistic_slope_of_zero_is_refused() -> None:
    problem = TableProblem(np.full((1, 2, 1), 4.0), 1)
    DelayedOFU(norm_bound=1e4).start(problem)
    with pytest.raises(InvalidInputError, match=r"^norm_bound must be small enough .* norm 4, got 200\.0$"):
        DelayedOFU(norm_bound=200.0, link="logistic").start(problem)
