"""Q-learning against a transcription that keeps every action value in a dictionary, on tables and on samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest

from belated._kernels.streams import stream
from belated.agents import DelayedQLearning, RandomPolicy, load_agent, save_agent
from belated.agents._saving import SavableAgent
from belated.delays import Constant, Poisson
from belated.environments import FiniteMDP, GymEnvironment, RandomLinearMDP, RiverSwim
from belated.errors import InvalidInputError
from belated.features import OneHot
from belated.runner import simulate
from belated.types import Feedback, SimulatorProblem, SparseVector, TablePolicy, TableProblem, Trajectory

Floats = npt.NDArray[np.float64]
MODEL = RandomLinearMDP(states=4, actions=2, dimension=3, horizon=6, seed=1, bernoulli=True)
WORLD = FiniteMDP(MODEL.transitions, MODEL.rewards, bernoulli=True)
SHARED = pytest.mark.parametrize("shared", [False, True], ids=["per-step", "shared"])


class Naive:
    """Tabular Q-learning as everybody writes it."""

    def __init__(self, actions: int, horizon: int, *, alpha: float, gamma: float, shared: bool) -> None:
        self.A, self.H, self.alpha, self.gamma, self.shared = actions, horizon, alpha, gamma, shared
        self.q: dict[tuple[int, int, int], float] = defaultdict(float)

    def learn(self, states: Any, actions: Any, rewards: Any, terminated: bool = False) -> None:
        for h in reversed(range(len(actions))):
            s, a, after = int(states[h]), int(actions[h]), int(states[h + 1])
            now, then = (0, 0) if self.shared else (h, h + 1)
            ended = (terminated and h == len(actions) - 1) or (not self.shared and then == self.H)
            best = 0.0 if ended else max(self.q[then, after, b] for b in range(self.A))
            self.q[now, s, a] += self.alpha * (rewards[h] + self.gamma * best - self.q[now, s, a])

    def table(self, states: int) -> Floats:
        slots = 1 if self.shared else self.H
        return np.array([[[self.q[h, s, a] for a in range(self.A)] for s in range(states)] for h in range(slots)])


def paths(mdp: FiniteMDP, count: int, seed: int = 0) -> list[Trajectory]:
    choices, dynamics = stream(seed, "agent"), stream(seed, "environment")
    tables = (choices.integers(mdp.actions, size=(mdp.horizon, mdp.states)) for _ in range(count))
    return [mdp.rollout(TablePolicy(table), dynamics) for table in tables]


def encoded(state: int) -> SparseVector:
    return SparseVector(np.array([state], np.int64), np.ones(1))


def sampled(path: Trajectory, terminated: bool = False, steps: int | None = None) -> Any:
    states = [encoded(int(s)) for s in path.rows[: None if steps is None else steps + 1]]
    return Trajectory(states, path.actions[:steps], path.rewards[:steps], terminated)


def about(mdp: FiniteMDP, homogeneous: bool = True) -> SimulatorProblem:
    return SimulatorProblem(
        actions=mdp.actions,
        horizon=mdp.horizon,
        features=OneHot(sizes=(mdp.states,)),
        reward_range=(0.0, 1.0),
        homogeneous=homogeneous,
    )


@SHARED
@pytest.mark.parametrize("settings", [{}, {"step_size": 0.7, "discount": 0.9}])
def test_on_tables_and_on_samples_it_is_the_transcription(shared: bool, settings: dict[str, float]) -> None:
    mdp = WORLD
    gamma = settings.get("discount", 1 - 1 / 6 if shared else 1.0)
    naive = Naive(2, 6, alpha=settings.get("step_size", 0.1), gamma=gamma, shared=shared)
    chosen = DelayedQLearning(shared=shared, **settings)
    table, features = chosen.start(mdp.problem), chosen.start(about(mdp))
    for k, path in enumerate(paths(mdp, 40)):
        naive.learn(path.rows, path.actions, path.rewards)
        table.learn([Feedback(k, path)])
        features.learn([Feedback(k, sampled(path))])
    wanted = naive.table(4)
    assert (wanted > 0.01).mean() > 0.5
    np.testing.assert_allclose(table.memory()["weights"].reshape(-1, 4, 2), wanted, rtol=1e-12)
    np.testing.assert_allclose(features.memory()["weights"].transpose(0, 2, 1), wanted, rtol=1e-12)


@SHARED
def test_an_end_is_worth_nothing_and_a_cut_is_not_an_end(shared: bool) -> None:
    mdp = WORLD
    naive = Naive(2, 6, alpha=0.5, gamma=0.9, shared=shared)
    agent = DelayedQLearning(shared=shared, step_size=0.5, discount=0.9).start(about(mdp))
    for k, path in enumerate(paths(mdp, 30)):
        steps, terminated = 1 + k % 6, k % 2 == 0
        naive.learn(path.rows, path.actions[:steps], path.rewards, terminated)
        agent.learn([Feedback(k, sampled(path, terminated, steps))])
    np.testing.assert_allclose(agent.memory()["weights"].transpose(0, 2, 1), naive.table(4), rtol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 7.0])
def test_a_step_removes_its_part_of_the_error_whatever_the_features(scale: float) -> None:
    mdp = RandomLinearMDP(states=5, actions=3, dimension=4, horizon=1, seed=3, bernoulli=True)
    problem = TableProblem(scale * mdp.features, 1, homogeneous=True)
    agent = DelayedQLearning(step_size=0.25).start(problem)
    path = Trajectory(np.array([2, 0]), np.array([1]), np.array([1.0]))
    for visits in range(1, 5):
        agent.learn([Feedback(visits, path)])
        q = problem.features[2, 1] @ agent.memory()["weights"][0]
        assert q == pytest.approx(1 - 0.75**visits)


def test_the_discount_is_that_of_the_horizon_unless_it_is_set() -> None:
    same, other = (TableProblem(np.ones((2, 2, 1)), 20, homogeneous=known) for known in (True, False))
    assert DelayedQLearning().gamma(same) == pytest.approx(0.95)
    assert DelayedQLearning().gamma(other) == 1.0
    assert DelayedQLearning(shared=False).gamma(same) == 1.0
    assert DelayedQLearning(discount=0.5).gamma(other) == 0.5


def action_of(agent: Any, kind: str, rng: np.random.Generator) -> int:
    return int(agent.plan(rng).act(0, 0 if kind == "table" else encoded(0)))


@pytest.mark.parametrize("kind", ["table", "samples"])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_it_is_greedy_but_for_epsilon_and_ties_are_drawn(kind: str, epsilon: float) -> None:
    mdp = RandomLinearMDP(states=1, actions=4, dimension=4, horizon=1, seed=0)
    eye = TableProblem(np.eye(4).reshape(1, 4, 4), 1, homogeneous=True)
    agent = DelayedQLearning(epsilon=epsilon).start(eye if kind == "table" else about(mdp))
    path = Trajectory(np.array([0, 0]), np.array([2]), np.array([0.0]))
    low = Trajectory(np.array([0, 0]), np.array([2]), np.array([1.0]))
    rng, count = np.random.default_rng(0), 4000

    def shares() -> Floats:
        taken = [action_of(agent, kind, rng) for _ in range(count)]
        found: Floats = np.bincount(taken, minlength=4) / count
        return found

    np.testing.assert_allclose(shares(), 0.25, atol=0.03)
    agent.learn([Feedback(0, path if kind == "table" else sampled(path))])
    np.testing.assert_allclose(shares(), 0.25, atol=0.03)
    agent.learn([Feedback(1, low if kind == "table" else sampled(low))])
    np.testing.assert_allclose(shares(), [epsilon / 4] * 2 + [1 - 0.75 * epsilon, epsilon / 4], atol=0.03)


def test_a_plan_does_not_change_when_more_arrives() -> None:
    mdp = RiverSwim(states=3, horizon=4)
    agent = DelayedQLearning(epsilon=0.0).start(about(mdp))
    policy = agent.plan(np.random.default_rng(0))
    reward = Trajectory(np.array([0, 0]), np.array([1]), np.array([1.0]))
    agent.learn([Feedback(0, sampled(reward))])
    assert {policy.act(0, encoded(0)) for _ in range(40)} == {0, 1}
    assert {agent.plan(np.random.default_rng(0)).act(0, encoded(0)) for _ in range(40)} == {1}


def test_it_learns_in_a_table_and_in_classic_control() -> None:
    cliff = max(each for each in gymnasium.registry if each.startswith("CliffWalking-"))  # older versions have v0
    worlds: dict[str, tuple[Callable[[], Any], int, float]] = {
        "cliff": (lambda: GymEnvironment(cliff, horizon=200), 300, 100.0),
        "river": (lambda: RiverSwim(states=3, horizon=10), 500, 0.3),
    }
    for name, (make, episodes, better) in worlds.items():
        means = {
            type(each): simulate(make(), each, Poisson(5), episodes=episodes, seed=0)["sampled_return"][-100:].mean()
            for each in (DelayedQLearning(), RandomPolicy())
        }
        ours, theirs = (float(means[kind]) for kind in (DelayedQLearning, RandomPolicy))  # type: ignore[arg-type]
        assert ours > theirs + better, name


def test_a_saved_agent_on_samples_goes_on_as_if_nothing_had_happened(tmp_path: Any) -> None:
    mdp = RiverSwim(states=4, horizon=6)
    agent, rng = DelayedQLearning().start(about(mdp)), np.random.default_rng(0)
    assert isinstance(agent, SavableAgent)
    first, second = paths(mdp, 10), paths(mdp, 10, seed=1)
    agent.learn([Feedback(k, sampled(path)) for k, path in enumerate(first)])
    save_agent(tmp_path / "agent.npz", agent, rng)
    copy, copied = load_agent(tmp_path / "agent.npz")
    assert copied is not None
    played = []
    for each, own in ((agent, rng), (copy, copied)):
        each.learn([Feedback(k, sampled(path)) for k, path in enumerate(second, start=10)])
        policy = each.plan(own)
        played.append([policy.act(h, encoded(s)) for h in range(6) for s in range(4)])
    assert played[0] == played[1]
    np.testing.assert_array_equal(agent.memory()["weights"], copy.memory()["weights"])


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    mdp = RiverSwim(states=4, horizon=6)
    agent, (path,) = DelayedQLearning().start(about(mdp)), paths(mdp, 1)
    agent.learn([Feedback(0, sampled(path))])
    before = agent.memory()["weights"].copy()
    bad = Trajectory([encoded(0), encoded(9)], np.array([0]), np.array([0.0]), False)
    with pytest.raises(InvalidInputError, match=r"^trajectory.states\[1\] must be ascending indices in 0\.\.3"):
        agent.learn([Feedback(1, sampled(path)), Feedback(2, bad)])
    for memory in ({}, {"weights": before[:, :, 1:]}, {"weights": np.full_like(before, np.nan)}):
        with pytest.raises(InvalidInputError, match="memory"):
            agent.restore(memory)
    np.testing.assert_array_equal(agent.memory()["weights"], before)


@pytest.mark.parametrize("kind", ["table", "samples"])
def test_values_beyond_floats_are_refused(kind: str) -> None:
    mdp = RiverSwim(states=3, horizon=2)
    problem = TableProblem(np.eye(6).reshape(3, 2, 6), 2, homogeneous=True, reward_range=(-np.inf, np.inf))
    agent = DelayedQLearning(epsilon=0.0, step_size=1.0).start(problem if kind == "table" else about(mdp))
    path = Trajectory(np.zeros(3, np.int64), np.zeros(2, np.int64), np.full(2, 1.7e308))
    before = agent.memory()["weights"].copy()
    with pytest.raises(
        InvalidInputError, match=r"trajectory.rewards must be of magnitude at most 1e\+12, got 1.7e\+308"
    ):
        agent.learn([Feedback(0, path if kind == "table" else sampled(path))])
    np.testing.assert_array_equal(agent.memory()["weights"], before)


def test_without_delay_and_with_it_rows_have_returns() -> None:
    rows = simulate(GymEnvironment("CartPole-v1", horizon=50), DelayedQLearning(), Constant(0), episodes=20, seed=0)
    assert (rows["sampled_return"] >= 1).all()
    assert rows["value"].null_count() == 20
