"""Parallel runs, interruption and resumption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import belated
from belated.runner import Store, engine
from belated.runner.experiment import Run

AGENTS = {"psvi": belated.DelayedPSVI(scale=2.0), "random": belated.RandomPolicy()}


def experiment(episodes: int = 400, seeds: int = 3) -> belated.Experiment:
    return belated.Experiment(
        name="sweep",
        environments=belated.RiverSwim(),
        agents=AGENTS,
        delays=[belated.Poisson(5), belated.Lossy(belated.Geometric(10), 0.2)],
        episodes=episodes,
        seeds=seeds,
    )


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


def test_jobs_and_backends_do_not_change_the_rows(tmp_path: Path) -> None:
    serial = belated.run_experiment(experiment(), jobs=1, folder=tmp_path / "serial", progress=False)
    threads = belated.run_experiment(experiment(), jobs=2, folder=tmp_path / "threads", progress=False)
    processes = belated.run_experiment(
        experiment(), jobs=2, backend="processes", folder=tmp_path / "processes", progress=False
    )
    assert_frame_equal(serial.frame, threads.frame, check_exact=True)
    assert_frame_equal(serial.frame, processes.frame, check_exact=True)
    assert files(tmp_path / "serial") == files(tmp_path / "threads") == files(tmp_path / "processes")
    assert len(files(tmp_path / "serial")) == 2 * 2 * 3


def test_what_is_done_is_not_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = belated.run_experiment(experiment(), folder=tmp_path, progress=False)

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a finished run was played again")

    monkeypatch.setattr(engine, "simulate", refuse)
    again = belated.run_experiment(experiment(), folder=tmp_path, progress=False)
    assert_frame_equal(first.frame, again.frame, check_exact=True)


def test_more_seeds_only_play_the_new_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    belated.run_experiment(experiment(seeds=2), folder=tmp_path, progress=False)
    played: list[int] = []
    real = belated.simulate

    def count(*args: object, **kwargs: object) -> object:
        played.append(int(kwargs["seed"]))  # type: ignore[call-overload]
        return real(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "simulate", count)
    belated.run_experiment(experiment(seeds=3), folder=tmp_path, progress=False)
    assert set(played) == {2}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "ctrl-c"])
def test_an_interrupted_sweep_resumes_to_identical_bytes(tmp_path: Path, how: signal.Signals) -> None:
    """Stop a child process once a few of its runs are on disk, resume here, compare with an untouched sweep."""
    big = experiment(episodes=20_000, seeds=4)
    script = tmp_path / "child.py"
    script.write_text(
        "import sys, belated\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_engine import experiment\n"
        "belated.run_experiment(experiment(episodes=20_000, seeds=4), folder=sys.argv[1], jobs=2, progress=False)\n"
    )
    folder = tmp_path / "stopped"
    child = subprocess.Popen([sys.executable, str(script), str(folder)], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while len(files(folder)) < 2 and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(how)
    _, errors = child.communicate(timeout=60)
    done = files(folder)
    assert 2 <= len(done) < len(big.runs()), f"the sweep was not caught in the middle: {errors.decode()}"
    belated.run_experiment(big, folder=folder, progress=False)
    belated.run_experiment(big, folder=tmp_path / "whole", progress=False)
    whole = files(tmp_path / "whole")
    assert files(folder) == whole
    assert done.items() <= whole.items()


def test_an_agent_of_your_own_resumes_even_if_it_does_not_show_its_settings(tmp_path: Path) -> None:
    class Plain:
        def start(self, problem: belated.Problem) -> belated.Agent:
            return belated.RandomPolicy().start(problem)

    for _ in range(2):
        belated.run(
            belated.RiverSwim(), {"mine": Plain()}, belated.Constant(0), episodes=5, seeds=1, jobs=1, folder=tmp_path
        )
    assert len(files(tmp_path)) == 1


def test_an_error_names_the_run() -> None:
    bad = {"lpsvi": belated.DelayedLPSVI(step_size=100.0)}
    with pytest.raises(belated.InvalidInputError, match=r"run/riverswim-5/lpsvi/constant-0/seed-00: step_size"):
        belated.run(belated.RiverSwim(), bad, belated.Constant(0), episodes=5, seeds=1, progress=False)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(belated.InvalidInputError, match="jobs must be a whole number >= 1, got 0"):
        belated.run(belated.RiverSwim(), AGENTS, belated.Constant(0), episodes=5, seeds=1, jobs=0)
    with pytest.raises(belated.UnknownNameError, match="did you mean 'threads'"):
        belated.run_experiment(experiment(), backend="thread")


def test_blas_threads_are_left_as_they_were() -> None:
    from threadpoolctl import threadpool_info

    before = [pool["num_threads"] for pool in threadpool_info()]
    belated.run(belated.RiverSwim(), AGENTS, belated.Constant(0), episodes=5, seeds=2, progress=False)
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def mortal(log: Path, number: int, deaths: int) -> belated.types.Algorithm:
    """Return an algorithm that notes each attempt and kills its process in the first `deaths` of them."""

    class Mortal:  # inside a function, so that a worker need not import this file
        def start(self, problem: belated.Problem) -> belated.Agent:
            (log / f"{number}.{uuid.uuid4().hex}").touch()
            if len(list(log.glob(f"{number}.*"))) <= deaths:
                os.kill(os.getpid(), signal.SIGKILL)
            return belated.RandomPolicy().start(problem)

    return Mortal()


def mortals(folder: Path, *deaths: int) -> belated.Experiment:
    folder.mkdir()
    return belated.Experiment(
        name="mortals",
        environments=belated.RiverSwim(),
        agents={f"agent-{number}": mortal(folder, number, dies) for number, dies in enumerate(deaths)},
        delays=belated.Constant(3),
        episodes=20,
        seeds=1,
    )


def attempts(folder: Path) -> dict[int, int]:
    return dict(Counter(int(path.name.partition(".")[0]) for path in folder.iterdir()))


def test_a_killed_process_loses_nothing_and_nothing_is_played_twice(tmp_path: Path) -> None:
    serial = belated.run_experiment(mortals(tmp_path / "0", 0, 0, 0, 0), backend="threads", jobs=1, progress=False)
    broken = belated.run_experiment(
        mortals(tmp_path / "1", 0, 1, 0, 0), backend="processes", jobs=2, folder=tmp_path / "rows", progress=False
    )
    assert_frame_equal(broken.frame, serial.frame, check_exact=True)
    assert attempts(tmp_path / "1") == {0: 1, 1: 2, 2: 1, 3: 1}


def test_a_run_that_kills_every_worker_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    deadly = mortals(tmp_path / "log", 0, 99)
    with pytest.raises(engine.WorkerLostError, match=r"mortals/riverswim-5/agent-1/constant-3/seed-00: .* 3 attempts"):
        belated.run_experiment(deadly, backend="processes", jobs=1, folder=tmp_path / "rows", progress=False)
    assert attempts(tmp_path / "log") == {0: 1, 1: engine.ATTEMPTS}
    assert [path.parts[-3] for path in (tmp_path / "rows").rglob("*.parquet")] == ["agent-0"]


def test_an_error_of_a_run_is_not_tried_again(tmp_path: Path) -> None:
    class Refusing:
        def start(self, problem: belated.Problem) -> belated.Agent:
            (tmp_path / uuid.uuid4().hex).touch()
            raise belated.InvalidInputError("not like this")

    bad = belated.Experiment(
        name="x",
        environments=belated.RiverSwim(),
        agents={"bad": Refusing()},
        delays=belated.Constant(0),
        episodes=5,
        seeds=1,
    )
    with pytest.raises(belated.InvalidInputError, match=r"x/riverswim-5/bad/constant-0/seed-00: not like this"):
        belated.run_experiment(bad, backend="processes", progress=False)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_process_has_one_blas_thread(tmp_path: Path) -> None:
    class Counting:
        def start(self, problem: belated.Problem) -> belated.Agent:
            from threadpoolctl import threadpool_info

            counts = [pool["num_threads"] for pool in threadpool_info()]
            (tmp_path / "counts").write_text(str(set(counts)), encoding="utf-8")
            return belated.RandomPolicy().start(problem)

    one = belated.Experiment(
        name="x",
        environments=belated.RiverSwim(),
        agents={"a": Counting()},
        delays=belated.Constant(0),
        episodes=5,
        seeds=1,
    )
    belated.run_experiment(one, backend="processes", progress=False)
    assert (tmp_path / "counts").read_text(encoding="utf-8") == "{1}"


class DeadError(Exception):
    pass


class Scripted:
    """Workers of this process that end as told: "well", "dead" before the rows are kept, or "late", after."""

    deaths: tuple[type[Exception], ...] = (DeadError,)

    def __init__(self, *ends: str) -> None:
        self.ends = list(ends)
        self.played: list[str] = []
        self.closed: Collection[Any] | None = None

    def submit(self, run: Run, store: Store | None) -> object:
        return run, store, self.ends.pop(0), object()

    def finished(self, tickets: Collection[Any]) -> Any:
        return next(iter(tickets))

    def result(self, ticket: Any) -> pl.DataFrame | None:
        run, store, end, _ = ticket
        self.played.append(run.agent_label)
        if end == "dead":
            raise DeadError
        rows = engine.play_apart(run, store, run.describe())
        if end == "late":
            raise DeadError
        return rows

    def close(self, tickets: Collection[Any]) -> None:
        self.closed = list(tickets)


def three() -> list[Run]:
    return belated.Experiment(
        name="three",
        environments=belated.RiverSwim(),
        agents={name: belated.RandomPolicy() for name in "abc"},
        delays=belated.Constant(0),
        episodes=10,
        seeds=1,
    ).runs()


def test_rows_kept_before_a_worker_died_are_not_played_again(tmp_path: Path) -> None:
    workers = Scripted("late", "dead", "well", "well")
    rows = dict(engine._apart(workers, three(), Store(tmp_path), at_once=1))
    assert workers.played == ["a", "b", "b", "c"]
    assert set(rows) == {run.id for run in three()}
    assert workers.closed == []


def test_without_a_folder_a_late_death_is_played_again() -> None:
    workers = Scripted("late", "well", "well", "well")
    rows = dict(engine._apart(workers, three(), None, at_once=1))
    assert workers.played == ["a", "a", "b", "c"]
    for run in three():
        assert_frame_equal(rows[run.id], engine.play(run, None, None))


def test_giving_up_ends_what_is_being_played() -> None:
    class DeadFirst(Scripted):
        def finished(self, tickets: Collection[Any]) -> Any:
            return min(tickets, key=lambda ticket: ticket[2])

    workers = DeadFirst("dead", "well", "dead", "dead")
    with pytest.raises(engine.WorkerLostError, match="three/riverswim-5/a/"):
        list(engine._apart(workers, three(), None, at_once=2))
    assert workers.played == ["a"] * engine.ATTEMPTS
    assert workers.closed is not None
    assert [run.agent_label for run, *_ in workers.closed] == ["b"]


def test_a_folder_that_the_machines_do_not_share_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Elsewhere(Scripted):
        def result(self, ticket: Any) -> None:
            return None

    monkeypatch.setattr(engine, "PATIENCE", 0.05)
    workers = Elsewhere("well", "well", "well")
    with pytest.raises(belated.InvalidInputError, match=r"all machines share.*three/riverswim-5/a/.*is not there"):
        list(engine._apart(workers, three(), Store(tmp_path), at_once=2))
    assert workers.closed is not None
    assert len(workers.closed) == 1


def test_a_worker_finds_a_relative_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sent: list[Store | None] = []

    class Noting(Scripted):
        def submit(self, run: Run, store: Store | None) -> object:
            sent.append(store)
            return super().submit(run, store)

    dict(engine._apart(Noting("well"), three()[:1], Store("rows"), at_once=1))
    assert sent[0] is not None
    assert sent[0].folder.path == tmp_path / "rows"


def test_an_address_gives_the_same_rows_and_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = belated.run_experiment(experiment(), progress=False)
    kept = belated.run_experiment(experiment(), folder="memory://sweep", progress=False)
    monkeypatch.setattr(engine, "simulate", None)  # what is there is not played again
    again = belated.run_experiment(experiment(), folder="memory://sweep", progress=False)
    assert_frame_equal(plain.frame, kept.frame, check_exact=True)
    assert_frame_equal(plain.frame, again.frame, check_exact=True)


@pytest.mark.parametrize("backend", ["processes", "ray"])
def test_memory_of_this_process_is_refused_where_workers_cannot_see_it(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_import_ray", lambda: None)
    with pytest.raises(belated.InvalidInputError, match=r"folder must be one that all workers see.*'memory://sweep'"):
        belated.run_experiment(experiment(), folder="memory://sweep", backend=backend, progress=False)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(engine.MissingRayError, match=r"pip install 'belated\[ray\]'"):
        belated.run_experiment(experiment(), backend="ray", progress=False)
