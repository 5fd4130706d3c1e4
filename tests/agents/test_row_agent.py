"""Agents on very many features, whose regressions are kept by their rows, against dense matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tiny_simulators import ACTIONS, HORIZON, MAPS, STATES, feedback_of, problem_of, random_episodes

from belated import (
    AutoPSVI,
    DelayedLPSVI,
    DelayedPHE,
    DelayedPSVI,
    DelayedUCBVI,
    Feedback,
    Greedy,
    InvalidInputError,
    RandomLinearMDP,
)
from belated._kernels import sparse_ridge
from belated._kernels.jit import entry_point
from belated.agents import Settings
from belated.agents import _row_regression as rows_module
from belated.agents._auto import sparse as auto_module
from belated.agents._auto_psvi import Ablation
from belated.agents._row_agent import RowAgent, RowPolicy
from belated.agents._sparse import WeightAgent
from belated.features import Hashed, Joint
from belated.testing import AGENT_CHECKS
from belated.testing import _agents as checks
from belated.types import Floats, SimulatorProblem, SparseRows, SparseVector

SIGMA, RIDGE = 0.5, 2.0
SIZE, APART, FIRST = 2**13, 999, 5
standard_normals = entry_point(sparse_ridge.standard_normals)


class Wide:
    """The features of a tiny map, far apart among very many."""

    size = SIZE

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def encode(self, observation: int) -> Any:
        found = self.inner.encode(observation)
        return found._replace(indices=found.indices * APART + FIRST)


class WidePairs(Wide):
    actions = ACTIONS


def wide(features: str) -> Wide:
    return WidePairs(MAPS[features]) if features == "joint" else Wide(MAPS[features])


def wide_problem(features: str) -> SimulatorProblem:
    return SimulatorProblem(wide(features), HORIZON, actions=ACTIONS)


def wide_feedback(features: str, count: int, seed: int = 0) -> list[Feedback]:
    played = feedback_of(MAPS[features], random_episodes(count, seed))
    for each in played:
        states: Any = each.trajectory.states
        object.__setattr__(each.trajectory, "states", [s._replace(indices=s.indices * APART + FIRST) for s in states])
    return played


@pytest.fixture
def _tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweep until rounding alone is left, and keep AutoPSVI's regressions by their rows, too."""
    monkeypatch.setattr(rows_module, "TOLERANCE", 2e-5)
    monkeypatch.setattr(rows_module, "MOST_SWEEPS", 5000)


def values_of(policy: Any, states: list[Any]) -> Floats:
    """Return the action values of all steps and states."""
    found = np.zeros((HORIZON, len(states), ACTIONS))
    for h in range(HORIZON):
        for s, state in enumerate(states):
            policy._best(h, state)
            found[h, s] = policy._q
    return found


