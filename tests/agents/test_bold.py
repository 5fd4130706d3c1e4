"""BOLD: without delay it is its base, and under delay each copy plays as if there were none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_python import InPython

from belated._kernels.streams import stream
from belated.agents import (
    BOLD,
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
from belated.environments import FiniteMDP, LinearBandit, RandomLinearMDP, RiverSwim
from belated.errors import DamagedFileError, InvalidInputError, UnknownNameError
from belated.runner import simulate
from belated.testing import _agents as checks
from belated.types import Agent, Algorithm, Feedback, Problem, TablePolicy, TableProblem, Trajectory

MDP = RandomLinearMDP(states=4, actions=3, dimension=3, horizon=3, seed=2, bernoulli=True)
CONTEXTS = LinearBandit(actions=4, dimension=3, sets="random", contexts=3, reward="conversion", seed=2)
BASES: list[Settings] = [
    DelayedPSVI(),
    DelayedUCBVI(bonus_form="growing"),
    TabularUCBVI(bonus_scale=0.01, updating="lazy"),
    RandomPolicy(),
]
EACH_BASE = pytest.mark.parametrize("base", BASES, ids=str)


@dataclass
class Clerk:
    """An agent of somebody else that writes down what it is asked and told, and plays its number."""

    problem: Problem
    number: int
    diary: list[tuple[str, Any]] = field(default_factory=list)

    def plan(self, rng: np.random.Generator) -> TablePolicy:
        self.diary.append(("plan", None))
        assert isinstance(self.problem, TableProblem)
        table = np.full((self.problem.horizon, self.problem.states), self.number % self.problem.actions)
        return TablePolicy(table)

    def learn(self, batch: Sequence[Feedback]) -> None:
        for one in batch:
            self.diary.append(("learn", (one.episode, float(one.trajectory.rewards.sum()))))


class Clerks:
    """An algorithm of somebody else: no base class, no plain values."""

    def __init__(self) -> None:
        self.started: list[Clerk] = []

    def start(self, problem: Problem) -> Clerk:
        self.started.append(Clerk(problem, len(self.started)))
        return self.started[-1]


def seen(reward: float) -> Trajectory:
    return Trajectory(np.zeros(MDP.horizon + 1, np.int64), np.zeros(MDP.horizon, np.int64), np.array([reward, 0, 0]))


@EACH_BASE
def test_without_delay_it_is_its_base(base: Settings) -> None:
    for world in (MDP, RiverSwim(states=3, horizon=4)):
        ours = simulate(world, BOLD(base=base), Constant(0), episodes=60, seed=3)
        assert ours.equals(simulate(world, base, Constant(0), episodes=60, seed=3))


def test_without_delay_it_is_its_base_on_a_bandit() -> None:
    for base in (OTFLinTS(window=5, scale=0.3), DelayedPSVI()):
        ours = simulate(CONTEXTS, BOLD(base=base), Constant(0), episodes=60, seed=3)
        assert ours.equals(simulate(CONTEXTS, base, Constant(0), episodes=60, seed=3))


@pytest.mark.parametrize("delay", [0, 1, 4])
def test_under_a_constant_delay_each_copy_plays_every_so_many_episodes(delay: int) -> None:
    clerks, buffer = Clerks(), FeedbackQueue[Trajectory]()
    agent, rng = BOLD(base=clerks).start(MDP.problem), np.random.default_rng(0)
    for k in range(30):
        agent.learn([Feedback(*each) for each in buffer.arrived(k)])
        copy = int(agent.plan_from(rng, 0).actions[0, 0])
        assert copy == k % (delay + 1) % MDP.actions
        buffer.add(k, delay, seen(k / 128))
    assert len(clerks.started) == len(agent.copies) == delay + 1
    for number, clerk in enumerate(clerks.started):
        played = range(number, 30, delay + 1)
        expected = []
        for n, episode in enumerate(played):
            expected += [("plan", None), ("learn", (n, episode / 128))]
        assert clerk.diary == (expected if played[-1] + delay < 29 else expected[:-1])


@pytest.mark.parametrize("distribution", [Poisson(3), Lossy(Poisson(3), 0.2)], ids=["poisson", "lossy"])
def test_every_copy_learns_without_delay_what_it_has_played(distribution: DelayDistribution) -> None:
    clerks, buffer = Clerks(), FeedbackQueue[Trajectory]()
    agent, rng = BOLD(base=clerks).start(MDP.problem), np.random.default_rng(0)
    most, lost = 0, 0
    for k, delay in enumerate(distribution.sample(stream(0, "delay"), 100).tolist()):
        agent.learn([Feedback(*each) for each in buffer.arrived(k)])
        before = [len(clerk.diary) for clerk in clerks.started]
        agent.plan(rng)
        asked = [len(clerk.diary) for clerk in clerks.started]
        grown = [i for i, n in enumerate(asked) if i >= len(before) or n > before[i]]
        assert len(grown) == 1
        lost += delay >= 100 - k
        most = max(most, len(agent.in_flight))
        if delay < 100:
            buffer.add(k, delay, seen(k / 128))
        assert agent.in_flight[k] == grown[0]
    assert len(clerks.started) == most > 1
    for clerk in clerks.started:
        kinds = [what for what, _ in clerk.diary]
        assert kinds == ["plan", "learn"] * (len(kinds) // 2) + ["plan"] * (len(kinds) % 2)
        numbers = [told[0] for what, told in clerk.diary if what == "learn"]
        assert numbers == list(range(len(numbers)))
    if isinstance(distribution, Lossy):
        assert lost > 10
        assert len(agent.in_flight) >= lost  # those wait for ever


def test_feedback_that_nobody_waits_for_goes_to_the_first_copy() -> None:
    clerks = Clerks()
    agent, rng = BOLD(base=clerks).start(MDP.problem), np.random.default_rng(0)
    agent.learn([Feedback(7, seen(0.5))])
    agent.plan(rng)
    agent.plan(rng)
    agent.learn([Feedback(1, seen(0.25)), Feedback(9, seen(1.0))])
    with pytest.raises(InvalidInputError, match="feedback must be new: episode 1 has been learned already"):
        agent.learn([Feedback(1, seen(0.125))])
    first, second = clerks.started  # for the copy such episodes have numbers that it never has planned itself
    assert first.diary == [("learn", (2**62 + 7, 0.5)), ("plan", None), ("learn", (2**62 + 9, 1.0))]
    assert second.diary == [("plan", None), ("learn", (0, 0.25))]
    assert (agent.in_flight, agent.free) == ({0: 0}, [1])


def test_the_first_free_copy_is_taken() -> None:
    agent, rng = BOLD(base=Clerks()).start(MDP.problem), np.random.default_rng(0)
    for _ in range(4):
        agent.plan(rng)
    agent.learn([Feedback(3, seen(0)), Feedback(1, seen(0)), Feedback(2, seen(0))])
    for copy in (1, 2, 3, 4):
        agent.plan(rng)
        assert agent.in_flight[agent.planned - 1] == copy


@pytest.mark.parametrize("check", checks.AGENT_CHECKS, ids=lambda check: check.__name__)
def test_around_a_bandit_or_a_foreign_agent_it_keeps_it_too(check: checks.Check) -> None:
    bandit = BOLD(base=OTFLinTS())
    assert bandit.one_step
    assert not BOLD(base=Greedy()).one_step
    for settings in (bandit, BOLD(base=BOLD(base=Greedy())), BOLD(base=InPython(DelayedPSVI()))):
        check(settings)


@pytest.mark.parametrize(
    ("world", "base"),
    [
        (MDP, DelayedPSVI()),
        (CONTEXTS, OTFLinTS(window=4)),
        (MDP, BOLD(base=DelayedPSVI())),
        (CONTEXTS, QPMD(base=Greedy())),
    ],
    ids=["psvi", "otf", "bold", "qpm-d"],
)
def test_going_on_is_never_having_stopped(world: FiniteMDP, base: Settings, tmp_path: Path) -> None:
    agent: Any = BOLD(base=base).start(world.problem)
    rng, dynamics, buffer = stream(0, "agent"), stream(0, "environment"), FeedbackQueue[Trajectory]()
    copy: Any = None
    delays = Poisson(4).sample(stream(0, "delay"), 80).tolist()
    for k, delay in enumerate(delays):
        if k == 40:
            save_agent(tmp_path / "agent.npz", agent, rng)
            copy, twin = load_agent(tmp_path / "agent.npz")
            assert copy.settings == agent.settings
            assert twin is not None
            assert len(copy.copies) == len(agent.copies) > 2
        batch = [Feedback(*each) for each in buffer.arrived(k)]
        agent.learn(batch)
        start = world.first_state(dynamics)
        policy = agent.plan_from(rng, start)
        if copy is not None:
            copy.learn(batch)
            np.testing.assert_array_equal(copy.plan_from(twin, start).actions, policy.actions)
        buffer.add(k, delay, world.rollout(policy, dynamics, start=start))
    assert twin is not None
    assert rng.bit_generator.state == twin.bit_generator.state
    ours, theirs = agent.memory(), copy.memory()
    assert set(ours) == set(theirs)
    for name, values in ours.items():
        np.testing.assert_array_equal(values, theirs[name], err_msg=name)


@dataclass(frozen=True)
class Borrowed:
    """A foreign algorithm whose agents could be saved, but which the library does not know by name."""

    kind = "greedy"

    def start(self, problem: Problem) -> Agent:
        return Greedy().start(problem)


@pytest.mark.parametrize("base", [Clerks(), Borrowed(), BOLD(base=Clerks())], ids=["clerks", "borrowed", "nested"])
def test_an_agent_that_could_not_be_loaded_is_not_saved(base: Algorithm, tmp_path: Path) -> None:
    agent: Any = BOLD(base=base).start(MDP.problem)
    with pytest.raises(InvalidInputError, match=r"an agent that can be saved \(it has no 'memory'\)"):
        save_agent(tmp_path / "agent.npz", agent)
    assert not (tmp_path / "agent.npz").exists()


def test_restore_refuses_what_does_not_fit_and_changes_nothing(tmp_path: Path) -> None:
    agent: Any = BOLD(base=Greedy()).start(MDP.problem)
    rng = np.random.default_rng(0)
    for _ in range(3):
        agent.plan(rng)
    agent.learn([Feedback(1, seen(1.0))])
    before = {name: values.copy() for name, values in agent.memory().items()}
    assert before["waits_for"].tolist() == [0, -1, 2]
    refused: list[tuple[str, dict[str, Any]]] = [
        (r"memory\['asked'\] must be the number of plans of each copy, 3 in total", {"asked": np.array([1, 1])}),
        (r"memory\['asked'\] must be the number of plans", {"asked": np.zeros(0, np.int64)}),
        (r"memory\['asked'\] must hold integers", {"asked": np.array([-1, 2, 2])}),
        (r"memory\['planned'\] must have shape \(1,\)", {"planned": np.array([3, 3])}),
        (r"memory\['waits_for'\] must have shape \(3,\)", {"waits_for": np.array([0, 1])}),
        (r"memory\['waits_for'\] must hold integers", {"waits_for": np.array([0, -2, 1])}),
        (r"memory\['waits_for'\] must hold integers", {"waits_for": np.array([0, -1, 3])}),
        (r"memory\['waits_for'\] must be a different episode for each copy", {"waits_for": np.array([2, -1, 2])}),
        (r"memory\['factor'\] must be float64 of shape", {"base.1.factor": np.zeros(1)}),
        (r"memory must not hold the array 'base.3.factor'", {"base.3.factor": np.zeros(1)}),
        (r"memory must not hold the array 'other'", {"other": np.zeros(1)}),
    ]
    for message, changed in refused:
        with pytest.raises(InvalidInputError, match=message):
            agent.restore({**before, **changed})
        for name, values in agent.memory().items():
            np.testing.assert_array_equal(values, before[name], err_msg=name)
    with pytest.raises(InvalidInputError, match="memory must hold the arrays"):
        agent.restore({})
    with pytest.raises(InvalidInputError, match="memory must hold the arrays"):
        agent.restore({name: values for name, values in before.items() if name != "base.2.factor"})
    agent.restore(before)
    agent.asked[0] = 7
    save_agent(tmp_path / "agent.npz", agent)
    with pytest.raises(DamagedFileError, match=r"memory\['asked'\]"):
        load_agent(tmp_path / "agent.npz")


def test_settings() -> None:
    settings = BOLD(base=QPMD(base=OTFLinTS(window=7)))
    plain = json.loads(json.dumps(settings.to_dict()))
    assert plain["algorithm"] == "bold"
    assert plain["base"]["base"]["window"] == 7
    assert agent_from_dict(plain) == settings
    assert settings.one_step
    assert BOLD(base=Clerks()).to_dict()["base"].endswith("test_bold.Clerks")
    assert BOLD(base=Borrowed()).to_dict() == {"algorithm": "bold", "base": "Borrowed()"}
    for wrong in (None, "psvi", DelayedPSVI, {"algorithm": "psvi"}, 3):
        with pytest.raises(InvalidInputError, match=r"^base must be an algorithm with a method start\(problem\)"):
            BOLD(base=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"^base must be an algorithm .*, got 'Borrowed\(\)'"):
        agent_from_dict({"algorithm": "bold", "base": "Borrowed()"})
    with pytest.raises(InvalidInputError, match="bold needs the setting 'base'"):
        agent_from_dict({"algorithm": "bold"})
    with pytest.raises(InvalidInputError, match="bold has no setting 'delay'; its settings are: base"):
        agent_from_dict({"algorithm": "bold", "base": {"algorithm": "greedy"}, "delay": 3})
    with pytest.raises(UnknownNameError, match="algorithm must be one of 'psvi'"):
        agent_from_dict({"algorithm": "bold", "base": {"algorithm": "pvsi"}})


def test_bad_input_changes_nothing() -> None:
    clerks = Clerks()
    agent, rng = BOLD(base=clerks).start(MDP.problem), np.random.default_rng(0)
    with pytest.raises(InvalidInputError, match=r"rng must be a numpy\.random\.Generator"):
        agent.plan(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="state must be an integer >= 0 and <= 3, got 4"):
        agent.plan_from(rng, 4)
    agent.plan(rng)
    with pytest.raises(InvalidInputError, match=r"feedback\.episode must be"):
        agent.learn([Feedback(0, seen(1.0)), Feedback(-1, seen(1.0))])
    with pytest.raises(InvalidInputError, match=r"trajectory\.rewards must be finite"):
        agent.learn([Feedback(0, seen(1.0)), Feedback(1, seen(float("nan")))])
    with pytest.raises(InvalidInputError, match="the batch must be"):
        agent.learn([Feedback(0, seen(1.0)), "late"])  # type: ignore[list-item]
    assert clerks.started[0].diary == [("plan", None)]
    assert (agent.in_flight, agent.free, agent.planned) == ({0: 0}, [], 1)
    assert "1 copies, 0 of them free" in repr(agent)


class Sloppy(Clerk):
    def plan(self, rng: np.random.Generator) -> Any:
        return [[0]]


def test_a_base_that_plans_no_policy_is_refused() -> None:
    class Careless:
        def start(self, problem: Problem) -> Sloppy:
            return Sloppy(problem, 0)

    agent = BOLD(base=Careless()).start(MDP.problem)
    for _ in range(2):
        with pytest.raises(InvalidInputError, match="plan must return a TablePolicy, got list"):
            agent.plan(np.random.default_rng(0))
    assert (len(agent.copies), agent.planned) == (1, 0)
