"""Delay distributions made of observations or of other distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from belated._util.validate import probabilities, real, refuse
from belated.delays._base import NEVER, DelayDistribution, IndependentDelays, SubExponential, independent, whole_delays
from belated.delays._distributions import FiniteLaw
from belated.delays._recorded import delays_between, read_delays, read_times
from belated.types import Floats, Ints


@dataclass(frozen=True)
class Empirical(FiniteLaw):
    """Delays drawn again from those observed, each equally likely.

    >>> distribution = Empirical([3, 0, 7, 3])
    >>> distribution.mean, distribution.quantile(0.5), distribution.label
    (3.25, 3, 'empirical-4')
    """

    observed: Sequence[int] | Ints

    __repr__ = DelayDistribution.__repr__  # a dataclass would show every entry

    def checked(self) -> dict[str, Any]:
        """Return the clean fields."""
        return {"observed": whole_delays("observed", self.observed)}

    @classmethod
    def from_file(cls, path: str | Path, column: str) -> Empirical:
        """Return the distribution of the delays in one column of a CSV or Parquet file."""
        return cls(read_delays(Path(path), column))

    def _weighted(self) -> tuple[Ints, Floats]:
        return _counted(self.observed)


def _counted(delays: Sequence[int] | Ints) -> tuple[Ints, Floats]:
    values, counts = np.unique(np.array(delays), return_counts=True)
    return values, counts.astype(np.float64)


@dataclass(frozen=True)
class Fixed(DelayDistribution):
    """A recorded or adversarial sequence: the i-th episode gets the i-th delay, whatever the stream.

    `NEVER` may occur in it. It must be as long as the run.

    >>> Fixed([5, 0, 2]).sample(np.random.default_rng(0), 2).tolist()
    [5, 0]

    Not random, so it has no sub-exponential parameters.
    """

    delays: Sequence[int] | Ints

    __repr__ = DelayDistribution.__repr__  # a dataclass would show every entry

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
class Mixture(IndependentDelays):
    """Each delay comes from `distributions[i]` with probability `weights[i]`.

    >>> distribution = Mixture(distributions=[Empirical([0]), Empirical([10, 20])], weights=[0.5, 0.5])
    >>> distribution.mean, distribution.quantile(0.75), distribution.label
    (7.5, 10, 'mixture-0.5-empirical-1-0.5-empirical-2')
    """

    distributions: Sequence[IndependentDelays]
    weights: Sequence[float]

    __repr__ = DelayDistribution.__repr__  # a dataclass would show every entry

    def checked(self) -> dict[str, Any]:
        """Return the clean fields."""
        if not isinstance(self.distributions, list | tuple) or not self.distributions:
            raise refuse("distributions", self.distributions, "a list of delay distributions, at least one")
        distributions = tuple(
            independent(f"distributions[{i}]", distribution) for i, distribution in enumerate(self.distributions)
        )
        weights = probabilities("weights", self.weights, (len(distributions),))
        return {"distributions": distributions, "weights": tuple(weights.tolist())}

    @property
    def _parts(self) -> list[tuple[float, IndependentDelays]]:
        total = math.fsum(self.weights)
        return [
            (weight / total, distribution)
            for weight, distribution in zip(self.weights, self.distributions, strict=True)
            if weight
        ]

    @property
    def mean(self) -> float:
        """The weighted average of the means."""
        return sum(weight * distribution.mean for weight, distribution in self._parts)

    @property
    def label(self) -> str:
        """`mixture-0.5-constant-0-0.5-poisson-50`: each weight and distribution."""
        return self._label(
            *(part for pair in zip(self.weights, self.distributions, strict=True) for part in (pair[0], pair[1].label))
        )

    @property
    def support(self) -> tuple[int, int]:
        """The least and the greatest delay of positive probability."""
        least, greatest = zip(*(distribution.support for _, distribution in self._parts), strict=True)
        return min(least), max(greatest)

    def cdfs(self, n: Ints) -> Floats:
        """Return P(τ <= n) for each n."""
        below: Floats = np.sum([weight * distribution.cdfs(n) for weight, distribution in self._parts], axis=0)
        return below

    def subexponential(self) -> SubExponential | None:
        """The greatest v² and b of the parts, with a quarter of the squared range of their means added to v².

        Given the part i, E exp(g (τ - E τ)) <= exp(v_i² g² / 2) exp(g (m_i - E τ)) with m_i its mean, and m_i
        is a bounded variable of mean E τ, so Hoeffding's lemma bounds the average of the second factor. For
        bounded mixtures half the whole range is used if it is less. None as soon as one part has none.
        """
        tails = [distribution.subexponential() for _, distribution in self._parts]
        known = [tail for tail in tails if tail is not None]
        if len(known) < len(tails):
            return None
        means = [distribution.mean for _, distribution in self._parts]
        v = math.hypot(max(tail.v for tail in known), (max(means) - min(means)) / 2)
        bounded = super().subexponential()
        if bounded is not None and bounded.v <= v:
            return bounded
        return SubExponential(v, b=max(tail.b for tail in known))


@dataclass(frozen=True)
class Lossy(IndependentDelays):
    """Feedback that never arrives with probability `missing`, and else is delayed by `distribution`.

    In plain values the inner distribution is called "of", since "distribution" names the kind.

    >>> distribution = Lossy(Empirical([10]), missing=0.1)
    >>> distribution.quantile(0.9), distribution.quantile(0.95) == NEVER, distribution.mean
    (10, True, inf)
    >>> distribution.to_dict()
    {'distribution': 'lossy', 'of': {'distribution': 'empirical', 'observed': [10]}, 'missing': 0.1}
    """

    distribution: IndependentDelays = field(metadata={"key": "of"})
    missing: float

    def checked(self) -> dict[str, Any]:
        """Return the clean fields."""
        return {
            "distribution": independent("distribution", self.distribution),
            "missing": real("missing", self.missing, at_least=0.0, at_most=1.0),
        }

    @property
    def mean(self) -> float:
        """Infinite, unless nothing is missing."""
        return math.inf if self.missing else self.distribution.mean

    @property
    def label(self) -> str:
        """`lossy-0.1-poisson-50`."""
        return self._label(self.missing, self.distribution.label)

    @property
    def support(self) -> tuple[int, int]:
        """The least and the greatest delay of positive probability."""
        least, greatest = self.distribution.support
        return least, NEVER if self.missing else greatest

    def cdfs(self, n: Ints) -> Floats:
        """Return P(τ <= n) for each n."""
        return (1.0 - self.missing) * self.distribution.cdfs(n)

    def quantiles(self, q: Floats) -> Ints:
        """Return the quantile at each q."""
        # Scaled rather than searched for: at q = 1 - missing an unbounded distribution has no quantile.
        kept = 1.0 - self.missing
        delays = np.full(q.shape, NEVER)
        delays[q <= kept] = self.distribution.quantiles(q[q <= kept] / kept)
        return delays

    def subexponential(self) -> SubExponential | None:
        """None, unless nothing is missing."""
        return None if self.missing else self.distribution.subexponential()
