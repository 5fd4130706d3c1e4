"""Figures for Prometheus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from prometheus_client.parser import text_string_to_metric_families as families

from belated.decisions import (
    ConflictError,
    Decide,
    Decided,
    MemoryStore,
    Model,
    ModelSettings,
    Outcome,
    Status,
    StoreError,
)
from belated.decisions._ids import new_id
from belated.service._metrics import Metrics
from belated.service._writer import Committed

TABLE = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}}


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def read(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Return every figure by its name and the values of its labels."""
    found = families(metrics.text().decode())
    return {(one.name, *one.labels.values()): one.value for family in found for one in family.samples}


def test_every_event_is_counted_by_what_became_of_it_and_every_decision_by_its_action() -> None:
    models: Sequence[Model] = [Model("ads", ModelSettings.from_table(TABLE), MemoryStore(), clock=Clock())]
    clock = Clock()
    writer: Any = SimpleNamespace(
        depth=5, problem="", problems={"ads": "no space"}, failures={("ads", "store"): 3}
    )  # fmt: skip
    metrics = Metrics(lambda: models, writer, lambda: {"file": 4096}, clock, lambda: -0.5)
    (answer,) = models[0].answer([Decide({"x": 1.0})])
    assert isinstance(answer, Decided)
    made = answer.row
    metrics.noted("ads", answer)
    metrics.noted("ads", answer._replace(repeated=True))
    metrics.noted("ads", Decided(replace(made, id=new_id(0.0), ranking=("b",), probability=0.5), False))
    for status in Status:
        metrics.noted("ads", Outcome(status, made.id))
    metrics.invalid("ads", 2)
    metrics.noted("ads", ConflictError("a decision that was refused"))
    metrics.committed(Committed(0.003, 7))
    metrics.answered(503)
    clock.now += 60.0
    found = read(metrics)
    assert sum(value for key, value in found.items() if key[0] == "belated_decisions_total") == 2
    for status in Status:
        assert found["belated_feedback_total", "ads", status.value] == (3 if status is Status.INVALID else 1)
    assert found["belated_feedback_delay_seconds_count", "ads"] == 1  # of what was accepted
    assert (found["belated_in_flight", "ads"], found["belated_parked", "ads"]) == (1, 0)
    assert (found[("belated_queue_depth",)], found[("belated_commit_operations_sum",)]) == (5, 7)
    assert (found["belated_commit_seconds_bucket", "0.002"], found["belated_commit_seconds_bucket", "0.005"]) == (0, 1)
    assert found["belated_requests_total", "503"] == 1
    assert found["belated_decision_probability_count", "ads"] == 2
    assert found["belated_oldest_in_flight_seconds", "ads"] == 60.0
    assert (found["belated_state", "ads", "in flight"], found["belated_state", "ads", "expired"]) == (1, 0)
    assert (found["belated_unsaved_rows", "ads"], found["belated_learner_lag_rows", "ads"]) == (1, 0)
    assert (found[("belated_ready",)], found["belated_problem", "ads"]) == (1, 1)
    assert (found["belated_failures_total", "store", "ads"], found[("belated_clock_offset_seconds",)]) == (3, -0.5)
    assert (found["belated_log_ahead_seconds", "ads"], found["belated_states_rebuilt", "ads"]) == (0, 0)
    assert (found["belated_cholesky_retries", "ads"], found["belated_store_bytes", "file"]) == (0, 4096)


def test_figures_are_told_while_the_store_does_not_answer() -> None:
    clock = Clock()
    models = [Model(name, ModelSettings.from_table(TABLE), MemoryStore(), clock=clock) for name in ("ads", "news")]
    for model in models:
        model.decide({"x": 1.0})
    clock.now -= 7200.0

    def fail() -> Any:
        raise StoreError("the PostgreSQL store cannot be read")

    models[0].oldest = fail  # type: ignore[method-assign]
    writer: Any = SimpleNamespace(depth=0, problem="no answer", problems={}, failures={})
    found = read(Metrics(lambda: models, writer, fail, clock))
    assert found[("belated_ready",)] == 0 and ("belated_in_flight", "ads") not in found
    assert (found["belated_in_flight", "news"], found["belated_log_ahead_seconds", "news"]) == (1, 7200.0)
