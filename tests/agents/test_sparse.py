"""Agents in simulators against dense NumPy: the regressions themselves, and whole runs of the plain transcriptions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive import NaiveAgent, NaiveLPSVI, NaivePSVI, NaiveUCBVI
from threadpoolctl import threadpool_info, threadpool_limits
from tiny_simulators import (
    HORIZON,
    MAPS,
    STATES,
    WORLD,
    dense_features,
    encoded,
    feedback_of,
    problem_of,
    random_episodes,
)

import belated
from belated import DelayedLPSVI, DelayedPSVI, DelayedUCBVI, Feedback, Greedy, InvalidInputError, TablePolicy
from belated._kernels.streams import stream
from belated.agents import Settings
from belated.agents._sparse import WeightAgent
from belated.delays import FeedbackQueue, Poisson
from belated.features import OneHot
from belated.types import Floats, SimulatorProblem, Trajectory

NOISE, RIDGE = 0.5, 2.0


def started(algorithm: Settings, features: str) -> WeightAgent:
    agent = algorithm.start(problem_of(MAPS[features]))
    assert isinstance(agent, WeightAgent)
    return agent


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("features", MAPS)
def test_a_regression_is_that_of_dense_matrices(features: str, shared: bool) -> None:
    agent = started(DelayedPSVI(noise=NOISE, ridge=RIDGE, shared=shared), features)
    played = random_episodes(5)
    agent.learn(feedback_of(MAPS[features], played))
    phi = dense_features(MAPS[features])
    rng = np.random.default_rng(3)
    assert [span[1:] for span in agent.regressions()] == (
        [(0, HORIZON)] if shared else [(h, h + 1) for h in range(HORIZON - 1, -1, -1)]
    )
    for regression, first, last in agent.regressions():
        visited = np.concatenate([phi[each.rows[:-1], each.actions][first:last] for each in played])
        omega = visited.T @ visited / NOISE**2 + RIDGE * np.eye(phi.shape[2])
        upper = np.linalg.cholesky(omega).T
        x = rng.standard_normal((2, phi.shape[2]))
        np.testing.assert_allclose(regression.multiply(x), x @ omega, atol=1e-12)
        np.testing.assert_allclose(regression.solve(x), np.linalg.solve(upper, x.T).T, atol=1e-12)
        np.testing.assert_allclose(regression.solve_transposed(x), np.linalg.solve(upper.T, x.T).T, atol=1e-12)
        np.testing.assert_allclose(regression.mean(x[0]), np.linalg.solve(omega, x[0]), atol=1e-12)
        np.testing.assert_allclose(regression.diagonal, np.diag(omega), atol=1e-12)
        assert regression.log_determinant == pytest.approx(np.linalg.slogdet(omega)[1])
        assert regression.largest_eigenvalue == pytest.approx(np.linalg.eigvalsh(omega)[-1])
        there = regression.rotate(x, back=False)
        np.testing.assert_allclose(regression.rotate(there, back=True), x, atol=1e-12)
        np.testing.assert_allclose(agent.information()[first:last], np.linalg.slogdet(omega)[1], rtol=1e-12)


def test_without_data_only_the_ridge_is_there() -> None:
    agent = started(DelayedPSVI(ridge=RIDGE), "stacked")
    np.testing.assert_allclose(agent.information(), 9 * np.log(RIDGE))
    regression = agent.regressions()[0][0]
    np.testing.assert_allclose(regression.multiply(np.ones((1, 9))), np.full((1, 9), RIDGE))


class Remembering:
    """Keeps Q of every step as a transcription computes it."""

    def __init__(self, naive: NaiveAgent) -> None:
        self.naive, self.q = naive, np.zeros((naive.horizon, naive.states, naive.actions))
        compute = naive.action_values

        def action_values(episode: int, h: int, regression: Any, rng: np.random.Generator) -> Floats:
            found: Floats = compute(episode, h, regression, rng)
            self.q[h] = found
            return found

        naive.action_values = action_values  # type: ignore[method-assign]


COMMON: dict[str, Any] = {"ridge": RIDGE}
SAME: dict[str, tuple[Settings, type[NaiveAgent], dict[str, Any]]] = {
    "psvi": (
        DelayedPSVI(scale=0.05, draws=3, noise=NOISE, **COMMON),
        NaivePSVI,
        {"scale": 0.05, "draws": 3, "noise": NOISE, **COMMON},
    ),
    "psvi-shared": (
        DelayedPSVI(scale=0.05, noise=NOISE, shared=True, **COMMON),
        NaivePSVI,
        {"scale": 0.05, "draws": DelayedPSVI().draws, "noise": NOISE, "shared": True, **COMMON},
    ),
    "ucbvi": (DelayedUCBVI(bonus=0.1, **COMMON), NaiveUCBVI, {"bonus": 0.1, **COMMON}),
    "ucbvi-growing": (
        DelayedUCBVI(bonus_form="growing", bonus_ratio=0.01, **COMMON),
        NaiveUCBVI,
        {"bonus_form": "growing", "bonus_ratio": 0.01, **COMMON},
    ),
    "ucbvi-shared": (
        DelayedUCBVI(bonus=0.1, shared=True, **COMMON),
        NaiveUCBVI,
        {"bonus": 0.1, "shared": True, **COMMON},
    ),
    "greedy": (Greedy(**COMMON), NaiveUCBVI, {"bonus": 0.0, **COMMON}),
    **{
        f"lpsvi-{warm}": (
            DelayedLPSVI(sampler="plain", steps=7, temperature=1e-20, noise=NOISE, warm_start=warm, **COMMON),
            NaiveLPSVI,
            {
                "steps": 7,
                "temperature": 1e-20,
                "noise": NOISE,
                "warm_start": warm,
                "draws": DelayedLPSVI().draws,
                "step_ratio": DelayedLPSVI().step_ratio,
                **COMMON,
            },
        )
        for warm in ("episode", "step", "cold")
    },
}


@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize("name", SAME)
def test_a_run_is_that_of_the_transcription(name: str, features: str) -> None:
    """Weights are equal, and every action is a best one of the transcription's Q, under the same delays."""
    settings, transcription, given = SAME[name]
    agent, phi = started(settings, features), dense_features(MAPS[features])
    naive = transcription(phi, HORIZON, **given)
    remembered = Remembering(naive)
    queue: FeedbackQueue[Trajectory] = FeedbackQueue()
    delays, dynamics = Poisson(2).sample(stream(0, "delay"), 15), stream(0, "environment")
    left = HORIZON - np.arange(HORIZON)
    for k, delay in enumerate(delays):
        agent.learn([Feedback(origin, encoded(MAPS[features], late)) for origin, late in queue.arrived(k)])
        policy = agent.plan_now(np.random.default_rng(k))
        naive.plan(k, np.random.default_rng(k))
        if isinstance(naive, NaivePSVI | NaiveLPSVI):
            np.testing.assert_allclose(agent.weights.reshape(naive.weights.shape), naive.weights, atol=1e-8)
        q = np.minimum(remembered.q, left[:, None, None])
        chosen = np.array([[policy.act(h, MAPS[features].encode(s)) for s in range(STATES)] for h in range(HORIZON)])
        found = np.take_along_axis(q, chosen[:, :, None], axis=2)[:, :, 0]
        np.testing.assert_allclose(found, q.max(axis=2), atol=1e-7, err_msg=f"episode {k}")
        played = WORLD.rollout(TablePolicy(chosen), dynamics)
        queue.add(k, int(delay), played)
        naive.observe(k, int(delay), played.rows, played.actions, played.rewards)


