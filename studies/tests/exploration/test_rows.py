"""When something is solved, what the last fifth is, and what the bars say of rows with known numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import invented
import numpy as np
import polars as pl
import pytest

from belated.delays import Constant
from belated.environments import GymEnvironment, RiverSwim
from belated.runner import Results, Run
from belated_studies.exploration.peers import DQN, PeerRun
from belated_studies.exploration.problems import AUTO, NONE, QUICK, Bar, Problem, Size, searched
from belated_studies.exploration.rows import (
    NOT_REACHED,
    OPEN,
    REACHED,
    TOO_FEW,
    Judged,
    Timed,
    judge,
    last_fifth,
    lines,
    lost,
    solved_at,
    timing,
    walking,
)
from belated_studies.exploration.section import artefact

RIVER = Problem(
    name="a river",
    label="river",
    make=RiverSwim,
    episodes=10,
    bars={"none": Bar(value=3.0)},
    target=3.0,
    window=4,
    delays=NONE,
    small=True,
    **searched("rivers", without=["phe"]),
)
SIZE = QUICK.resized(seeds=2)


def judged(bar: Bar, *, value: float = 1.0, regret: float = 10.0, size: Size = SIZE) -> Judged:
    """Return what `bar` says if AutoPSVI has these numbers, and the others one of 8 to 30."""
    problem = replace(RIVER, bars={"none": bar})
    others = {AUTO: regret, "psvi": 8.0, "ucbvi": 20.0, "psrl": 30.0, "epsilon-greedy": 25.0, "q-learning": 30.0}
    made = artefact("test", 1, "Test", [], lambda: (problem,))
    played = invented.played(made, size, lambda run: others[run.agent_label], value=lambda run: value)
    (one,) = judge(played, [problem], lines(played, [problem], "none"))
    return one


def test_solved_is_when_the_slowest_seed_has_the_mean() -> None:
    returns = np.array([[0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1]], dtype=np.float64)
    assert solved_at(returns, 1.0, 2) == 6
    assert solved_at(returns, 1.0, 1) == 5
    assert solved_at(returns, 0.5, 2) == 5
    assert solved_at(returns, 1.0, 3) is None
    assert solved_at(returns, 0.0, 7) is None


def test_an_optimum_is_not_lost_in_running_sums() -> None:
    returns = np.full((1, 5000), 0.1)
    assert solved_at(returns, 0.1, 100) == 100


def test_the_last_fifth_is_a_fifth() -> None:
    returns = np.array([[0.0] * 8 + [3.0, 5.0], [0.0] * 8 + [5.0, 7.0]])
    assert last_fifth(returns).value == pytest.approx(5.0)
    assert last_fifth(np.array([[1.0, 2.0]])).value == 2.0


@pytest.mark.parametrize(("value", "verdict"), [(3.0, REACHED), (2.99, NOT_REACHED)])
def test_a_return_reaches_its_bar_or_not(value: float, verdict: str) -> None:
    found = judged(Bar(value=3.0), value=value)
    assert (found.bar, found.measured, found.verdict) == ("at least 3", f"{value:.4g}", verdict)


@pytest.mark.parametrize(("within", "verdict"), [(4, REACHED), (3, NOT_REACHED)])
def test_it_has_to_be_solved_in_time(within: int, verdict: str) -> None:
    assert judged(Bar(within=within), value=3.0).verdict == verdict
    never = judged(Bar(within=within), value=1.0)
    assert (never.measured, never.verdict) == ("not by every seed", NOT_REACHED)


@pytest.mark.parametrize(
    ("factor", "regret", "verdict"), [(1.0, 8.0, REACHED), (1.0, 8.1, NOT_REACHED), (1.2, 9.5, REACHED)]
)
def test_regret_is_compared_with_the_best_agent(factor: float, regret: float, verdict: str) -> None:
    found = judged(Bar(regret=factor), regret=regret)
    assert "8 (psvi)" in found.bar
    assert found.verdict == verdict


@pytest.mark.parametrize(("regret", "verdict"), [(10.9, REACHED), (11.1, NOT_REACHED)])
def test_regret_is_compared_with_that_of_the_earlier_rule(regret: float, verdict: str) -> None:
    assert judged(Bar(before=10.0), regret=regret).verdict == verdict


def test_a_run_is_lost_if_most_of_its_last_fifth_is_nearer_to_the_worst_policy() -> None:
    value = np.full((4, 10), 5.0)
    value[:, 0], value[1, -2:], value[2, -1] = 1.0, 1.0, 2.0  # 1 always, 2 in half of the fifth and not quite as bad
    frame = pl.DataFrame(
        {
            "environment": "e", "agent": AUTO, "delay_distribution": "none",
            "seed": np.repeat(np.arange(4), 10), "episode": np.tile(np.arange(10), 4),
            "value": value.ravel(), "optimal": 5.0,
        }
    )  # fmt: skip
    assert lost(Results(frame), "none", AUTO) == 0.25


@pytest.mark.parametrize(("return_of_dqn", "verdict"), [(4.2, REACHED), (4.4, NOT_REACHED)])
def test_a_part_of_the_return_of_dqn_and_its_time(return_of_dqn: float, verdict: str) -> None:
    bar, runs = Bar(of_dqn=0.7, time_of_dqn=True), [PeerRun("river", "none", DQN, 0, [return_of_dqn] * 10, 9.0, "")]
    problem, times = replace(RIVER, bars={"none": bar}), [Timed("river", "none", AUTO, 9.0)]
    made = artefact("test", 1, "Test", [], lambda: (problem,))
    measured: dict[str, Sequence[Any]] = {"t": times, "peers": runs}
    played = invented.played(made, SIZE, lambda run: 1.0, value=lambda run: 3.0, measured=measured)
    (one,) = judge(played, [problem], lines(played, [problem], "t"))
    assert one.verdict == verdict
    (alone,) = judge(played, [problem], [line for line in lines(played, [problem], "t") if line.agent != DQN])
    assert alone.verdict == OPEN


def test_steps_to_the_goal_are_those_of_the_same_runs() -> None:
    problem = Problem(
        name="a lake",
        label="lake",
        make=partial(GymEnvironment, "FrozenLake-v1", is_slippery=False),
        episodes=40,
        bars={"poisson-10": Bar(steps=8.0)},
        others={},
        small=True,
    )
    (one, _) = walking("w", lambda: (problem,)).measure(SIZE)
    assert one[:4] == ("lake", "poisson-10", AUTO, 0)
    assert 6.0 <= one.steps <= 20.0
    assert not list(walking("w", lambda: (RIVER,)).measure(SIZE))


def test_all_parts_of_a_bar_count() -> None:
    found = judged(Bar(value=3.0, within=3), value=3.0)
    assert (found.bar, found.verdict) == ("at least 3; solved by episode 3", NOT_REACHED)


def test_fewer_episodes_are_not_judged() -> None:
    assert judged(Bar(value=0.0), size=SIZE.resized(episodes=9)).verdict == TOO_FEW
    assert judged(Bar(value=0.0), size=SIZE.resized(episodes=10)).verdict == REACHED


def test_a_line_has_the_numbers_of_its_rows() -> None:
    made = artefact("test", 1, "Test", [], lambda: (RIVER,))

    def value(run: Run) -> float:
        return 4.0 if run.agent_label == AUTO and run.seed == 0 else 2.0

    times = [("river", "none", AUTO, 7.5)]
    kind = timing("t", lambda: (RIVER,)).kind
    measured = {"t": [kind(*one) for one in times]}
    found = lines(invented.played(made, SIZE, lambda run: 1.0, value=value, measured=measured), [RIVER], "t")
    assert [line.agent for line in found] == [AUTO, *RIVER.others]
    first = found[0]
    assert first[:6] == ("river", "none", AUTO, 2, 10, 3.0)
    assert (first.optimum, first.solved_at, first.milliseconds_per_episode) == (invented.OPTIMAL, None, 7.5)
    assert found[1].milliseconds_per_episode is None


def test_every_agent_is_timed_once() -> None:
    problem = replace(RIVER, episodes=3, others={}, delays={"none": Constant(0)})
    (one,) = timing("t", lambda: (problem,)).measure(SIZE)
    assert one[:3] == ("river", "none", AUTO)
    assert one.milliseconds > 0
