"""The conformance suite of agents, built-in and yours.

Each check takes an algorithm, anything with `start(problem)`, plays it for a few dozen episodes on small tables and,
if it plays there, in small simulators, and raises an `AssertionError` with an explanation if the agent violates its
contract. Run them all with `check_agent`, or one by one in a test:

    @pytest.mark.parametrize("check", belated.testing.AGENT_CHECKS, ids=lambda check: check.__name__)
    def test_my_agent(check):
        check(MyAlgorithm())
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from belated._kernels.streams import stream
from belated.agents import Learner, RandomPolicy, load_agent, save_agent
from belated.agents._saving import SavableAgent
from belated.delays import FeedbackQueue, Geometric
from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim
from belated.features import Fourier, Joint, OneHot
from belated.runner import simulate
from belated.testing._environments import run_check
from belated.types import (
    LAST_EPISODE,
    Agent,
    Algorithm,
    FeatureMap,
    Feedback,
    Ints,
    PlansFromStart,
    Policy,
    Problem,
    Savable,
    SaysWhereItPlays,
    SimulatorProblem,
    StochasticPolicy,
    TablePolicy,
    TableProblem,
    Trajectory,
)

Check = Callable[[Algorithm], None]


@runtime_checkable
class OneStep(Protocol):
    """An algorithm that declares whether it is only for bandits, problems of one step."""

    one_step: bool


@runtime_checkable
class OrderMatters(Protocol):
    """An algorithm that declares whether what it learns depends on the order of feedback."""

    order_matters: bool


@runtime_checkable
class Shares(Protocol):
    """An algorithm that declares whether all steps share what they learn."""

    shared: bool | None


@runtime_checkable
class Around(Protocol):
    base: Algorithm


class World:
    """A small problem with known dynamics, on the table of which an agent is checked."""

    def __init__(self, mdp: FiniteMDP) -> None:
        self.mdp = mdp
        self.problem: Problem = mdp.problem

    def states_of(self, rows: Ints) -> Any:
        return rows

    def table(self, policy: Policy) -> Ints:
        """Return the action of each step and state."""
        shape = range(self.mdp.horizon), range(self.mdp.states)
        if isinstance(policy, TablePolicy):
            return np.array(policy.actions)
        return np.array([[policy.act(h, self.states_of(np.array([s]))[0]) for s in shape[1]] for h in shape[0]])

    def trajectory(self, played: Trajectory) -> Trajectory:
        return played

    def plan(self, agent: Agent, rng: np.random.Generator, start: int) -> Ints:
        told = isinstance(agent, PlansFromStart) and isinstance(self.problem, TableProblem)
        policy = agent.plan_from(rng, start) if told and isinstance(agent, PlansFromStart) else agent.plan(rng)
        assert callable(getattr(policy, "act", None)), f"plan must return a policy with act, got {policy!r}"
        return self.table(policy)

    def play(self, actions: Ints, dynamics: np.random.Generator, start: int) -> Trajectory:
        return self.trajectory(self.mdp.rollout(TablePolicy(actions), dynamics, start=start))

    def feedback(self, count: int) -> list[Feedback]:
        """Return trajectories of random policies, the same ones every time."""
        choices, dynamics = stream(5, "agent"), stream(5, "environment")
        shape = (self.mdp.horizon, self.mdp.states)
        tables = (choices.integers(self.mdp.actions, size=shape) for _ in range(count))
        played = [self.mdp.rollout(TablePolicy(table), dynamics) for table in tables]
        return [Feedback(k, self.trajectory(each)) for k, each in enumerate(played)]

    def plans(self, agent: Agent, count: int) -> list[Ints]:
        """Return the next policies of `agent` under a fixed random stream."""
        rng, starts = stream(6, "agent"), np.flatnonzero(self.mdp.start)
        return [self.plan(agent, rng, int(starts[k % starts.size])) for k in range(count)]


class SimulatorWorld(World):
    """A small problem as a simulator: states are features, and the last state ends an episode."""

    def __init__(self, mdp: FiniteMDP, features: FeatureMap) -> None:
        super().__init__(mdp)
        self.features = features
        self.problem = SimulatorProblem(features, mdp.horizon, actions=mdp.actions, homogeneous=mdp.problem.homogeneous)

    def states_of(self, rows: Ints) -> Any:
        return [self.features.encode(int(row)) for row in rows]

    def trajectory(self, played: Trajectory) -> Trajectory:
        ends = np.flatnonzero(played.rows[1:] == self.mdp.states - 1)
        steps = int(ends[0]) + 1 if ends.size else len(played.actions)
        states = self.states_of(played.rows[: steps + 1])
        return Trajectory(states, played.actions[:steps], played.rewards[:steps], bool(ends.size))


def pair_features(observation: float, action: int) -> list[float]:
    """φ(s, a) of the simulators with joint features."""
    return [1.0, float(observation), float(action), float(observation) * float(action), float(observation) ** 2 / 4]


def _worlds(algorithm: Algorithm) -> Iterator[World]:
    """Yield small tables, and small simulators if the algorithm plays there; bandits if it is for bandits."""
    if isinstance(algorithm, OneStep) and algorithm.one_step:
        yield World(_bandit(RandomLinearMDP(states=4, actions=3, dimension=3, horizon=1, seed=1, bernoulli=True)))
        yield World(RandomLinearMDP(states=1, actions=3, dimension=2, horizon=1, seed=2, bernoulli=True))
        return
    model = RandomLinearMDP(states=4, actions=3, dimension=3, horizon=3, seed=1, bernoulli=True)
    inner = algorithm.base if isinstance(algorithm, Around) else algorithm
    yield World(_homogeneous(model) if isinstance(inner, Shares) and inner.shared else model)
    yield World(RiverSwim(states=3, horizon=4))
    if isinstance(algorithm, SaysWhereItPlays) and algorithm.plays != "tables":
        mdp = _homogeneous(model)
        yield SimulatorWorld(mdp, OneHot(sizes=(4,), start=(0,)))
        yield SimulatorWorld(mdp, Fourier(low=(0.0,), high=(3.0,), order=2))
        yield SimulatorWorld(mdp, Joint(function=f"{__name__}:pair_features", actions=3, width=5))


def _bandit(model: FiniteMDP) -> FiniteMDP:
    """Return `model` with a uniform distribution of the first state: each state is a context."""
    start = np.full(model.states, 1 / model.states)
    return FiniteMDP(model.transitions, model.rewards, features=model.features, start=start, bernoulli=True)


def _homogeneous(model: FiniteMDP) -> FiniteMDP:
    """Return `model` with all steps like the first, for an algorithm whose steps share what they learn."""
    tables = model.transitions[0], model.rewards[0], model.features
    return FiniteMDP(*tables, horizon=model.horizon, bernoulli=model.bernoulli)


def _same(left: list[Ints], right: list[Ints]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def _memory(agent: Agent) -> dict[str, npt.NDArray[Any]]:
    """Return a copy of the agent's memory, empty for an agent that does not show it."""
    return {name: np.array(values) for name, values in agent.memory().items()} if isinstance(agent, Savable) else {}


