"""QPM-D: without delay it is its base, and under delay its base is told only of what it has just chosen."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_python import InPython

from belated._kernels.streams import stream
from belated.agents import (
    QPMD,
    DelayedPSVI,
    DelayedUCBVI,
    Greedy,
    OTFLinTS,
    RandomPolicy,
    Settings,
    TabularUCBVI,
    agent_from_dict,
    load_agent,
    save_agent,
)
from belated.delays import Constant, DelayDistribution, FeedbackQueue, Lossy, Poisson
from belated.environments import FiniteMDP, LinearBandit, RiverSwim
from belated.errors import InvalidInputError
from belated.runner import simulate
from belated.testing import _agents as checks
from belated.types import Agent, Algorithm, Feedback, Problem, TablePolicy, TableProblem, Trajectory

FIXED = LinearBandit(actions=5, dimension=3, reward="conversion", seed=1)
CONTEXTS = LinearBandit(actions=4, dimension=3, sets="random", contexts=3, reward="conversion", seed=2)
WORLDS = pytest.mark.parametrize("world", [FIXED, CONTEXTS], ids=["fixed", "contexts"])
BASES: list[Settings] = [
    DelayedPSVI(),
    DelayedUCBVI(bonus_form="growing"),
    TabularUCBVI(bonus_scale=0.01, updating="lazy"),
    OTFLinTS(window=3, scale=0.3),
    RandomPolicy(),
]
EACH_BASE = pytest.mark.parametrize("base", BASES, ids=str)


class Clerk:
    """An agent of somebody else that writes down what it is asked and told; it chooses at random."""

    def __init__(self, problem: Problem) -> None:
        assert isinstance(problem, TableProblem)
        self.problem = problem
        self.diary: list[tuple[Any, ...]] = []
        self.asked = 0

    def plan(self, rng: np.random.Generator) -> TablePolicy:
        policy = TablePolicy(rng.integers(self.problem.actions, size=(1, self.problem.states)))
        self.diary.append(("plan", self.asked, policy.actions[0].tolist()))
        self.asked += 1
        return policy

    def learn(self, batch: Sequence[Feedback]) -> None:
        for one in batch:
            t = one.trajectory.check(self.problem)
            self.diary.append(("learn", one.episode, int(t.rows[0]), int(t.actions[0]), float(t.rewards[0])))


class ClerkWhoIsTold(Clerk):
    """The same, told the context."""

    def plan_from(self, rng: np.random.Generator, state: int) -> TablePolicy:
        policy = TablePolicy(np.zeros((1, self.problem.states), np.int64))
        policy.actions[0, state] = rng.integers(self.problem.actions)
        self.diary.append(("plan", self.asked, {state: int(policy.actions[0, state])}))
        self.asked += 1
        return policy


class Clerks:
    """An algorithm of somebody else: no base class, no plain values."""

    def __init__(self, kind: type[Clerk] = Clerk) -> None:
        self.kind = kind

    def start(self, problem: Problem) -> Clerk:
        return self.kind(problem)


def late(episode: int, state: int, action: int, reward: float) -> Feedback:
    return Feedback(episode, Trajectory(np.array([state, 0]), np.array([action]), np.array([reward])))


@EACH_BASE
@WORLDS
def test_without_delay_it_is_its_base(base: Settings, world: FiniteMDP) -> None:
    ours = simulate(world, QPMD(base=base), Constant(0), episodes=80, seed=3)
    assert ours.equals(simulate(world, base, Constant(0), episodes=80, seed=3))


def test_without_delay_it_is_a_base_that_is_not_told_the_context() -> None:
    class Untold:
        def start(self, problem: Problem) -> Agent:
            inner = DelayedPSVI().start(problem)

            class Agent:
                plan, learn = inner.plan, inner.learn

            return Agent()

    ours = simulate(CONTEXTS, QPMD(base=Untold()), Constant(0), episodes=80, seed=3)
    assert ours.equals(simulate(CONTEXTS, Untold(), Constant(0), episodes=80, seed=3))


@WORLDS
@pytest.mark.parametrize(
    "distribution", [Constant(6), Poisson(4), Lossy(Poisson(3), 0.3)], ids=["constant", "poisson", "lossy"]
)
@pytest.mark.parametrize("clerks", [Clerks(), Clerks(ClerkWhoIsTold)], ids=["plan", "plan_from"])
@pytest.mark.parametrize("told", [True, False], ids=["told", "untold"])
def test_the_base_is_told_of_what_it_has_just_chosen(
    world: FiniteMDP, distribution: DelayDistribution, clerks: Clerks, told: bool
) -> None:
    """Every reward that is fed answers an open question of its context, is the oldest there is, and is fed once."""
    agent = QPMD(base=clerks).start(world.problem)
    clerk: Clerk = agent.base
    rng, dynamics, buffer = stream(0, "agent"), stream(0, "environment"), FeedbackQueue[Trajectory]()
    queues: dict[tuple[int, int], list[tuple[int, float]]] = defaultdict(list)
    choices: dict[int, tuple[int, int]] = {}  # the question and the choice that are open in each context
    read, again = 0, 0
    for k, delay in enumerate(distribution.sample(stream(0, "delay"), 150).tolist()):
        batch = [Feedback(*each) for each in buffer.arrived(k)]
        for one in batch:
            t = one.trajectory
            queues[int(t.rows[0]), int(t.actions[0])].append((one.episode, float(t.rewards[0])))
        agent.learn(batch[::-1])
        state = world.first_state(dynamics)
        policy = agent.plan_from(rng, state) if told else agent.plan(rng)
        again += read == len(clerk.diary)
        for what, number, *rest in clerk.diary[read:]:
            if what == "plan":
                (answer,) = rest
                answer = answer if isinstance(answer, dict) else dict(enumerate(answer))
                open_now = {state: answer[state]} if told else answer
                assert not told or state not in choices  # it is not asked again while it waits
                choices.update({s: (number, action) for s, action in open_now.items()})
            else:
                s, action, reward = rest
                queue = queues[s, action]
                assert choices.pop(s) == (number, action)
                assert (min(queue)[1], reward) == (reward, min(queue)[1])
                queue.remove(min(queue))
        read = len(clerk.diary)
        action = policy.act(0, state)
        assert choices[state][1] == action
        assert not queues[state, action]
        if delay < 150:
            buffer.add(k, delay, world.rollout(policy, dynamics, start=state))
    if not told:  # question and answer, in turn
        kinds = [what for what, *_ in clerk.diary]
        assert kinds == ["plan", *["learn", "plan"] * (len(kinds) // 2)]
    assert clerk.asked > 20
    assert again > 20
    assert sum(what == "learn" for what, *_ in clerk.diary) > 15


def test_a_queue_by_hand() -> None:
    """One context. Arm 1 waits; rewards of arms 0 and 1 arrive in a bad order; the clerk then chooses as scripted."""
    script = iter([1, 0, 0, 1, 2])

    class Scripted(Clerk):
        def plan(self, rng: np.random.Generator) -> TablePolicy:
            self.diary.append(("plan", next_choice := next(script)))
            return TablePolicy(np.array([[next_choice]]))

    agent, rng = QPMD(base=Clerks(Scripted)).start(FIXED.problem), np.random.default_rng(0)
    assert [agent.plan(rng).act(0, 0) for _ in range(3)] == [1, 1, 1]
    agent.learn([late(9, 0, 0, 0.5), late(2, 0, 1, 0.25)])
    agent.learn([late(3, 0, 0, 1.0), late(1, 0, 1, 0.75)])
    assert agent.plan_from(rng, 0).act(0, 0) == 2
    assert agent.base.diary == [
        ("plan", 1),
        ("learn", 0, 0, 1, 0.75),
        ("plan", 0),
        ("learn", 1, 0, 0, 1.0),
        ("plan", 0),
        ("learn", 2, 0, 0, 0.5),
        ("plan", 1),
        ("learn", 3, 0, 1, 0.25),
        ("plan", 2),
    ]
    assert agent.queues == {}


def test_a_context_may_be_asked_for_while_another_waits() -> None:
    agent, rng = QPMD(base=Clerks(ClerkWhoIsTold)).start(CONTEXTS.problem), np.random.default_rng(0)
    first = agent.plan_from(rng, 0).act(0, 0)
    second = agent.plan_from(rng, 2).act(0, 2)
    agent.learn([late(1, 2, second, 1.0), late(0, 0, first, 0.0)])
    agent.plan_from(rng, 1)
    assert [entry[:3] for entry in agent.base.diary] == [
        ("plan", 0, {0: first}),
        ("plan", 1, {2: second}),
        ("learn", 0, 0),
        ("learn", 1, 2),
        ("plan", 2, {1: int(agent.chosen[1])}),
    ]


def test_it_learns_under_delay() -> None:
    distribution = Poisson(20)

    def regret(algorithm: Algorithm) -> float:
        runs = [simulate(FIXED, algorithm, distribution, episodes=800, seed=seed) for seed in range(2)]
        return float(np.mean([rows["regret"][-1] for rows in runs]))

    assert regret(QPMD(base=DelayedPSVI(scale=0.3))) < 0.7 * regret(RandomPolicy())


@pytest.mark.parametrize("check", checks.AGENT_CHECKS, ids=lambda check: check.__name__)
def test_around_a_foreign_agent_it_keeps_it_too(check: checks.Check) -> None:
    check(QPMD(base=InPython(DelayedPSVI())))


@WORLDS
@pytest.mark.parametrize("told", [True, False], ids=["told", "untold"])
def test_the_order_of_arrival_within_a_batch_does_not_matter(world: FiniteMDP, told: bool) -> None:
    rng = stream(0, "log")
    log = [
        late(k, int(rng.integers(world.states)), int(rng.integers(world.actions)), float(rng.integers(2)))
        for k in range(60)
    ]
    plans = []
    for order in (log, log[::-1], [log[i] for i in rng.permutation(60)]):
        agent: Any = QPMD(base=DelayedPSVI()).start(world.problem)
        draws = stream(1, "agent")
        for first in range(0, 60, 20):
            agent.learn([each for each in order if first <= each.episode < first + 20])
            policy = agent.plan_from(draws, 0) if told else agent.plan(draws)
        plans.append((policy.actions.tolist(), {name: values.tolist() for name, values in agent.memory().items()}))
    assert plans[0] == plans[1] == plans[2]


@WORLDS
@pytest.mark.parametrize("base", [DelayedPSVI(), QPMD(base=DelayedPSVI())], ids=["psvi", "nested"])
def test_going_on_is_never_having_stopped(world: FiniteMDP, base: Settings, tmp_path: Path) -> None:
    agent: Any = QPMD(base=base).start(world.problem)
    rng, dynamics, buffer = stream(0, "agent"), stream(0, "environment"), FeedbackQueue[Trajectory]()
    copy: Any = None
    for k, delay in enumerate(Poisson(4).sample(stream(0, "delay"), 80).tolist()):
        batch = [Feedback(*each) for each in buffer.arrived(k)]
        agent.learn(batch)
        if k == 40:  # after learning: news and queues are saved, too
            save_agent(tmp_path / "agent.npz", agent, rng)
            copy, twin = load_agent(tmp_path / "agent.npz")
            assert copy.settings == agent.settings
            assert twin is not None
            assert copy.queues == {pair: sorted(queue) for pair, queue in agent.queues.items()} != {}
        elif copy is not None:
            copy.learn(batch)
        start = world.first_state(dynamics)
        policy = agent.plan_from(rng, start)
        if copy is not None:
            np.testing.assert_array_equal(copy.plan_from(twin, start).actions, policy.actions)
        buffer.add(k, delay, world.rollout(policy, dynamics, start=start))
    assert twin is not None
    assert rng.bit_generator.state == twin.bit_generator.state
    ours, theirs = agent.memory(), copy.memory()
    assert set(ours) == set(theirs)
    for name, values in ours.items():
        np.testing.assert_array_equal(values, theirs[name], err_msg=name)


def test_what_has_arrived_for_another_context_is_restored() -> None:
    settings, rng = QPMD(base=DelayedPSVI()), np.random.default_rng(0)
    agent: Any = settings.start(CONTEXTS.problem)
    copy: Any = settings.start(CONTEXTS.problem)
    agent.learn([late(0, 0, agent.plan_from(rng, 0).act(0, 0), 1.0)])
    copy.restore(agent.memory())
    for each in (agent, copy):
        each.plan_from(np.random.default_rng(1), 1)
    for name, values in agent.memory().items():
        np.testing.assert_array_equal(values, copy.memory()[name], err_msg=name)
    assert agent.queues == {}


def test_an_agent_that_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    agent: Any = QPMD(base=Clerks()).start(FIXED.problem)
    with pytest.raises(InvalidInputError, match=r"an agent that can be saved \(it has no 'memory'\)"):
        save_agent(tmp_path / "agent.npz", agent)


def test_restore_refuses_what_does_not_fit_and_changes_nothing() -> None:
    agent: Any = QPMD(base=Greedy()).start(CONTEXTS.problem)
    rng = np.random.default_rng(0)
    agent.plan_from(rng, 1)
    agent.learn([late(3, 2, 3, 1.0), late(1, 0, 0, 0.0)])
    before = {name: values.copy() for name, values in agent.memory().items()}
    assert before["queued"].tolist() == [[0, 0, 1], [2, 3, 3]]
    assert before["queued_rewards"].tolist() == [0.0, 1.0]
    refused: list[tuple[str, dict[str, Any]]] = [
        ("memory must hold the arrays", {"other": np.zeros(1)}),
        (r"memory\['asked'\] must have shape \(1,\)", {"asked": np.array([1, 1])}),
        (r"memory\['chosen'\] must have shape \(3,\)", {"chosen": np.array([0])}),
        (r"memory\['chosen'\] must hold integers", {"chosen": np.array([0, 4, 0])}),
        (r"memory\['chosen'\] must hold integers", {"chosen": np.array([0, -2, 0])}),
        (r"memory\['number'\] must hold integers in 0..0", {"number": np.array([0, 1, 0])}),
        (r"memory\['queued'\] must have shape \(any, 3\)", {"queued": np.zeros((2, 2), np.int64)}),
        (r"memory\['queued'\]\[:, 0\] must hold integers in 0..2", {"queued": np.array([[0, 0, 1], [3, 3, 3]])}),
        (r"memory\['queued'\]\[:, 1\] must hold integers in 0..3", {"queued": np.array([[0, 4, 1], [2, 3, 3]])}),
        (r"memory\['queued_rewards'\] must have shape \(2,\)", {"queued_rewards": np.zeros(1)}),
        (r"memory\['queued_rewards'\] must be finite", {"queued_rewards": np.array([0, np.nan])}),
        (r"memory\['factor'\] must be float64 of shape", {"base.factor": np.zeros(1)}),
    ]
    for message, changed in refused:
        with pytest.raises(InvalidInputError, match=message):
            agent.restore({**before, **changed})
        for name, values in agent.memory().items():
            np.testing.assert_array_equal(values, before[name], err_msg=name)
    for name in before:
        with pytest.raises(InvalidInputError, match="memory must hold the arrays"):
            agent.restore({other: values for other, values in before.items() if other != name})


def test_settings() -> None:
    settings = QPMD(base=OTFLinTS(window=7))
    plain = json.loads(json.dumps(settings.to_dict()))
    assert plain == {"algorithm": "qpm-d", "base": OTFLinTS(window=7).to_dict()}
    assert agent_from_dict(plain) == settings
    assert hash(agent_from_dict(plain)) == hash(settings)
    for wrong in (None, "psvi", DelayedPSVI, 3):
        with pytest.raises(InvalidInputError, match=r"^base must be an algorithm with a method start\(problem\)"):
            QPMD(base=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="horizon must be 1, since QPMD is for bandits, got 20"):
        QPMD(base=DelayedPSVI()).start(RiverSwim().problem)


def test_bad_input_changes_nothing() -> None:
    agent, rng = QPMD(base=Clerks()).start(CONTEXTS.problem), np.random.default_rng(0)
    for plan in (agent.plan, lambda stream: agent.plan_from(stream, 0)):
        with pytest.raises(InvalidInputError, match=r"rng must be a numpy\.random\.Generator"):
            plan(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="state must be an integer >= 0 and <= 2, got 3"):
        agent.plan_from(rng, 3)
    with pytest.raises(InvalidInputError, match=r"feedback\.episode must be"):
        agent.learn([late(0, 0, 0, 1.0), late(-1, 0, 0, 1.0)])
    with pytest.raises(InvalidInputError, match=r"trajectory\.actions must hold"):
        agent.learn([late(0, 0, 0, 1.0), late(1, 0, 4, 1.0)])
    assert agent.base.diary == []
    assert (agent.queues, agent.asked) == ({}, 0)
    assert "3 contexts, 4 actions, 0 queued" in repr(agent)


def test_a_base_that_chooses_what_there_is_not_is_refused() -> None:
    class Wild(Clerk):
        def plan(self, rng: np.random.Generator) -> TablePolicy:
            return TablePolicy(np.full((1, 3), 4))

    agent, rng = QPMD(base=Clerks(Wild)).start(CONTEXTS.problem), np.random.default_rng(0)
    with pytest.raises(InvalidInputError, match="the base's choice must be an integer >= 0 and <= 3, got"):
        agent.plan_from(rng, 0)
    with pytest.raises(InvalidInputError, match=r"the base's policy must hold integers in 0..3, got 4"):
        agent.plan(rng)
    assert agent.asked == 0
