"""Delay laws made of observations or of other laws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from belated.delays.base import NEVER, DelayLaw, SubExponential, whole_delays
from belated.delays.laws import FiniteLaw
from belated.errors import DamagedFileError, InvalidInputError
from belated.types import Floats, Ints
from belated.validate import choice, integer, probabilities, real, refuse


@dataclass(frozen=True)
class Empirical(FiniteLaw):
    """Delays drawn again from those observed, each equally likely.

    >>> law = Empirical([3, 0, 7, 3])
    >>> law.mean, law.quantile(0.5), law.label
    (3.25, 3, 'empirical-4')
    """

    observed: Sequence[int] | Ints

    __repr__ = DelayLaw.__repr__  # a dataclass would show every entry

    def _checked(self) -> dict[str, Any]:
        return {"observed": whole_delays("observed", self.observed)}

    @classmethod
    def from_file(cls, path: str | Path, column: str) -> Empirical:
        """Return the law of the delays in one column of a CSV or Parquet file."""
        return cls(_read_delays(Path(path), column))

    @property
    def label(self) -> str:
        """`empirical-1234`: the number of observations."""
        return self._label(len(self.observed))

    def _weighted(self) -> tuple[Ints, Floats]:
        return _counted(self.observed)


def _counted(delays: Sequence[int] | Ints) -> tuple[Ints, Floats]:
    values, counts = np.unique(np.array(delays), return_counts=True)
    return values, counts.astype(np.float64)


def _read_delays(path: Path, column: str) -> Ints:
    import polars as pl

    kind = path.suffix.lower()
    if kind not in (".csv", ".parquet"):
        raise refuse("path", str(path), "a file called .csv or .parquet")
    if not path.is_file():
        raise refuse("path", str(path), "a file that exists")
    try:
        # All rows of a CSV are looked at: a first fraction far down must not be taken for damage.
        frame = (
            pl.scan_csv(path, infer_schema_length=None, glob=False)
            if kind == ".csv"
            else pl.scan_parquet(path, glob=False)
        )
        choice("column", column, frame.collect_schema().names())
        given = frame.select(column).collect().to_series()
    except pl.exceptions.PolarsError as error:
        raise DamagedFileError(f"{path} cannot be read as a table: {error}") from None
    expected = f"column {column!r} of {path} must hold whole numbers >= 0"
    if not given.dtype.is_numeric():
        raise InvalidInputError(f"{expected}, got values of type {given.dtype}")
    whole = given.cast(pl.Int64, strict=False)
    wrong = (whole.is_null() | (whole.cast(given.dtype) != given) | (whole < 0) | (whole == NEVER)).arg_true()
    if len(wrong):
        raise InvalidInputError(f"{expected}, got {given[wrong[0]]} in row {wrong[0] + 1}")
    return np.asarray(whole, dtype=np.int64)


@dataclass(frozen=True)
class Fixed(FiniteLaw):
    """A recorded or adversarial sequence: the i-th episode gets the i-th delay, whatever the stream.

    Each `sample` starts from the first delay. The mean, cdf and quantiles are those of the sequence, in
    which `NEVER` may occur; it is not random, so it has no sub-exponential parameters.

    >>> Fixed([5, 0, 2]).sample(np.random.default_rng(0), 2).tolist()
    [5, 0]
    """

    delays: Sequence[int] | Ints

    __repr__ = DelayLaw.__repr__  # a dataclass would show every entry

    def _checked(self) -> dict[str, Any]:
        return {"delays": whole_delays("delays", self.delays, greatest=NEVER)}

    @property
    def label(self) -> str:
        """`fixed-100`: the number of delays."""
        return self._label(len(self.delays))

    def _weighted(self) -> tuple[Ints, Floats]:
        return _counted(self.delays)

    def sample(self, rng: np.random.Generator, size: int) -> Ints:
        """Return the first `size` delays; `rng` is left untouched."""
        if integer("size", size, at_least=0) > len(self.delays):
            raise refuse("size", size, f"at most {len(self.delays)}, the number of fixed delays")
        return np.array(self.delays[:size], dtype=np.int64)

    def subexponential(self) -> None:
        """None: nothing here is random."""


def independent(name: str, value: Any) -> DelayLaw:
    """Return `value` if it is a law of independent draws, which a law can be composed of."""
    if not isinstance(value, DelayLaw):
        raise refuse(name, value, "a delay law")
    if isinstance(value, Fixed):
        raise refuse(name, value, "a law of independent draws (Empirical makes one of a fixed sequence)")
    return value


@dataclass(frozen=True)
class Mixture(DelayLaw):
    """Each delay comes from `laws[i]` with probability `weights[i]`.

    >>> law = Mixture(laws=[Empirical([0]), Empirical([10, 20])], weights=[0.5, 0.5])
    >>> law.mean, law.quantile(0.75), law.label
    (7.5, 10, 'mixture-0.5-empirical-1-0.5-empirical-2')
    """

    laws: Sequence[DelayLaw]
    weights: Sequence[float]

    __repr__ = DelayLaw.__repr__  # a dataclass would show every entry

    def _checked(self) -> dict[str, Any]:
        if not isinstance(self.laws, list | tuple) or not self.laws:
            raise refuse("laws", self.laws, "a list of delay laws, at least one")
        laws = tuple(independent(f"laws[{i}]", law) for i, law in enumerate(self.laws))
        weights = probabilities("weights", self.weights, (len(laws),))
        return {"laws": laws, "weights": tuple(weights.tolist())}

    @property
    def _parts(self) -> list[tuple[float, DelayLaw]]:
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
    def _bounds(self) -> tuple[int, int]:
        least, greatest = zip(*(law._bounds for _, law in self._parts), strict=True)
        return min(least), max(greatest)

    def _cdf(self, n: Ints) -> Floats:
        below: Floats = np.sum([weight * law._cdf(n) for weight, law in self._parts], axis=0)
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
class Lossy(DelayLaw):
    """Feedback that never arrives with probability `missing`, and else is delayed by `law`.

    In plain values the inner law is called "of", since "law" names the kind.

    >>> law = Lossy(Empirical([10]), missing=0.1)
    >>> law.quantile(0.9), law.quantile(0.95) == NEVER, law.mean
    (10, True, inf)
    >>> law.to_dict()
    {'law': 'lossy', 'of': {'law': 'empirical', 'observed': [10]}, 'missing': 0.1}
    """

    law: DelayLaw = field(metadata={"key": "of"})
    missing: float

    def _checked(self) -> dict[str, Any]:
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
    def _bounds(self) -> tuple[int, int]:
        least, greatest = self.law._bounds
        return least, NEVER if self.missing else greatest

    def _cdf(self, n: Ints) -> Floats:
        return (1.0 - self.missing) * self.law._cdf(n)

    def _quantile(self, q: Floats) -> Ints:
        # Scaled rather than searched for: at q = 1 - missing an unbounded law has no quantile.
        kept = 1.0 - self.missing
        delays = np.full(q.shape, NEVER)
        delays[q <= kept] = self.law._quantile(q[q <= kept] / kept)
        return delays

    def subexponential(self) -> SubExponential | None:
        """None, unless nothing is missing."""
        return None if self.missing else self.law.subexponential()