def test_a_terminal_state_is_worth_nothing() -> None:
    """With a discount-free return of 1 at each step, what is cut is worth more than what ended."""
    features = MAPS["stacked"]
    first, last = features.encode(0), features.encode(1)
    values = []
    for terminated in (True, False):
        agent = started(Greedy(ridge=1e-6, shared=True), "stacked")
        late = Trajectory([first, last], np.array([0]), np.array([0.5]), terminated)
        onwards = Trajectory([last, first], np.array([0]), np.array([0.5]))
        agent.learn([Feedback(0, late), Feedback(1, onwards)])
        agent.plan_now(np.random.default_rng(0))
        values.append(float(first.values @ agent.weights[0, 0, 0][first.indices]))
    assert values == pytest.approx([0.5, 1.5], abs=1e-4)


def test_what_is_restored_goes_on_alike_and_what_does_not_fit_changes_nothing() -> None:
    agent = started(DelayedUCBVI(bonus=0.1), "joint")
    agent.learn(feedback_of(MAPS["joint"], random_episodes(8)))
    agent.plan(np.random.default_rng(0))
    again = started(DelayedUCBVI(bonus=0.1), "joint")
    memory = {name: values.copy() for name, values in agent.memory().items()}
    again.restore(memory)
    for twin in (agent, again):
        more = feedback_of(MAPS["joint"], random_episodes(3, seed=9))
        twin.learn([replace(each, episode=8 + each.episode) for each in more])
    one, other = (twin.plan_now(np.random.default_rng(1)) for twin in (agent, again))
    states = [MAPS["joint"].encode(s) for s in range(STATES)]
    assert [one.act(h, s) for h in range(HORIZON) for s in states] == [
        other.act(h, s) for h in range(HORIZON) for s in states
    ]
    np.testing.assert_array_equal(agent.weights, again.weights)
    kept = {name: values.copy() for name, values in again.memory().items()}
    for name, spoilt in {
        "weights": memory["weights"][:-1],
        "progress": memory["progress"][:-1],
        "widths.inverse": memory["widths.inverse"][:-1],
        "widths.starts": memory["widths.starts"][::-1],
    }.items():
        with pytest.raises(InvalidInputError, match="memory"):
            again.restore({**memory, name: spoilt})
    for name, values in again.memory().items():
        np.testing.assert_array_equal(values, kept[name])