@pytest.mark.usefixtures("_tight")
@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize(
    "settings",
    [
        Greedy(ridge=RIDGE),
        Greedy(ridge=RIDGE, shared=True),
        DelayedPSVI(scale=0.0, noise=SIGMA, ridge=RIDGE, shared=True),
        DelayedPHE(scale=0.0, noise=SIGMA, ridge=RIDGE, tolerance=1e-10),
        DelayedLPSVI(temperature=0.0, noise=SIGMA, ridge=RIDGE, sampler="preconditioned", step_ratio=0.01, shared=True),
        DelayedLPSVI(temperature=0.0, noise=SIGMA, ridge=RIDGE, steps=7),
        DelayedLPSVI(temperature=0.0, noise=SIGMA, ridge=RIDGE, steps=7, warm_start="step", shared=True),
        DelayedLPSVI(temperature=0.0, noise=SIGMA, ridge=RIDGE, steps=7, warm_start="cold", sampler="collapsed"),
        AutoPSVI(ablation=Ablation(residual=0.0, hidden=0.0, prior=0.0)),
        AutoPSVI(ablation=Ablation(residual=0.0, hidden=0.0, prior=0.0, shared=False)),
    ],
    ids=str,
)
def test_without_noise_values_are_those_of_matrices(
    settings: Settings, features: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact, by_rows = settings.start(problem_of(MAPS[features])), settings.start(wide_problem(features))
    assert isinstance(settings, AutoPSVI) or (isinstance(exact, WeightAgent) and isinstance(by_rows, RowAgent))
    few, more = random_episodes(6), random_episodes(4, seed=9)
    for episodes, first in ((few, 0), (more, 6)):
        plain = [Feedback(first + k, each.trajectory) for k, each in enumerate(feedback_of(MAPS[features], episodes))]
        seed = 0 if episodes is few else 9
        spread = [
            Feedback(first + k, each.trajectory) for k, each in enumerate(wide_feedback(features, len(episodes), seed))
        ]
        exact.learn(plain)
        by_rows.learn(spread)
        found = []
        for agent, encode, most in ((exact, MAPS[features].encode, 10**9), (by_rows, wide(features).encode, 0)):
            monkeypatch.setattr(auto_module, "MOST_EXACT", most)
            policy: Any = agent.plan_now(np.random.default_rng(first))  # type: ignore[attr-defined]
            found.append(values_of(policy, [encode(s) for s in range(STATES)]))
        np.testing.assert_allclose(found[1], found[0], atol=2e-3)


def regression_of(agent: RowAgent, draws: int, steps: int = 2) -> rows_module.RowRegression:
    layout = rows_module.make_layout(agent.store.states(), ACTIONS, joint=agent.problem.joint)
    return rows_module.RowRegression(
        layout, agent.store.rows(), slot=0, steps=steps, draws=draws, noise=SIGMA, ridge=RIDGE, seed=3
    )


def learned(settings: Settings, features: str, count: int = 8) -> RowAgent:
    agent = settings.start(wide_problem(features))
    assert isinstance(agent, RowAgent)
    agent.learn(wide_feedback(features, count))
    return agent


def normals(seed: int, keys: npt.NDArray[np.int64], count: int) -> Floats:
    found = np.empty((len(keys), count), np.float32)
    for key, row in zip(keys, found, strict=True):
        standard_normals(seed, int(key), row)
    return found.astype(np.float64)


@pytest.mark.usefixtures("_tight")
@pytest.mark.parametrize("features", MAPS)
def test_a_draw_is_the_solution_of_a_perturbed_regression(features: str) -> None:
    agent = learned(Greedy(shared=True), features)
    regression = regression_of(agent, draws=2)
    seen: dict[bytes, int] = {}
    visits = 0.0
    for feedback in wide_feedback(features, 8):
        for state, action in zip(feedback.trajectory.states, feedback.trajectory.actions.tolist(), strict=False):
            x, own, given = np.zeros(SIZE * ACTIONS), np.zeros(SIZE), state
            if isinstance(given, SparseRows):
                part = slice(given.starts[action], given.starts[action + 1])
                x = np.zeros(SIZE)
                x[given.indices[part]] = given.values[part]
            else:
                assert isinstance(given, SparseVector)
                own[given.indices] = given.values
                x[action::ACTIONS] = own
            seen[x.tobytes()] = seen.get(x.tobytes(), 0) + 1
            visits += 1
    phi = np.zeros((len(regression.keys), SIZE * agent.blocks))
    phi[:, regression.column_keys] = regression.phi.toarray()
    assert {row.tobytes(): n for row, n in zip(phi, regression.visits, strict=True)} == seen
    assert regression.visits.sum() == visits
    phi, n = regression.phi.toarray(), regression.visits
    omega = phi.T @ (n[:, np.newaxis] * phi) / SIGMA**2 + RIDGE * np.eye(phi.shape[1])
    rows, prior = normals(~3, regression.keys, 4), normals(3, regression.column_keys, 4)
    b = np.sqrt(RIDGE) * prior + phi.T @ (np.sqrt(n)[:, np.newaxis] / SIGMA * rows)
    np.testing.assert_allclose(regression.deviations, np.linalg.solve(omega, b), atol=1e-4)
    y = np.random.default_rng(0).normal(size=len(n))
    wanted = np.linalg.solve(omega, phi.T @ (n * y) / SIGMA**2)
    np.testing.assert_allclose(regression.mean(y, regression.zeros(1))[:, 0], wanted, atol=1e-4)
    warm = np.random.default_rng(1).normal(size=(len(n), 1)).astype(np.float32)
    np.testing.assert_allclose(regression.mean(y, warm)[:, 0], wanted, atol=1e-4)
    assert regression.largest_eigenvalue == pytest.approx(np.linalg.eigvalsh(omega)[-1], rel=1e-5)


@pytest.mark.usefixtures("_tight")
def test_draws_of_phe_and_of_chains_have_their_covariances() -> None:
    draws, gamma, steps = 3000, 1.7, 3
    regression = regression_of(learned(Greedy(shared=True), "joint"), draws=draws, steps=1)
    phi, n = regression.phi.toarray(), regression.visits
    omega = phi.T @ (n[:, np.newaxis] * phi) / SIGMA**2 + RIDGE * np.eye(phi.shape[1])
    start = np.zeros((phi.shape[1], draws), np.float32)
    step = rows_module.RowStep(0, np.zeros(len(n)), regression.zeros(1), lambda: start, start)
    given: dict[str, Any] = {"draws": draws, "noise": SIGMA, "ridge": RIDGE}
    a = np.eye(len(omega)) - 2.0 * 0.5 / np.linalg.eigvalsh(omega)[-1] * omega
    chain = (
        gamma * (np.eye(len(a)) - np.linalg.matrix_power(a, 2 * steps)) @ np.linalg.inv(omega @ (np.eye(len(a)) + a))
    )
    chains: dict[str, Any] = {"temperature": gamma, "steps": steps, **given}
    for settings, covariance in [
        (DelayedPSVI(scale=1.3, **given), 1.3**2 * np.linalg.inv(omega)),
        (DelayedPHE(scale=1.3, **given), 1.3**2 * np.linalg.inv(omega)),
        (DelayedLPSVI(sampler="preconditioned", **chains), gamma * np.linalg.inv(omega)),
        (DelayedLPSVI(sampler="plain", **chains), chain),
    ]:
        drawn, _ = settings.draw_rows(regression, step, np.random.default_rng(5))
        width = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / draws)
        assert (np.abs(np.cov(drawn) - covariance) < 5.0 * width).all(), settings


