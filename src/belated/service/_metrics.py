"""Metrics for Prometheus."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from belated.decisions import Decided, Model, Outcome, Status, StoreError
from belated.decisions._ids import Clock, time_of
from belated.decisions._operations import Answer
from belated.service._writer import Committed, Writer

_DELAYS = (1, 10, 60, 600, 3600, 6 * 3600, 86400, 3 * 86400, 7 * 86400, 30 * 86400)
_PROBABILITIES = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.99, 1.0)
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
_COMMITS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0)


class _Histogram:
    """Counts of values in buckets; a bound is the maximum of its bucket."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds, self._counts, self._total = bounds, [0] * (len(bounds) + 1), 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._total += value

    def add_to(self, family: HistogramMetricFamily, labels: Sequence[str]) -> None:
        buckets, below = [], 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            below += count
            buckets.append(("+Inf" if bound == float("inf") else str(float(bound)), float(below)))
        family.add_metric(labels, buckets, self._total)


class Metrics:
    """Counters of events; gauges are read from the models when they are scraped.

    The counters are plain numbers, since they change with every request and are read rarely. All except those of
    commits belong to the event loop's thread.
    """

    def __init__(
        self,
        models: Callable[[], Sequence[Model]],
        writer: Writer,
        sizes: Callable[[], Mapping[str, int]] = dict,
        clock: Clock = time.time,
        offset: Clock = float,
    ) -> None:
        self._models, self._writer, self._sizes, self._clock, self._offset = models, writer, sizes, clock, offset
        self._decisions: dict[tuple[str, ...], int] = defaultdict(int)  # by model and action
        self._feedback: dict[tuple[str, ...], int] = defaultdict(int)  # by model and status
        self._requests: dict[tuple[str, ...], int] = defaultdict(int)  # by code
        self._delays: dict[tuple[str, ...], _Histogram] = defaultdict(lambda: _Histogram(_DELAYS))  # by model
        self._drawn: dict[tuple[str, ...], _Histogram] = defaultdict(lambda: _Histogram(_PROBABILITIES))  # by model
        self._commits, self._operations = _Histogram(_COMMITS), _Histogram(_SIZES)
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def committed(self, commit: Committed) -> None:
        self._commits.observe(commit.seconds)
        self._operations.observe(commit.operations)

    def answered(self, code: int) -> None:
        self._requests[str(code),] += 1

    def noted(self, model: str, answer: Answer) -> None:
        """Count one answer. A decision found by its idempotency key was counted when it was made."""
        if isinstance(answer, Decided):
            if not answer.repeated:
                self._decisions[model, answer.row.ranking[0]] += 1
                if answer.row.probability is not None:
                    self._drawn[model,].observe(answer.row.probability)
        elif isinstance(answer, Outcome):
            self._feedback[model, answer.status.value] += 1
            made = time_of(answer.id) if answer.status is Status.ACCEPTED else None
            if made is not None:
                self._delays[model,].observe(max(0.0, self._clock() - made))

    def invalid(self, model: str, count: int = 1) -> None:
        """Count events that could not be parsed."""
        self._feedback[model, Status.INVALID.value] += count

    def collect(self) -> Iterable[Metric]:
        yield _counter("belated_decisions", "Decisions made.", ["model", "action"], self._decisions)
        yield _counter("belated_feedback", "Events by status.", ["model", "status"], self._feedback)
        yield _counter("belated_requests", "Requests answered.", ["code"], self._requests)
        delays, drawn = "Time from a decision to its reward.", "Probabilities of the drawn actions."
        yield _histogram("belated_feedback_delay_seconds", delays, ["model"], self._delays)
        yield _histogram("belated_decision_probability", drawn, ["model"], self._drawn)
        yield _histogram("belated_commit_seconds", "Time of a commit.", [], {(): self._commits})
        yield _histogram("belated_commit_operations", "Operations in a commit.", [], {(): self._operations})
        yield from self._of_models()
        yield from self._of_writer()
        size = GaugeMetricFamily("belated_store_bytes", "Bytes of the store.", labels=["part"])
        with suppress(StoreError):  # the other metrics matter most when the store does not respond
            for part, count in self._sizes().items():
                size.add_metric([part], count)
        yield size

    def _of_writer(self) -> Iterable[Metric]:
        """Yield the writer's problems and queue."""
        yield _gauge("belated_queue_depth", "Requests waiting for the writer.", self._writer.depth)
        yield _gauge("belated_ready", "1 if decisions can be made and stored.", float(not self._writer.problem))
        clock = "Seconds by which the clock of this machine is ahead of the store's."
        yield _gauge("belated_clock_offset_seconds", clock, self._offset())
        failures = "Failures by kind: clock, posterior, state, store, or another error."
        yield _counter("belated_failures", failures, ["model", "kind"], self._writer.failures)
        text, problems = "1 if the model cannot be served now.", self._writer.problems
        now = GaugeMetricFamily("belated_problem", text, labels=["model"])
        for model in self._models():
            now.add_metric([model.name], float(model.name in problems))
        yield now

    def _of_models(self) -> Iterable[Metric]:
        """Yield the gauges of the models."""
        states = GaugeMetricFamily("belated_state", "Decisions by state.", labels=["model", "state"])
        gauges = {
            name: GaugeMetricFamily(f"belated_{name}", text, labels=["model"])
            for name, text in (
                ("in_flight", "Decisions without a reward whose window is open."),
                ("oldest_in_flight_seconds", "Age of the oldest decision in flight; 0 if there is none."),
                ("model_version", "Number of changes of the posterior."),
                ("parked", "Rewards whose decision is not known yet."),
                ("learner_lag_rows", "Rows of other processes that are not learned yet."),
                ("unsaved_rows", "Rows since the latest snapshot, which a restart replays."),
                ("cholesky_retries", "How often floats could not hold a Cholesky factor."),
                ("residual", "Distance of draws on sparse features from exact ones, in units of the noise."),
                ("log_ahead_seconds", "How far the log is ahead of the clock; seconds are normal, minutes are not."),
                ("states_rebuilt", "How often a state was rebuilt after an error."),
                ("sessions_open", "Sessions that have not ended."),
                ("sessions_unseen", "Sessions that have ended since the latest set of plans."),
                ("plan_age_seconds", "Age of the latest set of plans; 0 if it is up to date."),
            )
        }
        for model in self._models():
            try:
                summary, oldest, lag = model.summary(), model.oldest(), model.lag
            except StoreError:  # counted as a failure
                continue
            for state, count in summary["states"].items():
                states.add_metric([model.name, state], count)
            values = {
                "in_flight": model.in_flight,
                "oldest_in_flight_seconds": 0.0 if oldest is None else max(0.0, self._clock() - oldest.made),
                "model_version": summary["model_version"],
                "parked": summary["parked"],
                "learner_lag_rows": lag,
                "unsaved_rows": model.unsaved,
                "cholesky_retries": model.retries,
                "log_ahead_seconds": max(0.0, summary["latest"] - self._clock()),
                "states_rebuilt": model.rebuilt,
            }
            if "residual" in summary:
                values["residual"] = summary["residual"]
            if "sessions" in summary:
                found = summary["sessions"]
                values |= {"sessions_open": found["open"], "sessions_unseen": found["unseen"]}
                values["plan_age_seconds"] = max(0.0, self._clock() - found["planned"]) if found["behind"] else 0.0
            for name, value in values.items():
                gauges[name].add_metric([model.name], value)
        yield from (states, *gauges.values())

    def text(self) -> bytes:
        return generate_latest(self.registry)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text)
    family.add_metric([], value)
    return family


def _counter(name: str, text: str, labels: Sequence[str], counts: Mapping[tuple[str, ...], int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, count in list(counts.items()):
        family.add_metric(values, count)
    return family


def _histogram(
    name: str, text: str, labels: Sequence[str], found: Mapping[tuple[str, ...], _Histogram]
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(name, text, labels=labels)
    for values, each in list(found.items()):
        each.add_to(family, values)
    return family
