"""What an agent was told before is refused, and changes nothing, in whatever pieces and order it comes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import belated
from belated import Feedback, Trajectory
from belated.agents._heard import Heard
from belated.errors import InvalidInputError
from belated.features import OneHot
from belated.types import SimulatorProblem

HORIZON = 4
RIVER = belated.RiverSwim(states=3, horizon=HORIZON)
ONE_HOT = OneHot(start=(0,), sizes=(3,))
PROBLEM = SimulatorProblem(ONE_HOT, HORIZON, actions=2)


def whole(**changes: Any) -> Trajectory:
    path = Trajectory(np.array([0, 1, 2, 1, 0]), np.array([1, 1, 0, 0]), np.array([0.0, 0.5, 1.0, 0.0]))
    return replace(path, **changes)


def piece(first: int, last: int, part: str = "all", terminated: bool = False) -> Trajectory:
    path = whole()
    steps = slice(first, last)
    return Trajectory(path.rows[first : last + 1], path.actions[steps], path.rewards[steps], terminated, first, part)


def encoded(path: Trajectory) -> Trajectory:
    return replace(path, states=[ONE_HOT.encode(row) for row in path.rows])


def told(*late: tuple[int, Trajectory]) -> list[Feedback]:
    return [Feedback(episode, trajectory) for episode, trajectory in late]


@given(st.permutations(range(9)), st.data())
def test_ranges_are_those_of_a_set(order: list[int], data: st.DataObject) -> None:
    heard, known = Heard(HORIZON), set[int]()
    for episode in order[: data.draw(st.integers(0, 9))]:
        heard.take(told((episode, whole())))
        known.add(episode)
        assert [each in heard for each in range(9)] == [each in known for each in range(9)]
        rows = heard.memory().tolist()
        assert sorted(each for first, last, *_ in rows for each in range(first, last + 1)) == sorted(known)
        assert np.array_equal(Heard.restored(heard.memory(), HORIZON).memory(), heard.memory())


def test_an_episode_is_closed_by_its_last_piece() -> None:
    heard = Heard(HORIZON)
    for late in (piece(2, 4, "rewards"), piece(0, 1), piece(1, 4, "states"), piece(1, 2, "rewards")):
        assert 7 not in heard
        heard.take(told((7, late)))
    assert heard.memory().tolist() == [[7, 7, 0, HORIZON, 3]]
    with pytest.raises(InvalidInputError, match="feedback must be new: episode 7 has been learned already"):
        heard.take(told((7, piece(0, 1))))


def test_a_terminal_step_ends_an_episode() -> None:
    heard = Heard(HORIZON)
    heard.take(told((0, piece(0, 2, terminated=True)), (1, piece(0, 2))))
    assert 0 in heard
    assert 1 not in heard  # steps may follow
    heard.take(told((1, piece(2, 4))))
    assert heard.memory().tolist() == [[0, 1, 0, HORIZON, 3]]


@pytest.mark.parametrize(
    ("first", "again", "message"),
    [
        (whole(), whole(), "episode 3 has been learned already"),
        (whole(), piece(1, 2, "rewards"), "episode 3 has been learned already"),
        (piece(0, 2), piece(1, 3), "the states of episode 3 from step 1 on have been learned already"),
        (piece(0, 2), piece(1, 2, "rewards"), "the rewards of episode 3 from step 1 on have been learned already"),
        (piece(0, 4, "states"), piece(3, 4, "states"), "the states of episode 3 from step 3 on have been learned"),
        (piece(0, 2, "rewards"), whole(), "the rewards of episode 3 from step 0 on have been learned already"),
    ],
)
def test_what_came_before_is_refused(first: Trajectory, again: Trajectory, message: str) -> None:
    heard = Heard(HORIZON)
    heard.take(told((3, first)))
    before = heard.memory()
    for batch in ([(3, again)], [(5, whole()), (3, again)]):
        with pytest.raises(InvalidInputError, match=f"feedback must be new: {message}"):
            heard.take(told(*batch))
        assert np.array_equal(heard.memory(), before)
    with pytest.raises(InvalidInputError, match="feedback must be new"):  # within one batch as well
        Heard(HORIZON).take(told((3, first), (3, again)))


@pytest.mark.parametrize(
    "memory",
    [
        [[0, 1, 0, 4, 3], [2, 3, 0, 4, 3]],
        [[3, 1, 0, 4, 3]],
        [[0, 5, 0, 4, 3], [2, 2, 0, 4, 0], [2, 2, 0, 1, 1]],
        [[0, 0, 0, 4, 0], [0, 0, 0, 4, 1], [0, 0, 0, 4, 2]],
        [[0, 0, 0, 4, 0]],
        [[0, 0, 0, 9, 1]],
        [[0, 0, 2, 2, 1]],
        [[0, 0, 0, 4, 7]],
        [[-1, 0, 0, 4, 3]],
    ],
)
def test_a_memory_that_nothing_can_have_left_is_refused(memory: list[list[int]]) -> None:
    with pytest.raises(InvalidInputError, match=r"memory\['heard'\] must list the steps of the episodes"):
        Heard.restored(np.array(memory), HORIZON)


AGENTS: dict[str, Any] = {
    "psvi": belated.DelayedPSVI().start(RIVER.problem),
    "auto": belated.AutoPSVI().start(RIVER.problem),
    "q-learning": belated.DelayedQLearning().start(RIVER.problem),
    "multi-batch": belated.MultiBatch(base=belated.DelayedPSVI(), drop_stragglers=False).start(RIVER.problem),
    "rare": belated.RareSwitching(base=belated.DelayedPSVI()).start(RIVER.problem),
    "oppo": belated.DelayedOPPO(episodes=10).start(RIVER.problem),
    "bold": belated.BOLD(base=belated.DelayedPSVI()).start(RIVER.problem),
    "psvi on features": belated.DelayedPSVI().start(PROBLEM),
    "auto on features": belated.AutoPSVI().start(PROBLEM),
    "q-learning on features": belated.DelayedQLearning().start(PROBLEM),
    "rare on features": belated.RareSwitching(base=belated.DelayedPSVI()).start(PROBLEM),
    "multi-batch on features": belated.MultiBatch(base=belated.DelayedPSVI(), drop_stragglers=False).start(PROBLEM),
}


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS.keys())
def test_no_agent_learns_an_episode_twice(agent: Any, tmp_path: Path) -> None:
    late: Any = whole()
    if isinstance(agent.problem, SimulatorProblem):
        late = encoded(late)
    agent.learn([Feedback(3, late)])
    belated.save_agent(tmp_path / "agent.npz", agent)
    for each in (agent, belated.load_agent(tmp_path / "agent.npz").agent):
        before = {name: values.copy() for name, values in each.memory().items()}
        for batch in ([Feedback(3, late)], [Feedback(4, late), Feedback(4, late)]):
            with pytest.raises(InvalidInputError, match=r"feedback must be new: .*episode [34] "):
                each.learn(batch)
        assert all(np.array_equal(values, before[name]) for name, values in each.memory().items())
        each.learn([Feedback(4, late)])
        each.plan(np.random.default_rng(0))


def test_rewards_on_features_need_their_states() -> None:
    agent: Any = belated.DelayedPSVI().start(PROBLEM)
    rewards, states = (encoded(whole(part=part)) for part in ("rewards", "states"))
    with pytest.raises(
        InvalidInputError, match="the states of episode 0 must come before their rewards, got the reward"
    ):
        agent.learn([Feedback(0, rewards)])
    agent.learn([Feedback(0, rewards), Feedback(0, states)])  # of one batch the states are learned first
    assert agent.store.rows().rewarded.sum() == HORIZON
    with pytest.raises(InvalidInputError, match="feedback must be new"):
        agent.learn([Feedback(0, rewards)])
