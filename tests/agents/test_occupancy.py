"""What OPPO and DAPO share: occupancy measures, confidence sets, the memory of policies in flight."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from occupancies import SMALL, naive_reach, paths, some_model, some_policy, told
from scipy.optimize import linprog

from belated._kernels.streams import stream
from belated.agents import DelayedDAPO, DelayedOPPO, RandomPolicy, load_agent, save_agent
from belated.agents._occupancy import (
    Model,
    PolicyOptimisation,
    confidence_bounds,
    extreme_mean,
    occupancy,
    occupancy_bound,
    rank,
)
from belated.environments import FiniteMDP
from belated.errors import InvalidInputError
from belated.testing import _agents as checks
from belated.types import Dynamics, Feedback, Floats, Problem, TablePolicy, TableProblem

EACH = pytest.mark.parametrize("settings", [DelayedOPPO(step_size=0.1), DelayedDAPO(step_size=0.1)], ids=str)


@pytest.mark.parametrize("upper", [True, False])
def test_the_extreme_mean_solves_its_linear_programme(upper: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        values, distribution = rng.random(5), rng.dirichlet(np.ones(5))
        low, high = np.maximum(distribution - rng.random(5) * 0.3, 0), np.minimum(distribution + rng.random(5) * 0.3, 1)
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
        expected[np.arange(3), trajectory.rows[:-1]] += chance
    distribution, reached = np.array(mdp.transitions), np.zeros((3, 3))
    occupancy(Model(distribution, distribution, mdp.start, mdp.start, True), policy, reached)
    np.testing.assert_allclose(reached, expected, rtol=1e-12)
    wide = np.zeros((3, 3))
    for upper in (True, False):  # bounds that agree leave no choice
        occupancy_bound(Model(distribution, distribution, mdp.start, mdp.start, False), policy, upper, wide)
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
            distribution, start = corner(model.low, model.high, rng), corner(model.start_low, model.start_high, rng)
            occupancy(Model(distribution, distribution, start, start, True), policy, reached)
            assert (reached <= most + 1e-12).all() and (reached >= least - 1e-12).all()
            nearest = np.minimum(nearest, [most[0] - reached[0], reached[0] - least[0]])
        assert nearest.max() < 1e-9  # the start alone has few corners: all of them are met


def corner(low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
    """Return a distribution within the bounds, filled up in a random order in each row."""
    distribution = low.copy().reshape(-1, low.shape[-1])
    for row, top in zip(distribution, high.reshape(distribution.shape), strict=True):
        for s in rng.permutation(row.size):
            row[s] = min(top[s], row[s] + max(1 - row.sum(), 0))
    return distribution.reshape(low.shape)


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
    distribution, policy = np.array(mdp.transitions), some_policy((3, 3, 2))
    true, most, least = np.zeros((3, 3, 3))
    occupancy(Model(distribution, distribution, mdp.start, mdp.start, True), policy, true)
    occupancy_bound(agent.model, policy, True, most)
    occupancy_bound(agent.model, policy, False, least)
    assert (least <= true + 1e-12).all() and (true <= most + 1e-12).all()
    assert (most[1:] - least[1:]).min() > 1e-3
    assert (most[1:] - least[1:]).max() < 0.9


class Told:
    """The same algorithm, told uniform dynamics, so that the checks go through that half of the code, too."""

    def __init__(self, settings: PolicyOptimisation) -> None:
        self.settings = settings

    def start(self, problem: Problem) -> Any:
        assert isinstance(problem, TableProblem)
        shape = (1, problem.states, problem.actions, problem.states)
        distribution = Dynamics(np.full(shape, 1 / problem.states), np.full(problem.states, 1 / problem.states))
        return self.settings.start(TableProblem(problem.features, problem.horizon, distribution))


@pytest.mark.parametrize("check", checks.AGENT_CHECKS, ids=lambda check: check.__name__)
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
    foreign = Feedback(3, SMALL.rollout(TablePolicy(np.ones((3, 3), np.int64)), rng))
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
        ("followed", np.full((3, 3, 2, 3), -1), "must hold integers"),
        ("starts", np.zeros(2, np.int64), "must have shape"),
        ("planned", np.array([-1]), "must hold integers"),
        ("under_way.episodes", np.array([0, 1, 9]), r"must hold integers in 0\.\.2, got 9"),
        ("under_way.episodes", np.array([0, 1, 1]), "must be distinct episodes"),
        ("under_way.policies", np.ones((3, 3, 3, 2)), "must sum to one"),
        ("waiting.episodes", np.array([0, 1]), r"states.* must have shape \(2, 4\), got \(1, 4\)"),
        ("waiting.states", np.full((1, 4), 3), r"must hold integers in 0\.\.2, got 3"),
        ("waiting.actions", np.full((1, 3), 2), r"must hold integers in 0\.\.1, got 2"),
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
