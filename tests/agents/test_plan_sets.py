"""Sets of plans: what their members do, and that many steps at once teach what single trajectories do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from belated import (
    AutoPSVI,
    DelayedLPSVI,
    DelayedPHE,
    DelayedPSVI,
    DelayedQLearning,
    DelayedUCBVI,
    EpsilonGreedy,
    Greedy,
    MultiBatch,
    RandomPolicy,
    RareSwitching,
)
from belated.agents._plan_sets import PlanSet, PlansSets, by_action, fill_distributions
from belated.agents._sparse import SparseAgent
from belated.agents._transitions import TERMINAL, Sparse, Steps
from belated.types import (
    Algorithm,
    Feedback,
    Floats,
    Ints,
    SimulatorProblem,
    SparseRows,
    SparseVector,
    StochasticPolicy,
    Trajectory,
)

HORIZON, ACTIONS, SIZE = 3, 3, 4
ALGORITHMS: dict[str, Any] = {
    "auto": AutoPSVI(),
    "psvi": DelayedPSVI(draws=2, shared=True),
    "psvi-steps": DelayedPSVI(ties="first"),
    "lpsvi": DelayedLPSVI(),
    "phe": DelayedPHE(),
    "ucbvi": DelayedUCBVI(),
    "ucbvi-shared": DelayedUCBVI(shared=True),
    "epsilon": EpsilonGreedy(epsilon=0.3),
    "greedy": Greedy(),
    "q": DelayedQLearning(epsilon=0.2),
    "q-steps": DelayedQLearning(shared=False),
    "random": RandomPolicy(),
}
SPARSE = [name for name in ALGORITHMS if not name.startswith(("q", "random"))]


class Given:
    """Features that are given as they are."""

    def __init__(self, size: int) -> None:
        self.size = size

    def encode(self, observation: Any) -> SparseVector:
        assert isinstance(observation, SparseVector)
        return observation


class GivenPairs(Given):
    def __init__(self, size: int, actions: int) -> None:
        super().__init__(size)
        self.actions = actions


PROBLEM = SimulatorProblem(Given(SIZE), HORIZON, actions=ACTIONS)


def vectors(kind: str) -> list[SparseVector]:
    """Return the states of a small world: rows of a table, or dense vectors."""
    if kind == "table":
        return [SparseVector(np.array([i]), np.ones(1)) for i in range(SIZE)]
    rng = np.random.default_rng(1)
    return [SparseVector(np.arange(SIZE), rng.random(SIZE)) for _ in range(6)]


def episodes(kind: str, count: int = 12) -> list[Feedback]:
    """Return late trajectories, of which some terminate early."""
    states, rng = vectors(kind), np.random.default_rng(2)
    found = []
    for episode in range(count):
        steps = int(rng.integers(1, HORIZON + 1))
        ended = bool(rng.random() < 0.5)
        met = [states[i] for i in rng.integers(len(states), size=steps + 1)]
        if ended:
            met[-1] = met[-2]  # as good as any: nothing is learned of a terminal state
        rewards = rng.integers(0, 5, size=steps) / 4.0
        found.append(Feedback(episode, Trajectory(met, rng.integers(ACTIONS, size=steps), rewards, ended)))
    return found


def as_steps(batch: list[Feedback]) -> Steps:
    """Return trajectories as columns, with states numbered as they are met."""
    numbers: dict[bytes, int] = {}
    known: list[SparseVector] = []

    def number(state: SparseVector) -> int:
        key = state.indices.tobytes() + state.values.tobytes()
        if key not in numbers:
            numbers[key] = len(known)
            known.append(state)
        return numbers[key]

    rows = []
    for each in batch:
        late: Any = each.trajectory
        for h, (action, reward) in enumerate(zip(late.actions, late.rewards, strict=True)):
            state, after = number(late.states[h]), number(late.states[h + 1])
            if late.terminated and h == len(late.actions) - 1:
                after = TERMINAL
            rows.append((each.episode, h, state, int(action), after, reward))
    episode, step, state_of, taken, follows, paid = (np.array(column) for column in zip(*rows, strict=True))
    starts = np.concatenate([[0], np.cumsum([state.indices.size for state in known])])
    sparse = Sparse(
        starts, np.concatenate([s.indices for s in known]), np.concatenate([s.values for s in known])
    )  # fmt: skip
    marks = np.arange(len(known), dtype=np.uint64)
    return Steps(
        sparse, marks, episode, step, state_of, taken, follows, paid.astype(float), np.ones(len(rows), np.bool_)
    )


def ask(plans: PlanSet, step: int, state: SparseVector, offered: Ints | None = None) -> Floats:
    offered = np.arange(ACTIONS) if offered is None else offered
    there = np.isin(state.indices, plans.features)
    columns = np.searchsorted(plans.features, state.indices[there])
    found = np.zeros((len(plans.weights), offered.size))
    fill_distributions(plans, step, columns, state.values[there], offered, found)
    return found


def learned(name: str, kind: str) -> PlansSets:
    agent = ALGORITHMS[name].start(PROBLEM)
    agent.learn(episodes(kind))
    assert isinstance(agent, PlansSets)
    return agent


@pytest.mark.parametrize("kind", ["table", "dense"])
@pytest.mark.parametrize("name", SPARSE)
def test_many_steps_at_once_teach_what_single_trajectories_do(name: str, kind: str) -> None:
    one, two = learned(name, kind), ALGORITHMS[name].start(PROBLEM)
    assert isinstance(one, SparseAgent)
    two.learn_steps(as_steps(episodes(kind)))
    if isinstance(two, SparseAgent):  # a bonus may grow with the episodes that were begun, of which `one` has none
        one.progress = two.progress
    sets = [agent.plan_set(np.random.default_rng(5), 3) for agent in (one, two)]
    for values, others in zip((*sets[0], *sets[0].widths), (*sets[1], *sets[1].widths), strict=True):
        if not isinstance(values, tuple):
            assert np.asarray(values).tobytes() == np.asarray(others).tobytes()


@pytest.mark.parametrize("kind", ["table", "dense"])
@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_one_plan_of_a_set_is_the_next_policy(name: str, kind: str) -> None:
    """The same random numbers make the same plan, and both say the same of every state."""
    agent, other = learned(name, kind), learned(name, kind)
    if isinstance(agent, SparseAgent):
        agent.progress = agent.progress._replace(episodes=1.0)  # of the plan that `other` makes
    plans = agent.plan_set(np.random.default_rng(7), 1)
    policy: Any = other.plan(np.random.default_rng(7))
    assert isinstance(policy, StochasticPolicy)
    for h in range(HORIZON):
        for state in [*vectors(kind), SparseVector(np.zeros(0, np.int64), np.zeros(0))]:
            np.testing.assert_allclose(ask(plans, h, state)[0], policy.distribution(h, state), atol=1e-12)


@pytest.mark.parametrize("name", ["psvi", "psvi-steps", "epsilon", "ucbvi", "auto"])
def test_members_are_what_their_weights_say(name: str) -> None:
    """π_j from dense vectors, action by action, without any bonus or among the actions on offer only."""
    plans = learned(name, "dense").plan_set(np.random.default_rng(3), 4)._replace(caps=np.full(HORIZON, np.inf))
    plans = plans._replace(widths=learned("psvi", "dense").plan_set(np.random.default_rng(3), 1).widths)
    for offered in (np.arange(ACTIONS), np.array([2, 0])):
        for h in range(HORIZON):
            for state in vectors("dense"):
                found = ask(plans, h, state, offered)
                for j, weights in enumerate(plans.weights):
                    dense = np.zeros(SIZE)
                    dense[state.indices] = state.values
                    q = (weights[h][:, offered] @ dense[plans.features]).max(axis=0)
                    expected = np.full(offered.size, plans.epsilon / offered.size)
                    ties = np.flatnonzero(q >= q.max() - 1e-12)[: 1 if plans.first else None]
                    expected[ties] += (1.0 - plans.epsilon) / ties.size
                    np.testing.assert_allclose(found[j], expected, atol=1e-12)


def test_equal_values_are_shared_or_the_first_is_taken() -> None:
    plans = learned("greedy", "dense").plan_set(np.random.default_rng(0), 1)
    nothing = plans._replace(weights=np.zeros_like(plans.weights), epsilon=0.1)
    state = vectors("dense")[0]
    np.testing.assert_allclose(ask(nothing, 0, state), 1 / 3)
    np.testing.assert_allclose(ask(nothing._replace(first=True), 0, state)[0], [0.9 + 0.1 / 3, 0.1 / 3, 0.1 / 3])
    best = np.zeros_like(plans.weights)
    best[:, :, :, 1:] = 1e3  # far beyond what is possible: both are as good as can be
    shares = ask(plans._replace(weights=best), 0, state)[0]
    np.testing.assert_allclose(shares, [0.0, 0.5, 0.5])


def test_an_action_that_plans_do_not_know_is_worth_nothing() -> None:
    plans = learned("greedy", "table").plan_set(np.random.default_rng(0), 1)
    state = vectors("table")[0]
    worst = plans._replace(weights=np.full_like(plans.weights, -1.0))
    np.testing.assert_array_equal(ask(worst, 0, state, np.array([0, 7])), [[0.0, 1.0]])


@pytest.mark.parametrize("name", ["epsilon", "q", "auto", "random"])
def test_actions_are_drawn_from_the_distribution(name: str) -> None:
    """χ² of the actions of 1 500 calls; 13.8 is exceeded by chance once in a thousand times."""
    agent = learned(name, "dense")
    state = vectors("dense")[0] if name != "auto" else SparseVector(np.zeros(0, np.int64), np.zeros(0))
    policy: Any = agent.plan(np.random.default_rng(11))
    chances = policy.distribution(1, state)
    drawn = np.bincount([policy.act(1, state) for _ in range(1500)], minlength=ACTIONS)
    assert chances.sum() == pytest.approx(1.0)
    assert ((drawn - 1500 * chances) ** 2 / (1500 * np.maximum(chances, 1e-300)))[chances > 0].sum() < 13.8
    assert not drawn[chances == 0].any()


@pytest.mark.parametrize("name", ["psvi", "ucbvi", "ucbvi-shared", "greedy"])
def test_joint_features_of_single_actions_are_those_of_states(name: str) -> None:
    """φ(s, a) as ψ(s) in the block of a, written as joint features: the same means, bonuses and plans."""
    problem = SimulatorProblem(GivenPairs(SIZE * ACTIONS, ACTIONS), HORIZON, actions=ACTIONS)

    def rows(state: SparseVector) -> SparseRows:
        k = state.indices.size
        indices = np.concatenate([a * SIZE + state.indices for a in range(ACTIONS)])
        return SparseRows(np.arange(ACTIONS + 1) * k, indices, np.tile(state.values, ACTIONS))

    algorithm: Any = ALGORITHMS[name]
    if name == "psvi":
        algorithm = DelayedPSVI(scale=0.0, shared=True)
    joint, plain = algorithm.start(problem), algorithm.start(PROBLEM)
    for each in episodes("dense"):
        late: Any = each.trajectory
        plain.learn([each])
        wide = Trajectory([rows(state) for state in late.states], late.actions, late.rewards, late.terminated)
        joint.learn([Feedback(each.episode, wide)])
    found = by_action(joint.plan_set(np.random.default_rng(0), 1), ACTIONS, SIZE)
    expected = plain.plan_set(np.random.default_rng(0), 1)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-9)
    for h in range(HORIZON):
        for state in vectors("dense"):
            np.testing.assert_allclose(ask(found, h, state), ask(expected, h, state))


@pytest.mark.parametrize("algorithm", [RareSwitching(base=Greedy()), MultiBatch(base=Greedy())], ids=["rare", "batch"])
def test_an_agent_that_says_when_to_plan_has_no_sets(algorithm: Algorithm) -> None:
    assert not isinstance(algorithm.start(PROBLEM), PlansSets)
