"""The conformance suite: what every agent must do, the library's and yours.

Each check takes an algorithm, anything with `start(problem)`, plays it for a few dozen episodes on small problems,
and raises `AssertionError` with a sentence if the agent breaks its contract. Run them all with `check_agent`, or one
by one in a test:

    @pytest.mark.parametrize("check", belated.testing._agents.ALL, ids=lambda check: check.__name__)
    def test_my_agent(check):
        check(MyAlgorithm())
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from belated._kernels.streams import stream
from belated.agents import Learner, load_agent, save_agent
from belated.agents._wrapper import ask
from belated.delays import FeedbackQueue, Geometric
from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim
from belated.runner import simulate
from belated.types import LAST_EPISODE, Agent, Algorithm, Feedback, Ints, Policy, Problem, Trajectory

Check = Callable[[Algorithm], None]


def _worlds(algorithm: Algorithm) -> Iterator[FiniteMDP]:
    """Yield two small problems: dense features with Bernoulli rewards, and one-hot ones; bandits where they are due."""
    if getattr(algorithm, "one_step", False):
        yield _bandit(RandomLinearMDP(states=4, actions=3, dimension=3, horizon=1, seed=1, bernoulli=True))
        yield RandomLinearMDP(states=1, actions=3, dimension=2, horizon=1, seed=2, bernoulli=True)
    else:
        model = RandomLinearMDP(states=4, actions=3, dimension=3, horizon=3, seed=1, bernoulli=True)
        yield _homogeneous(model) if getattr(getattr(algorithm, "base", algorithm), "shared", False) else model
        yield RiverSwim(states=3, horizon=4)


def _bandit(model: FiniteMDP) -> FiniteMDP:
    """Return `model` with a start that is uniform over the states: each is a context."""
    start = np.full(model.states, 1 / model.states)
    return FiniteMDP(model.transitions, model.rewards, features=model.features, start=start, bernoulli=True)


def _homogeneous(model: FiniteMDP) -> FiniteMDP:
    """Return `model` with all steps like the first, for an algorithm whose steps share what they learn."""
    tables = model.transitions[0], model.rewards[0], model.features
    return FiniteMDP(*tables, horizon=model.horizon, bernoulli=model.bernoulli)


def _episode(
    agent: Any, world: FiniteMDP, choices: np.random.Generator, dynamics: np.random.Generator
) -> tuple[Ints, Trajectory]:
    """Play an episode; return the policy and what happened."""
    start = world.first_state(dynamics)
    policy = ask(agent, choices, start)
    return np.array(policy.actions), world.rollout(policy, dynamics, start=start)


def _feedback(world: FiniteMDP, count: int) -> list[Feedback]:
    """Return trajectories of random policies, the same ones every time."""
    choices, dynamics = stream(5, "agent"), stream(5, "environment")
    shape = (world.horizon, world.states)
    tables = (choices.integers(world.actions, size=shape) for _ in range(count))
    return [Feedback(k, world.rollout(Policy(table), dynamics)) for k, table in enumerate(tables)]


def _plans(agent: Any, world: FiniteMDP, count: int) -> list[Ints]:
    """Return the next policies of `agent` under a fixed random stream."""
    rng = stream(6, "agent")
    starts = np.flatnonzero(world.start)
    return [np.array(ask(agent, rng, int(starts[k % starts.size])).actions) for k in range(count)]


def _same(left: list[Ints], right: list[Ints]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def _memory(agent: Any) -> dict[str, npt.NDArray[Any]]:
    """Return a copy of what the agent knows, empty for an agent that does not show it."""
    return {name: np.array(values) for name, values in agent.memory().items()} if hasattr(agent, "memory") else {}


def acts_before_any_feedback(algorithm: Algorithm) -> None:
    """A new agent plans a valid policy although nothing has arrived, and learning nothing is allowed."""
    for world in _worlds(algorithm):
        agent = algorithm.start(world.problem)
        agent.learn([])
        for actions in _plans(agent, world, 3):
            assert actions.shape == (world.horizon, world.states), (
                f"plan must give actions of shape {(world.horizon, world.states)}, got {actions.shape}"
            )
            assert actions.dtype.kind in "iu", f"actions must be integers, got {actions.dtype}"
            assert actions.min() >= 0, f"actions must be at least 0, got {actions.min()}"
            assert actions.max() < world.actions, f"actions must be below {world.actions}, got {actions.max()}"


def same_seed_same_actions(algorithm: Algorithm) -> None:
    """Two agents with the same feedback and the same random stream plan the same policies."""
    for world in _worlds(algorithm):
        twins = [algorithm.start(world.problem) for _ in range(2)]
        plans = []
        for agent in twins:
            agent.learn(_feedback(world, 10))
            plans.append(_plans(agent, world, 5))
        assert _same(*plans), "with the same stream the plans differ: all randomness must come from plan's rng"


def agents_share_nothing(algorithm: Algorithm) -> None:
    """What one agent learns does not reach another that was started from the same algorithm."""
    for world in _worlds(algorithm):
        first, second = algorithm.start(world.problem), algorithm.start(world.problem)
        before = _plans(algorithm.start(world.problem), world, 3)
        first.learn(_feedback(world, 30))
        _plans(first, world, 3)
        assert _same(_plans(second, world, 3), before), "an agent changed because another one learned"


def zero_delay_is_undelayed(algorithm: Algorithm) -> None:
    """With zero delay the agent does exactly what it does when told each trajectory at once."""
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
                actions, trajectory = _episode(agent, world, choices, dynamics)
                history.append(actions)
                if buffered:
                    buffer.add(k, 0, trajectory)
                else:
                    agent.learn([Feedback(k, trajectory)])
            histories.append(history)
        assert _same(*histories), "zero delay differs from no delay"


def order_and_batching_do_not_matter(algorithm: Algorithm) -> None:
    """Any permutation and any batching of the same feedback gives the same knowledge, to rounding.

    An algorithm that says `order_matters`, as those do that learn from each step once, promises it of batches alone.
    """
    for world in _worlds(algorithm):
        feedback = _feedback(world, 24)
        shuffled = [feedback[i] for i in stream(8, "agent").permutation(len(feedback))]
        orders = {
            "at once": [feedback],
            "one by one": [[each] for each in feedback],
        }
        if not getattr(algorithm, "order_matters", False):
            orders["shuffled in threes"] = [shuffled[i : i + 3] for i in range(0, len(shuffled), 3)]
        agents = {}
        for name, batches in orders.items():
            agents[name] = algorithm.start(world.problem)
            for batch in batches:
                agents[name].learn(batch)
        reference = agents.pop("at once")
        known = _memory(reference)
        policies = _plans(reference, world, 3)
        for name, agent in agents.items():
            for key, values in _memory(agent).items():
                close = np.allclose(values, known[key], rtol=1e-8, atol=1e-8)
                assert close, f"memory[{key!r}] depends on the order of feedback: {name} differs from at once"
            assert _same(_plans(agent, world, 3), policies), f"policies depend on the order of feedback: {name}"


def late_feedback_changes_nothing_before_it_arrives(algorithm: Algorithm) -> None:
    """Trajectories in flight do not leak: plans depend on what was learned alone."""
    for world in _worlds(algorithm):
        delays = Geometric(mean=4).sample(stream(9, "delay"), 20)
        agent, told = algorithm.start(world.problem), algorithm.start(world.problem)
        buffer: FeedbackQueue[Trajectory] = FeedbackQueue()
        ours, theirs, dynamics = stream(9, "agent"), stream(9, "agent"), stream(9, "environment")
        for k, delay in enumerate(delays):
            arrived = [Feedback(*each) for each in buffer.arrived(k)]
            agent.learn(arrived)
            told.learn(list(arrived))
            start = world.first_state(dynamics)
            policy = ask(agent, ours, start)
            same = np.array_equal(policy.actions, ask(told, theirs, start).actions)
            assert same, "plans depend on more than feedback"
            buffer.add(k, int(delay), world.rollout(policy, dynamics, start=start))


def bad_feedback_changes_nothing(algorithm: Algorithm) -> None:
    """A batch with one bad trajectory raises ValueError and leaves the agent as it was."""
    for world in _worlds(algorithm):
        good = _feedback(world, 6)
        states, actions, rewards = (
            good[-1].trajectory.states,
            good[-1].trajectory.actions,
            good[-1].trajectory.rewards,
        )
        broken = {
            "a reward that is not a number": Trajectory(states, actions, np.full_like(rewards, np.nan)),
            "a state that does not exist": Trajectory(states + world.states, actions, rewards),
            "an action that does not exist": Trajectory(states, actions - world.actions, rewards),
            "too few steps": Trajectory(states[:-1], actions[:-1], rewards[:-1]),
            "a reward outside the problem's range": Trajectory(states, actions, rewards + 2.0),
        }
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
        assert _same(_plans(agent, world, 3), _plans(untouched, world, 3)), "a refused batch changed the plans"
        before = _memory(agent)
        try:
            agent.learn([*good[3:5], Feedback(LAST_EPISODE + 1, good[5].trajectory)])
        except ValueError:
            for key, values in _memory(agent).items():
                assert np.array_equal(values, before[key]), f"a refused number of an episode changed memory[{key!r}]"
        # an agent that does not look at the numbers of episodes may learn it


def survives_a_round_trip(algorithm: Algorithm) -> None:
    """Saving and loading in the middle of a run equals never having stopped, random stream included."""
    for world in _worlds(algorithm):
        agent: Any = algorithm.start(world.problem)
        if not hasattr(agent, "memory"):
            return  # an agent that cannot be saved makes no promise about it
        delays = Geometric(mean=4).sample(stream(10, "delay"), 24)
        rng, dynamics = stream(10, "agent"), stream(10, "environment")
        buffer: FeedbackQueue[Trajectory] = FeedbackQueue()
        pairs: list[tuple[Any, np.random.Generator]] = [(agent, rng)]
        for k, delay in enumerate(delays):
            if k == 12:  # some of the feedback is in flight
                pairs.append(_saved_and_loaded(algorithm, agent, rng))
            arrived = [Feedback(*each) for each in buffer.arrived(k)]
            start = world.first_state(dynamics)
            policies = []
            for player, own in pairs:
                player.learn(list(arrived))
                policies.append(ask(player, own, start))
            same = all(np.array_equal(policy.actions, policies[0].actions) for policy in policies)
            assert same, "a saved and loaded agent goes on differently"
            buffer.add(k, int(delay), world.rollout(policies[0], dynamics, start=start))


def _saved_and_loaded(algorithm: Algorithm, agent: Any, rng: np.random.Generator) -> tuple[Any, np.random.Generator]:
    """Return a copy of an agent and its random stream, by way of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.npz"
        save_agent(path, agent, rng)
        copy, copied = load_agent(path, algorithms=[type(algorithm)])
    assert copied is not None
    known = _memory(agent)
    for key, values in _memory(copy).items():
        assert np.array_equal(values, known[key]), f"memory[{key!r}] is not what was saved"
    return copy, copied