def acts_before_any_feedback(algorithm: Algorithm) -> None:
    """A new agent plans a valid policy although nothing has arrived, and learning nothing is allowed."""
    for world in _worlds(algorithm):
        agent = algorithm.start(world.problem)
        agent.learn([])
        shape = world.mdp.horizon, world.mdp.states
        for actions in world.plans(agent, 3):
            assert actions.shape == shape, f"plan must give actions of shape {shape}, got {actions.shape}"
            assert actions.dtype.kind in "iu", f"actions must be integers, got {actions.dtype}"
            assert actions.min() >= 0, f"actions must be at least 0, got {actions.min()}"
            assert actions.max() < world.mdp.actions, f"actions must be below {world.mdp.actions}, got {actions.max()}"


def same_seed_same_actions(algorithm: Algorithm) -> None:
    """Two agents with the same feedback and the same random stream plan the same policies."""
    for world in _worlds(algorithm):
        twins = [algorithm.start(world.problem) for _ in range(2)]
        plans = []
        for agent in twins:
            agent.learn(world.feedback(10))
            plans.append(world.plans(agent, 5))
        assert _same(*plans), "with the same stream the plans differ: all randomness must come from plan's rng"


def agents_share_nothing(algorithm: Algorithm) -> None:
    """What one agent learns does not reach another that was started from the same algorithm."""
    for world in _worlds(algorithm):
        first, second = algorithm.start(world.problem), algorithm.start(world.problem)
        before = world.plans(algorithm.start(world.problem), 3)
        first.learn(world.feedback(30))
        world.plans(first, 3)
        assert _same(world.plans(second, 3), before), "an agent changed because another one learned"


