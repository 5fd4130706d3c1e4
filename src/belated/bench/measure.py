"""One figure with its spread, and the stopwatch it comes from."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from belated.validate import refuse

_SIGNS: dict[str, Callable[[float, float], bool]] = {
    "≥": operator.ge,
    "≤": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True)
class Measure:
    """What was measured in each repeat, and what the median should be."""

    name: str
    values: tuple[float, ...]
    """One value a repeat; none if it could not be measured, and then `note` says why."""
    unit: str = "×"
    target: str = ""
    """Such as "≥ 50"; empty: none."""
    note: str = ""
    group: str = ""
    less_is_better: bool = False
    """Whether the value should be small, as a target with ≤ or < says by itself."""

    def __post_init__(self) -> None:
        """Refuse a target that cannot be judged."""
        object.__setattr__(self, "values", tuple(float(value) for value in self.values))
        if self.target:
            object.__setattr__(self, "less_is_better", limit(self.target)[0] in "≤<")

    @property
    def median(self) -> float | None:
        """The middle one of the repeats."""
        return float(np.median(self.values)) if self.values else None

    @property
    def low(self) -> float | None:
        """The least of the repeats."""
        return min(self.values, default=None)

    @property
    def high(self) -> float | None:
        """The greatest of the repeats."""
        return max(self.values, default=None)

    @property
    def met(self) -> bool | None:
        """Whether the median is what it should be; None without a target or without a value."""
        if not self.target or self.median is None:
            return None
        sign, bound = limit(self.target)
        return _SIGNS[sign](self.median, bound)

    def to_dict(self) -> dict[str, Any]:
        """Return the figure as plain values."""
        return {
            "group": self.group,
            "name": self.name,
            "median": self.median,
            "low": self.low,
            "high": self.high,
            "unit": self.unit,
            "repeats": len(self.values),
            "target": self.target or None,
            "met": self.met,
            "note": self.note,
        }


def limit(target: str) -> tuple[str, float]:
    """Return the sign and the number of a target.

    >>> limit("≥ 50")
    ('≥', 50.0)
    """
    sign, _, number = target.partition(" ")
    try:
        if sign in _SIGNS:
            return sign, float(number)
    except ValueError:
        pass
    raise refuse("target", target, "a sign and a number, such as '≥ 50' or '< 2'")


def unmeasured(name: str, reason: str, *, target: str = "") -> Measure:
    """Return the entry of something that should have been measured and was not."""
    return Measure(name, (), target=target, note=f"not measured: {reason}")


def seconds(work: Callable[[], object]) -> float:
    """Return how long `work` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def stopwatch(work: Callable[[int], object], least_seconds: float) -> Callable[[], float]:
    """Return a function that gives seconds per unit of `work(count)`, timed over a count that lasts long enough.

    The first calls, here, compile, touch the memory and find the count.
    """

    def once(count: int) -> float:
        began = time.perf_counter()
        work(count)
        return time.perf_counter() - began

    once(1)
    count = 1
    while (elapsed := once(count)) < least_seconds:
        count = max(count + 1, int(count * min(10.0, 1.2 * least_seconds / max(elapsed, 1e-9))))
    return lambda: once(count) / count


def interleaved(repeats: int, *contestants: Callable[[], float]) -> list[list[float]]:
    """Ask every contestant for its seconds, `repeats` times; return one list for each contestant.

    They take turns, in reversed order every other time, so that whatever else the machine does hits all of them.
    """
    rounds: list[list[float]] = []
    for repeat in range(repeats):
        order = range(len(contestants)) if repeat % 2 == 0 else reversed(range(len(contestants)))
        found = {i: contestants[i]() for i in order}
        rounds.append([found[i] for i in range(len(contestants))])
    return [list(column) for column in zip(*rounds, strict=True)]


def ratios(slow: Sequence[float], fast: Sequence[float]) -> tuple[float, ...]:
    """Return how many times longer the first took, repeat by repeat."""
    return tuple(a / b for a, b in zip(slow, fast, strict=True))


def duration(value: float) -> str:
    """Return seconds in a unit that suits them.

    >>> duration(0.0000296), duration(0.25), duration(12.0)
    ('29.6 µs', '250 ms', '12 s')
    """
    for unit, factor in (("µs", 1e6), ("ms", 1e3)):
        if value * factor < 1000:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.3g} s"
