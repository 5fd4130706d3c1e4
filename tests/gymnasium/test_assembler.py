"""Steps in any order become the trajectories that were played, once each, and nothing is made up unless it is asked."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import pytest

from belated import AutoPSVI, DelayedPSVI, Feedback, Lossy, Poisson, RiverSwim, TablePolicy
from belated.environments import GymEnvironment, as_gymnasium
from belated.errors import InvalidInputError
from belated.features import OneHot
from belated.gymnasium import Assembler, LateFeedback, Transition
from belated.types import SimulatorProblem

RIVER = RiverSwim(states=4, horizon=6)


def played(episodes: int, distribution: Any) -> tuple[list[list[Transition]], list[list[Transition]]]:
    """Play random actions; return the steps of each episode, and what arrived until it was over."""
    env: LateFeedback[Any, Any] = LateFeedback(as_gymnasium(RIVER), distribution, unit="reward")
    rng = np.random.default_rng(0)
    steps: list[list[Transition]] = []
    arrived: list[list[Transition]] = []
    for episode in range(episodes):
        state, info = env.reset(seed=3 if episode == 0 else None)
        steps.append([])
        arrived.append(list(info["arrived"]))
        for step in range(RIVER.horizon):
            action = int(rng.integers(2))
            after, _, terminated, truncated, info = env.step(action)
            steps[-1].append(Transition(episode, step, state, action, 0.0, after, terminated, truncated))
            arrived[-1] += info["arrived"]
            state = after
    return steps, [*arrived, env.flush()]


def test_every_episode_is_handed_out_once_when_its_last_step_has_arrived() -> None:
    steps, batches = played(60, Poisson(9))
    assembler = Assembler(RIVER.problem)
    found: list[Feedback] = []
    told: set[tuple[int, int]] = set()
    rewards = {(late.episode, late.step): late.reward for batch in batches for late in batch}
    for batch in batches:
        whole = assembler.add(batch)
        told |= {(late.episode, late.step) for late in batch}
        begun = {episode for episode, _ in told}
        complete = {k for k in begun if all((k, step) in told for step in range(6))}
        assert [late.episode for late in whole] == sorted(complete - {late.episode for late in found})
        found += whole
        assert assembler.incomplete == len(begun - complete)
    assert [late.episode for late in found] != sorted(late.episode for late in found)  # one overtook another
    assert len(found) == 60
    for late in found:
        episode, path = steps[late.episode], late.trajectory.check(RIVER.problem)
        assert path.rows.tolist() == [int(episode[0].observation), *(int(each.next_observation) for each in episode)]
        assert path.actions.tolist() == [each.action for each in episode]
        assert path.rewards.tolist() == [rewards[late.episode, step] for step in range(6)]


def test_an_agent_on_features_gets_what_the_environment_played() -> None:
    made = GymEnvironment("CartPole-v1")
    env: LateFeedback[Any, Any] = LateFeedback(gymnasium.make("CartPole-v1"), Poisson(4), unit="reward")
    assembler, ends = Assembler(made.problem), []
    found: list[Any] = []
    for episode in range(20):
        env.reset(seed=1 if episode == 0 else None)
        over, step = False, 0
        while not over:
            _, _, terminated, truncated, info = env.step(step % 2)
            found += assembler.add(info["arrived"])
            step, over = step + 1, terminated or truncated
        ends.append(step)
    found += assembler.add(env.flush())
    lengths = {late.episode: len(late.trajectory.actions) for late in found}
    assert lengths == dict(enumerate(ends))
    assert all(late.trajectory.terminated for late in found)
    AutoPSVI().start(made.problem).learn(found)


def test_what_never_arrives_is_left_out_or_counts_as_what_silence_means() -> None:
    steps, batches = played(200, Lossy(Poisson(3), missing=0.1))
    arrived = {(late.episode, late.step): late.reward for batch in batches for late in batch}
    lost = {k for k in range(200) if any((k, step) not in arrived for step in range(6))}
    assert 40 < len(lost) < 160
    sampled = SimulatorProblem(OneHot(sizes=(4,)), 6, actions=2)
    left_out, parts, silent = Assembler(RIVER.problem), Assembler(sampled), Assembler(RIVER.problem)
    for episode in steps:
        silent.see(episode)
    whole = [late for batch in batches for late in left_out.add(batch)]
    assert {late.episode for late in whole} == set(range(200)) - lost
    rest = left_out.give_up(200)
    assert {late.episode for late in rest} == {k for k, _ in arrived} & lost
    assert left_out.incomplete == 0

    sampled_pieces = [late for batch in batches for late in parts.add(batch)] + parts.give_up(200)
    for pieces in (whole + rest, sampled_pieces):
        rewards = [
            ((late.episode, late.trajectory.first + h), reward)
            for late in pieces
            for h, reward in enumerate(late.trajectory.rewards.tolist())
        ]
        assert sorted(rewards) == sorted(arrived.items())  # every step that arrived, once
    for late in rest:
        first, count = late.trajectory.first, len(late.trajectory.actions)
        run = steps[late.episode][first : first + count]
        states = [int(run[0].observation), *(int(each.next_observation) for each in run)]
        assert np.asarray(late.trajectory.states).tolist() == states
        assert late.trajectory.actions.tolist() == [each.action for each in run]
    DelayedPSVI().start(RIVER.problem).learn(whole + rest)

    filled = [late for batch in batches for late in silent.add(batch)] + silent.give_up(200, reward=0.125)
    assert sorted(late.episode for late in filled) == list(range(200))
    for late in filled:
        path = late.trajectory.check(RIVER.problem)
        assert path.rewards.tolist() == [arrived.get((late.episode, step), 0.125) for step in range(6)]
    DelayedPSVI().start(RIVER.problem).learn(filled)


def test_what_comes_after_it_was_given_up_is_dropped() -> None:
    steps, _ = played(3, Poisson(1))
    assembler = Assembler(RIVER.problem)
    assembler.add(steps[0][:3])
    (piece,) = assembler.give_up(1)
    assert (piece.episode, piece.trajectory.first) == (0, 0)
    assert piece.trajectory.actions.tolist() == [each.action for each in steps[0][:3]]
    assert assembler.give_up(1) == []
    assert assembler.add(steps[0][3:]) == []
    assert assembler.incomplete == 0
    assert [late.episode for late in assembler.add(steps[1])] == [1]


def test_the_first_action_may_have_any_number() -> None:
    steps = [Transition(0, step, 0, 5 + step % 2, 0.0, 0, False, False) for step in range(6)]
    (late,) = Assembler(RIVER.problem, first_action=5).add(steps)
    assert late.trajectory.actions.tolist() == [0, 1] * 3


def step(**changed: Any) -> Transition:
    return Transition(0, 0, 0, 0, 0.0, 0, False, False)._replace(**changed)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ([step(step=1), 3], "arrived must be made of Transition"),
        ([step(step=1), step(reward=math.nan)], "the reward of a step must be"),
        ([step(step=1), step(step=6)], "the number of a step must be"),
        ([step(step=1), step(episode=-1)], "the episode of a step must be"),
        ([step(step=1), step(step=1)], "arrived must be steps that have not arrived before"),
        ([step(step=1), step(step=5)], "arrived must be steps that have not arrived before"),
    ],
)
def test_bad_steps_are_refused_and_change_nothing(batch: Any, message: str) -> None:
    assembler = Assembler(RIVER.problem)
    assembler.add([step(step=5)])
    with pytest.raises(InvalidInputError, match=message):
        assembler.add(batch)
    (late,) = assembler.add([step(step=number) for number in range(5)])
    assert late.trajectory.actions.size == 6


def test_what_is_not_a_problem_or_was_seen_before_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="problem must be the Problem"):
        Assembler(3)  # type: ignore[arg-type]
    assembler = Assembler(RIVER.problem)
    assembler.see([step()])
    with pytest.raises(InvalidInputError, match="played must be steps that have not been seen"):
        assembler.see([step()])
    with pytest.raises(InvalidInputError, match="reward must be a finite number"):
        assembler.give_up(1, reward=math.inf)
    assert assembler.incomplete == 1


def test_agents_learn_from_assembled_feedback_as_from_what_was_played() -> None:
    rng = np.random.default_rng(0)
    path = RIVER.rollout(TablePolicy(rng.integers(2, size=(6, 4))), rng)
    s, a, r = path.rows.tolist(), path.actions.tolist(), path.rewards.tolist()
    steps = [Transition(0, h, s[h], a[h], r[h], s[h + 1], False, h == 5) for h in range(6)]
    direct, assembled = (DelayedPSVI().start(RIVER.problem) for _ in range(2))
    direct.learn([Feedback(0, path)])
    assembled.learn(Assembler(RIVER.problem).add(steps[::-1]))
    for name, values in direct.memory().items():
        np.testing.assert_array_equal(values, assembled.memory()[name])
