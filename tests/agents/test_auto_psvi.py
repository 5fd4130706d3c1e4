"""AutoPSVI on finite problems: against the rule written down naively, by its moments, and by what it must not do."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from in_python import InPython
from naive_auto import NaiveAuto, NaiveLinear, NaiveTable, Step
from polars.testing import assert_frame_equal

from belated._kernels.streams import stream
from belated.agents import Ablation, AutoPSVI, agent_from_dict
from belated.agents._auto.counts import AutoTableRecord
from belated.agents._auto.dense import AutoLinearRecord
from belated.agents._auto_psvi import is_one_hot
from belated.delays import Constant, DelayDistribution, FeedbackQueue, Lossy, Poisson
from belated.environments import DeepSea, FiniteMDP, LinearBandit, RandomLinearMDP, RiverSwim, SyntheticLinearMDP
from belated.errors import InvalidInputError
from belated.runner import simulate
from belated.testing import _agents as checks
from belated.types import Feedback, TablePolicy, TableProblem, Trajectory

ENVIRONMENTS: dict[str, Callable[[], FiniteMDP]] = {
    "riverswim": lambda: RiverSwim(states=4, horizon=6),
    "deepsea": lambda: DeepSea(size=4),
    "random-linear": lambda: RandomLinearMDP(states=5, actions=3, dimension=4, horizon=5, seed=3, bernoulli=True),
    "synthetic": lambda: SyntheticLinearMDP(actions=6, horizon=8),
}
SHARED = pytest.mark.parametrize("shared", [False, True], ids=["per-step", "shared"])


def naive_for(mdp: FiniteMDP, settings: AutoPSVI) -> NaiveTable | NaiveLinear:
    kind = NaiveTable if is_one_hot(mdp.problem) else NaiveLinear
    named = [each.name for each in fields(Ablation) if each.name not in ("shared", "rows")]
    given = {name: getattr(settings.ablation, name) for name in named}
    return kind(mdp.features, mdp.horizon, shared=bool(settings.ablation.shared), **given)


def observe(naive: NaiveAuto, trajectory: Trajectory) -> None:
    s, a, r = trajectory.rows.tolist(), trajectory.actions.tolist(), trajectory.rewards.tolist()
    naive.observe([Step(s[h], a[h], r[h], s[h + 1]) for h in range(len(a))])


@pytest.mark.parametrize("environment", list(ENVIRONMENTS))
@SHARED
@pytest.mark.parametrize(
    ("distribution", "settings"),
    [
        (Constant(0), {}),
        (Poisson(5), {}),
        (Lossy(Poisson(2), 0.4), {"residual": 1.0, "hidden": 0.7, "prior": 0.4, "ridge": 0.5}),
        (Poisson(3), {"optimistic": False, "weighted": False}),
        (Poisson(3), {"residual": 0.0}),
        (Poisson(3), {"hidden": 0.0}),
        (Poisson(3), {"hurried": False, "capped": False}),
        (Constant(1), {"slab": 3.0, "rarity": 2.5, "hidden": 0.7}),
    ],
)
def test_policies_are_those_of_the_rule(
    environment: str, shared: bool, distribution: DelayDistribution, settings: dict[str, Any]
) -> None:
    mdp, chosen = ENVIRONMENTS[environment](), AutoPSVI(ablation=Ablation(shared=shared, **settings))
    agent, naive = chosen.start(mdp.problem), naive_for(mdp, chosen)
    buffer: FeedbackQueue[Trajectory] = FeedbackQueue()
    ours, theirs, world = stream(1, "agent"), stream(1, "agent"), stream(1, "environment")
    for k, delay in enumerate(distribution.sample(stream(1, "delay"), 40)):
        batch = [Feedback(*each) for each in buffer.arrived(k)]
        agent.learn(batch)
        for each in batch:
            observe(naive, each.trajectory)
        policy, wanted = agent.plan(ours), naive.plan(theirs)
        np.testing.assert_array_equal(policy.actions, wanted, err_msg=f"policy of episode {k}")
        seen = np.flatnonzero(agent.record.learned.seen) if isinstance(naive, NaiveTable) else np.arange(mdp.states)
        values = agent.record.work.values
        np.testing.assert_allclose(values[:, seen], naive.values[:, seen], rtol=1e-6, atol=1e-6)
        assert ours.bit_generator.state == theirs.bit_generator.state
        buffer.add(k, int(delay), mdp.rollout(TablePolicy(policy.actions), world))
    assert naive.episodes


@SHARED
def test_tables_and_regressions_are_one_rule(shared: bool) -> None:
    """With one-hot features a table and a regression give action values of the same mean and variance."""
    mdp = RiverSwim(states=3, horizon=3)
    moved = FiniteMDP(
        mdp.transitions, mdp.rewards, features=np.concatenate([mdp.features, np.zeros((3, 2, 1))], axis=2)[:, :, ::-1]
    )
    scaled = FiniteMDP(mdp.transitions, mdp.rewards, features=3 * mdp.features)
    # a table has more to say where it knows the outcomes of each pair
    one_rule: dict[str, Any] = {"residual": 1.0, "hidden": 1.0, "prior": 0.0}
    one_rule |= {"weighted": False, "rarity": 0.0, "capped": False}
    drawn = {}
    for name, each in (("table", mdp), ("moved", moved), ("regression", scaled)):
        agent = AutoPSVI(ablation=Ablation(shared=shared, **one_rule)).start(each.problem)
        agent.learn(
            [Feedback(k, mdp.rollout(TablePolicy(np.ones((3, 3), np.int64)), stream(k, "x"))) for k in range(4)]
        )
        rng, values = np.random.default_rng(0), []
        for _ in range(4000):
            agent.plan(rng)
            values.append(agent.record.work.values[:, 0].copy())
        drawn[name] = np.array(values)
    assert isinstance(AutoPSVI().record(moved.problem), AutoTableRecord)
    assert isinstance(AutoPSVI().record(scaled.problem), AutoLinearRecord)
    np.testing.assert_array_equal(drawn["table"], drawn["moved"])
    for moment in (np.mean, np.std):
        np.testing.assert_allclose(moment(drawn["table"], axis=0), moment(drawn["regression"], axis=0), atol=0.03)


def test_scaling_features_changes_nothing() -> None:
    mdp = ENVIRONMENTS["random-linear"]()
    scaled = FiniteMDP(mdp.transitions, mdp.rewards, features=8 * mdp.features, bernoulli=True)
    for shared in (False, True):
        rows = [
            simulate(each, AutoPSVI(ablation=Ablation(shared=shared)), Poisson(3), episodes=80, seed=2)
            for each in (mdp, scaled)
        ]
        assert rows[0]["sampled_return"].to_list() == rows[1]["sampled_return"].to_list()


def test_before_any_feedback_all_actions_are_alike() -> None:
    for mdp in (RiverSwim(states=3, horizon=4), SyntheticLinearMDP(actions=2, horizon=4)):
        agent, rng = AutoPSVI().start(mdp.problem), np.random.default_rng(0)
        actions = np.array([agent.plan(rng).actions for _ in range(2000)])
        np.testing.assert_allclose(actions.mean(axis=0), 0.5, atol=0.06)


def test_one_failure_does_not_end_the_search() -> None:
    """A pair whose only try failed is tried again, at no delay, where nothing else is left to explore."""
    mdp = RiverSwim(states=4, horizon=12)
    for seed in range(5):
        rows = simulate(mdp, AutoPSVI(ablation=Ablation(shared=True)), Constant(0), episodes=300, seed=seed)
        assert rows["value"][-50:].to_numpy().mean() > 0.97 * mdp.optimal_value


@pytest.mark.parametrize(
    ("mdp", "without"),
    [
        (RiverSwim(states=8, horizon=32), {"hidden": 0.0}),
        (RiverSwim(states=8, horizon=32), {"shared": False}),
        (DeepSea(12), {"ridge": 1.0}),
        (DeepSea(12), {"weighted": False}),
        (DeepSea(12), {"optimistic": False}),
    ],
    ids=["hidden", "shared", "ridge", "weighted", "optimistic"],
)
def test_without_a_part_it_learns_later(mdp: FiniteMDP, without: dict[str, Any]) -> None:
    whole, less = (
        simulate(mdp, AutoPSVI(ablation=each), Constant(0), episodes=200, seed=0)["regret"][-1]
        for each in (Ablation(shared=True), Ablation(**{"shared": True, **without}))
    )
    assert whole < 0.6 * less


@SHARED
@pytest.mark.parametrize("check", checks.AGENT_CHECKS, ids=lambda check: check.__name__)
def test_conformance(check: checks.Check, shared: bool) -> None:
    check(AutoPSVI(ablation=Ablation(shared=shared)))


@pytest.mark.parametrize("environment", ["riverswim", "random-linear"])
@SHARED
@pytest.mark.parametrize("distribution", [Constant(0), Poisson(6)], ids=["none", "poisson"])
def test_both_loops_give_the_same_rows_bit_for_bit(
    environment: str, shared: bool, distribution: DelayDistribution
) -> None:
    mdp, settings = ENVIRONMENTS[environment](), AutoPSVI(ablation=Ablation(shared=shared))
    compiled = simulate(mdp, settings, distribution, episodes=200, seed=3)
    assert_frame_equal(
        compiled, simulate(mdp, InPython(settings), distribution, episodes=200, seed=3), check_exact=True
    )


def test_the_problem_decides_what_is_shared() -> None:
    problem = RiverSwim(states=3, horizon=4).problem
    assert AutoPSVI().record(problem).learned.visits.shape[0] in (1, 4)
    object.__setattr__(problem, "homogeneous", True)
    assert AutoPSVI().record(problem).learned.visits.shape[0] == 1
    assert AutoPSVI(ablation=Ablation(shared=False)).record(problem).learned.visits.shape[0] == 4
    object.__setattr__(problem, "reward_range", (-2.0, 0.5))
    rule = AutoPSVI().record(problem).rule
    assert (rule.low, rule.high, rule.mean, rule.prior, rule.hidden) == (-2.0, 0.5, 0.5, 0.1 * 4 * 2.5, 0.3 * 2.5)


def test_bandits_with_many_contexts_are_planned_where_they_start() -> None:
    features = np.random.default_rng(0).normal(size=(6, 3, 2))
    agent = AutoPSVI().start(TableProblem(features, 1))
    agent.learn([Feedback(0, Trajectory(np.array([2, 2]), np.array([1]), np.array([0.5])))])
    for state in range(6):
        whole = agent.plan(np.random.default_rng(5)).actions[0, state]
        assert agent.plan_from(np.random.default_rng(5), state).actions[0, state] == whole


def test_the_largest_rewards_can_be_planned_with() -> None:
    for features in (np.eye(2).reshape(2, 1, 2), np.ones((2, 1, 1))):
        agent = AutoPSVI(ablation=Ablation(residual=1.0)).start(TableProblem(features, 2, reward_range=(-1e12, 1e12)))
        path = Trajectory(np.zeros(3, np.int64), np.zeros(2, np.int64), np.array([1e12, -1e12]))
        agent.learn([Feedback(k, path) for k in range(3)])
        agent.plan(np.random.default_rng(0))


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("shared", [0, "yes", 1.0]),
        ("optimistic", [None, 1, "no"]),
        ("weighted", [None, 0]),
        ("hurried", [None, 1]),
        ("capped", [None, 0.5]),
        ("forgetting", [None, 1]),
        ("timed", [None, 1]),
        ("ridge", [0, -1.0, float("nan"), "1", True]),
        *((name, [-0.1, float("inf"), None, "0", True]) for name in ("residual", "hidden", "prior", "slab", "rarity")),
        ("rows", [0, 1.5, None, True]),
    ],
)
def test_bad_settings_are_named(name: str, bad: list[Any]) -> None:
    for value in bad:
        with pytest.raises(InvalidInputError, match=name):
            Ablation(**{name: value})


def test_settings_survive_plain_values() -> None:
    for settings in (AutoPSVI(), AutoPSVI(ablation=Ablation(shared=True, ridge=0.5, hidden=0))):
        assert agent_from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


@pytest.mark.parametrize(
    ("mdp", "array", "value"),
    [
        (RiverSwim(states=3, horizon=4), "visits", -1),
        (RiverSwim(states=3, horizon=4), "kinds", 5),
        (RiverSwim(states=3, horizon=4), "after", 4),
        (RiverSwim(states=3, horizon=4), "often", -1),
        (RiverSwim(states=3, horizon=4), "seen", 2),
        (RiverSwim(states=3, horizon=4), "random", 2),
        (RiverSwim(states=3, horizon=4), "outcomes", -1),
        (RiverSwim(states=3, horizon=4), "changed", 2),
        (RiverSwim(states=3, horizon=4), "known", -1.0),
        (SyntheticLinearMDP(actions=4, horizon=3), "kinds", -1),
        (SyntheticLinearMDP(actions=4, horizon=3), "weighed", -1),
        (SyntheticLinearMDP(actions=4, horizon=3), "leverage", -1.0),
        (SyntheticLinearMDP(actions=4, horizon=3), "factor", 0.0),
        (SyntheticLinearMDP(actions=4, horizon=3), "hidden_factor", -1.0),
    ],
)
def test_a_memory_that_no_feedback_leaves_is_refused(mdp: FiniteMDP, array: str, value: float) -> None:
    agent = AutoPSVI().start(mdp.problem)
    memory = {name: values.copy() for name, values in agent.memory().items()}
    memory[array].flat[0] = value
    with pytest.raises(InvalidInputError, match=rf"memory\['{array}'\] must"):
        agent.restore(memory)


def test_rewards_without_bounds_are_refused_at_the_start() -> None:
    bandit = LinearBandit()  # its rewards have normal noise
    with pytest.raises(InvalidInputError, match=r"problem.reward_range must be finite: .*got \(-inf, inf\)"):
        AutoPSVI().start(bandit.problem)
