"""A real Ray cluster of two nodes on this machine, one of which is killed while it plays."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from orphans import workers_after
from own_classes import TOML, write_modules
from polars.testing import assert_frame_equal

import belated
from belated.runner._executor import ATTEMPTS, WorkerLostError

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'belated[ray]'")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    logging.getLogger("ray").setLevel(logging.ERROR)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        patch.setenv("RAY_ADDRESS", nodes.address)
        yield nodes
        ray.shutdown()
        nodes.shutdown()


def slow(log: Path, number: int, seconds: float, *, deadly: bool = False) -> belated.types.Algorithm:
    """Return an algorithm that notes where each attempt is played and takes about `seconds` for ten episodes."""

    class Slow:  # inside a function, so that a worker need not import this file
        def start(self, problem: belated.Problem) -> belated.Agent:
            import ray

            node = ray.get_runtime_context().get_node_id() if ray.is_initialized() else "here"
            (log / f"{number}.{node}.{uuid.uuid4().hex}").touch()
            if deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            inner = belated.RandomPolicy().start(problem)

            class Agent:
                def plan(self, rng: np.random.Generator) -> belated.Policy:
                    time.sleep(seconds / 10)
                    return inner.plan(rng)

                def learn(self, batch: Any) -> None:
                    inner.learn(batch)

            return Agent()

    return Slow()


def sweep(agents: dict[str, Any]) -> belated.Experiment:
    return belated.Experiment(
        name="sweep",
        environments=belated.RiverSwim(),
        agents=agents,
        delays=belated.Poisson(2),
        episodes=10,
        seeds=1,
    )


def finished(folder: Path) -> dict[int, tuple[int, bytes]]:
    """Return the time and the content of the file of each run that is there."""
    found = {}
    for path in folder.rglob("seed-*.parquet"):
        found[int(path.parts[-3])] = path.stat().st_mtime_ns, path.read_bytes()
    return found


@pytest.mark.slow
def test_a_machine_that_dies_in_the_middle_loses_nothing(tmp_path: Path, cluster: Any) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "serial").mkdir()
    runs = 8
    serial = belated.run_experiment(
        sweep({str(i): slow(tmp_path / "serial", i, 0.0) for i in range(runs)}), jobs=1, progress=False
    )
    machine = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    before: dict[int, tuple[int, bytes]] = {}
    interrupted: set[int] = set()

    def kill_when_busy() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not interrupted:
            time.sleep(0.02)
            there = {int(path.name.split(".")[0]) for path in (tmp_path / "log").glob(f"*.{machine.node_id}.*")}
            done = finished(tmp_path / "rows")
            if len(done) >= 2 and there & set(done) and there - set(done):
                cluster.remove_node(machine, allow_graceful=False)
                interrupted.update(there - set(done))
                before.update(done)

    killer = threading.Thread(target=kill_when_busy, daemon=True)
    killer.start()
    results = belated.run_experiment(
        sweep({str(i): slow(tmp_path / "log", i, 1.5) for i in range(runs)}),
        backend="ray",
        folder=tmp_path / "rows",
        progress=False,
    )
    killer.join()
    assert len(interrupted) == 1, "the machine was not killed while it played a run"
    assert_frame_equal(results.frame, serial.frame, check_exact=True)
    after = finished(tmp_path / "rows")
    assert before.items() <= after.items(), "what was finished is as it was, to the time of the file"
    played = Counter(int(path.name.split(".")[0]) for path in (tmp_path / "log").iterdir())
    assert played == {i: 2 if i in interrupted else 1 for i in range(runs)}


@pytest.mark.slow  # Ray waits before it tries again
def test_a_run_that_kills_every_worker_is_named(tmp_path: Path, cluster: Any) -> None:
    agents = {"deadly": slow(tmp_path, 0, 0.0, deadly=True)}
    with pytest.raises(WorkerLostError, match=r"sweep/riverswim-5/deadly/poisson-2/seed-00: .* 3 attempts"):
        belated.run_experiment(sweep(agents), backend="ray", progress=False)
    assert len(list(tmp_path.iterdir())) == ATTEMPTS
    assert not ray.is_initialized(), "the connection that was made for the sweep is closed"


def test_a_connection_of_your_own_is_used_and_left_open(tmp_path: Path, cluster: Any) -> None:
    """Also: BLAS has one thread, errors come without Ray's wrapping and are not tried again, jobs is a limit."""

    class Refusing:
        def start(self, problem: belated.Problem) -> belated.Agent:
            (tmp_path / uuid.uuid4().hex).touch()
            raise belated.InvalidInputError("not like this")

    class Counting:
        def start(self, problem: belated.Problem) -> belated.Agent:
            from threadpoolctl import threadpool_info

            if {pool["num_threads"] for pool in threadpool_info()} != {1}:
                raise belated.InvalidInputError("BLAS has more than one thread")
            return belated.RandomPolicy().start(problem)

    ray.init(log_to_driver=False, logging_level=logging.ERROR)
    agents = {"a": Counting(), "b": belated.RandomPolicy()}
    belated.run_experiment(sweep(agents), backend="ray", jobs=1, progress=False)
    with pytest.raises(belated.InvalidInputError, match=r"^sweep/riverswim-5/bad/poisson-2/seed-00: not like this$"):
        belated.run_experiment(sweep({"bad": Refusing()}), backend="ray", progress=False)
    assert len(list(tmp_path.iterdir())) == 1
    assert ray.is_initialized()
    ray.shutdown()


def test_no_task_outlives_the_program_that_gave_it(tmp_path: Path, cluster: Any) -> None:
    workers, alive_still = workers_after(signal.SIGKILL, "ray", tmp_path, count=1)
    assert workers
    assert alive_still == []


@pytest.mark.slow
def test_workers_import_classes_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: Any
) -> None:
    """In a process of its own: the cluster has begun in another folder, and knows nothing of this one."""
    write_modules(tmp_path, "own_classes_of_ray")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text(TOML.replace("NAME", "own_classes_of_ray"), encoding="utf-8")
    (tmp_path / "sweep.toml").write_text(
        'name = "sweep"\nepisodes = 5\nseeds = 2\nenvironments.a = { environment = "own_classes_of_ray:Corridor" }\n'
        'agents.coin = { algorithm = "own_classes_of_ray:Coin", heads = { choices = [0.1, 0.9] } }\n'
        'delays.late = { distribution = "constant", value = 1 }\ntune.seeds = 2\n',
        encoding="utf-8",
    )
    script = "import sys; sys.path[:] = [entry for entry in sys.path if entry]; from belated._cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(Path(belated.__file__).parents[1])}
    for arguments in (["run", "own.toml", "--out", "rows"], ["tune", "sweep.toml"]):
        command = [sys.executable, "-c", script, *arguments, "--backend", "ray"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert len(list(Path("rows").rglob("seed-*.parquet"))) == 4
    assert '"heads": 0.9' in Path("tuning/sweep/winners.json").read_text(encoding="utf-8")
