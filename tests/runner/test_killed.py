"""A long run that is killed without warning goes on from its last checkpoint to the same rows."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
from polars.testing import assert_frame_equal

import belated
from belated.runner.engine import play
from belated.runner.experiment import Experiment
from belated.runner.loop import CHUNK
from belated.runner.store import Store

EPISODES = 12 * CHUNK
ARGUMENTS: dict[str, Any] = {"episodes": EPISODES, "seed": 3, "record_every": 100}
PROGRAM = f"""
import sys, time
import belated
belated.simulate(
    belated.RiverSwim(states=3, horizon=4), belated.DelayedPSVI(), belated.Pareto(1.0, 20.0),
    **{ARGUMENTS}, checkpoint=sys.argv[1], checkpoint_seconds=0.0, watch=lambda played: time.sleep(0.002),
)
"""


def test_a_killed_run_goes_on_to_the_same_rows(tmp_path: Path) -> None:
    world, law = belated.RiverSwim(states=3, horizon=4), belated.Pareto(1.0, 20.0)
    whole = belated.simulate(world, belated.DelayedPSVI(), law, **ARGUMENTS)
    file = tmp_path / "run.checkpoint"
    child = subprocess.Popen([sys.executable, "-c", PROGRAM, str(file)])
    try:
        deadline = time.monotonic() + 120
        while not file.exists() and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
    finally:
        assert child.wait() == -signal.SIGKILL
    assert file.exists()
    played: list[int] = []
    rows = belated.simulate(world, belated.DelayedPSVI(), law, **ARGUMENTS, checkpoint=file, watch=played.append)
    assert_frame_equal(rows, whole, check_exact=True)
    assert played[0] >= CHUNK  # what the killed run had played was not played again
    assert sum(played) == EPISODES
    assert not file.exists()


def test_an_experiment_goes_on_from_the_checkpoint_of_its_run(tmp_path: Path) -> None:
    world, law = belated.RiverSwim(states=3, horizon=4), belated.Poisson(5)
    experiment = Experiment(
        name="long", environments=world, agents={"psvi": belated.DelayedPSVI()}, delays=law, episodes=2 * CHUNK, seeds=1
    )
    (run,) = experiment.runs()
    store = Store(tmp_path)
    file = store.checkpoint(run)
    assert file is not None
    half = belated.runner.loop.Simulation(world, belated.DelayedPSVI(), law, episodes=2 * CHUNK, seed=0)
    while half.played < CHUNK:
        half.advance()
    file.parent.mkdir(parents=True)
    half.save(file)
    played: list[int] = []
    rows = play(run, store, played.append)
    assert played[0] == CHUNK
    assert_frame_equal(rows, play(run, None, None), check_exact=True)
    assert isinstance(rows, pl.DataFrame)
    assert not file.exists()
