"""Callbacks see every row, and can do nothing to them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import belated
from belated import Callback, Constant, InvalidInputError, Poisson, RandomPolicy, RiverSwim, run, simulate
from belated.runner import Experiment, Run, run_experiment

AGENTS = {"random": RandomPolicy(), "greedy": belated.EpsilonGreedy(epsilon=0.1)}


class Keeper(Callback):
    """Keeps what it sees, and notes calls that come at the same time as others."""

    def __init__(self) -> None:
        self.blocks: dict[str, list[pl.DataFrame]] = {}
        self.runs: dict[str, pl.DataFrame] = {}
        self.closed = 0
        self.crowded = False
        self._busy = threading.Lock()

    @contextmanager
    def alone(self) -> Iterator[None]:
        self.crowded |= not self._busy.acquire(blocking=False)
        yield
        self._busy.release()

    def after_block(self, run: Run, rows: pl.DataFrame) -> None:
        with self.alone():
            assert run.id not in self.runs, "no block comes after the run"
            self.blocks.setdefault(run.id, []).append(rows)

    def after_run(self, run: Run, rows: pl.DataFrame) -> None:
        with self.alone():
            self.runs[run.id] = rows

    def close(self) -> None:
        self.closed += 1


class Vandal(Callback):
    """Changes whatever it gets hold of."""

    def after_block(self, run: Run, rows: pl.DataFrame) -> None:
        self._spoil(rows)

    def after_run(self, run: Run, rows: pl.DataFrame) -> None:
        self._spoil(rows)

    def _spoil(self, rows: pl.DataFrame) -> None:
        numbers = rows["value"].to_numpy()
        if numbers.flags.writeable:
            numbers[:] = -1.0
        rows[0, "regret"] = -1.0
        rows.drop_in_place("delay")
        rows.insert_column(0, pl.Series("mine", [0] * rows.height))


class Broken(Callback):
    """Fails in the method it is told to."""

    def __init__(self, method: str) -> None:
        self.calls = 0
        setattr(self, method, self._fail)

    def _fail(self, *given: Any) -> None:
        self.calls += 1
        raise RuntimeError("the disk of the callback is full")


def alone(**options: Any) -> pl.DataFrame:
    return simulate(RiverSwim(), RandomPolicy(), Poisson(3), episodes=300, seed=5, **options)


def test_the_blocks_of_a_run_are_its_rows() -> None:
    keeper = Keeper()
    rows = alone(callbacks=[keeper])
    ((name, blocks),) = keeper.blocks.items()
    assert name == "simulate/riverswim-5/RandomPolicy/poisson-3/seed-05"
    assert len(blocks) > 1
    assert_frame_equal(pl.concat(blocks), rows)
    assert_frame_equal(keeper.runs[name], rows)
    assert keeper.closed == 1


def test_blocks_without_a_row_are_not_shown() -> None:
    keeper = Keeper()
    rows = alone(callbacks=[keeper], record_every=200)
    (blocks,) = keeper.blocks.values()
    assert [each["episode"].to_list() for each in blocks] == [[199], [299]]
    assert_frame_equal(pl.concat(blocks), rows)


def test_nothing_that_a_callback_does_reaches_the_rows(tmp_path: Path) -> None:
    kept = run(RiverSwim(), AGENTS, Poisson(3), episodes=80, seeds=2, progress=False)
    keeper = Keeper()
    watched = run(
        RiverSwim(),
        AGENTS,
        Poisson(3),
        episodes=80,
        seeds=2,
        progress=False,
        folder=tmp_path,
        callbacks=[Vandal(), keeper],
    )
    assert_frame_equal(watched.frame, kept.frame)
    again = run(RiverSwim(), AGENTS, Poisson(3), episodes=80, seeds=2, progress=False, folder=tmp_path)
    assert_frame_equal(again.frame, kept.frame)
    for name, rows in keeper.runs.items():
        assert_frame_equal(pl.concat(keeper.blocks[name]), rows)
    assert_frame_equal(alone(callbacks=[Vandal()]), alone())


@pytest.mark.parametrize("method", ["after_block", "after_run", "close"])
def test_an_error_ends_the_callback_and_nothing_else(method: str, caplog: pytest.LogCaptureFixture) -> None:
    broken, keeper = Broken(method), Keeper()
    with caplog.at_level(logging.ERROR):
        results = run(
            RiverSwim(),
            AGENTS,
            Constant(0),
            episodes=80,
            seeds=2,
            jobs=1,
            progress=False,
            callbacks=[broken, keeper],
        )
    assert results.frame.height == 4 * 80
    assert broken.calls == 1
    assert len(keeper.runs) == 4
    (record,) = caplog.records
    assert f"callback Broken failed in {method} at" in record.message
    assert "no row is lost" in record.message
    assert record.exc_info is not None
    assert "the disk of the callback is full" in str(record.exc_info[1])


def test_threads_call_one_at_a_time() -> None:
    keeper = Keeper()
    results = run(RiverSwim(), AGENTS, Constant(0), episodes=400, seeds=6, jobs=4, progress=False, callbacks=[keeper])
    assert not keeper.crowded
    assert (len(keeper.runs), keeper.closed) == (12, 1)
    assert results.frame.height == sum(each.height for each in keeper.runs.values())


def test_a_run_of_a_worker_is_one_block(tmp_path: Path) -> None:
    keeper = Keeper()
    experiment = Experiment(
        name="apart", environments=RiverSwim(), agents=AGENTS, delays=Constant(1), episodes=70, seeds=1
    )
    results = run_experiment(
        experiment, folder=tmp_path, backend="processes", jobs=1, progress=False, callbacks=[keeper]
    )
    assert [len(blocks) for blocks in keeper.blocks.values()] == [1, 1]
    for each in experiment.runs():
        assert_frame_equal(
            keeper.runs[each.id], results.frame.filter(agent=each.agent_label)[keeper.runs[each.id].columns]
        )
    seen_again = Keeper()
    run_experiment(experiment, folder=tmp_path, progress=False, callbacks=[seen_again])
    assert seen_again.runs == {}, "what is kept is not played"
    assert seen_again.closed == 1


def test_a_resumed_run_shows_the_rows_of_its_checkpoint_first(tmp_path: Path) -> None:
    class Stop(BaseException):
        pass

    played = 0

    def watch(episodes: int) -> None:
        nonlocal played
        played += episodes
        if played > 4096:
            raise Stop

    options: dict[str, Any] = {"episodes": 4500, "seed": 1, "checkpoint": tmp_path / "run", "checkpoint_seconds": 0}
    interrupted, keeper = Keeper(), Keeper()
    with pytest.raises(Stop):
        simulate(RiverSwim(), RandomPolicy(), Constant(2), **options, watch=watch, callbacks=[interrupted])
    assert (interrupted.runs, interrupted.closed) == ({}, 1)
    rows = simulate(RiverSwim(), RandomPolicy(), Constant(2), **options, callbacks=[keeper])
    (blocks,) = keeper.blocks.values()
    assert blocks[0].height == 4096
    assert_frame_equal(pl.concat(blocks), rows)


@pytest.mark.parametrize("bad", [Keeper(), [print], 3])
def test_what_is_no_callback_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"callbacks.*belated\.Callback"):
        alone(callbacks=bad)


def test_a_callback_is_given_once() -> None:
    keeper = Keeper()
    with pytest.raises(InvalidInputError, match="twice"):
        alone(callbacks=[keeper, keeper])
