"""A disk that is full at the n-th write: a clear error, nothing half-written, and the same rows once there is room."""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import belated
from attacks.files import AGENT, WORLD, experiment, save_all
from attacks.kills import contents
from attacks.tally import Tally
from belated.decisions import DecisionLearner
from belated.runner import Store, run_experiment, simulate
from belated.runner._simulation import CHUNK


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Fill the disk at each write of everything that writes; `tries` bounds how many runs an experiment has."""
    seeds = max(2, tries // 4)
    _attack_experiment(seeds, folder / "rows", tally)
    _attack_checkpoints(folder / "checkpoints", tally)
    _attack_single_files(folder / "files", tally)


class FullDisk(io.FileIO):
    """A file on a disk that becomes full halfway through a write."""

    writes, at = 0, 0

    def write(self, content: Any) -> int:
        """Write, or fail."""
        type(self).writes += 1
        if type(self).writes != self.at:
            return super().write(content)
        super().write(bytes(content)[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.name)


@contextmanager
def full_at(number: int) -> Iterator[type[FullDisk]]:
    """Simulate a full disk at the `number`-th write, from 1, to any file opened by `Path.open`."""
    disk = type("Disk", (FullDisk,), {"writes": 0, "at": number})
    whole = Path.open

    def opened(path: Path, mode: str = "r", *rest: Any, **named: Any) -> Any:
        return disk(path, mode.replace("b", "")) if mode in ("wb", "xb", "ab") else whole(path, mode, *rest, **named)

    with mock.patch.object(Path, "open", opened):
        yield disk


def fill(number: int, write: Callable[[], object]) -> bool:
    """Run `write` with a disk that is full at that write; return whether it got that far. It must raise ENOSPC."""
    with full_at(number) as disk:
        try:
            write()
        except OSError as error:
            assert error.errno == errno.ENOSPC, f"another error: {error}"
            return True
        assert disk.writes < number, "a full disk, and nobody said so"
        return False


def nothing_half_written(folder: Path) -> None:
    """Check that no temporary files are left."""
    left = [path.name for path in folder.rglob("*") if path.is_file() and path.name.startswith(".")]
    assert not left, f"left behind: {left}"


def _attack_experiment(seeds: int, folder: Path, tally: Tally) -> None:
    declared = experiment(seeds=seeds)
    run_experiment(declared, folder=folder / "whole", jobs=1, progress=False)
    whole, met, number = contents(folder / "whole"), True, 0
    while met and tally.left():
        number, out = number + 1, folder / "full"
        with tally.attempt(f"rows: full at write {number}"):
            met = fill(number, lambda: run_experiment(declared, folder=folder / "full", jobs=1, progress=False))
            nothing_half_written(out)
            assert all(whole[name] == content for name, content in contents(out).items()), "other rows"
            run_experiment(declared, folder=out, jobs=1, progress=False)
            assert contents(out) == whole, "other rows after it was resumed"
        shutil.rmtree(out, ignore_errors=True)


def _attack_checkpoints(folder: Path, tally: Tally) -> None:
    """Fill the disk at each checkpoint of a run and where its rows are kept: the last checkpoint stays."""
    store, (run,) = Store(folder), experiment(episodes=3 * CHUNK).runs()
    checkpoint = store.checkpoint(run)
    assert checkpoint is not None

    def play() -> None:
        simulate(
            WORLD, AGENT, run.delay, episodes=run.episodes, seed=run.seed, checkpoint=checkpoint, checkpoint_seconds=0,
            commit=lambda rows: store.write(run, rows),
        )  # fmt: skip

    play()
    whole = store.path(run).read_bytes()
    met, number = True, 0
    while met and tally.left():
        number += 1
        store.path(run).unlink()
        with tally.attempt(f"checkpoint: full at write {number}"):
            met = fill(number, play)
            nothing_half_written(folder)
            assert number == 1 or checkpoint.exists() or not met, "the run was lost"
            play()
            assert store.path(run).read_bytes() == whole, "other rows after it was resumed"
            assert not checkpoint.exists()


def _attack_single_files(folder: Path, tally: Tally) -> None:
    """Overwrite each file: the older one stays unchanged."""
    folder.mkdir(exist_ok=True)
    files = save_all(folder)
    agent, results = belated.load_agent(files["agent"].path).agent, belated.Results.load(files["results"].path)
    learner = DecisionLearner.load(files["learner"].path)
    writers = {
        "agent": lambda: belated.save_agent(files["agent"].path, agent),
        "results": lambda: results.save(files["results"].path),
        "learner": lambda: learner.save(files["learner"].path),
    }
    for kind, write in writers.items():
        before = files[kind].read()
        with tally.attempt(f"{kind}: full at its write"):
            assert fill(1, write), "nothing was written"
            nothing_half_written(folder)
            assert files[kind].read() == before, "the older file has changed"
