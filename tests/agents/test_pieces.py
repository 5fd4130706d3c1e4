"""Trajectories in pieces, cut short, or with the rewards after the states, teach the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from belated import (
    BOLD,
    AutoPSVI,
    DelayedDAPO,
    DelayedLPSVI,
    DelayedOPPO,
    DelayedPHE,
    DelayedPSRL,
    DelayedPSVI,
    DelayedUCBVI,
    EpsilonGreedy,
    Feedback,
    Greedy,
    InvalidInputError,
    MultiBatch,
    RandomLinearMDP,
    RandomPolicy,
    RareSwitching,
    RiverSwim,
    Trajectory,
)
from belated._kernels.streams import stream
from belated.agents import Ablation, CompiledSettings, Settings
from belated.environments import FiniteMDP
from belated.errors import UnknownNameError

LINEAR, TABLE = RandomLinearMDP(states=4, actions=3, dimension=3, horizon=4), RiverSwim(states=3, horizon=4)

EVERY: list[tuple[CompiledSettings, FiniteMDP]] = [
    (DelayedPSVI(noise=0.5), LINEAR),
    (DelayedLPSVI(), LINEAR),
    (DelayedLPSVI(sampler="preconditioned"), LINEAR),
    (DelayedPHE(), LINEAR),
    (DelayedUCBVI(), LINEAR),
    (EpsilonGreedy(), LINEAR),
    (Greedy(), TABLE),
    (AutoPSVI(), LINEAR),
    (AutoPSVI(ablation=Ablation(shared=False)), TABLE),
    (RareSwitching(base=DelayedPSVI()), LINEAR),
]
ALL = pytest.mark.parametrize(("settings", "world"), EVERY, ids=lambda value: str(value)[:50])

Cut = Callable[[Trajectory], list[Trajectory]]


def played(world: FiniteMDP, count: int) -> list[Trajectory]:
    explorer, rng = RandomPolicy().start(world.problem), stream(0, "explorer")
    return [world.rollout(explorer.plan(rng), rng) for _ in range(count)]


def piece(whole: Trajectory, first: int, last: int, **changes: Any) -> Trajectory:
    return Trajectory(
        whole.rows[first : last + 1], whole.actions[first:last], whole.rewards[first:last], first=first, **changes
    )


def by_step(whole: Trajectory) -> list[Trajectory]:
    return [piece(whole, h, h + 1) for h in reversed(range(len(whole.actions)))]


def states_first(whole: Trajectory) -> list[Trajectory]:
    return [piece(whole, 0, len(whole.actions), part=part) for part in ("states", "rewards")]


def rewards_first(whole: Trajectory) -> list[Trajectory]:
    return states_first(whole)[::-1]


def mixed(whole: Trajectory) -> list[Trajectory]:
    end = len(whole.actions)
    return [
        piece(whole, 2, end, part="rewards"),
        piece(whole, 0, end, part="states"),
        piece(whole, 0, 2, part="rewards"),
    ]


def learned(settings: CompiledSettings, world: FiniteMDP, cut: Cut) -> dict[str, npt.NDArray[Any]]:
    agent = settings.start(world.problem)
    for episode, whole in enumerate(played(world, 12)):
        agent.learn([Feedback(episode, part) for part in cut(whole)])
    agent.plan(np.random.default_rng(0))
    return agent.memory()


#: How often something has arrived, by which work is put off, and what planning has left behind.
COUNTED = ("arrived", "weighed", "counts", "mark", "policy", "hidden_factor", "samples")


@ALL
@pytest.mark.parametrize("cut", [by_step, states_first, rewards_first, mixed])
def test_pieces_teach_what_the_whole_does(settings: CompiledSettings, world: FiniteMDP, cut: Cut) -> None:
    found, wanted = learned(settings, world, cut), learned(settings, world, lambda whole: [whole])
    for name, values in wanted.items():
        if name not in COUNTED:
            np.testing.assert_allclose(found[name], values, rtol=1e-9, atol=1e-9, err_msg=name)


@ALL
def test_a_terminal_state_is_worth_nothing_and_nothing_follows(settings: CompiledSettings, world: FiniteMDP) -> None:
    """Wherever an episode says that it ended, the plan is the same: the number of the last state does not matter."""
    plans = []
    for state in (0, 1):
        agent = settings.start(world.problem)
        for episode, whole in enumerate(played(world, 20)):
            ended = piece(whole, 0, 2, terminated=True)
            ended.rows[-1] = state
            agent.learn([Feedback(episode, ended)])
        if "seen" in agent.memory():  # a table also keeps which states it knows of
            agent.record.learned.seen[:] = 1
        plans.append([agent.plan(np.random.default_rng(seed)).actions for seed in range(5)])
    np.testing.assert_array_equal(plans[0], plans[1])


@pytest.mark.parametrize(
    "settings", [DelayedPSRL(), DelayedOPPO(), DelayedDAPO(), BOLD(base=DelayedPSVI())], ids=lambda each: each.kind
)
def test_what_needs_whole_episodes_refuses_others(settings: Settings) -> None:
    agent, (whole,) = settings.start(LINEAR.problem), played(LINEAR, 1)
    name = type(settings).__name__
    with pytest.raises(InvalidInputError, match=rf"^the number of trajectory.actions must be 4: {name} learns whole"):
        agent.learn([Feedback(0, piece(whole, 0, 2))])
    with pytest.raises(InvalidInputError, match=rf'^trajectory.part must be "all": {name} learns states and rewards'):
        agent.learn([Feedback(0, piece(whole, 0, 4, part="states"))])
    agent.learn([Feedback(0, whole)])


def test_a_wrapper_takes_what_its_base_does() -> None:
    (whole,) = played(LINEAR, 1)
    MultiBatch(base=DelayedPSVI()).start(LINEAR.problem).learn([Feedback(0, piece(whole, 0, 2))])
    with pytest.raises(InvalidInputError, match="RareSwitching learns whole episodes only"):
        RareSwitching(base=DelayedPSRL(), growth=None, every=2).start(LINEAR.problem).learn(
            [Feedback(0, piece(whole, 0, 2))]
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first": 4}, "^trajectory.first must be an integer"),
        ({"first": 1}, "^trajectory.actions must hold 1 to 3 actions from step 1 on, got 4"),
        ({"part": "some"}, "^trajectory.part must be one of 'all', 'states', 'rewards', 'signal', got 'some'"),
        ({"terminated": 1}, "^trajectory.terminated must be True or False"),
    ],
)
def test_pieces_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    (whole,) = played(LINEAR, 1)
    with pytest.raises((InvalidInputError, UnknownNameError), match=message):
        Trajectory(whole.rows, whole.actions, whole.rewards, **changes).check(LINEAR.problem)
