"""Threads: an error, or the end of whoever asks, ends all runs soon."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import numpy as np
import pytest

import belated
from belated.runner._backends import Threads
from belated.runner._executor import play_all
from belated.runner._experiment import Run

EPISODES = 4_000


class Slow:
    """Plays for many seconds unless it is stopped; counts its plans."""

    def __init__(self) -> None:
        self.plans = 0
        self.begun = threading.Event()

    def start(self, problem: belated.Problem) -> belated.Agent:
        inner = belated.RandomPolicy().start(problem)
        slow = self

        class Agent:
            def plan(self, rng: np.random.Generator) -> belated.Policy:
                slow.plans += 1
                slow.begun.set()
                time.sleep(0.002)
                return inner.plan(rng)

            def learn(self, batch: Sequence[belated.Feedback]) -> None: ...

        return Agent()


class Failing:
    """Fails once the other one is playing."""

    def __init__(self, other: Slow) -> None:
        self.other = other

    def start(self, problem: belated.Problem) -> belated.Agent:
        assert self.other.begun.wait(60)
        raise belated.InvalidInputError("not like this")


def runs(agents: dict[str, belated.Algorithm]) -> list[Run]:
    return belated.Experiment(
        name="x",
        environments=belated.RiverSwim(),
        agents=agents,
        delays=belated.Constant(0),
        episodes=EPISODES,
        seeds=1,
    ).runs()


def test_when_one_run_fails_the_others_end_at_their_next_block() -> None:
    slow = Slow()
    with pytest.raises(belated.InvalidInputError, match="not like this"):
        list(play_all(Threads(2, lambda played: None), runs({"slow": slow, "bad": Failing(slow)}), None))
    assert slow.plans < EPISODES  # the threads have ended, else this would not return before the run is over


def test_when_nobody_asks_any_more_the_runs_end_and_no_other_begins() -> None:
    quick, slow, never = belated.RandomPolicy(), Slow(), Slow()
    playing = play_all(Threads(1, lambda played: None), runs({"quick": quick, "slow": slow, "never": never}), None)
    assert next(playing)[0].agent_label == "quick"
    assert slow.begun.wait(60)
    playing.close()
    assert slow.plans < EPISODES
    assert never.plans == 0
