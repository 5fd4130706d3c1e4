"""What a delay distribution is: how many whole episodes pass before the feedback of an episode arrives.

A delay is an integer >= 0, or `NEVER`. A distribution is asked for the delays of the next episodes by `draw`, and the same
seed gives the same delays however the episodes are cut into draws. There are two kinds of distributions to derive from:

* an `IndependentDelays` is a distribution, from which every delay is drawn alike: write `cdfs`, and `draw` follows;
* a `DelayDistribution` may look at the number of the episode and at what was drawn before: write `draw`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from belated._util.plugins import spelled
from belated._util.validate import check_generator, indices, integer, real, refuse
from belated.types import Floats, Ints

SHOWN = 8
"""Entries of a sequence that the text of a distribution shows."""
NEVER = int(np.iinfo(np.int64).max)
"""The delay of feedback that never arrives, or that is too late for a 64-bit integer to tell."""


@dataclass(frozen=True)
class SubExponential:
    """Parameters with E exp(g (τ - E τ)) <= exp(v² g² / 2) whenever |g| <= 1/b; b = 0 means for every g."""

    v: float
    b: float


#: What a distribution defines, by the names of earlier versions.
_RENAMED = {"sample": "draw", "_cdf": "cdfs", "_quantile": "quantiles", "_bounds": "support", "_checked": "checked"}


@dataclass(frozen=True)
class DelayDistribution(ABC):
    """What every distribution can do: draw the delays of episode after episode, and state its `mean`.

    Derive from it as a frozen dataclass and write `draw`. Give it `checked` to refuse bad fields, a `mean` if it is
    known, and a `label` if the one made of its fields is too long.
    """

    if TYPE_CHECKING:
        # Only declared: a property that existed at run time would forbid `Poisson` a field called `mean`.
        @property
        def mean(self) -> float:
            """The exact expected delay in the long run, `math.inf` where there is none, `math.nan` if not known."""

    def __init_subclass__(cls) -> None:
        """Refuse a class whose delays would silently be others: what it defines is asked for by another name."""
        super().__init_subclass__()
        for old, new in _RENAMED.items():
            if old in vars(cls):
                raise TypeError(f"the delay distribution {cls.__name__} must define {new} rather than {old}")

    def __post_init__(self) -> None:
        """Keep the fields as they are once checked."""
        for name, value in self.checked().items():
            object.__setattr__(self, name, value)

    def checked(self) -> dict[str, Any]:
        """Return the clean value of fields by name, or raise `InvalidInputError`."""
        return {}

    @property
    def label(self) -> str:
        """A short name that is safe in file names: that of the distribution and its fields, as in `poisson-50`."""
        return self._label(*(_in_label(getattr(self, field.name)) for field in fields(self)))

    @property
    def lasts(self) -> int:
        """For how many episodes there are delays: those of a record, say; `NEVER` if there is no end."""
        return NEVER

    @abstractmethod
    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        """Return the delays of the episodes `first` to `first + count - 1`, and the state after them.

        Episodes are asked for in their order, each once. `state` is None before episode 0, and then what the last call
        returned: all that the distribution must remember, in plain values (numbers, texts, lists), since a checkpoint keeps it
        as JSON. A distribution that need not remember anything returns None. The distribution itself must not change: it may serve many
        runs at once.
        """

    def sample(self, rng: np.random.Generator, size: int) -> Ints:
        """Return the delays of episodes 0 to `size - 1`; a longer sample from the same stream only adds to it."""
        check_generator("rng", rng)
        return self.draw(rng, integer("size", size, at_least=0), 0, None)[0]

    def subexponential(self) -> SubExponential | None:
        """Return valid sub-exponential parameters; None for a distribution that has none, or whose draws are not independent."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values from which `delay_from_dict` builds the same distribution."""
        own = {f.metadata.get("key", f.name): _plain(getattr(self, f.name)) for f in fields(self)}
        return {"distribution": spelled(type(self), type(self).__name__.lower()), **own}

    def __repr__(self) -> str:
        """Show the fields; of a long sequence, its first entries and how many more there are."""
        return f"{type(self).__name__}({', '.join(f'{f.name}={_short(getattr(self, f.name))}' for f in fields(self))})"

    def _label(self, *parts: int | float | str) -> str:
        shown = (f"{part:g}" if isinstance(part, float) else str(part) for part in parts)
        return "-".join([type(self).__name__.lower(), *shown])