def zero_delay_is_undelayed(algorithm: Algorithm) -> None:
    """With zero delay the agent behaves exactly as if it learned each trajectory at once."""
    for world in _worlds(algorithm):
        histories = []
        for buffered in (True, False):
            agent = algorithm.start(world.problem)
            buffer: FeedbackQueue[Trajectory] = FeedbackQueue()
            choices, dynamics = stream(7, "agent"), stream(7, "environment")
            history = []
            for k in range(25):
                if buffered:
                    agent.learn([Feedback(*arrived) for arrived in buffer.arrived(k)])
                start = world.mdp.first_state(dynamics)
                actions = world.plan(agent, choices, start)
                trajectory = world.play(actions, dynamics, start)
                history.append(actions)
                if buffered:
                    buffer.add(k, 0, trajectory)
                else:
                    agent.learn([Feedback(k, trajectory)])
            histories.append(history)
        assert _same(*histories), "zero delay differs from no delay"


def order_and_batching_do_not_matter(algorithm: Algorithm) -> None:
    """Any order and any batching of the same feedback gives the same result, up to rounding.

    An algorithm with `order_matters`, such as one that learns from each step once, promises this only for batching.
    """
    for world in _worlds(algorithm):
        feedback = world.feedback(24)
        shuffled = [feedback[i] for i in stream(8, "agent").permutation(len(feedback))]
        orders = {
            "at once": [feedback],
            "one by one": [[each] for each in feedback],
        }
        if not (isinstance(algorithm, OrderMatters) and algorithm.order_matters):
            orders["shuffled in threes"] = [shuffled[i : i + 3] for i in range(0, len(shuffled), 3)]
        agents = {}
        for name, batches in orders.items():
            agents[name] = algorithm.start(world.problem)
            for batch in batches:
                agents[name].learn(batch)
        reference = agents.pop("at once")
        known = _memory(reference)
        policies = world.plans(reference, 3)
        for name, agent in agents.items():
            for key, values in _memory(agent).items() if isinstance(world.problem, TableProblem) else ():
                close = np.allclose(values, known[key], rtol=1e-8, atol=1e-8)
                assert close, f"memory[{key!r}] depends on the order of feedback: {name} differs from at once"
            assert _same(world.plans(agent, 3), policies), f"policies depend on the order of feedback: {name}"


def late_feedback_changes_nothing_before_it_arrives(algorithm: Algorithm) -> None:
    """Trajectories in flight do not leak: plans depend only on what was learned."""
    for world in _worlds(algorithm):
        delays = Geometric(mean=4).sample(stream(9, "delay"), 20)
        agent, told = algorithm.start(world.problem), algorithm.start(world.problem)
        buffer: FeedbackQueue[Trajectory] = FeedbackQueue()
        ours, theirs, dynamics = stream(9, "agent"), stream(9, "agent"), stream(9, "environment")
        for k, delay in enumerate(delays):
            arrived = [Feedback(*each) for each in buffer.arrived(k)]
            agent.learn(arrived)
            told.learn(list(arrived))
            start = world.mdp.first_state(dynamics)
            actions = world.plan(agent, ours, start)
            same = np.array_equal(actions, world.plan(told, theirs, start))
            assert same, "plans depend on more than feedback"
            buffer.add(k, int(delay), world.play(actions, dynamics, start))


