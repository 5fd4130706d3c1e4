"""One figure with its spread and its target."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from belated_studies.timing import Spread, spread

_SIGNS: dict[str, Callable[[float, float], bool]] = {"≥": operator.ge, "≤": operator.le, "<": operator.lt}


@dataclass(frozen=True)
class Target:
    """What a median should be.

    >>> str(at_least(50)), at_least(50).met(49.0), below(2).less_is_better
    ('≥ 50', False, True)
    """

    sign: str
    bound: float

    def met(self, value: float) -> bool:
        """Say whether `value` is what it should be."""
        return _SIGNS[self.sign](value, self.bound)

    @property
    def less_is_better(self) -> bool:
        """Whether values should be small."""
        return self.sign != "≥"

    def __str__(self) -> str:
        return f"{self.sign} {self.bound:g}"


def at_least(bound: float) -> Target:
    """Return the target of a value that should be large."""
    return Target("≥", bound)


def at_most(bound: float) -> Target:
    """Return the target of a value that should be small."""
    return Target("≤", bound)


def below(bound: float) -> Target:
    """Return the target of a value that should be smaller than `bound`."""
    return Target("<", bound)


@dataclass(frozen=True)
class Measure:
    """What was measured in each repeat, and what the median should be."""

    name: str
    values: tuple[float, ...]
    """One value a repeat; none if it could not be measured, and then `note` says why."""
    unit: str = "×"
    target: Target | None = None
    note: str = ""
    group: str = ""
    less_is_better: bool = False
    """Whether the value should be small; a target says so by itself."""

    def __post_init__(self) -> None:
        """Take over what the target says."""
        if self.target is not None:
            object.__setattr__(self, "less_is_better", self.target.less_is_better)

    @property
    def spread(self) -> Spread | None:
        """Median, least and most of the repeats; None if there are none."""
        return spread(self.values) if self.values else None

    @property
    def met(self) -> bool | None:
        """Whether the median is what it should be; None without a target or without a value."""
        if self.target is None or self.spread is None:
            return None
        return self.target.met(self.spread.median)

    def to_dict(self) -> dict[str, Any]:
        """Return the figure as plain values."""
        median, low, high = self.spread or (None, None, None)
        return {
            "group": self.group,
            "name": self.name,
            "median": median,
            "low": low,
            "high": high,
            "unit": self.unit,
            "repeats": len(self.values),
            "target": None if self.target is None else str(self.target),
            "met": self.met,
            "note": self.note,
        }


def unmeasured(name: str, reason: str, *, target: Target | None = None) -> Measure:
    """Return the entry of something that should have been measured and was not."""
    return Measure(name, (), target=target, note=f"not measured: {reason}")


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


def median_duration(readings: Sequence[float]) -> str:
    """Return the median of some seconds in a unit that suits it."""
    return duration(spread(readings).median)