@dataclass(frozen=True)
class IndependentDelays(DelayDistribution):
    """A distribution that draws each delay alike, independently of all others, and states its distribution exactly.

    Derive from it as a frozen dataclass and write `cdfs` and a `mean`; add `support` if there is a greatest delay.
    Draws are made by inversion, one uniform number per delay. So two distributions that are fed the same stream are coupled: if
    one is stochastically longer, each of its delays is at least as long.
    """

    @property
    def support(self) -> tuple[int, int]:
        """The least and the greatest delay of positive probability, `NEVER` if there is no greatest."""
        return 0, NEVER

    @abstractmethod
    def cdfs(self, n: Ints) -> Floats:
        """Return P(τ <= n) for each n of an array of integers >= 0."""

    def quantiles(self, q: Floats) -> Ints:
        """Return the smallest n with P(τ <= n) >= q for each q of an array; found by bisection in `cdfs`."""
        least, greatest = self.support
        highest, top = least, q.max(initial=0.0)
        while highest < greatest and self.cdfs(np.array([highest]))[0] < top:
            highest = min(2 * highest + 1, greatest)
        low, high = np.full(q.shape, least), np.full(q.shape, highest)
        while (low < high).any():
            middle = low + (high - low) // 2
            enough = (self.cdfs(middle) >= q) | (low == high)
            low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
        # An unbounded distribution's cdf rounds to one at some n, but is never one.
        return np.where(q < 1.0, low, greatest)

    def cdf(self, n: int) -> float:
        """Return P(τ <= n), the probability that feedback arrives within n episodes."""
        n = integer("n", n)
        return float(self.cdfs(np.array([min(n, NEVER - 1)]))[0]) if n >= 0 else 0.0

    def quantile(self, q: float) -> int:
        """Return the smallest n with P(τ <= n) >= q, for 0 < q <= 1; `NEVER` where there is none."""
        return int(self.quantiles(np.array([real("q", q, above=0.0, at_most=1.0)]))[0])

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        """Return the next `count` delays, from one uniform number each; there is nothing to remember."""
        return self.quantiles(levels(rng.random(count))), None

    def subexponential(self) -> SubExponential | None:
        """Return valid sub-exponential parameters, None if the distribution has none.

        A bounded distribution has half its range for every g (Hoeffding's lemma).
        """
        least, greatest = self.support
        return None if greatest == NEVER else SubExponential(v=(greatest - least) / 2, b=0.0)


def levels(uniform: Floats) -> Floats:
    """Return uniform numbers as levels of quantiles: zero can be drawn but is none; half their spacing replaces it."""
    return np.maximum(uniform, 2.0**-54)


def independent(name: str, value: Any) -> IndependentDelays:
    """Return `value` if it is a distribution of independent draws, which a distribution can be composed of."""
    if not isinstance(value, DelayDistribution):
        raise refuse(name, value, "a delay distribution")
    if not isinstance(value, IndependentDelays):
        raise refuse(name, value, "a distribution of independent draws (Empirical makes one of a fixed sequence)")
    return value


def _short(value: Any) -> str:
    if not isinstance(value, tuple) or len(value) <= SHOWN:
        return repr(value)
    return f"({', '.join(repr(each) for each in value[:SHOWN])}, ... {len(value) - SHOWN:,} more)"


def _plain(value: Any) -> Any:
    if isinstance(value, DelayDistribution):
        return value.to_dict()
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value


def _in_label(value: Any) -> int | float | str:
    """Return how a field stands in a label: a distribution by its own, a sequence by its length."""
    if isinstance(value, DelayDistribution):
        return value.label
    return len(value) if isinstance(value, tuple) else value


def whole_delays(name: str, value: Any, *, greatest: int = NEVER - 1) -> tuple[int, ...]:
    """Return at least one whole delay in 0..greatest as a tuple."""
    delays = indices(name, value, (None,), greatest + 1)
    if not delays.size:
        raise refuse(name, value, "delays, at least one")
    return tuple(delays.tolist())