def bad_feedback_changes_nothing(algorithm: Algorithm) -> None:
    """A batch with one invalid trajectory raises ValueError and leaves the agent unchanged."""
    for world in _worlds(algorithm):
        good = world.feedback(6)
        last = good[-1].trajectory
        states, actions, rewards = last.states, last.actions, last.rewards
        broken = {
            "a reward that is not a number": Trajectory(states, actions, np.full_like(rewards, np.nan)),
            "an action that does not exist": Trajectory(states, actions - world.mdp.actions, rewards),
            "a state too few": Trajectory(states[:-1], actions, rewards),
            "steps beyond the horizon": Trajectory(states, actions, rewards, first=world.mdp.horizon),
        }
        if isinstance(world.problem, TableProblem):
            broken["a state that does not exist"] = Trajectory(last.rows + world.mdp.states, actions, rewards)
            broken["a reward outside the problem's range"] = Trajectory(states, actions, rewards + 2.0)
        agent, untouched = algorithm.start(world.problem), algorithm.start(world.problem)
        agent.learn(good[:3])
        untouched.learn(good[:3])
        before = _memory(agent)
        for name, trajectory in broken.items():
            try:
                agent.learn([*good[3:5], Feedback(5, trajectory)])
            except ValueError:
                pass
            else:
                raise AssertionError(f"learn accepted {name}; it must raise ValueError")
            for key, values in _memory(agent).items():
                assert np.array_equal(values, before[key]), f"a refused batch ({name}) changed memory[{key!r}]"
        assert _same(world.plans(agent, 3), world.plans(untouched, 3)), "a refused batch changed the plans"
        before = _memory(agent)
        try:
            agent.learn([*good[3:5], Feedback(LAST_EPISODE + 1, good[5].trajectory)])
        except ValueError:
            for key, values in _memory(agent).items():
                assert np.array_equal(values, before[key]), f"a refused number of an episode changed memory[{key!r}]"
        # an agent that ignores episode numbers may learn it


def survives_a_round_trip(algorithm: Algorithm) -> None:
    """Saving and loading in the middle of a run changes nothing, including the random stream."""
    for world in _worlds(algorithm):
        agent = algorithm.start(world.problem)
        if not isinstance(agent, Savable):
            return  # an agent that cannot be saved makes no promise about it
        delays = Geometric(mean=4).sample(stream(10, "delay"), 24)
        rng, dynamics = stream(10, "agent"), stream(10, "environment")
        buffer: FeedbackQueue[Trajectory] = FeedbackQueue()
        pairs: list[tuple[Agent, np.random.Generator]] = [(agent, rng)]
        for k, delay in enumerate(delays):
            if k == 12:  # some of the feedback is in flight
                pairs.append(_saved_and_loaded(algorithm, agent, rng, world.problem))
            arrived = [Feedback(*each) for each in buffer.arrived(k)]
            start = world.mdp.first_state(dynamics)
            plans = []
            for player, own in pairs:
                player.learn(list(arrived))
                plans.append(world.plan(player, own, start))
            assert all(np.array_equal(each, plans[0]) for each in plans), "a saved and loaded agent goes on differently"
            buffer.add(k, int(delay), world.play(plans[0], dynamics, start))


@runtime_checkable
class Plain(Protocol):
    """Settings that have a plain form."""

    kind: str

    def to_dict(self) -> dict[str, Any]: ...

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Any: ...


