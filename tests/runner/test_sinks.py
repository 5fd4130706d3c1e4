"""Sinks: what they write of the rows, against fakes and, where it is installed, the real thing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from belated import Callback, Constant, InvalidInputError, Lossy, RandomPolicy, Results, RiverSwim, run
from belated.errors import MissingExtraError
from belated.runner import JSONLines, MLflow, TensorBoard, WandB
from belated.runner._callbacks import MEASURED

EPISODES = 45


def played(*callbacks: Callback, **options: Any) -> Results:
    return run(
        RiverSwim(),
        {"random": RandomPolicy()},
        Lossy(Constant(2), missing=0.3),
        episodes=EPISODES,
        seeds=2,
        progress=False,
        callbacks=callbacks,
        **options,
    )


def expected(results: Results, seed: int, column: str, every: int) -> dict[int, float]:
    """Return episode → number, of the rows that are to be written and have one."""
    rows = results.frame.filter(
        (pl.col("seed") == seed)
        & (((pl.col("episode") + 1) % every == 0) | (pl.col("episode") == EPISODES - 1))
        & pl.col(column).is_not_null()
    )
    return dict(zip(rows["episode"].to_list(), rows[column].cast(pl.Float64).to_list(), strict=True))


def names(seed: int) -> str:
    return f"run/riverswim-5/random/lossy-0.3-constant-2/seed-{seed:02d}"


def test_json_lines_hold_the_rows_with_their_labels(tmp_path: Path) -> None:
    path = tmp_path / "new" / "rows.jsonl"
    results = played(JSONLines(path))
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    found = pl.DataFrame(lines, schema_overrides={"delay": pl.Int64}).sort("seed", "episode")
    assert found["run"].unique().sort().to_list() == [names(0), names(1)]
    assert found.select(results.frame.columns).equals(results.frame.sort("seed", "episode"))


def test_json_lines_are_added(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for _ in range(2):
        played(JSONLines(path, every=20))
    episodes = [json.loads(line)["episode"] for line in path.read_text(encoding="utf-8").splitlines()]
    assert sorted(episodes) == sorted(4 * [19, 39, 44])


class FakeWriter:
    made: dict[str, FakeWriter]

    def __init__(self, folder: str) -> None:
        self.points: dict[str, dict[int, float]] = {}
        self.closed = False
        self.made[folder] = self

    def add_scalar(self, tag: str, data: float, step: int) -> None:
        self.points.setdefault(tag, {})[step] = data

    def flush(self) -> None:
        assert not self.closed

    def close(self) -> None:
        self.closed = True


def test_tensorboard_gets_a_curve_for_each_column(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    FakeWriter.made = {}
    monkeypatch.setitem(sys.modules, "tensorboard.summary", SimpleNamespace(Writer=FakeWriter))
    monkeypatch.setitem(sys.modules, "tensorboard", SimpleNamespace())
    results = played(TensorBoard(tmp_path, every=7))
    assert set(FakeWriter.made) == {str(tmp_path / names(seed)) for seed in (0, 1)}
    for seed in (0, 1):
        writer = FakeWriter.made[str(tmp_path / names(seed))]
        assert writer.closed
        assert writer.points == {column: expected(results, seed, column, 7) for column in MEASURED}


class FakeMLflow:
    """The part of `MlflowClient` that is used, and its limits."""

    def __init__(self) -> None:
        self.runs: dict[str, dict[str, Any]] = {}
        self.experiments: dict[str, str] = {}

    def get_experiment_by_name(self, name: str) -> Any:
        found = self.experiments.get(name)
        return None if found is None else SimpleNamespace(experiment_id=found)

    def create_experiment(self, name: str) -> str:
        assert name not in self.experiments
        self.experiments[name] = "7"
        return "7"

    def create_run(self, experiment: str, run_name: str) -> Any:
        assert experiment == "7"
        self.runs[run_name] = {"metrics": [], "params": [], "status": "RUNNING"}
        return SimpleNamespace(info=SimpleNamespace(run_id=run_name))

    def log_batch(self, run: str, metrics: Any = (), params: Any = ()) -> None:
        assert len(metrics) <= 1000
        assert len(params) <= 100
        self.runs[run]["metrics"] += metrics
        self.runs[run]["params"] += params

    def set_terminated(self, run: str, status: str) -> None:
        self.runs[run]["status"] = status


def test_mlflow_gets_a_run_with_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakeMLflow()
    entities = SimpleNamespace(Metric=lambda *given: given, Param=lambda *given: given)
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(MlflowClient=lambda uri: client, entities=entities))
    results = played(MLflow("first", every=10))
    assert client.experiments == {"first": "7"}
    for seed in (0, 1):
        kept = client.runs[names(seed)]
        assert kept["status"] == "FINISHED"
        params = dict(kept["params"])
        assert (params["agent.algorithm"], params["seed"], params["delay.missing"]) == ("random", str(seed), "0.3")
        for column in MEASURED:
            found = {step: number for name, number, _, step in kept["metrics"] if name == column}
            assert found == expected(results, seed, column, 10)


class FakeWandB:
    def __init__(self) -> None:
        self.runs: list[Any] = []

    def init(self, **options: Any) -> Any:
        made = SimpleNamespace(options=options, rows={}, code=None)
        made.log = lambda row, step: made.rows.__setitem__(step, row)
        made.finish = lambda exit_code: setattr(made, "code", exit_code)
        self.runs.append(made)
        return made


def test_weights_and_biases_gets_a_run_in_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeWandB()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    results = played(WandB("late", mode="offline", every=9))
    assert {each.options["name"] for each in fake.runs} == {names(0), names(1)}
    for each in fake.runs:
        options, seed = each.options, int(each.options["config"]["seed"])
        assert (options["project"], options["group"], options["mode"]) == ("late", "run", "offline")
        assert each.code == 0
        for column in MEASURED:
            found = {step: row[column] for step, row in each.rows.items() if column in row}
            assert found == expected(results, seed, column, 9)


class Interrupt(Callback):
    """Stops everything in the second block of a run."""

    def __init__(self) -> None:
        self.blocks = 0

    def after_block(self, run: Any, rows: pl.DataFrame) -> None:
        self.blocks += 1
        if self.blocks == 2:
            raise KeyboardInterrupt


def test_an_interrupted_run_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeWandB()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    with pytest.raises(KeyboardInterrupt):
        played(WandB(), Interrupt(), jobs=1)
    assert {each.code for each in fake.runs} == {1}


@pytest.mark.parametrize(
    ("sink", "package"),
    [
        (lambda: TensorBoard("x"), "tensorboard"),
        (MLflow, "mlflow"),
        (WandB, "wandb"),
    ],
)
def test_without_the_extra_it_is_named(sink: Any, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"needs {package}.*pip install 'belated\[{package}\]'"):
        sink()


def test_bad_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="every must be"):
        JSONLines(tmp_path / "x", every=0)


NOT_INSTALLED = "an optional extra of the library, which need not be installed"


def test_the_real_tensorboard_reads_what_was_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason=NOT_INSTALLED)
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason=NOT_INSTALLED, exc_type=ImportError
    )
    results = played(TensorBoard(tmp_path, every=5))
    for seed in (0, 1):
        events = accumulator.EventAccumulator(str(tmp_path / names(seed)), size_guidance={"tensors": 0})
        events.Reload()
        found = {event.step: event.tensor_proto.float_val[0] for event in events.Tensors("regret")}
        assert found == pytest.approx(expected(results, seed, "regret", 5), rel=1e-6)


def test_the_real_mlflow_reads_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason=NOT_INSTALLED)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the database needs more than the small package has
    address = (tmp_path / "kept").as_uri()
    results = played(MLflow("real", tracking_uri=address, every=5))
    client = mlflow.MlflowClient(address)
    runs = client.search_runs([client.get_experiment_by_name("real").experiment_id])
    assert {each.info.run_name for each in runs} == {names(0), names(1)}
    for each in runs:
        assert each.info.status == "FINISHED"
        found = {metric.step: metric.value for metric in client.get_metric_history(each.info.run_id, "regret")}
        assert found == pytest.approx(expected(results, int(each.data.params["seed"]), "regret", 5))


def test_the_real_weights_and_biases_takes_the_rows(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason=NOT_INSTALLED)
    played(WandB("real", mode="offline", dir=str(tmp_path), every=5))
    assert len(list(tmp_path.glob("wandb/offline-run-*/run-*.wandb"))) == 2