@pytest.mark.usefixtures("_tight")
def test_the_noise_of_auto_psvi_has_its_covariance(monkeypatch: pytest.MonkeyPatch) -> None:
    """w − ŵ of the last step: s²(I − λΩ⁻¹)Ω⁻¹(I − λΩ⁻¹) + σ₀²Ω⁻¹DΩ⁻¹ + τ²λ²Ω⁻²."""
    monkeypatch.setattr(auto_module, "MOST_EXACT", 0)
    agent: Any = AutoPSVI().start(wide_problem("joint"))
    agent.learn(wide_feedback("joint", 8))
    count = 1500
    plans = agent.plan_set(np.random.default_rng(1), count)
    drawn = plans.weights[:, HORIZON - 1, 0, 0]
    table, rule = MAPS["joint"].table, agent._rule
    played = [each.trajectory for each in feedback_of(MAPS["joint"], random_episodes(8))]
    raw = random_episodes(8)
    phi = np.concatenate([table[each.rows[:-1], each.actions] for each in raw])
    y = np.concatenate([each.rewards for each in played]) - rule.high  # one step to go
    seen = np.unique(np.concatenate([each.rows for each in raw]))
    norm = np.linalg.norm(table[seen].reshape(-1, 4), axis=1).max()
    ridge = rule.ridge * norm**2
    omega = phi.T @ phi + ridge * np.eye(4)
    inverse = np.linalg.inv(omega)
    leverages = np.einsum("ij,jk,ik->i", phi, inverse, phi)
    mean = inverse @ phi.T @ y
    residuals = float(((y - phi @ mean) ** 2).sum())
    width = rule.residual * np.sqrt(residuals / len(y))
    outcomes = agent.store.outcomes()
    hidden = rule.hidden * np.sqrt((0.5 + outcomes[1]) / (1.0 + outcomes[0]))
    hidden = min(hidden, rule.hidden * np.sqrt((residuals / rule.span**2 + 2) / ((1 - leverages).sum() + 2)))
    shrink = np.eye(4) - ridge * inverse
    covariance = width**2 * shrink @ inverse @ shrink.T
    covariance += hidden**2 * inverse @ (phi.T @ (leverages[:, np.newaxis] * phi)) @ inverse
    covariance += (rule.prior * ridge / norm) ** 2 * inverse @ inverse
    error = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / count)
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=5 * np.sqrt(covariance.max() / count))
    assert (np.abs(np.cov(drawn.T) - covariance) < 6.0 * error).all()


