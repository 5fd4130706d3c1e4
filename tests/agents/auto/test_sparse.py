"""AutoPSVI on features: against the rule written down naively, against the table, and with what is refused."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from naive_auto import Fit, Floats, NaiveAuto, Step

from belated._kernels.streams import stream
from belated.agents import Ablation, AutoPSVI
from belated.agents._sparse import BUDGET, GROWTH
from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim
from belated.errors import BelatedError, InvalidInputError
from belated.types import Feedback, SimulatorProblem, SparseVector, TablePolicy, Trajectory

SHARED = pytest.mark.parametrize("shared", [False, True], ids=["per-step", "shared"])


class Rows:
    """A feature map from states to the rows of an array."""

    def __init__(self, table: Floats) -> None:
        self.table, self.size = table, table.shape[1]

    def encode(self, observation: int) -> SparseVector:
        row = self.table[observation]
        return SparseVector(np.flatnonzero(row), row[row != 0])


def problem(features: Any, actions: int, horizon: int, **rest: Any) -> SimulatorProblem:
    return SimulatorProblem(**{"reward_range": (0.0, 1.0), **rest}, actions=actions, horizon=horizon, features=features)


def sampled(features: Rows, path: Trajectory, terminated: bool = False) -> Trajectory:
    return Trajectory([features.encode(s) for s in path.rows.tolist()], path.actions, path.rewards, terminated)


def feedback(features: Rows, paths: Sequence[Trajectory]) -> list[Any]:
    return [Feedback(k, sampled(features, path)) for k, path in enumerate(paths)]


def random_paths(mdp: FiniteMDP, count: int, seed: int = 0) -> list[Trajectory]:
    rng = stream(seed, "paths")
    shape = (mdp.horizon, mdp.states)
    return [mdp.rollout(TablePolicy(rng.integers(mdp.actions, size=shape)), rng) for _ in range(count)]


def observe(naive: NaiveAuto, path: Trajectory, terminated: bool = False) -> None:
    s, a, r = path.rows.tolist(), path.actions.tolist(), path.rewards.tolist()
    steps = [Step(s[h], a[h], r[h], s[h + 1]) for h in range(len(a))]
    naive.observe([*steps[:-1], steps[-1]._replace(after=None)] if terminated else steps)


class NaiveBlocks(NaiveAuto):
    """The rule on φ(s, a) = ψ(s) ⊗ e_a with the draws of the library; `psi` has shape (S, k)."""

    def __init__(self, psi: Floats, actions: int, horizon: int, **rest: Any) -> None:
        self.psi, self.k = psi, psi.shape[1]
        stacked = np.einsum("si,ab->sabi", psi, np.eye(actions)).reshape(len(psi), actions, -1)
        super().__init__(stacked, horizon, **rest)
        self.weights: Floats = np.zeros((horizon, actions, self.k))

    def block(self, fit: Fit, a: int, active: Any) -> tuple[Floats, Floats]:
        own = a * self.k + active
        return fit.precision[np.ix_(own, own)], fit.mean[own]

    def plan(self, rng: np.random.Generator) -> None:
        """Set the weights of every step, from the last to the first; nothing is hidden (σ₀ = 0)."""
        slots = [(0, self.H)] if self.shared else [(h, h + 1) for h in reversed(range(self.H))]
        for first, last in slots:
            here = self.data(first)
            actives = [
                np.flatnonzero(sum((self.psi[s.state] != 0 for s in here if s.action == a), np.zeros(self.k)))
                for a in range(self.A)
            ]
            drawn = [[rng.standard_normal((last - first, len(active))) for _ in range(3)] for active in actives]
            untried = rng.standard_normal((last - first, self.A, self.k))
            for h in reversed(range(first, last)):
                fit = self.fit(h)
                self.weights[h] = self.tau / self.R * untried[h - first]
                for a, active in enumerate(actives):
                    precision, mean = self.block(fit, a, active)
                    inverse = np.linalg.inv(precision)
                    z1, _, z3 = (z[h - first] for z in drawn[a])
                    noise = np.linalg.solve(np.linalg.cholesky(precision).T, z1)
                    noise = self.width(fit, len(here)) * (noise - self.ridge * inverse @ noise)
                    self.weights[h, a, active] = mean + noise + self.tau / self.R * self.ridge * inverse @ z3
                self.set_values(h, self.psi @ self.weights[h].T)


def sparse_features(states: int, size: int, seed: int = 3) -> Floats:
    """Return features of which a third is not zero, all states different."""
    rng = np.random.default_rng(seed)
    table: Floats = np.where(rng.random((states, size)) < 0.4, rng.normal(size=(states, size)), 0.0)
    table[:, 0] = 1.0
    return table


@SHARED
@pytest.mark.parametrize(
    "settings",
    [{}, {"residual": 1.0, "ridge": 0.3, "prior": 0.5}, {"optimistic": False}],
    ids=["usual", "other", "from-zero"],
)
def test_weights_are_those_of_the_rule(shared: bool, settings: dict[str, Any]) -> None:
    mdp = RandomLinearMDP(states=6, actions=3, dimension=4, horizon=5, seed=3, bernoulli=True)
    features = Rows(sparse_features(6, 5))
    agent = AutoPSVI(ablation=Ablation(hidden=0.0, **settings)).start(problem(features, 3, 5, homogeneous=shared))
    naive = NaiveBlocks(features.table, 3, 5, shared=shared, **settings)
    for k, path in enumerate(random_paths(mdp, 12)):
        ended = k % 3 == 1
        agent.learn([Feedback(k, sampled(features, path, ended))])
        observe(naive, path, ended)
        policy = agent.plan(stream(k, "agent"))
        naive.plan(stream(k, "agent"))
        memory = agent.memory()
        known = memory["plan.features"]
        np.testing.assert_allclose(memory["plan.weights"], naive.weights[:, :, known], rtol=1e-6, atol=1e-6)
        for h in range(5):
            wanted = (features.table @ naive.weights[h].T).argmax(axis=1)
            assert [policy.act(h, features.encode(s)) for s in range(6)] == wanted.tolist()


@SHARED
def test_the_hidden_width_has_its_covariance(shared: bool) -> None:
    mdp = RandomLinearMDP(states=6, actions=2, dimension=4, horizon=2, seed=3, bernoulli=True)
    table = sparse_features(6, 4)
    features = Rows(table / np.linalg.norm(table, axis=1, keepdims=True))
    paths = random_paths(mdp, 8)
    agent = AutoPSVI(ablation=Ablation(residual=0.0, prior=0.0, hidden=0.8)).start(
        problem(features, 2, 2, homogeneous=shared)
    )
    naive = NaiveBlocks(features.table, 2, 2, shared=shared, hidden=0.8)
    agent.learn(feedback(features, paths))
    for path in paths:
        observe(naive, path)
    rng, drawn = np.random.default_rng(0), []
    for _ in range(1500):
        agent.plan(rng)
        memory = agent.memory()
        drawn.append((features.table[:, memory["plan.features"]] @ memory["plan.weights"][1].T).T.ravel())
    steps, fit = naive.data(1), naive.fit(1)
    phi = np.array([naive.features[s.state, s.action] for s in steps])
    inverse = np.linalg.inv(fit.precision)
    sigma = naive.sigma(fit, float(fit.leverages.sum()), len(steps))
    assert sigma < naive.hidden * naive.share() ** 0.5 if shared else sigma > 0.0  # there are residuals that cap it
    spread = inverse @ (phi.T * fit.leverages) @ phi @ inverse * sigma**2
    seen = sorted({s.action * 6 + s.state for s in steps})  # what was visited; elsewhere small eigenvalues decide
    x = naive.features.transpose(1, 0, 2).reshape(12, -1)[seen]
    wanted = x @ spread @ x.T
    np.testing.assert_allclose(np.cov(np.array(drawn)[:, seen].T), wanted, atol=0.1 * wanted.max())
    np.testing.assert_allclose(np.mean(drawn, axis=0)[seen], x @ fit.mean, atol=0.03)


@SHARED
def test_with_a_feature_for_each_state_both_planners_agree(shared: bool) -> None:
    mdp = RiverSwim(states=4, horizon=6)
    features = Rows(np.eye(4))
    settings = AutoPSVI(ablation=Ablation(shared=shared))
    table, agent = settings.start(mdp.problem), settings.start(problem(features, 2, 6))
    world = stream(1, "environment")
    paths = random_paths(mdp, 100)
    assert {int(s) for path in paths for s in path.rows} == {0, 1, 2, 3}
    for k in range(60):
        numbers = [1000 * k + i for i in range(len(paths))]
        table.learn([Feedback(n, path) for n, path in zip(numbers, paths, strict=True)])
        agent.learn([Feedback(n, sampled(features, path)) for n, path in zip(numbers, paths, strict=True)])
        policy, acting = table.plan(stream(k, "agent")), agent.plan(stream(k, "agent"))
        actions = [[acting.act(h, features.encode(s)) for s in range(4)] for h in range(6)]
        assert policy.actions.tolist() == actions
        paths = [mdp.rollout(policy, world)]


def test_a_cut_is_not_an_end() -> None:
    features = Rows(np.eye(3))
    path = Trajectory(np.array([0, 1]), np.array([0]), np.array([0.0]))
    best = {}
    for terminated in (False, True):
        agent = AutoPSVI(ablation=Ablation(residual=0.0, hidden=0.0, prior=0.0)).start(problem(features, 2, 10))
        agent.learn([Feedback(0, sampled(features, path, terminated))])
        policy = agent.plan(np.random.default_rng(0))
        best[terminated] = {policy.act(0, features.encode(0)) for policy in [policy] for _ in range(3)}
    assert best[True] == {1}  # what ended was worth nothing, the other action may be worth all
    store = agent.memory()
    assert store["rows.after"].tolist() == [-1]


def test_order_and_batching_do_not_matter() -> None:
    mdp = RandomLinearMDP(states=6, actions=3, dimension=4, horizon=5, seed=3, bernoulli=True)
    for table in (np.eye(6), sparse_features(6, 5)):
        features, paths = Rows(table), random_paths(mdp, 15)
        plans = []
        for order in (range(15), reversed(range(15))):
            agent = AutoPSVI().start(problem(features, 3, 5))
            for k in order:
                agent.learn([Feedback(k, sampled(features, paths[k]))])
            policy = agent.plan(np.random.default_rng(2))
            plans.append([[policy.act(h, features.encode(s)) for s in range(6)] for h in range(5)])
        assert plans[0] == plans[1]


@SHARED
@pytest.mark.parametrize("table", [np.eye(6), None], ids=["table", "features"])
def test_pieces_and_states_before_their_rewards_teach_the_same_in_the_end(shared: bool, table: Floats | None) -> None:
    mdp = RandomLinearMDP(states=6, actions=3, dimension=4, horizon=5, seed=3, bernoulli=True)
    features = Rows(sparse_features(6, 5) if table is None else table)
    about = problem(features, 3, 5, homogeneous=shared)
    whole, parts, late = (AutoPSVI().start(about) for _ in range(3))
    for k, path in enumerate(random_paths(mdp, 10)):
        all_of_it = sampled(features, path)
        whole.learn([Feedback(k, all_of_it)])
        two = [
            replace(all_of_it, states=all_of_it.states[a : b + 1], actions=path.actions[a:b], rewards=path.rewards[a:b])
            for a, b in ((2, 5), (0, 2))
        ]
        parts.learn([Feedback(k, replace(two[0], first=2)), Feedback(k, two[1])])
        late.learn([Feedback(k, replace(all_of_it, part="states", rewards=np.full(5, np.nan)))])
    for k, path in enumerate(random_paths(mdp, 10)):
        late.learn([Feedback(k, replace(sampled(features, path), part="rewards"))])
    plans = []
    for agent in (whole, parts, late):
        assert agent.memory()["progress"][0] == 50
        policy = agent.plan(np.random.default_rng(2))
        plans.append([[policy.act(h, features.encode(s)) for s in range(6)] for h in range(5)])
    assert plans[0] == plans[1] == plans[2]


@pytest.mark.parametrize("table", [np.eye(4), None], ids=["table", "features"])
def test_while_rewards_are_in_flight_it_plans_with_what_stands_for_them(table: Floats | None) -> None:
    features = Rows(sparse_features(4, 3) if table is None else table)
    told, new = (
        Trajectory(np.array(states), np.array([0, 1, 0]), np.array(rewards))
        for states, rewards in (([0, 1, 2, 0], [0.0, 0.25, 0.5]), ([3, 2, 1, 3], [0.75] * 3))
    )
    agent, naive = (AutoPSVI().start(problem(features, 2, 3, reward_range=(-1.0, 0.75))) for _ in range(2))
    agent.learn(feedback(features, [told]))
    for k, path in enumerate((told, new), start=1):
        agent.learn([Feedback(k, replace(sampled(features, path), part="states"))])
    naive.learn(feedback(features, [told, told, new]))  # what was told pays the same again, what is new the largest
    for seed in range(20):
        plans = [each.plan(np.random.default_rng(seed)) for each in (agent, naive)]
        acts = [[policy.act(h, features.encode(s)) for h in range(3) for s in range(4)] for policy in plans]
        assert acts[0] == acts[1]


def test_before_any_feedback_all_actions_are_alike() -> None:
    for table in (np.eye(3), sparse_features(3, 2)):
        agent, features = AutoPSVI().start(problem(Rows(table), 4, 3)), Rows(table)
        rng = np.random.default_rng(0)
        taken = [agent.plan(rng).act(1, features.encode(2)) for _ in range(800)]
        np.testing.assert_allclose(np.bincount(taken, minlength=4) / 800, 0.25, atol=0.06)


def test_plans_on_features_are_paid_for_and_those_on_tables_are_free() -> None:
    mdp = RandomLinearMDP(states=6, actions=3, dimension=4, horizon=5, seed=3, bernoulli=True)
    for table, free in ((np.eye(6), True), (sparse_features(6, 5), False)):
        features = Rows(table)
        agent, rng = AutoPSVI().start(problem(features, 3, 5)), np.random.default_rng(0)
        agent.learn(feedback(features, random_paths(mdp, 12)))
        agent.plan(rng)
        memory = agent.memory()
        arrived, planned, begun, price, _ = memory["progress"]
        assert (arrived, planned, begun) == (60, 60, 0)
        assert (price == 0) == free
        agent.restore({**memory, "progress": np.array([60, 60, 0, 2.5 * BUDGET, 1])})
        plans = [agent.memory()["plan.weights"]]
        for _ in range(6):
            agent.plan(rng)
            plans.append(agent.memory()["plan.weights"])
        if not free:  # the second and the third plan are the first one again
            changed = [not np.array_equal(a, b) for a, b in itertools.pairwise(plans)]
            assert changed == [False, False, True, True, True, True]
            agent.restore({**memory, "progress": np.array([60, 60, 0, 1e9 * BUDGET, 1])})
            for seed, planned in ((1, 60), (2, 70)):  # 65 steps have not grown enough, 70 have
                assert 65 < 60 * GROWTH <= 70
                (path,) = random_paths(mdp, 1, seed=seed)
                agent.learn([Feedback(100 + seed, sampled(features, path))])
                agent.plan(rng)
                assert agent.memory()["progress"][1] == planned


def test_a_saved_agent_goes_on_as_if_nothing_had_happened() -> None:
    mdp = RandomLinearMDP(states=6, actions=3, dimension=4, horizon=5, seed=3, bernoulli=True)
    for table in (np.eye(6), sparse_features(6, 5)):
        for shared in (False, True):
            features = Rows(table)
            about = problem(features, 3, 5, homogeneous=shared)
            agent, rng = AutoPSVI(ablation=Ablation(rows=40)).start(about), np.random.default_rng(0)
            for k in range(6):
                several = random_paths(mdp, 3, seed=k)
                agent.learn([Feedback(10 * k + i, sampled(features, path)) for i, path in enumerate(several)])
                agent.plan(rng)
                copy, copied = AutoPSVI(ablation=Ablation(rows=40)).start(about), np.random.default_rng()
                copy.restore(agent.memory())
                copied.bit_generator.state = rng.bit_generator.state
                chosen = []
                for each, stream_of in ((agent, rng), (copy, copied)):
                    (path,) = random_paths(mdp, 1, seed=50 + k)
                    each.learn([Feedback(1000 + k, sampled(features, path))])
                    chosen.append(each.plan(stream_of))
                for h in range(5):
                    for s in range(6):
                        state = features.encode(s)
                        assert chosen[0].act(h, state) == chosen[1].act(h, state)


def good() -> tuple[Rows, Trajectory]:
    features = Rows(sparse_features(4, 3))
    path = Trajectory(np.array([0, 1, 2]), np.array([0, 1]), np.array([0.0, 1.0]))
    return features, sampled(features, path)


def changed(**fields: Any) -> Trajectory:
    path = good()[1]
    values = {"states": path.states, "actions": path.actions, "rewards": path.rewards, "terminated": False}
    return Trajectory(**{**values, **fields})


STATE = good()[1].states[0]


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (changed(rewards=np.array([0.0, np.nan])), "rewards"),
        (changed(rewards=np.array([0.0])), "rewards"),
        (changed(actions=np.array([0, 2])), "actions"),
        (changed(actions=np.array([0.5, 1.0])), "actions"),
        (changed(actions=np.zeros(0, np.int64), rewards=np.zeros(0)), "must hold 1 to 3 actions from step 0 on, got 0"),
        (changed(actions=np.zeros(4, np.int64), rewards=np.zeros(4)), "must hold 1 to 3 actions from step 0 on, got 4"),
        (changed(states=good()[1].states[:-1]), "number of trajectory.states"),
        (changed(terminated=1), "terminated"),
        (changed(first=2), "actions must hold 1 to 1 actions from step 2 on, got 2"),
        (changed(first=-1), "trajectory.first"),
        (changed(part="some"), "trajectory.part"),
        (changed(part="rewards", rewards=np.array([0.0, np.nan])), "rewards"),
        (changed(states=[STATE, STATE, 3]), r"states\[2\]"),
        (changed(states=[STATE, STATE, SparseVector(np.array([0.5]), np.ones(1))]), r"states\[2\]"),
        (changed(states=[STATE, SparseVector(np.array([0]), np.ones(2)), STATE]), r"states\[1\]"),
        (changed(states=[STATE, SparseVector(np.array([3]), np.ones(1)), STATE]), r"states\[1\]"),
        (changed(states=[STATE, SparseVector(np.array([-1]), np.ones(1)), STATE]), r"states\[1\]"),
        (changed(states=[STATE, STATE, SparseVector(np.array([1, 1]), np.ones(2))]), r"states\[2\]"),
        (changed(states=[SparseVector(np.array([1]), np.array([np.inf])), STATE, STATE]), r"states\[0\]"),
        (Trajectory(np.array([0, 1]), np.array([0]), np.array([0.0])), "a sequence of feature vectors"),
    ],
)
def test_a_bad_trajectory_is_named_and_changes_nothing(bad: Any, named: str) -> None:
    features, path = good()
    agent = AutoPSVI().start(problem(features, 2, 3))
    agent.learn([Feedback(0, path)])
    before = agent.memory()
    with pytest.raises(BelatedError, match=named):
        agent.learn([Feedback(1, path), Feedback(2, bad)])
    for name, values in agent.memory().items():
        np.testing.assert_array_equal(values, before[name], err_msg=name)


@pytest.mark.parametrize("batch", [3, [1], [Feedback(-1, good()[1])]])
def test_a_bad_batch_is_refused(batch: Any) -> None:
    with pytest.raises(InvalidInputError):
        AutoPSVI().start(problem(good()[0], 2, 3)).learn(batch)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("actions", [0, 1.5, None]),
        ("horizon", [0, None]),
        ("reward_range", [(1.0, 0.0), (0.0, np.nan), 3, (0.0, 1.0, 2.0)]),
        ("homogeneous", [1, None]),
        ("features", [None, 3]),
    ],
)
def test_a_bad_problem_is_named(name: str, bad: list[Any]) -> None:
    values: dict[str, Any] = {"features": good()[0], "actions": 2, "horizon": 3, "reward_range": (0.0, 1.0)}
    for value in bad:
        with pytest.raises(InvalidInputError, match=name):
            AutoPSVI().start(SimulatorProblem(**{**values, name: value}))


def test_memory_that_does_not_fit_is_refused_and_changes_nothing() -> None:
    features, path = good()
    agent = AutoPSVI().start(problem(features, 2, 3))
    agent.learn([Feedback(0, path)])
    agent.plan(np.random.default_rng(0))
    memory = agent.memory()
    for bad in (
        {},
        {**memory, "more": np.zeros(1)},
        {**memory, "progress": np.array([np.nan, 0, 0, 0, 0])},
        {**memory, "progress": np.zeros(4)},
        {**memory, "plan.weights": np.zeros((3, 5, memory["plan.features"].size))},
        {**memory, "rows.state": memory["rows.state"] + 9},
        {**memory, "rows.state": memory["rows.state"].astype(float)},
    ):
        with pytest.raises(InvalidInputError, match="memory"):
            agent.restore(bad)
        for name, values in agent.memory().items():
            np.testing.assert_array_equal(values, memory[name], err_msg=name)


def test_rewards_beyond_floats_are_refused() -> None:
    agent = AutoPSVI().start(problem(good()[0], 2, 3))
    with pytest.raises(InvalidInputError, match=r"trajectory.rewards must be of magnitude at most 1e\+12"):
        agent.learn([Feedback(0, changed(rewards=np.array([1e308, -1e308])))])
    agent.plan(np.random.default_rng(0))


def test_states_without_any_feature_are_played_at_random() -> None:
    features = Rows(np.array([[1.0, 0.0], [0.0, 0.0]]))
    agent = AutoPSVI().start(problem(features, 2, 3))
    path = Trajectory(np.array([0, 1, 1, 0]), np.array([0, 1, 0]), np.array([0.0, 1.0, 0.0]))
    agent.learn(feedback(features, [path]))
    policy = agent.plan(np.random.default_rng(0))
    assert {policy.act(0, features.encode(1)) for _ in range(50)} == {0, 1}
