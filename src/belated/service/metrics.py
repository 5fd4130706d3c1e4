"""Figures for Prometheus."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from belated.decisions import Choice, Model, Outcome, Status
from belated.decisions.ids import time_of
from belated.decisions.values import RepeatedChoice
from belated.service.writer import Committed

_DELAYS = (1, 10, 60, 600, 3600, 6 * 3600, 86400, 3 * 86400, 7 * 86400, 30 * 86400)
_COMMITS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0)


class _Histogram:
    """Counts of values between bounds: each is the largest of its own."""

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
    """Counts what happens; what can be read off the models is read when it is asked for.

    The counts are plain numbers, since they change with every request and are read once in a while. All but those of
    commits are of the event loop's thread.
    """

    def __init__(self, models: Callable[[], Sequence[Model]], depth: Callable[[], int]) -> None:
        self._models, self._depth = models, depth
        self._decisions: dict[tuple[str, ...], int] = defaultdict(int)  # by model and action
        self._feedback: dict[tuple[str, ...], int] = defaultdict(int)  # by model and status
        self._requests: dict[int, int] = defaultdict(int)  # by code
        self._delays: dict[str, _Histogram] = defaultdict(lambda: _Histogram(_DELAYS))  # by model
        self._commits, self._operations = _Histogram(_COMMITS), 0
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def committed(self, commit: Committed) -> None:
        """Note one commit."""
        self._commits.observe(commit.seconds)
        self._operations += commit.operations

    def answered(self, code: int) -> None:
        """Note one answer."""
        self._requests[code] += 1

    def noted(self, model: str, result: Choice | Outcome | object) -> None:
        """Note one result. A decision that a repeated key found again was noted when it was made."""
        if isinstance(result, Choice):
            if not isinstance(result, RepeatedChoice):
                self._decisions[model, result.action] += 1
        elif isinstance(result, Outcome):
            self._feedback[model, result.status.value] += 1
            made = time_of(result.id) if result.status is Status.ACCEPTED else None
            if made is not None:
                self._delays[model].observe(max(0.0, time.time() - made))

    def invalid(self, model: str, count: int = 1) -> None:
        """Note events that could not be read."""
        self._feedback[model, Status.INVALID.value] += count

    def collect(self) -> Iterable[Metric]:
        """Yield all figures."""
        yield _counter("belated_decisions", "Decisions made.", ["model", "action"], self._decisions)
        yield _counter("belated_feedback", "Events, by what became of them.", ["model", "status"], self._feedback)
        yield _counter("belated_requests", "Requests answered.", ["code"], _by_code(self._requests))
        yield _counter("belated_commit_operations", "Operations in commits.", [], {(): self._operations})
        delays = HistogramMetricFamily(
            "belated_feedback_delay_seconds", "From a decision to its reward.", labels=["model"]
        )
        for name, each in list(self._delays.items()):
            each.add_to(delays, [name])
        commits = HistogramMetricFamily("belated_commit_seconds", "Time of a commit.")
        self._commits.add_to(commits, [])
        yield from (delays, commits)
        yield from self._of_models()

    def _of_models(self) -> Iterable[Metric]:
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


def _counter(name: str, text: str, labels: Sequence[str], counts: Mapping[tuple[str, ...], int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, count in list(counts.items()):
        family.add_metric(values, count)
    return family


def _by_code(counts: Mapping[int, int]) -> dict[tuple[str, ...], int]:
    return {(str(code),): count for code, count in list(counts.items())}