def test_features_that_were_never_seen_have_prior_draws() -> None:
    settings = DelayedPSVI(scale=1.5, draws=2, noise=SIGMA, ridge=RIDGE, shared=True)
    agent = learned(settings, "stacked")
    policy = agent.plan(np.random.default_rng(0))
    assert isinstance(policy, RowPolicy)
    unseen = SparseVector(np.array([17, 4000]), np.array([1.0, -2.0]))
    values = values_of(policy, [unseen])[:, 0]
    seed = int(agent.row_plan.seeds[0])
    for action in range(ACTIONS):
        drawn = normals(seed, unseen.indices * ACTIONS + action, HORIZON * 2) * 1.5 / np.sqrt(RIDGE)
        wanted = (unseen.values @ drawn).reshape(HORIZON, 2).max(axis=1)
        np.testing.assert_allclose(values[:, action], wanted, rtol=1e-5)
    again = agent.plan_now(np.random.default_rng(1))
    assert not np.allclose(values_of(again, [unseen])[:, 0], values)  # another plan, another draw


def state_features(observation: int, action: int) -> Floats:
    """φ(s, a) among 5 000 features."""
    found = np.zeros(5000)
    found[0], found[100 + observation], found[200 + action], found[300 + observation * ACTIONS + action] = 1, 1, 1, 0.5
    return found


def _wide_worlds(algorithm: Any) -> Iterator[checks.World]:
    model = RandomLinearMDP(states=4, actions=3, dimension=3, horizon=3, seed=1, bernoulli=True)
    mdp = checks._homogeneous(model)
    yield checks.SimulatorWorld(mdp, Hashed(size=2**13))
    yield checks.SimulatorWorld(mdp, Joint(function=f"{__name__}:state_features", actions=3, width=5000))


@pytest.mark.parametrize(
    "check", [each for each in AGENT_CHECKS if "loops" not in each.__name__], ids=lambda c: c.__name__
)
def test_agents_by_rows_keep_the_contract(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_worlds", _wide_worlds)
    monkeypatch.setattr(checks, "pair_features", state_features)
    monkeypatch.setattr(auto_module, "MOST_EXACT", 0)
    for algorithm in (
        DelayedPSVI(),
        DelayedPSVI(shared=True),
        DelayedPHE(),
        DelayedLPSVI(),
        AutoPSVI(),
    ):
        if check.__name__ != "simulators_and_tables_agree":
            check(algorithm)


def test_rows_are_capped_and_go_on_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belated.agents._row_agent.MOST_ROWS", 10)
    settings = DelayedPSVI(shared=True)
    agent, again = learned(settings, "stacked", 30), settings.start(wide_problem("stacked"))
    assert isinstance(again, RowAgent) and len(agent.store) <= 12 < agent.progress.arrived
    agent.plan(np.random.default_rng(0))
    again.restore({name: np.array(values) for name, values in agent.memory().items()})
    for _ in range(2):
        one, two = (each.plan_now(np.random.default_rng(2)) for each in (agent, again))
        states = [wide("stacked").encode(s) for s in range(STATES)]
        np.testing.assert_array_equal(values_of(one, states), values_of(two, states))


def test_what_does_not_fit_is_refused() -> None:
    agent = learned(DelayedPSVI(), "stacked")
    agent.plan(np.random.default_rng(0))
    for name, bad in [
        ("plan.features", np.array([3, 3, 1])),
        ("plan.weights", np.zeros((HORIZON, 1, 2), np.float32)),
        ("plan.seeds", np.zeros(1, np.int64)),
        ("plan.ends", np.array([5, 3, 9])),
        ("plan.duals", np.zeros((2, 1), np.float32)),
        ("plan.spread", np.zeros(7)),
    ]:
        with pytest.raises(InvalidInputError, match="memory must hold a plan for this problem"):
            agent.restore({**agent.memory(), name: bad})
    with pytest.raises(InvalidInputError, match=r"features\.size must be at most 4096 for sets of plans, got 8192"):
        agent.plan_set(np.random.default_rng(0), 2)
    assert isinstance(DelayedUCBVI().start(wide_problem("stacked")), WeightAgent)  # its bonus needs the matrix
