"""The base classes of delay distributions.

A delay is the number of whole episodes that pass before the feedback of an episode arrives: an integer >= 0, or
`NEVER`. Derive from `IndependentDelays` if delays are i.i.d. (write `cdfs`), and from `DelayDistribution` if they
depend on the episode number or on earlier draws (write `draw`). Delays that depend on what happened in the episode
derive from `OutcomeDelays`, in `_outcome.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from belated._util.plugins import spelled
from belated._util.validate import check_generator, indices, integer, real, refuse
from belated.types import Floats, Ints

NEVER = int(np.iinfo(np.int64).max)
"""The delay of feedback that never arrives, or that is too late for a 64-bit integer."""
SHOWN = 8
"""Maximum number of entries of a sequence in a repr."""


@dataclass(frozen=True)
class SubExponential:
    """Parameters with E exp(g (τ - E τ)) <= exp(v² g² / 2) whenever |g| <= 1/b; b = 0 means for every g."""

    v: float
    b: float


@dataclass(frozen=True)
class Described:
    """Base of frozen dataclasses of delays: validation, label and plain values from the fields."""

    def __post_init__(self) -> None:
        for name, value in self.checked().items():
            object.__setattr__(self, name, value)

    def checked(self) -> dict[str, Any]:
        """Return validated values of fields by name, or raise `InvalidInputError`."""
        return {}

    @property
    def label(self) -> str:
        """A short name that is safe in file names: the class and its fields, as in `poisson-50`."""
        return self._label(*(_in_label(getattr(self, field.name)) for field in fields(self)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values from which `delay_from_dict` builds the same distribution."""
        own = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return {"distribution": spelled(type(self), short_name(type(self))), **own}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{f.name}={_short(getattr(self, f.name))}' for f in fields(self))})"

    def _label(self, *parts: int | float | str) -> str:
        shown = (f"{part:g}" if isinstance(part, float) else str(part) for part in parts)
        return "-".join([short_name(type(self)), *shown])


def short_name(kind: type) -> str:
    """Return the name of a built-in class in files: `poisson`, `byaction`."""
    return kind.__name__.removeprefix("Delay").lower()


@dataclass(frozen=True, repr=False)
class DelayDistribution(Described, ABC):
    """Base class of delay distributions.

    Derive from it as a frozen dataclass and write `draw`. Optionally write `checked` to validate the fields, `mean` if
    it is known, and `label` if the default one is too long.
    """

    if TYPE_CHECKING:
        # Declared for type checkers only: a real property would prevent a field called `mean` in `Poisson`.
        @property
        def mean(self) -> float:
            """The exact long-run expected delay; `math.inf` if infinite, `math.nan` if unknown."""

    @property
    def lasts(self) -> int:
        """The number of episodes that have a delay; `NEVER` unless delays are recorded."""
        return NEVER

    @abstractmethod
    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        """Return the delays of episodes `first` to `first + count - 1`, and the new state.

        The same seed must give the same delays however the episodes are split into draws. Episodes are drawn in order,
        each once. `state` is None before episode 0, and afterwards what the previous call returned: everything the
        distribution must remember, as plain values (numbers, strings, lists), since checkpoints store it as JSON.
        Return None if there is nothing to remember. Do not change the distribution itself: many runs may share it.
        """

    def sample(self, rng: np.random.Generator, size: int) -> Ints:
        """Return the delays of episodes 0 to `size - 1`; a longer sample from the same stream extends a shorter one."""
        check_generator("rng", rng)
        return self.draw(rng, integer("size", size, at_least=0), 0, None)[0]

    def subexponential(self) -> SubExponential | None:
        """Return valid sub-exponential parameters; None if there are none or draws are not i.i.d."""
        return None


