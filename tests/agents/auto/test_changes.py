"""Rewards that change: the evidence and what is left after it by the rule written down naively, and what it is for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from in_python import InPython
from naive_auto import NaiveTable, Step
from polars.testing import assert_frame_equal

from belated._kernels.streams import stream
from belated.agents import Ablation, AutoPSVI
from belated.agents._auto.changes import COUNT, EVIDENCE, NUMBERS, SUM, Changes, fade, fill_lines, note_reward
from belated.agents._auto.rule import make_rule
from belated.delays import Constant, DelayDistribution, FeedbackQueue, Geometric, Poisson
from belated.environments import AdversarialMDP, Chain, FiniteMDP, RandomLinearMDP, RiverSwim
from belated.errors import InvalidInputError
from belated.features import OneHot
from belated.runner import simulate
from belated.types import Feedback, SimulatorProblem, TablePolicy, TableProblem, Trajectory

SHARED = pytest.mark.parametrize("shared", [False, True], ids=["per-step", "shared"])
RIVER = RiverSwim(states=3, horizon=3)


def changing(distribution: DelayDistribution, episodes: int = 180, when: int = 70) -> Iterator[list[Feedback]]:
    """Yield what arrives of random policies in a river where the other action pays from some episode on, with noise."""
    rng, buffer = stream(2, "paths"), FeedbackQueue[Trajectory]()
    for k, delay in enumerate(distribution.sample(stream(2, "delay"), episodes)):
        path = RIVER.rollout(TablePolicy(rng.integers(2, size=(3, 3))), rng)
        pays = np.where(path.actions == (k >= when), 0.9, 0.0) + 0.1 * rng.random(3)
        buffer.add(k, int(delay), replace(path, rewards=pays))
        yield [Feedback(*each) for each in buffer.arrived(k + 1)]


def evident_at(rewards: list[float], span: float = 1.0) -> int | None:
    known = np.zeros((NUMBERS, 1))
    for i, reward in enumerate(rewards):
        if note_reward(known, 0, i % 3, reward, span, False):
            return i
    return None


@pytest.mark.parametrize("means", [(0.2, 0.9), (1.0, 0.1), (0.5, 0.5), (0.3, 0.6)])
@pytest.mark.parametrize("first", [5, 64, 100])
def test_evidence_is_that_of_the_rule(means: tuple[float, float], first: int) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rewards = [float(rng.random() < means[i >= first]) for i in range(400)]
        naive = NaiveTable(np.eye(2).reshape(1, 2, 2), 1, shared=True)
        wanted = next((i for i in range(400) if naive.differ(rewards[: i + 1])), None)
        assert evident_at(rewards) == wanted
        scaled = evident_at([7 * reward - 3 for reward in rewards], span=7.0)
        assert scaled == wanted


def test_a_large_change_is_noticed_soon_and_none_is_not_noticed() -> None:
    assert evident_at([1.0] * 64 + [0.0] * 16) == 64 + 15  # 22/2 · (1/64 + 1/16) < 1 ≤ 22/2 · (1/64 + 1/8)
    rng = np.random.default_rng(0)
    assert all(evident_at(rng.integers(2, size=600).tolist()) is None for _ in range(200))
    assert evident_at([0.1] * 100 + [0.2] * 100, span=0.0) is None


def test_the_bound_is_hoeffdings() -> None:
    """Of fair coins, the two halves differ by the bound for a smaller evidence less often than that allows."""
    rng, early, late = np.random.default_rng(1), 64, 16
    coins = rng.integers(2, size=(100_000, early + late))
    gaps = np.abs(coins[:, :early].mean(axis=1) - coins[:, early:].mean(axis=1))
    for evidence in (1.0, 2.0, 4.0):
        share = np.mean(gaps > np.sqrt(evidence / 2 * (1 / early + 1 / late)))
        assert 0 < share < 2 * np.exp(-evidence)
    tests = sum(k + 1 for k in range(20))  # of a pair with 2**20 rewards
    assert 2 * np.exp(-EVIDENCE) * tests < 1.2e-7


def test_what_fades_keeps_its_mean_and_counts_for_one_at_least() -> None:
    known = np.zeros((NUMBERS, 3))
    for reward in [0.2, 0.4] * 500:
        note_reward(known, 0, 2, reward, 1.0, True)
    note_reward(known, 1, 0, 0.7, 1.0, True)
    for _ in range(100):
        fade(known)
    assert known[COUNT].tolist() == pytest.approx([1000 * 0.99**100, 1.0, 0.0])
    assert known[SUM, :2] / known[COUNT, :2] == pytest.approx([0.3, 0.7])
    for _ in range(1000):
        fade(known)
    assert known[COUNT].tolist() == pytest.approx([1.0, 1.0, 0.0])


@SHARED
@pytest.mark.parametrize("distribution", [Constant(0), Geometric(4)], ids=["in-order", "out-of-order"])
def test_policies_are_those_of_the_rule(shared: bool, distribution: DelayDistribution) -> None:
    agent = AutoPSVI(ablation=Ablation(shared=shared)).start(RIVER.problem)
    naive = NaiveTable(RIVER.features, 3, shared=shared)
    changed = []
    for k, batch in enumerate(changing(distribution)):
        agent.learn(batch)
        for each in batch:
            s, a, r = (x.tolist() for x in (each.trajectory.rows, each.trajectory.actions, each.trajectory.rewards))
            naive.observe([Step(s[h], a[h], r[h], s[h + 1]) for h in range(3)])
        if k % 10 == 9 or k > 170:
            np.testing.assert_array_equal(agent.plan(stream(k, "x")).actions, naive.plan(stream(k, "x")))
            seen = np.flatnonzero(agent.record.learned.seen)
            values = agent.record.work.values
            np.testing.assert_allclose(values[:, seen], naive.values[:, seen], rtol=1e-6, atol=1e-6)
            changed.append(bool(agent.record.learned.changed.any()))
    assert not changed[0]
    assert changed[-1]


@SHARED
def test_with_a_feature_for_each_state_both_planners_agree_and_go_on_when_saved(shared: bool) -> None:
    features = OneHot(sizes=(3,))
    about = SimulatorProblem(actions=2, horizon=3, features=features, reward_range=(0.0, 1.0), homogeneous=shared)
    table, agent = AutoPSVI(ablation=Ablation(shared=shared)).start(RIVER.problem), AutoPSVI().start(about)
    for k, batch in enumerate(changing(Poisson(3))):
        table.learn(batch)
        for each in batch:
            states = [features.encode(s) for s in each.trajectory.rows.tolist()]
            path = Trajectory(states, each.trajectory.actions, each.trajectory.rewards, False)
            agent.learn([Feedback(each.episode, path)])
        if k % 50 == 49:
            copies = AutoPSVI(ablation=Ablation(shared=shared)).start(RIVER.problem), AutoPSVI().start(about)
            copies[0].restore(table.memory())
            copies[1].restore(agent.memory())
            table, agent = copies
        policy, acting = table.plan(stream(k, "agent")), agent.plan(stream(k, "agent"))
        if table.record.learned.seen.all():
            assert policy.actions.tolist() == [[acting.act(h, features.encode(s)) for s in range(3)] for h in range(3)]
    np.testing.assert_array_equal(table.record.learned.changed, agent.memory()["changes.changed"])
    assert table.record.learned.changed.any()


def bernoulli_table() -> FiniteMDP:
    model = RandomLinearMDP(states=5, actions=3, dimension=4, horizon=4, seed=2)
    return FiniteMDP(model.transitions[0], model.rewards[0], horizon=4, bernoulli=True)


@pytest.mark.parametrize(
    "mdp",
    [RiverSwim(states=5, horizon=10), Chain(5), bernoulli_table(), AdversarialMDP(adversary="random", seed=1)],
    ids=["riverswim", "chain", "bernoulli", "random"],
)
def test_where_nothing_changes_nothing_is_forgotten(mdp: FiniteMDP) -> None:
    rows = [
        simulate(mdp, AutoPSVI(ablation=Ablation(forgetting=forgetting)), Poisson(10), episodes=800, seed=1)
        for forgetting in (True, False)
    ]
    assert_frame_equal(*rows, check_exact=True)


def test_in_a_trap_it_finds_what_has_become_good() -> None:
    mdp = AdversarialMDP(adversary="trap", seed=1)
    regret = {
        forgetting: simulate(
            mdp, AutoPSVI(ablation=Ablation(forgetting=forgetting)), Poisson(20), episodes=2000, seed=1
        )["regret"][-1]
        for forgetting in (True, False)
    }
    assert regret[True] < 0.3 * regret[False]


def test_both_loops_give_the_same_rows_bit_for_bit() -> None:
    mdp = AdversarialMDP(states=3, adversary="trap", period=400, seed=1)
    compiled = simulate(mdp, AutoPSVI(), Poisson(6), episodes=500, seed=3)
    assert_frame_equal(
        compiled, simulate(mdp, InPython(AutoPSVI()), Poisson(6), episodes=500, seed=3), check_exact=True
    )
    assert not compiled.equals(
        simulate(mdp, AutoPSVI(ablation=Ablation(forgetting=False)), Poisson(6), episodes=500, seed=3)
    )


def test_general_features_forget_nothing() -> None:
    """Where states share features, a change of rewards looks like a change of the states that are visited."""
    problem = TableProblem(np.ones((3, 2, 1)), 3)
    agents = [AutoPSVI(ablation=Ablation(forgetting=forgetting)).start(problem) for forgetting in (True, False)]
    for batch in changing(Constant(0)):
        for agent in agents:
            agent.learn(batch)
    for name, values in agents[0].memory().items():
        np.testing.assert_array_equal(values, agents[1].memory()[name])


def test_no_more_pairs_than_the_limit_are_looked_at() -> None:
    changes = Changes(1, limit=2)
    for feature in (5, 3, 9, 5):
        changes.note(0, feature, 1, 0, 0.5, 1.0)
    assert changes.memory()["changes.pairs"].tolist() == [[5, 1], [3, 1]]
    assert changes.memory()["changes.known"][0, COUNT].tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pairs", np.array([[0, 0], [0, 0]])),
        ("pairs", np.array([[0, 0], [10, 0]])),
        ("pairs", np.array([[0, 0], [1, 2]])),
        ("pairs", np.array([[0, 0, 0], [1, 0, 0]])),
        ("known", np.zeros((2, NUMBERS, 3))),
        ("known", np.full((2, NUMBERS, 2), -1.0)),
        ("changed", np.array([0, 2])),
        ("changed", np.zeros(3, np.int64)),
    ],
)
def test_a_memory_of_changes_that_does_not_fit_is_refused(name: str, value: Any) -> None:
    changes = Changes(2, limit=9)
    changes.note(0, 0, 0, 3, 0.5, 1.0)
    changes.note(1, 1, 1, 2, 0.5, 1.0)
    memory = changes.memory()
    with pytest.raises(InvalidInputError, match="changes that are consistent"):
        Changes(2, limit=9).restore({**memory, f"changes.{name}": value}, 10, 2)
    again = Changes(2, limit=9)
    again.restore(memory, 10, 2)
    again.note(0, 2, 0, 1, 0.5, 1.0)
    assert again.memory()["changes.pairs"].tolist() == [[0, 0], [1, 1], [2, 0]]


def lines_of(steps: Any, rewards: Any, *, timed: bool = True) -> list[float]:
    known, lines = np.zeros((NUMBERS, 1)), np.zeros((3, 1))
    for step, reward in zip(steps, rewards, strict=True):
        note_reward(known, 0, int(step), float(reward), 1.0, False)
    fill_lines(make_rule(100, (0.0, 1.0), timed=timed), known, np.ones(1, np.int64), lines, np.ones(1, np.int64))
    return [float(each) for each in lines[:, 0]]


def test_a_line_through_the_rewards_of_a_pair() -> None:
    rng = np.random.default_rng(0)
    steps = rng.integers(100, size=40)
    rewards = 1 - 0.009 * steps
    assert lines_of(steps[:31], rewards[:31]) == [0.0, 0.0, 0.0]  # 31/2 · log 4 < 22
    slope, middle, explained = lines_of(steps[:32], rewards[:32])
    assert (slope, middle) == pytest.approx((-0.009, steps[:32].mean()))
    assert explained == pytest.approx(((rewards[:32] - rewards[:32].mean()) ** 2).sum())
    assert lines_of(steps, rewards, timed=False) == [0.0, 0.0, 0.0]
    assert lines_of(np.full(40, 7), rng.random(40)) == [0.0, 0.0, 0.0]  # always at the same step
    for _ in range(300):  # chance is no line
        assert lines_of(rng.integers(10, size=200), rng.integers(2, size=200))[0] == 0.0


def test_pairs_share_a_slope_that_none_has_enough_rewards_for() -> None:
    """Four pairs with nine rewards each, on lines of one slope; one always pays the same, one by chance."""
    rng, known = np.random.default_rng(0), np.zeros((NUMBERS, 6))
    for pair, count in enumerate((9, 9, 9, 9, 30, 8)):
        for h in rng.integers(100, size=count):
            paid = (0.5, float(rng.integers(2)))[pair - 4] if pair > 3 else 0.9 - 0.1 * pair - 0.005 * h
            note_reward(known, pair, int(h), paid, 1.0, False)
    rule, lines = make_rule(100, (0.0, 1.0)), np.zeros((3, 6))
    kinds, random = np.array([2, 1, 1, 1, 1, 1]), np.ones(6, np.int64)
    assert fill_lines(rule, known[:, :3].copy(), kinds, lines[:, :3], random) == 0
    assert not lines.any()  # 27/2 · log 4 < 22
    assert fill_lines(rule, known[:, :5].copy(), kinds, lines[:, :5], random) == 3
    assert lines[0].tolist() == pytest.approx([-0.005, -0.005, -0.005, -0.005, 0.0, 0.0])
    assert random.tolist() == [1, 0, 0, 0, 1, 1]  # the first has led to two states
    assert fill_lines(rule, known, kinds, lines, random) == 0
    assert not lines.any()  # what chance has paid hides it


def test_steps_that_change_are_no_change_of_rewards() -> None:
    """Rewards fall with the step, and the agent has become faster."""
    known, rng = np.zeros((NUMBERS, 1)), np.random.default_rng(0)
    steps = [*rng.integers(60, 100, size=64), *rng.integers(5, 20, size=400)]
    assert not any(note_reward(known, 0, int(h), 1 - 0.01 * h, 1.0, False) for h in steps)
    known = np.zeros((NUMBERS, 1))  # as it would be if the steps were not known
    assert any(note_reward(known, 0, 0, 1 - 0.01 * h, 1.0, False) for h in steps)


def hurry(horizon: int = 12) -> FiniteMDP:
    """Return a corridor whose end pays less with each step, 1 − 0.9 h/H, and is left for good."""
    transitions, rewards = np.zeros((4, 2, 4)), np.zeros((horizon, 4, 2))
    for s in range(3):
        transitions[s, 0, s] = transitions[s, 1, s + 1] = 1.0
    transitions[3, :, 3] = 1.0
    rewards[:, 2, 1] = 1 - 0.9 * np.arange(horizon) / horizon
    return FiniteMDP(transitions, rewards, horizon=horizon)


@pytest.mark.parametrize("noise", [0.02, 0.0])
def test_plans_with_lines_are_those_of_the_rule_in_tables_and_simulators(noise: float) -> None:
    mdp, features, rng = hurry(), OneHot(sizes=(4,), start=(0,)), stream(4, "paths")
    about = SimulatorProblem(actions=2, horizon=12, features=features, reward_range=(0.0, 1.0))
    table, agent = AutoPSVI(ablation=Ablation(shared=True)).start(mdp.problem), AutoPSVI().start(about)
    naive = NaiveTable(mdp.features, 12, shared=True)
    for k in range(60):
        path = mdp.rollout(TablePolicy(rng.integers(2, size=(12, 4))), rng)
        noisy = np.clip(path.rewards + noise * rng.random(12) * (path.rewards > 0), 0.0, 1.0)
        path = replace(path, rewards=noisy)
        encoded = replace(path, states=[features.encode(s) for s in path.rows.tolist()])
        table.learn([Feedback(k, path)])
        agent.learn([Feedback(k, encoded)])
        s, a, r = path.rows.tolist(), path.actions.tolist(), path.rewards.tolist()
        naive.observe([Step(s[h], a[h], r[h], s[h + 1]) for h in range(12)])
        if k % 6 == 5:
            wanted = naive.plan(stream(k, "x"))
            np.testing.assert_array_equal(table.plan(stream(k, "x")).actions, wanted)
            seen = np.flatnonzero(table.record.learned.seen)
            values = table.record.work.values
            np.testing.assert_allclose(values[:, seen], naive.values[:, seen], rtol=1e-6, atol=1e-6)
            policy = agent.plan(stream(k, "x"))
            assert [[policy.act(h, features.encode(s)) for s in range(4)] for h in range(12)] == wanted.tolist()
    assert table.record.work.lines[0, 5] == pytest.approx(-0.9 / 12, abs=0.01)


def test_where_rewards_fall_with_the_step_it_hurries() -> None:
    means = []
    for timed in (True, False):
        settings = AutoPSVI(ablation=Ablation(shared=True, timed=timed, hurried=False))
        runs = [simulate(hurry(), settings, Poisson(3), episodes=300, seed=seed) for seed in range(4)]
        means.append(np.mean([rows["value"][-60:].mean() for rows in runs]))
    assert means[0] > 0.8 > 0.7 > means[1]  # 0.85 is the best
