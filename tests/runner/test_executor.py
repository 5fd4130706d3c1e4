"""Parallel runs, interruption and resumption."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

import belated
from belated.errors import MissingExtraError
from belated.runner import Run
from belated.runner import _backends as playing
from belated.runner import _executor as engine
from belated.runner._simulation import play

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

    monkeypatch.setattr(playing, "play", refuse)
    again = belated.run_experiment(experiment(), folder=tmp_path, progress=False)
    assert_frame_equal(first.frame, again.frame, check_exact=True)


def test_more_seeds_only_play_the_new_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    belated.run_experiment(experiment(seeds=2), folder=tmp_path, progress=False)
    played: list[int] = []
    real = play

    def count(run: Run, **options: Any) -> object:
        played.append(run.seed)
        return real(run, **options)

    monkeypatch.setattr(playing, "play", count)
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
        "from test_executor import experiment\n"
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


@pytest.mark.parametrize(
    ("agents", "labels"),
    [
        (belated.RandomPolicy(), ["random"]),
        ([belated.RandomPolicy(), belated.Greedy()], ["greedy", "random"]),
        ({"mine": belated.RandomPolicy()}, ["mine"]),
    ],
)
def test_agents_need_no_labels(agents: Any, labels: list[str]) -> None:
    results = belated.run(belated.RiverSwim(), agents, belated.Constant(0), episodes=2, seeds=1, progress=False)
    assert sorted(results.agents) == labels


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        ("psvi", r"agents must be an algorithm with a method start\(problem\), got 'psvi'"),
        ([belated.Greedy(), 3], r"agents must be an algorithm with a method start\(problem\), got 3"),
        ([belated.Greedy(), belated.Greedy()], "agents has two entries labelled 'greedy'; give a mapping"),
        ([], "agents must not be empty"),
    ],
)
def test_what_is_not_agents_is_refused(agents: Any, message: str) -> None:
    with pytest.raises(belated.BelatedError, match=message):
        belated.run(belated.RiverSwim(), agents, belated.Constant(0), episodes=2, seeds=1)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(belated.InvalidInputError, match="jobs must be an integer >= 1, got 0"):
        belated.run(belated.RiverSwim(), AGENTS, belated.Constant(0), episodes=5, seeds=1, jobs=0)
    with pytest.raises(belated.UnknownNameError, match="did you mean 'threads'"):
        belated.run_experiment(experiment(), backend="thread")


def test_blas_threads_are_left_as_they_were() -> None:
    from threadpoolctl import threadpool_info

    before = [pool["num_threads"] for pool in threadpool_info()]
    belated.run(belated.RiverSwim(), AGENTS, belated.Constant(0), episodes=5, seeds=2, progress=False)
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_an_address_gives_the_same_rows_and_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = belated.run_experiment(experiment(), progress=False)
    kept = belated.run_experiment(experiment(), folder="memory://sweep", progress=False)
    monkeypatch.setattr(playing, "play", None)  # what is there is not played again
    again = belated.run_experiment(experiment(), folder="memory://sweep", progress=False)
    assert_frame_equal(plain.frame, kept.frame, check_exact=True)
    assert_frame_equal(plain.frame, again.frame, check_exact=True)


@pytest.mark.parametrize("backend", ["processes", "ray"])
def test_memory_of_this_process_is_refused_where_workers_cannot_see_it(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "needed", lambda module, extra: None)
    with pytest.raises(belated.InvalidInputError, match=r"folder must be one that all workers see.*'memory://sweep'"):
        belated.run_experiment(experiment(), folder="memory://sweep", backend=backend, progress=False)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'belated\[ray\]'"):
        belated.run_experiment(experiment(), backend="ray", progress=False)