def settings_survive_a_round_trip(algorithm: Algorithm) -> None:
    """Settings written as plain values, in JSON, are read back as the same settings."""
    kind: Any = type(algorithm)
    if not hasattr(kind, "to_dict") or not hasattr(kind, "from_dict"):
        return  # settings without a plain form make no promise about it
    plain = kind.to_dict(algorithm)
    if isinstance(plain.get("base"), str):
        return  # around an algorithm that has no plain form itself
    copy = kind.from_dict(json.loads(json.dumps(plain)))
    assert copy.to_dict() == plain, f"settings change on the way through JSON: {copy.to_dict()} instead of {plain}"


@dataclass(frozen=True)
class InPython:
    """An algorithm behind an agent of another class, so that the runner asks it in Python."""

    algorithm: Algorithm

    def start(self, problem: Problem) -> Agent:
        """Return a new agent that passes everything on."""
        return _PassedOn(self.algorithm.start(problem))


class _PassedOn:
    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def plan(self, rng: np.random.Generator) -> Policy:
        return self.agent.plan(rng)

    def plan_from(self, rng: np.random.Generator, state: int) -> Policy:
        return ask(self.agent, rng, state)

    def learn(self, batch: Sequence[Feedback]) -> None:
        self.agent.learn(batch)


def both_loops_give_the_same_rows(algorithm: Algorithm) -> None:
    """A run of a compiled algorithm gives the same rows, to the last bit, when the runner asks it in Python."""
    for world in _worlds(algorithm):
        if not isinstance(algorithm.start(world.problem), Learner):
            return  # it is asked in Python anyway
        compiled, asked = (
            simulate(world, each, Geometric(mean=4), episodes=80, seed=11) for each in (algorithm, InPython(algorithm))
        )
        assert compiled.equals(asked), "the compiled loop and the Python loop give different rows"


ALL: tuple[Check, ...] = (
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
)
"""Every check of an agent, in the order in which `check_agent` runs them."""


def check_agent(algorithm: Algorithm) -> None:
    """Run every check on `algorithm`; the first contract it breaks is an `AssertionError`.

    >>> from belated import DelayedPSVI
    >>> check_agent(DelayedPSVI())
    """
    for check in ALL:
        check(algorithm)
