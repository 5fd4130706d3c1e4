"""Feedback is learned whole or not at all, in any order; agents keep to themselves; settings are plain values."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from belated._kernels.streams import stream
from belated.agents import (
    AutoPSVI,
    CompiledSettings,
    DelayedLPSVI,
    DelayedOPPO,
    DelayedPSRL,
    DelayedPSVI,
    DelayedUCBVI,
    EpsilonGreedy,
    FixedPolicy,
    Greedy,
    RandomPolicy,
    Settings,
    TabularUCBVI,
)
from belated.agents._base import Learner
from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim
from belated.errors import InvalidInputError
from belated.features import OneHot
from belated.types import (
    Agent,
    Algorithm,
    Feedback,
    SimulatorProblem,
    SparseVector,
    TablePolicy,
    TableProblem,
    Trajectory,
)

MDP = RandomLinearMDP(states=4, actions=3, dimension=3, horizon=4)

EVERY: list[CompiledSettings] = [
    DelayedPSVI(noise=0.5),
    DelayedLPSVI(),
    DelayedLPSVI(sampler="collapsed", warm_start="step"),
    DelayedLPSVI(sampler="preconditioned", warm_start="cold"),
    DelayedUCBVI(),
    DelayedUCBVI(bonus_form="growing"),
    EpsilonGreedy(),
    Greedy(),
    RandomPolicy(),
    FixedPolicy(actions=np.ones((4, 4), np.int64)),
]
ALL = pytest.mark.parametrize("settings", EVERY, ids=str)


def trajectories(count: int) -> list[Feedback]:
    explorer, rng = RandomPolicy().start(MDP.problem), stream(0, "explorer")
    return [Feedback(k, MDP.rollout(explorer.plan(rng), rng)) for k in range(count)]


def snapshot(agent: Learner) -> dict[str, npt.NDArray[Any]]:
    return {name: values.copy() for name, values in agent.memory().items()}


def assert_same(agent: Learner, memory: dict[str, npt.NDArray[Any]]) -> None:
    assert set(agent.memory()) == set(memory)
    for name, values in agent.memory().items():
        np.testing.assert_array_equal(values, memory[name], err_msg=name)


def bad(**changed: Any) -> Feedback:
    good = trajectories(1)[0].trajectory
    fields: dict[str, Any] = {"states": good.states, "actions": good.actions, "rewards": good.rewards}
    return Feedback(0, Trajectory(**{**fields, **changed}))


BAD = {
    "states too short": bad(states=np.zeros(4, np.int64)),
    "states too long": bad(states=np.zeros(6, np.int64)),
    "states two-dimensional": bad(states=np.zeros((5, 1), np.int64)),
    "a state that does not exist": bad(states=np.array([0, 1, 4, 0, 0])),
    "a last state that does not exist": bad(states=np.array([0, 1, 2, 0, 4])),
    "a negative state": bad(states=np.array([0, -1, 2, 0, 0])),
    "states that are not whole": bad(states=np.array([0.0, 1.0, 2.0, 0.0, 0.0])),
    "actions too long": bad(actions=np.zeros(5, np.int64)),
    "an action that does not exist": bad(actions=np.array([0, 1, 2, 3])),
    "a negative action": bad(actions=np.array([0, 1, 2, -1])),
    "rewards too short": bad(rewards=np.zeros(3)),
    "a reward that is not a number": bad(rewards=np.array([0.0, np.nan, 0.0, 0.0])),
    "an infinite reward": bad(rewards=np.array([0.0, 0.0, 0.0, -np.inf])),
    "a reward outside the range": bad(rewards=np.array([0.0, 0.0, 1.5, 0.0])),
    "rewards that are words": bad(rewards=["a", "b", "c", "d"]),
}


@ALL
@pytest.mark.parametrize("wrong", list(BAD))
def test_bad_feedback_changes_nothing(settings: CompiledSettings, wrong: str) -> None:
    agent, good = settings.start(MDP.problem), trajectories(3)
    agent.learn(good[:1])
    agent.plan(np.random.default_rng(0))
    before = snapshot(agent)
    for batch in ([BAD[wrong]], [good[1], BAD[wrong]], [good[1], BAD[wrong], good[2]]):
        with pytest.raises(InvalidInputError, match=r"^trajectory\.(states|actions|rewards) must"):
            agent.learn(batch)
        assert_same(agent, before)


@ALL
def test_an_empty_batch_changes_nothing(settings: CompiledSettings) -> None:
    agent = settings.start(MDP.problem)
    agent.learn(trajectories(2))
    before = snapshot(agent)
    agent.learn([])
    assert_same(agent, before)


@ALL
def test_the_order_of_arrival_does_not_matter(settings: CompiledSettings) -> None:
    batch = trajectories(25)
    one, two, three = (settings.start(MDP.problem) for _ in range(3))
    one.learn(batch)
    two.learn(batch[::-1])
    for feedback in batch[7:] + batch[:7]:
        three.learn([feedback])
    for name, values in one.memory().items():
        np.testing.assert_allclose(two.memory()[name], values, rtol=1e-9, atol=1e-10, err_msg=name)
        np.testing.assert_allclose(three.memory()[name], values, rtol=1e-9, atol=1e-10, err_msg=name)
    plans = [agent.plan(np.random.default_rng(3)).actions for agent in (one, two, three)]
    np.testing.assert_array_equal(plans[0], plans[1])
    np.testing.assert_array_equal(plans[0], plans[2])


@ALL
def test_planning_depends_on_the_memory_and_the_stream_alone(settings: CompiledSettings) -> None:
    one, two = settings.start(MDP.problem), settings.start(MDP.problem)
    busy, rng = settings.start(MDP.problem), np.random.default_rng(9)
    for feedback in trajectories(6):
        one.learn([feedback])
        busy.plan(rng)
        two.learn([feedback])
    first, second = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(4):
        np.testing.assert_array_equal(one.plan(first).actions, two.plan(second).actions)
    assert first.bit_generator.state == second.bit_generator.state


@ALL
def test_what_was_planned_is_a_table_of_actions_and_stays_as_it_was(settings: CompiledSettings) -> None:
    agent, rng = settings.start(MDP.problem), np.random.default_rng(0)
    policy = agent.plan(rng)
    assert policy.actions.shape == (4, 4)
    assert policy.actions.dtype == np.int64
    assert policy.actions.min() >= 0
    assert policy.actions.max() < 3
    kept = policy.actions.copy()
    agent.learn(trajectories(10))
    agent.plan(rng)
    np.testing.assert_array_equal(policy.actions, kept)


@ALL
def test_learners_keep_to_the_protocols(settings: CompiledSettings) -> None:
    assert isinstance(settings, Algorithm)
    assert isinstance(settings.start(MDP.problem), Agent)


@pytest.mark.parametrize("settings", EVERY[:-1], ids=str)
def test_rewards_that_would_overflow_are_refused_and_the_largest_can_be_planned_with(
    settings: CompiledSettings,
) -> None:
    agent = settings.start(TableProblem(MDP.features, 1, reward_range=(-np.inf, np.inf)))

    def paid(reward: float) -> Trajectory:
        return Trajectory(np.zeros(2, np.int64), np.zeros(1, np.int64), np.array([reward]))

    with pytest.raises(InvalidInputError, match=r"trajectory.rewards must be of magnitude at most 1e\+12"):
        agent.learn([Feedback(0, paid(1.7e308))])
    agent.learn([Feedback(k, paid(1e12)) for k in range(3)])
    actions = agent.plan(np.random.default_rng(0)).actions
    assert actions.min() >= 0
    assert actions.max() < 3


@ALL
def test_restore_replaces_the_memory(settings: CompiledSettings) -> None:
    agent, other = settings.start(MDP.problem), settings.start(MDP.problem)
    rng = np.random.default_rng(0)
    for feedback in trajectories(9):
        agent.learn([feedback])
        agent.plan(rng)
    other.learn(trajectories(4))
    other.plan(rng)
    other.restore(snapshot(agent))
    assert_same(other, agent.memory())
    for seed in range(3):
        np.testing.assert_array_equal(
            agent.plan(np.random.default_rng(seed)).actions, other.plan(np.random.default_rng(seed)).actions
        )
    before = snapshot(other)
    agent.learn(trajectories(11)[9:])
    assert_same(other, before)


@ALL
def test_restore_refuses_what_does_not_fit_and_changes_nothing(settings: CompiledSettings) -> None:
    agent = settings.start(MDP.problem)
    agent.learn(trajectories(3))
    before = snapshot(agent)
    with pytest.raises(InvalidInputError, match="memory must hold the arrays"):
        agent.restore({})
    with pytest.raises(InvalidInputError, match=r"memory must hold the arrays .*'other'"):
        agent.restore({**snapshot(agent), "other": np.zeros(1)})
    with pytest.raises(InvalidInputError, match=r"memory\['heard'\] must list the steps"):
        agent.restore({**before, "heard": np.zeros((1, 5))})
    for name, values in before.items():
        if name == "heard":
            continue
        with pytest.raises(InvalidInputError, match=rf"memory\['{name}'\] must be .* of shape"):
            agent.restore({**before, name: np.zeros((*values.shape, 1), values.dtype)})
        with pytest.raises(InvalidInputError, match=rf"memory\['{name}'\] must be .* of shape"):
            agent.restore({**before, name: values.astype(np.float32)})
        if values.dtype == np.float64 and values.size:
            broken = values.copy()
            broken.flat[-1] = np.nan
            with pytest.raises(InvalidInputError, match=rf"memory\['{name}'\] must be finite"):
                agent.restore({**before, name: broken})
    assert_same(agent, before)


@pytest.mark.parametrize(
    ("settings", "name", "as_plain"),
    [
        (DelayedPSVI(draws=np.int64(3), scale=np.float32(0.5)), "draws", 3),  # type: ignore[arg-type]
        (DelayedLPSVI(steps=np.int32(3)), "steps", 3),  # type: ignore[arg-type]
        (Greedy(ridge=np.float32(0.5)), "ridge", 0.5),  # type: ignore[arg-type]
    ],
)
def test_numpy_numbers_become_plain_values(settings: Settings, name: str, as_plain: float) -> None:
    assert json.loads(json.dumps(settings.to_dict()))[name] == as_plain


def test_settings_cannot_be_changed_or_given_by_position() -> None:
    with pytest.raises(AttributeError):
        Greedy().ridge = 2.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        Greedy(2.0)  # type: ignore[call-arg]


def test_settings_without_a_record_cannot_start() -> None:
    class Unfinished(CompiledSettings):
        kind = "unfinished"

    class Nothing(Settings):
        kind = "nothing"

    with pytest.raises(TypeError, match="Unfinished must define record"):
        Unfinished().start(RiverSwim().problem)
    with pytest.raises(TypeError, match=r"Nothing must define start\(problem\), or be CompiledSettings"):
        Nothing().start(RiverSwim().problem)


def test_repr_shows_settings_and_sizes() -> None:
    assert repr(Greedy().start(RiverSwim().problem)) == (
        "<Greedy(ridge=1.0, shared=False): 5 states, 2 actions, d=10, H=20>"
    )


def now_or_later(discount: float, features: Any = None) -> FiniteMDP:
    """Return a problem in which 0.5 is to be had at once (action 0), or 0.8 a step later."""
    transitions, rewards = np.zeros((3, 2, 3)), np.zeros((3, 2))
    transitions[0, 0, 2] = transitions[0, 1, 1] = transitions[1, :, 2] = transitions[2, :, 2] = 1.0
    rewards[0, 0], rewards[1] = 0.5, 0.8
    return FiniteMDP(transitions, rewards, features, horizon=3, discount=discount)


@pytest.mark.parametrize("algorithm", [Greedy(ridge=1e-6), DelayedPSVI(ridge=1e-6, noise=1e-3), AutoPSVI()])
@pytest.mark.parametrize("one_hot", [True, False], ids=["table", "regression"])
@pytest.mark.parametrize("simulated", [False, True], ids=["tables", "simulators"])
def test_the_discount_of_a_problem_decides_between_now_and_later(
    algorithm: CompiledSettings, one_hot: bool, simulated: bool
) -> None:
    for discount, wanted in ((1.0, 1), (0.9, 1), (0.5, 0)):
        mdp = now_or_later(discount, None if one_hot else np.eye(6).reshape(3, 2, 6) * 2.0)
        if simulated:
            encoded = [SparseVector(np.array([s]), np.array([1.0 if one_hot else 2.0])) for s in range(3)]
            agent: Any = algorithm.start(
                SimulatorProblem(OneHot(sizes=(3,), start=(0,)), 3, actions=2, discount=discount)
            )
        else:
            agent = algorithm.start(mdp.problem)
        for episode in range(40):
            rng = np.random.default_rng(episode)
            played = mdp.rollout(TablePolicy(rng.integers(2, size=(3, 3))), rng)
            if simulated:
                played = Trajectory([encoded[s] for s in played.rows], played.actions, played.rewards)
            agent.learn([Feedback(episode, played)])
        policy = agent.plan(np.random.default_rng(0))
        assert policy.act(0, encoded[0] if simulated else 0) == wanted


def test_algorithms_that_cannot_discount_say_so() -> None:
    for algorithm in (DelayedPSRL(), TabularUCBVI(), DelayedOPPO(step_size=0.05)):
        with pytest.raises(InvalidInputError, match=f"discount must be 1, since {type(algorithm).__name__}"):
            algorithm.start(now_or_later(0.9).problem)
    RandomPolicy().start(now_or_later(0.9).problem)
    for bad in (0.0, 1.5, float("nan"), "1"):
        with pytest.raises(InvalidInputError, match="discount"):
            FiniteMDP([[[1.0]]], [[0.5]], horizon=1, discount=bad)  # type: ignore[arg-type]
