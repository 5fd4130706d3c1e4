"""Runs of trials: both loops alike, silence and telling, rows that are kept, and who cannot play."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated.agents import QPMD, DelayedPSLB, LearnByAge, OTFLinUCB
from belated.delays import Constant, DelayByReward, Geometric, Lossy, Poisson
from belated.environments.trials import GeneratedTrial, Trial
from belated.errors import InvalidInputError
from belated.runner import run, simulate
from belated.types import Agent, Algorithm, Problem


@dataclass(frozen=True)
class InPython:
    """An algorithm whose agent the runner must ask in Python."""

    algorithm: Algorithm

    def start(self, problem: Problem) -> Agent:
        agent: Any = self.algorithm.start(problem)

        class Plain:
            plan, plan_from, learn = agent.plan, agent.plan_from, agent.learn

        return Plain()


@pytest.mark.parametrize("algorithm", [LearnByAge(window=60), OTFLinUCB(window=60, scale=0.1)])
@pytest.mark.parametrize("name", ["refunds", "day-and-night"])
def test_both_loops_give_the_same_rows(algorithm: Algorithm, name: str) -> None:
    trial = GeneratedTrial(name, rounds=50)
    compiled, asked = (
        simulate(trial, each, Poisson(2), episodes=300, seed=4) for each in (algorithm, InPython(algorithm))
    )
    assert compiled.equals(asked)
    assert compiled["delay"].null_count() > 0


def test_signals_reach_both_loops_and_those_alone_who_learn_from_them() -> None:
    """A patient whose event comes at the end of the window is announced by a signal; both loops learn from it alike."""

    def trial(signals: Any = None) -> Trial:
        patients, chances = [[[0, 1], [0, 1]]], [[[0.4, 0.6], [0.2, 0.8]]]
        return Trial(patients, chances, [[1.0], [np.inf]], [[1.0], [1.0]], rounds=40, signals=signals)

    plain, told = trial(), trial(([[0.1], [np.inf]], [[2.0], [0.0]]))
    assert (plain.signals, told.signals) == (False, True)
    assert told.rewards.tolist() == plain.rewards.tolist()
    settings = LearnByAge(window=plain.window, signals=True)
    compiled, asked = (
        simulate(told, each, Poisson(2), episodes=300, seed=4) for each in (settings, InPython(settings))
    )
    assert compiled.equals(asked)
    assert not compiled.equals(simulate(plain, settings, Poisson(2), episodes=300, seed=4))
    for algorithm in (LearnByAge(), OTFLinUCB()):
        with pytest.raises(InvalidInputError, match="without signals"):
            simulate(told, algorithm, Constant(0), episodes=10, seed=0)


def test_every_agent_can_play_a_trial_that_tells_all() -> None:
    trial = GeneratedTrial("speeds", rounds=40, told=True)
    agents = {"pslb": DelayedPSLB(), "qpm-d": QPMD(base=DelayedPSLB()), "age": LearnByAge(window=40, ages=1)}
    results = run(trial, agents, Constant(0), episodes=200, seeds=2, jobs=1, progress=False)
    assert results.regret(agent="qpm-d").shape == (2, 200)
    compiled, asked = (
        simulate(trial, each, Constant(0), episodes=200, seed=1) for each in (DelayedPSLB(), InPython(DelayedPSLB()))
    )
    assert compiled.equals(asked)


def test_one_age_learns_from_silence_what_one_is_told_at_the_end() -> None:
    """With refunds all is certain when the window is over: silence and telling then teach the same."""
    silent, told = (GeneratedTrial("refunds", rounds=40, told=told) for told in (False, True))
    settings = LearnByAge(window=silent.window, ages=1)
    rows = [simulate(trial, settings, Constant(0), episodes=400, seed=2)["regret"] for trial in (silent, told)]
    assert rows[0].equals(rows[1])


def test_rows_are_kept_and_read_again(tmp_path: Path) -> None:
    trial = GeneratedTrial("refunds", rounds=40)
    agents = {"age": LearnByAge(window=40)}
    first, again = (
        run(trial, agents, Constant(0), episodes=200, seeds=2, folder=tmp_path, jobs=1, progress=False)
        for _ in range(2)
    )
    assert np.array_equal(first.regret(agent="age"), again.regret(agent="age"))


def test_an_agent_that_cannot_add_reports_is_refused() -> None:
    trial = GeneratedTrial("refunds", rounds=40)
    with pytest.raises(InvalidInputError, match=r"DelayedPSLB needs every reward as a whole.*told=True"):
        simulate(trial, DelayedPSLB(), Constant(0), episodes=10, seed=0)
    silence = DelayByReward(zero=Lossy(Constant(0), missing=1.0), positive=Geometric(3))
    with pytest.raises(InvalidInputError, match="delay must be the same for all outcomes in a trial"):
        simulate(trial, LearnByAge(), silence, episodes=10, seed=0)
