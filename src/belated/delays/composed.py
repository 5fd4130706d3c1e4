"""Delay laws made of observations or of other laws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from belated.delays.base import NEVER, DelayLaw, IndependentLaw, SubExponential, independent, whole_delays
from belated.delays.laws import FiniteLaw
from belated.delays.recorded import delays_between, read_delays, read_times
from belated.types import Floats, Ints
from belated.validate import probabilities, real, refuse


@dataclass(frozen=True)
class Empirical(FiniteLaw):
    """Delays drawn again from those observed, each equally likely.

    >>> law = Empirical([3, 0, 7, 3])
    >>> law.mean, law.quantile(0.5), law.label
    (3.25, 3, 'empirical-4')
    """

    observed: Sequence[int] | Ints

    __repr__ = DelayLaw.__repr__  # a dataclass would show every entry

    def checked(self) -> dict[str, Any]:
        """Return the clean fields."""
        return {"observed": whole_delays("observed", self.observed)}

    @classmethod
    def from_file(cls, path: str | Path, column: str) -> Empirical:
        """Return the law of the delays in one column of a CSV or Parquet file."""
        return cls(read_delays(Path(path), column))

    def _weighted(self) -> tuple[Ints, Floats]:
        return _counted(self.observed)


def _counted(delays: Sequence[int] | Ints) -> tuple[Ints, Floats]:
    values, counts = np.unique(np.array(delays), return_counts=True)
    return values, counts.astype(np.float64)


@dataclass(frozen=True)
class Fixed(DelayLaw):
    """A recorded or adversarial sequence: the i-th episode gets the i-th delay, whatever the stream.

    `NEVER` may occur in it. It must be as long as the run.

    >>> Fixed([5, 0, 2]).sample(np.random.default_rng(0), 2).tolist()
    [5, 0]

    Not random, so it has no sub-exponential parameters.
    """

    delays: Sequence[int] | Ints

    __repr__ = DelayLaw.__repr__  # a dataclass would show every entry

    def checked(self) -> dict[str, Any]:
        """Return the clean fields."""
        return {"delays": whole_delays("delays", self.delays, greatest=NEVER)}

    @classmethod
    def from_times(cls, sent: Any, arrived: Any) -> Fixed:
        """Return the delays of episodes whose feedback was sent and arrived at these times.

        Times are numbers, or dates and times of Python or NumPy; nan, NaT or None is feedback that never arrived. An
        episode sees what has arrived when it is sent. Those that were sent first come first.

        >>> Fixed.from_times(sent=[0, 10, 20, 30], arrived=[12, 11, 35, None]).delays[:3]
        (1, 0, 1)
        """
        return cls(delays_between(sent, arrived))

    @classmethod
    def from_file(cls, path: str | Path, *, sent: str, arrived: str) -> Fixed:
        """Return `from_times` of two columns of a CSV or Parquet file; an empty cell is what never arrived."""
        return cls.from_times(*read_times(Path(path), sent, arrived))

    @property
    def lasts(self) -> int:
        """How many delays there are."""
        return len(self.delays)

    @property
    def mean(self) -> float:
        """The average delay, infinite if one of them never arrives."""
        return math.inf if NEVER in self.delays else float(np.mean(np.array(self.delays)))

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        """Return the delays of these episodes; `rng` is left untouched."""
        if first + count > len(self.delays):
            raise refuse("size", first + count, f"at most {len(self.delays)}, the number of fixed delays")
        return np.array(self.delays[first : first + count], dtype=np.int64), None


@dataclass(frozen=True)
class Mixture(IndependentLaw):
    """Each delay comes from `laws[i]` with probability `weights[i]`.

    >>> law = Mixture(laws=[Empirical([0]), Empirical([10, 20])], weights=[0.5, 0.5])
    >>> law.mean, law.quantile(0.75), law.label
    (7.5, 10, 'mixture-0.5-empirical-1-0.5-empirical-2')
    """

    laws: Sequence[IndependentLaw]
    weights: Sequence[float]

    __repr__ = DelayLaw.__repr__  # a dataclass would show every entry

    def checked(self) -> dict[str, Any]:
        """Return the clean fields."""
        if not isinstance(self.laws, list | tuple) or not self.laws:
            raise refuse("laws", self.laws, "a list of delay laws, at least one")
        laws = tuple(independent(f"laws[{i}]", law) for i, law in enumerate(self.laws))
        weights = probabilities("weights", self.weights, (len(laws),))
        return {"laws": laws, "weights": tuple(weights.tolist())}

    @property
    def _parts(self) -> list[tuple[float, IndependentLaw]]:
        total = math.fsum(self.weights)
        return [(weight / total, law) for weight, law in zip(self.weights, self.laws, strict=True) if weight]

    @property
    def mean(self) -> float:
        """The weighted average of the means."""
        return sum(weight * law.mean for weight, law in self._parts)

    @property
    def label(self) -> str:
        """`mixture-0.5-constant-0-0.5-poisson-50`: each weight and law."""
        return self._label(
            *(part for pair in zip(self.weights, self.laws, strict=True) for part in (pair[0], pair[1].label))
        )

    @property
    def support(self) -> tuple[int, int]:
        """The least and the greatest delay of positive probability."""
        least, greatest = zip(*(law.support for _, law in self._parts), strict=True)
        return min(least), max(greatest)

    def cdfs(self, n: Ints) -> Floats:
        """Return P(τ <= n) for each n."""
        below: Floats = np.sum([weight * law.cdfs(n) for weight, law in self._parts], axis=0)
        return below

    def subexponential(self) -> SubExponential | None:
        """The greatest v² and b of the parts, with a quarter of the squared range of their means added to v².

        Given the part i, E exp(g (τ - E τ)) <= exp(v_i² g² / 2) exp(g (m_i - E τ)) with m_i its mean, and m_i
        is a bounded variable of mean E τ, so Hoeffding's lemma bounds the average of the second factor. For
        bounded mixtures half the whole range is used if it is less. None as soon as one part has none.
        """
        tails = [law.subexponential() for _, law in self._parts]
        known = [tail for tail in tails if tail is not None]
        if len(known) < len(tails):
            return None
        means = [law.mean for _, law in self._parts]
        v = math.hypot(max(tail.v for tail in known), (max(means) - min(means)) / 2)
        bounded = super().subexponential()
        if bounded is not None and bounded.v <= v:
            return bounded
        return SubExponential(v, b=max(tail.b for tail in known))


@dataclass(frozen=True)
class Lossy(IndependentLaw):
    """Feedback that never arrives with probability `missing`, and else is delayed by `law`.

    In plain values the inner law is called "of", since "law" names the kind.

    >>> law = Lossy(Empirical([10]), missing=0.1)
    >>> law.quantile(0.9), law.quantile(0.95) == NEVER, law.mean
    (10, True, inf)
    >>> law.to_dict()
    {'law': 'lossy', 'of': {'law': 'empirical', 'observed': [10]}, 'missing': 0.1}
    """

    law: IndependentLaw = field(metadata={"key": "of"})
    missing: float

    def checked(self) -> dict[str, Any]:
        """Return the clean fields."""
        return {
            "law": independent("law", self.law),
            "missing": real("missing", self.missing, at_least=0.0, at_most=1.0),
        }

    @property
    def mean(self) -> float:
        """Infinite, unless nothing is missing."""
        return math.inf if self.missing else self.law.mean

    @property
    def label(self) -> str:
        """`lossy-0.1-poisson-50`."""
        return self._label(self.missing, self.law.label)

    @property
    def support(self) -> tuple[int, int]:
        """The least and the greatest delay of positive probability."""
        least, greatest = self.law.support
        return least, NEVER if self.missing else greatest

    def cdfs(self, n: Ints) -> Floats:
        """Return P(τ <= n) for each n."""
        return (1.0 - self.missing) * self.law.cdfs(n)

    def quantiles(self, q: Floats) -> Ints:
        """Return the quantile at each q."""
        # Scaled rather than searched for: at q = 1 - missing an unbounded law has no quantile.
        kept = 1.0 - self.missing
        delays = np.full(q.shape, NEVER)
        delays[q <= kept] = self.law.quantiles(q[q <= kept] / kept)
        return delays

    def subexponential(self) -> SubExponential | None:
        """None, unless nothing is missing."""
        return None if self.missing else self.law.subexponential()