@dataclass(frozen=True, repr=False)
class IndependentDelays(DelayDistribution):
    """Base class of distributions whose delays are i.i.d., with a known cumulative distribution function.

    Derive from it as a frozen dataclass and write `cdfs` and `mean`; add `support` if delays are bounded. Delays are
    drawn by inversion, from one uniform number each. So two distributions with the same stream are coupled: if one is
    stochastically larger, each of its delays is at least as long.
    """

    @property
    def support(self) -> tuple[int, int]:
        """The minimum and maximum delay with positive probability; `NEVER` if there is no maximum."""
        return 0, NEVER

    @abstractmethod
    def cdfs(self, n: Ints) -> Floats:
        """Return P(τ <= n) for each n of an array of integers >= 0."""

    def quantiles(self, q: Floats) -> Ints:
        """Return the smallest n with P(τ <= n) >= q for each q of an array; found by bisection in `cdfs`."""
        minimum, maximum = self.support
        bound, top = minimum, q.max(initial=0.0)
        while bound < maximum and self.cdfs(np.array([bound]))[0] < top:
            bound = min(2 * bound + 1, maximum)
        low, high = np.full(q.shape, minimum), np.full(q.shape, bound)
        while (low < high).any():
            middle = low + (high - low) // 2
            enough = (self.cdfs(middle) >= q) | (low == high)
            low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
        # An unbounded distribution's cdf rounds to one at some n, but is never one.
        return np.where(q < 1.0, low, maximum)

    def cdf(self, n: int) -> float:
        """Return P(τ <= n), the probability that feedback arrives within n episodes."""
        n = integer("n", n)
        return float(self.cdfs(np.array([min(n, NEVER - 1)]))[0]) if n >= 0 else 0.0

    def quantile(self, q: float) -> int:
        """Return the smallest n with P(τ <= n) >= q, for 0 < q <= 1; `NEVER` if there is none."""
        return int(self.quantiles(np.array([real("q", q, above=0.0, at_most=1.0)]))[0])

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        return self.quantiles(levels(rng.random(count))), None

    def subexponential(self) -> SubExponential | None:
        """Return valid sub-exponential parameters, None if there are none.

        For a bounded distribution v is half its range, for every g (Hoeffding's lemma).
        """
        minimum, maximum = self.support
        return None if maximum == NEVER else SubExponential(v=(maximum - minimum) / 2, b=0.0)


def levels(uniform: Floats) -> Floats:
    """Return uniform draws as quantile levels: 0, which is not a level, becomes half the spacing of the draws."""
    return np.maximum(uniform, 2.0**-54)


def any_delay(name: str, value: Any) -> DelayDistribution:
    """Return `value`; raise InvalidInputError unless it is a delay distribution."""
    if not isinstance(value, DelayDistribution):
        raise refuse(name, value, "a delay distribution")
    return value


def independent(name: str, value: Any) -> IndependentDelays:
    """Return `value`; raise InvalidInputError unless its delays are i.i.d."""
    if not isinstance(any_delay(name, value), IndependentDelays):
        raise refuse(name, value, "a distribution of independent draws (Empirical makes one of a fixed sequence)")
    return value  # type: ignore[no-any-return]


def independents(name: str, value: Any, expected: str) -> tuple[IndependentDelays, ...]:
    """Return `value` as a tuple of i.i.d. delay distributions, at least one."""
    if not isinstance(value, list | tuple) or not value:
        raise refuse(name, value, f"a list of delay distributions, {expected}")
    return tuple(independent(f"{name}[{i}]", each) for i, each in enumerate(value))


def integer_delays(name: str, value: Any, *, maximum: int = NEVER - 1) -> tuple[int, ...]:
    """Return `value` as a tuple of delays in 0..maximum, at least one."""
    delays = indices(name, value, (None,), maximum + 1)
    if not delays.size:
        raise refuse(name, value, "a list with at least one delay")
    return tuple(delays.tolist())


def _short(value: Any) -> str:
    if not isinstance(value, tuple) or len(value) <= SHOWN:
        return repr(value)
    return f"({', '.join(repr(each) for each in value[:SHOWN])}, ... {len(value) - SHOWN:,} more)"


def _plain(value: Any) -> Any:
    if isinstance(value, DelayDistribution):
        return value.to_dict()
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value


def _in_label(value: Any) -> int | float | str:
    """Return a distribution's label, and the length of a sequence."""
    if isinstance(value, DelayDistribution):
        return value.label
    return len(value) if isinstance(value, tuple) else value
