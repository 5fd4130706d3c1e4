"""Figures for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from belated.decisions import Choice, Model, Outcome, Status
from belated.decisions.ids import time_of
from belated.service.writer import Committed

_DELAYS = (1, 10, 60, 600, 3600, 6 * 3600, 86400, 3 * 86400, 7 * 86400, 30 * 86400)
_COMMITS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0)


class Metrics:
    """Counts what happens; what can be read off the models is read when it is asked for."""

    def __init__(self, models: Callable[[], Sequence[Model]], depth: Callable[[], int]) -> None:
        self._models, self._depth = models, depth
        self.registry = CollectorRegistry()
        known = self.registry
        self._decisions = Counter("belated_decisions_total", "Decisions made.", ["model", "action"], registry=known)
        self._feedback = Counter(
            "belated_feedback_total", "Events, by what became of them.", ["model", "status"], registry=known
        )
        self._delay = Histogram(
            "belated_feedback_delay_seconds",
            "From a decision to its reward.",
            ["model"],
            buckets=_DELAYS,
            registry=known,
        )
        self._commit = Histogram("belated_commit_seconds", "Time of a commit.", buckets=_COMMITS, registry=known)
        self._rows = Counter("belated_commit_operations_total", "Operations in commits.", registry=known)
        self._requests = Counter("belated_requests_total", "Requests answered.", ["code"], registry=known)
        self.registry.register(self)

    def committed(self, commit: Committed) -> None:
        """Note one commit."""
        self._commit.observe(commit.seconds)
        self._rows.inc(commit.operations)

    def answered(self, code: int) -> None:
        """Note one answer."""
        self._requests.labels(code).inc()

    def noted(self, model: str, result: Choice | Outcome | object) -> None:
        """Note one result."""
        if isinstance(result, Choice):
            self._decisions.labels(model, result.action).inc()
        elif isinstance(result, Outcome):
            self._feedback.labels(model, result.status.value).inc()
            made = time_of(result.id) if result.status is Status.ACCEPTED else None
            if made is not None:
                self._delay.labels(model).observe(max(0.0, time.time() - made))

    def invalid(self, model: str, count: int = 1) -> None:
        """Note events that could not be read."""
        self._feedback.labels(model, Status.INVALID.value).inc(count)

    def collect(self) -> Iterable[Metric]:
        """Yield what the models say of themselves now."""
        flight = GaugeMetricFamily("belated_in_flight", "Decisions without reward, window open.", labels=["model"])
        version = GaugeMetricFamily("belated_model_version", "Changes of the posterior.", labels=["model"])
        parked = GaugeMetricFamily("belated_parked", "Rewards whose decision is not known yet.", labels=["model"])
        for model in self._models():
            summary = model.summary()
            flight.add_metric([model.name], model.in_flight)
            version.add_metric([model.name], summary["model_version"])
            parked.add_metric([model.name], summary["parked"])
        yield from (flight, version, parked)
        depth = GaugeMetricFamily("belated_queue_depth", "Requests waiting for the writer.")
        depth.add_metric([], self._depth())
        yield depth

    def text(self) -> bytes:
        """Return all figures as Prometheus reads them."""
        return generate_latest(self.registry)
