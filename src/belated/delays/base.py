"""What a delay law is: how many whole episodes pass before the feedback of an episode arrives.

A delay is a whole number >= 0, or `NEVER`. Draws are made by inversion, one uniform number per delay:

* the first n of `sample(rng, m)` are `sample(rng, n)` from the same stream, for every law;
* two laws fed the same stream are coupled: if one is stochastically longer, each of its delays is at least
  as long.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from belated.named import spelled
from belated.types import Floats, Ints
from belated.validate import check_generator, indices, integer, real, refuse

SHOWN = 8
"""Entries of a sequence that the text of a law shows."""
NEVER = int(np.iinfo(np.int64).max)
"""The delay of feedback that never arrives, or that is too late for a 64-bit integer to tell."""


@dataclass(frozen=True)
class SubExponential:
    """Parameters with E exp(g (τ - E τ)) <= exp(v² g² / 2) whenever |g| <= 1/b; b = 0 means for every g."""

    v: float
    b: float


@dataclass(frozen=True)
class DelayLaw(ABC):
    """What every law can do: draw delays, and state its `mean`, `cdf`, `quantile` and tail exactly."""

    if TYPE_CHECKING:
        # Only declared: a property that existed at run time would forbid `Poisson` a field called `mean`.
        @property
        def mean(self) -> float:
            """The exact expected delay, `math.inf` where there is none."""

    def __post_init__(self) -> None:
        """Keep the fields as they are once checked."""
        for name, value in self._checked().items():
            object.__setattr__(self, name, value)

    @abstractmethod
    def _checked(self) -> dict[str, Any]:
        """Return the clean value of each field, or raise `InvalidInputError`."""

    @property
    @abstractmethod
    def label(self) -> str:
        """A short name that is safe in file names."""

    @property
    def _bounds(self) -> tuple[int, int]:
        """The least and the greatest delay of positive probability, `NEVER` if there is no greatest."""
        return 0, NEVER

    @abstractmethod
    def _cdf(self, n: Ints) -> Floats:
        """P(τ <= n) for each n >= 0."""

    def cdf(self, n: int) -> float:
        """Return P(τ <= n), the probability that feedback arrives within n episodes."""
        n = integer("n", n)
        return float(self._cdf(np.array([min(n, NEVER - 1)]))[0]) if n >= 0 else 0.0

    def quantile(self, q: float) -> int:
        """Return the smallest n with P(τ <= n) >= q, for 0 < q <= 1; `NEVER` where there is none."""
        return int(self._quantile(np.array([real("q", q, above=0.0, at_most=1.0)]))[0])

    def _quantile(self, q: Floats) -> Ints:
        least, greatest = self._bounds
        highest, top = least, q.max(initial=0.0)
        while highest < greatest and self._cdf(np.array([highest]))[0] < top:
            highest = min(2 * highest + 1, greatest)
        low, high = np.full(q.shape, least), np.full(q.shape, highest)
        while (low < high).any():
            middle = low + (high - low) // 2
            enough = (self._cdf(middle) >= q) | (low == high)
            low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
        # An unbounded law's cdf rounds to one at some n, but is never one.
        return np.where(q < 1.0, low, greatest)

    def sample(self, rng: np.random.Generator, size: int) -> Ints:
        """Return `size` delays, one uniform number of `rng` each, so that a longer sample only adds to it."""
        check_generator("rng", rng)
        uniform = rng.random(integer("size", size, at_least=0))
        # Zero can be drawn but is no level; half the spacing of the draws stands in for it.
        return self._quantile(np.maximum(uniform, 2.0**-54))

    def subexponential(self) -> SubExponential | None:
        """Return valid sub-exponential parameters, None if the law has none.

        A bounded law has half its range for every g (Hoeffding's lemma).
        """
        least, greatest = self._bounds
        return None if greatest == NEVER else SubExponential(v=(greatest - least) / 2, b=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values from which `law_from_dict` builds the same law."""
        own = {f.metadata.get("key", f.name): _plain(getattr(self, f.name)) for f in fields(self)}
        return {"law": spelled(type(self), type(self).__name__.lower()), **own}

    def __repr__(self) -> str:
        """Show the fields; of a long sequence, its first entries and how many more there are."""
        return f"{type(self).__name__}({', '.join(f'{f.name}={_short(getattr(self, f.name))}' for f in fields(self))})"

    def _label(self, *parts: int | float | str) -> str:
        shown = (f"{part:g}" if isinstance(part, float) else str(part) for part in parts)
        return "-".join([type(self).__name__.lower(), *shown])


def _short(value: Any) -> str:
    if not isinstance(value, tuple) or len(value) <= SHOWN:
        return repr(value)
    return f"({', '.join(repr(each) for each in value[:SHOWN])}, ... {len(value) - SHOWN:,} more)"


def _plain(value: Any) -> Any:
    if isinstance(value, DelayLaw):
        return value.to_dict()
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value


def whole_delays(name: str, value: Any, *, greatest: int = NEVER - 1) -> tuple[int, ...]:
    """Return at least one whole delay in 0..greatest as a tuple."""
    delays = indices(name, value, (None,), greatest + 1)
    if not delays.size:
        raise refuse(name, value, "delays, at least one")
    return tuple(delays.tolist())
