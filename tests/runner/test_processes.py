"""Workers that are processes: killed ones lose nothing, errors come back, and none outlives its parent."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import uuid
from collections import Counter
from pathlib import Path

import pytest
from orphans import alive, workers_after
from polars.testing import assert_frame_equal

import belated
from belated.runner import _backends as processes
from belated.runner._executor import ATTEMPTS, WorkerLostError


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
    with pytest.raises(WorkerLostError, match=r"mortals/riverswim-5/agent-1/constant-3/seed-00: .* 3 attempts"):
        belated.run_experiment(deadly, backend="processes", jobs=1, folder=tmp_path / "rows", progress=False)
    assert attempts(tmp_path / "log") == {0: 1, 1: ATTEMPTS}
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


@pytest.mark.skipif(sys.platform == "win32", reason="a process keeps its parent's number there")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "terminate"])
def test_no_worker_outlives_its_parent(tmp_path: Path, how: signal.Signals) -> None:
    """Also: an agent of a script without a guard around its main part can be sent."""
    workers, alive_still = workers_after(how, "processes", tmp_path, count=2)
    assert len(workers) == 2
    assert alive_still == []


def test_what_an_agent_prints_does_not_get_among_the_answers(capfd: pytest.CaptureFixture[str]) -> None:
    class Talking:
        def start(self, problem: belated.Problem) -> belated.Agent:
            print("hello")
            os.write(1, b"hello\n")
            return belated.RandomPolicy().start(problem)

    processes._end_idle()  # one that is there already writes where stderr went when it began
    results = play_in_processes({"a": Talking()})
    plain = play_in_processes({"a": belated.RandomPolicy()})
    assert_frame_equal(results.frame, plain.frame, check_exact=True)
    assert capfd.readouterr().err.count("hello") == 2


def play_in_processes(agents: dict[str, belated.types.Algorithm]) -> belated.Results:
    experiment = belated.Experiment(
        name="x", environments=belated.RiverSwim(), agents=agents, delays=belated.Constant(0), episodes=5, seeds=1
    )
    return belated.run_experiment(experiment, backend="processes", progress=False)


def test_an_agent_that_cannot_be_sent_is_named() -> None:
    class Holding:
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def start(self, problem: belated.Problem) -> belated.Agent:
            return belated.RandomPolicy().start(problem)

    with pytest.raises(
        belated.InvalidInputError, match=r"x/riverswim-5/a/.* cannot be sent .*; play it with backend='thr"
    ):
        play_in_processes({"a": Holding()})


def test_an_error_that_cannot_travel_is_told_in_words() -> None:
    class Refusing:
        def start(self, problem: belated.Problem) -> belated.Agent:
            raise RuntimeError("the lock", threading.Lock())

    with pytest.raises(belated.BelatedError, match=r"RuntimeError: \('the lock', <unlocked"):
        play_in_processes({"a": Refusing()})


def test_where_an_error_came_from_is_told() -> None:
    class Dividing:
        def start(self, problem: belated.Problem) -> belated.Agent:
            raise ZeroDivisionError("by nothing")

    with pytest.raises(ZeroDivisionError, match="by nothing") as caught:
        play_in_processes({"a": Dividing()})
    assert "in a worker:" in caught.value.__notes__[0]
    assert "test_processes.py" in caught.value.__notes__[0]


def test_a_process_is_used_again_and_a_dead_one_is_not() -> None:
    class Which:
        def start(self, problem: belated.Problem) -> belated.Agent:
            raise KeyError(os.getpid())

    def who() -> int:
        with pytest.raises(KeyError) as caught:
            play_in_processes({"a": Which()})
        return int(caught.value.args[0])

    first = who()
    assert who() == first
    os.kill(first, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while alive(first) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert who() != first


def test_a_forked_process_leaves_the_workers_of_its_parent_alone() -> None:
    play_in_processes({"a": belated.RandomPolicy()})
    assert processes._IDLE
    before = list(processes._IDLE)
    try:
        processes._forget_after_fork()
        assert processes._IDLE == []
        assert before == processes._INHERITED
    finally:
        processes._INHERITED.clear()
        processes._IDLE.extend(before)