def _saved_and_loaded(
    algorithm: Algorithm, agent: Savable, rng: np.random.Generator, problem: Problem
) -> tuple[Agent, np.random.Generator]:
    """Return a copy of an agent and its random stream, through a file if its settings have a plain form."""
    if isinstance(algorithm, Plain) and isinstance(agent, SavableAgent):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "agent.npz"
            save_agent(path, agent, rng)
            loaded, copied = load_agent(path, classes=[type(algorithm), pair_features])
        assert copied is not None, "load_agent must return the random stream that was saved"
    else:
        loaded, copied = algorithm.start(problem), copy.deepcopy(rng)
        assert isinstance(loaded, Savable)
        loaded.restore(_memory(agent))
    known = _memory(agent)
    for key, values in _memory(loaded).items():
        assert np.array_equal(values, known[key]), f"memory[{key!r}] is not what was saved"
    return loaded, copied


def settings_survive_a_round_trip(algorithm: Algorithm) -> None:
    """Settings written as plain values, in JSON, are read back as the same settings."""
    if not isinstance(algorithm, Plain):
        return  # settings without a plain form make no promise about it
    plain = algorithm.to_dict()
    if isinstance(plain.get("base"), str):
        return  # a wrapper around an algorithm without a plain form
    again = type(algorithm).from_dict(json.loads(json.dumps(plain)))
    assert again.to_dict() == plain, f"settings change on the way through JSON: {again.to_dict()} instead of {plain}"


@dataclass(frozen=True)
class InPython:
    """Wraps an algorithm's agents in another class, so that the runner uses its Python loop."""

    algorithm: Algorithm

    def start(self, problem: Problem) -> Agent:
        return _PassedOn(self.algorithm.start(problem))


class _PassedOn:
    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def plan(self, rng: np.random.Generator) -> Policy:
        return self.agent.plan(rng)

    def plan_from(self, rng: np.random.Generator, state: int) -> TablePolicy:
        policy = self.agent.plan_from(rng, state) if isinstance(self.agent, PlansFromStart) else self.agent.plan(rng)
        assert isinstance(policy, TablePolicy)
        return policy

    def learn(self, batch: Sequence[Feedback]) -> None:
        self.agent.learn(batch)


def both_loops_give_the_same_rows(algorithm: Algorithm) -> None:
    """A run of a compiled algorithm gives the same rows, to the last bit, in the Python loop."""
    for world in _worlds(algorithm):
        if not isinstance(algorithm.start(world.problem), Learner):
            return  # it uses the Python loop anyway
        compiled, asked = (
            simulate(world.mdp, each, Geometric(mean=4), episodes=80, seed=11)
            for each in (algorithm, InPython(algorithm))
        )
        assert compiled.equals(asked), "the compiled loop and the Python loop give different rows"


def simulators_and_tables_agree(algorithm: Algorithm) -> None:
    """With one-hot features a simulator and the table of the same MDP give the same policies for the same draws.

    Ties are broken by the first action and exploration is off, so that only draws of weights are random; policies are
    compared in visited states. The collapsed chain is drawn along eigenvectors, whose signs and order are arbitrary, so
    it is compared at temperature 0.
    """
    if (
        not isinstance(algorithm, SaysWhereItPlays)
        or algorithm.plays == "tables"
        or isinstance(algorithm, RandomPolicy)
    ):
        return
    model = _homogeneous(RandomLinearMDP(states=4, actions=3, dimension=3, horizon=3, seed=1, bernoulli=True))
    states, actions = model.states, model.actions
    features = np.zeros((states, actions, states * actions))
    for s, a in np.ndindex(states, actions):
        features[s, a, a * states + s] = 1.0  # ψ(s) in the block of action a
    start = np.full(states, 1 / states)
    mdp = FiniteMDP(model.transitions[0], model.rewards[0], features=features, start=start, horizon=3)
    worlds = World(mdp), SimulatorWorld(mdp, OneHot(sizes=(states,), start=(0,)))
    rounds, agents = stream(12, "agent"), [_without_chance(algorithm).start(world.problem) for world in worlds]
    for k in range(4):
        tables = [TablePolicy(rounds.integers(actions, size=(3, states))) for _ in range(60)]
        played = [mdp.rollout(policy, rounds) for policy in tables]
        plans = []
        for world, agent in zip(worlds, agents, strict=True):
            shown = [Trajectory(world.states_of(each.rows), each.actions, each.rewards) for each in played]
            agent.learn([Feedback(60 * k + i, each) for i, each in enumerate(shown)])
            plans.append(world.table(agent.plan(stream(k, "agent"))))
        visited = np.zeros((3, states), np.bool_)
        for each in played:
            visited[np.arange(3), each.rows[:-1]] = True
        same = np.array_equal(plans[0][visited], plans[1][visited])
        assert same, "a simulator with one-hot features is played unlike its table"