def test_steps_share_a_regression_only_where_the_problem_allows_it() -> None:
    problem = belated.types.SimulatorProblem(MAPS["stacked"], HORIZON, actions=3, homogeneous=False)
    with pytest.raises(InvalidInputError, match=r"^shared must be False, since the problem is not homogeneous"):
        DelayedPSVI(shared=True).start(problem)


EXTREMES = [0.0, 1e-160, 1.0, -1.0, 1e8, -1e8, 1e12, -1e12]


@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize("algorithm", ["psvi", "lpsvi", "phe", "ucbvi", "greedy", "auto-psvi", "q-learning"])
def test_whatever_is_learned_can_be_planned_with(algorithm: str, features: str) -> None:
    """Features that share all but the last bits, and rewards of any size that is accepted."""
    problem = replace(problem_of(MAPS[features]), reward_range=(-1e12, 1e12))
    agent: Any = belated.agents.AGENTS[algorithm]().start(problem)
    rng = np.random.default_rng(0)
    for episode, played in enumerate(random_episodes(30)):
        late = encoded(MAPS[features], played)
        states = [state._replace(values=rng.choice(EXTREMES, state.values.size)) for state in late.states]
        agent.learn([Feedback(episode, replace(late, states=states, rewards=rng.choice(EXTREMES, HORIZON)))])
        policy = agent.plan(rng)
        assert all(0 <= policy.act(h, state) < problem.actions for h, state in enumerate(states[:-1]))


@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize("algorithm", ["psvi", "auto-psvi", "q-learning", "random"])
def test_a_number_that_is_too_large_is_refused_and_changes_nothing(algorithm: str, features: str) -> None:
    agent: Any = belated.agents.AGENTS[algorithm]().start(problem_of(MAPS[features]))
    good = encoded(MAPS[features], random_episodes(1)[0])
    first: Any = good.states[0]
    large = [first._replace(values=np.full(first.values.size, 1e200)), *good.states[1:]]
    before = {name: values.copy() for name, values in agent.memory().items()}
    for wrong, message in (
        (replace(good, states=large), r"trajectory.states\[0\] must be .* with values of at most 1e\+12 in magnitude"),
        (replace(good, rewards=np.full(HORIZON, 1e160)), r"trajectory.rewards must be of magnitude at most 1e\+12"),
        (replace(good, rewards=np.full(HORIZON, 1.5)), r"within the problem's reward_range \[0, 1\], got 1.5"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            agent.learn([Feedback(0, good), Feedback(1, wrong)])
    assert all(np.array_equal(values, before[name]) for name, values in agent.memory().items())


@pytest.mark.parametrize("algorithm", [DelayedPSVI(), belated.AutoPSVI()])
def test_a_learned_range_widens(algorithm: Settings, tmp_path: Path) -> None:
    features = OneHot(start=(0,), sizes=(STATES,))
    problem = SimulatorProblem(features, HORIZON, actions=3, reward_range=(-1.0, 1.0), learned_range=True)
    agent: Any = algorithm.start(problem)
    path = random_episodes(1)[0]
    states = [features.encode(row) for row in path.rows]
    agent.learn([Feedback(0, replace(path, states=states, rewards=np.array([0.5, 7.0, -0.5])))])
    assert agent.reward_range == (-1.0, 7.0)
    belated.save_agent(tmp_path / "agent.npz", agent)
    again: Any = belated.load_agent(tmp_path / "agent.npz").agent
    assert again.problem.learned_range
    assert again.reward_range == (-1.0, 7.0)
    agent.learn([Feedback(1, replace(path, states=states, rewards=np.array([0.5, -3.0, 0.0])))])
    assert agent.reward_range == (-3.0, 7.0)
    agent.plan(np.random.default_rng(0))


def test_rewards_in_flight_are_finite_where_the_range_is_not() -> None:
    agent = DelayedPSVI().start(replace(problem_of(MAPS["stacked"]), reward_range=(-np.inf, np.inf)))
    first, second = (encoded(MAPS["stacked"], path) for path in random_episodes(2))
    agent.learn([Feedback(0, replace(first, part="states")), Feedback(1, second)])
    agent.plan(np.random.default_rng(0))


def test_a_plan_takes_one_blas_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def draw(agent: WeightAgent, rng: np.random.Generator) -> float:
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return plain(agent, rng)

    plain = WeightAgent.draw
    monkeypatch.setattr(WeightAgent, "draw", draw)
    with threadpool_limits(2):
        started(DelayedPSVI(), "stacked").plan(np.random.default_rng(0))
        after = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
    assert set(seen) == {1}
    assert after == {2}