def actions_are_drawn_from_distributions(algorithm: Algorithm) -> None:
    """A stochastic policy draws actions from its distribution."""
    count = 400
    for world in _worlds(algorithm):
        agent = algorithm.start(world.problem)
        if isinstance(agent, PlansFromStart) and isinstance(world.problem, TableProblem):
            continue  # it plans a table of actions
        agent.learn(world.feedback(10))
        policy = agent.plan(stream(13, "agent"))
        if not isinstance(policy, StochasticPolicy):
            continue
        for row in range(world.mdp.states):
            step = row % world.mdp.horizon
            state = world.states_of(np.array([row]))[0]
            chances = np.asarray(policy.distribution(step, state))
            right = chances.shape == (world.mdp.actions,) and chances.min() >= 0.0 and abs(chances.sum() - 1.0) < 1e-9
            assert right, f"a distribution must be {world.mdp.actions} probabilities that sum to one, got {chances}"
            drawn = np.bincount([policy.act(step, state) for _ in range(count)], minlength=world.mdp.actions)
            assert not drawn[chances == 0.0].any(), "an action was drawn that has no probability"
            off = np.abs(drawn / count - chances) > 5.0 * np.sqrt(chances * (1.0 - chances) / count) + 1e-9
            assert not off.any(), f"actions are drawn as often as {drawn / count}, and said to be as {chances}"


def _without_chance(algorithm: Any) -> Algorithm:
    """Return the same settings without randomness except draws of weights."""
    names = {field.name for field in fields(algorithm)} if is_dataclass(algorithm) else set()
    changes: dict[str, Any] = {}
    if "ties" in names:
        changes["ties"] = "first"
    if "epsilon" in names:
        changes["epsilon"] = 0.0
    if "sampler" in names and algorithm.sampler == "collapsed":
        changes["temperature"] = 0.0
    if isinstance(algorithm, Around):
        changes["base"] = _without_chance(algorithm.base)
    changed: Algorithm = replace(algorithm, **changes) if changes else algorithm
    return changed


AGENT_CHECKS: tuple[Check, ...] = (
    acts_before_any_feedback,
    same_seed_same_actions,
    agents_share_nothing,
    zero_delay_is_undelayed,
    order_and_batching_do_not_matter,
    late_feedback_changes_nothing_before_it_arrives,
    bad_feedback_changes_nothing,
    survives_a_round_trip,
    settings_survive_a_round_trip,
    both_loops_give_the_same_rows,
    simulators_and_tables_agree,
    actions_are_drawn_from_distributions,
)
"""Every check of an agent, in the order in which `check_agent` runs them."""


def check_agent(algorithm: Algorithm) -> None:
    """Run every check on `algorithm`; raise an `AssertionError` with an explanation at the first violation.

    >>> from belated import DelayedPSVI
    >>> check_agent(DelayedPSVI())
    """
    assert isinstance(algorithm, Algorithm), f"an algorithm must have a method start(problem), got {algorithm!r}"
    for check in AGENT_CHECKS:
        run_check(check, algorithm, "agent")
