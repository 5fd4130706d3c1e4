"""Independent delays with a closed form."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from belated._util.validate import choice, integer, probabilities, real, refuse
from belated.delays._base import NEVER, IndependentDelays, SubExponential, independent, independents, integer_delays
from belated.types import Floats, Ints


@dataclass(frozen=True, repr=False)
class Constant(IndependentDelays):
    """Always the same delay.

    >>> Constant(3).quantile(0.5), Constant(3).mean
    (3, 3.0)
    """

    value: int

    def checked(self) -> dict[str, Any]:
        return {"value": integer("value", self.value, at_least=0, at_most=NEVER - 1)}

    @property
    def mean(self) -> float:
        return float(self.value)

    @property
    def support(self) -> tuple[int, int]:
        return self.value, self.value

    def cdfs(self, n: Ints) -> Floats:
        return (n >= self.value).astype(np.float64)


@dataclass(frozen=True, repr=False)
class Uniform(IndependentDelays):
    """Every integer from `low` to `high`, both included, equally likely.

    >>> Uniform(low=0, high=9).mean, Uniform(low=0, high=9).quantile(0.5)
    (4.5, 4)
    """

    low: int
    high: int

    def checked(self) -> dict[str, Any]:
        low = integer("low", self.low, at_least=0)
        return {"low": low, "high": integer("high", self.high, at_least=low, at_most=NEVER - 1)}

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2

    @property
    def support(self) -> tuple[int, int]:
        return self.low, self.high

    def cdfs(self, n: Ints) -> Floats:
        inside = np.clip(n, self.low - 1, self.high) - (self.low - 1)
        return inside / (self.high - self.low + 1)


class Tabulated(IndependentDelays):
    """Finitely many delays, each with a weight."""

    @abstractmethod
    def _weighted(self) -> tuple[Ints, Floats]:
        """Return the delays in increasing order and their positive weights, of any total."""

    @cached_property
    def _table(self) -> tuple[Ints, Floats]:
        """The delays in increasing order; the probabilities of less than the first, and of at most each."""
        delays, weights = self._weighted()
        cumulative = np.concatenate([[0.0], np.cumsum(weights)])
        return delays, cumulative / cumulative[-1]

    @property
    def mean(self) -> float:
        delays, weights = self._weighted()
        return math.inf if delays[-1] == NEVER else float(np.average(delays, weights=weights))

    @property
    def support(self) -> tuple[int, int]:
        delays, _ = self._table
        return int(delays[0]), int(delays[-1])

    def cdfs(self, n: Ints) -> Floats:
        delays, cumulative = self._table
        return cumulative[np.searchsorted(delays, n, side="right")]


@dataclass(frozen=True, repr=False)
class Multinomial(Tabulated):
    """The delay `categories[i]` with probability `probabilities[i]`, in increasing order of delay.

    >>> delay = Multinomial(categories=[10, 20, 30], probabilities=[0.25, 0.5, 0.25])
    >>> delay.mean, delay.quantile(0.75), delay.label
    (20.0, 20, 'multinomial-10-20-30')
    """

    categories: Sequence[int]
    probabilities: Sequence[float]

    def checked(self) -> dict[str, Any]:
        categories = integer_delays("categories", self.categories)
        if len(set(categories)) < len(categories):
            raise refuse("categories", self.categories, "distinct delays")
        chances = probabilities("probabilities", self.probabilities, (len(categories),)).tolist()
        pairs = sorted(zip(categories, chances, strict=True))
        return {
            "categories": tuple(delay for delay, _ in pairs),
            "probabilities": tuple(chance for _, chance in pairs),
        }

    @property
    def label(self) -> str:
        return self._label(*self.categories)

    def _weighted(self) -> tuple[Ints, Floats]:
        weights = np.array(self.probabilities)
        return np.array(self.categories)[weights > 0], weights[weights > 0]


@dataclass(frozen=True, repr=False)
class _OfMean(IndependentDelays):
    mean: float

    def checked(self) -> dict[str, Any]:
        return {"mean": real("mean", self.mean, above=0.0)}


@dataclass(frozen=True, repr=False)
class Poisson(_OfMean):
    """Poisson delays of the given mean.

    >>> Poisson(mean=50).quantile(0.95), Poisson(mean=50).label
    (62, 'poisson-50')
    """

    def cdfs(self, n: Ints) -> Floats:
        from scipy import special  # imported here, since most runs do not need SciPy

        below: Floats = special.pdtr(n, self.mean)
        return below

    def subexponential(self) -> SubExponential:
        """v² = 2 mean, b = 1: log E exp(g (τ - mean)) = mean (e^g - 1 - g), at most mean g² for |g| <= 1."""
        return SubExponential(v=math.sqrt(2 * self.mean), b=1.0)


@dataclass(frozen=True, repr=False)
class NegativeBinomial(IndependentDelays):
    """Negative binomial delays, of variance mean + mean²/dispersion; `dispersion` is any number > 0.

    >>> NegativeBinomial(mean=50, dispersion=2).quantile(0.95)
    120
    """

    mean: float
    dispersion: float

    def checked(self) -> dict[str, Any]:
        return {
            "mean": real("mean", self.mean, above=0.0),
            "dispersion": real("dispersion", self.dispersion, above=0.0),
        }

    def cdfs(self, n: Ints) -> Floats:
        from scipy import special

        below: Floats = special.betainc(self.dispersion, n + 1.0, self.dispersion / (self.dispersion + self.mean))
        return below

    def subexponential(self) -> SubExponential:
        """Valid parameters, with v² at most 4e times the variance.

        With r = dispersion and m = mean / r, log E exp(g τ) = -r log(1 - m (e^g - 1)), whose second
        derivative r m (1 + m) e^g / (1 - m (e^g - 1))² increases in g. By Taylor's theorem its value at
        g = 1/b is a valid v² for all |g| <= 1/b. Here 1/b is the g with m (e^g - 1) = 1/2, or 1 if less.
        """
        m = self.mean / self.dispersion
        rise = 0.5 / max(m, 0.5 / math.expm1(1.0))
        variance = self.mean * (1 + m)
        return SubExponential(v=math.sqrt(variance * (1 + rise)) / (1 - m * rise), b=1 / math.log1p(rise))


@dataclass(frozen=True, repr=False)
class Geometric(_OfMean):
    """Geometric delays on {0, 1, 2, ...} of the given mean: the negative binomial of dispersion 1.

    >>> Geometric(mean=50).quantile(0.5), Geometric(mean=50).cdf(0) * 51
    (35, 1.0)
    """

    def cdfs(self, n: Ints) -> Floats:
        return NegativeBinomial(self.mean, 1.0).cdfs(n)

    def subexponential(self) -> SubExponential:
        return NegativeBinomial(self.mean, 1.0).subexponential()


@dataclass(frozen=True, repr=False)
class Pareto(IndependentDelays):
    """A Pareto variable, rounded down: "classical" starts at `scale`, "lomax" (shifted) starts at 0.

    P(τ >= n) is (scale / n)^shape above `scale` for the first, (1 + n / scale)^-shape for the second. The
    mean is infinite for shape <= 1, and no shape has sub-exponential tails.

    >>> Pareto(shape=1, scale=500).mean, Pareto(shape=2, scale=500).mean
    (inf, 999.5)
    >>> Pareto(shape=1, scale=500).quantile(0.5), Pareto(shape=1, scale=500, kind="lomax").quantile(0.5)
    (999, 499)
    """

    shape: float
    scale: float
    kind: str = "classical"

    def checked(self) -> dict[str, Any]:
        return {
            "shape": real("shape", self.shape, above=0.0),
            "scale": real("scale", self.scale, above=0.0, at_most=2.0**53),
            "kind": choice("kind", self.kind, ("classical", "lomax")),
        }

    @property
    def label(self) -> str:
        name = "pareto" if self.kind == "classical" else "lomax"
        return f"{name}-{self.shape:g}-{self.scale:g}"

    @property
    def mean(self) -> float:
        """Σ_{n >= 1} P(τ >= n): the terms equal to one, then scale^shape ζ(shape, first) without overflow."""
        if self.shape <= 1.0:
            return math.inf
        sure, _ = self.support
        first = sure + 1.0 if self.kind == "classical" else 1.0 + self.scale
        return sure + _power_sum(self.scale, self.shape, first)

    @property
    def support(self) -> tuple[int, int]:
        return (math.floor(self.scale) if self.kind == "classical" else 0), NEVER

    def cdfs(self, n: Ints) -> Floats:
        start = 0.0 if self.kind == "classical" else self.scale
        beyond: Floats = np.minimum(self.scale / (start + n + 1.0), 1.0) ** self.shape
        return 1.0 - beyond


def _power_sum(scale: float, shape: float, first: float) -> float:
    """Σ_{k >= 0} (scale / (first + k))^shape for shape > 1 and first >= scale.

    Powers of ratios <= 1 cannot overflow, unlike scale^shape. After the leading terms, the Euler-Maclaurin correction
    leaves an error far below rounding.
    """
    leading = first + np.arange(4096)
    edge = first + leading.size
    rest = (scale / edge) ** shape * (edge / (shape - 1) + 0.5 + shape / (12 * edge))
    return float(((scale / leading) ** shape).sum() + rest)


@dataclass(frozen=True, repr=False)
class Mixture(IndependentDelays):
    """Each delay comes from `components[i]` with probability `weights[i]`.

    >>> from belated import Constant, Uniform
    >>> delay = Mixture([Constant(0), Uniform(10, 20)], weights=[0.5, 0.5])
    >>> delay.mean, delay.quantile(0.75), delay.label
    (7.5, 15, 'mixture-0.5-constant-0-0.5-uniform-10-20')
    """

    components: Sequence[IndependentDelays]
    weights: Sequence[float]

    def checked(self) -> dict[str, Any]:
        components = independents("components", self.components, "at least one")
        weights = probabilities("weights", self.weights, (len(components),))
        return {"components": components, "weights": tuple(weights.tolist())}

    @property
    def _parts(self) -> list[tuple[float, IndependentDelays]]:
        """The components of positive weight, with weights that sum to one."""
        total = math.fsum(self.weights)
        return [(weight / total, delay) for weight, delay in zip(self.weights, self.components, strict=True) if weight]

    @property
    def mean(self) -> float:
        return sum(weight * delay.mean for weight, delay in self._parts)

    @property
    def label(self) -> str:
        pairs = zip(self.weights, self.components, strict=True)
        return self._label(*(part for weight, delay in pairs for part in (weight, delay.label)))

    @property
    def support(self) -> tuple[int, int]:
        minima, maxima = zip(*(delay.support for _, delay in self._parts), strict=True)
        return min(minima), max(maxima)

    def cdfs(self, n: Ints) -> Floats:
        below: Floats = np.sum([weight * delay.cdfs(n) for weight, delay in self._parts], axis=0)
        return below

    def subexponential(self) -> SubExponential | None:
        """The maximum v² and b of the components, plus a quarter of the squared range of their means in v².

        Given component i, E exp(g (τ - E τ)) <= exp(v_i² g² / 2) exp(g (m_i - E τ)) with m_i its mean, and m_i
        is a bounded variable of mean E τ, so Hoeffding's lemma bounds the average of the second factor. For
        bounded mixtures half the whole range is used if it is smaller. None if any component has none.
        """
        tails = [delay.subexponential() for _, delay in self._parts]
        known = [tail for tail in tails if tail is not None]
        if len(known) < len(tails):
            return None
        means = [delay.mean for _, delay in self._parts]
        v = math.hypot(max(tail.v for tail in known), (max(means) - min(means)) / 2)
        bounded = super().subexponential()
        if bounded is not None and bounded.v <= v:
            return bounded
        return SubExponential(v, b=max(tail.b for tail in known))


@dataclass(frozen=True, repr=False)
class Lossy(IndependentDelays):
    """Feedback that never arrives with probability `missing`, and otherwise has the delay `of`.

    >>> from belated import Constant
    >>> delay = Lossy(of=Constant(10), missing=0.1)
    >>> delay.quantile(0.9), delay.quantile(0.95) == NEVER, delay.mean
    (10, True, inf)
    >>> delay.to_dict()
    {'distribution': 'lossy', 'of': {'distribution': 'constant', 'value': 10}, 'missing': 0.1}
    """

    of: IndependentDelays
    missing: float

    def checked(self) -> dict[str, Any]:
        return {
            "of": independent("of", self.of),
            "missing": real("missing", self.missing, at_least=0.0, at_most=1.0),
        }

    @property
    def mean(self) -> float:
        return math.inf if self.missing else self.of.mean

    @property
    def label(self) -> str:
        return self._label(self.missing, self.of.label)

    @property
    def support(self) -> tuple[int, int]:
        minimum, maximum = self.of.support
        return minimum, NEVER if self.missing else maximum

    def cdfs(self, n: Ints) -> Floats:
        return (1.0 - self.missing) * self.of.cdfs(n)

    def quantiles(self, q: Floats) -> Ints:
        # Scaled instead of searched: at q = 1 - missing an unbounded distribution has no quantile.
        kept = 1.0 - self.missing
        delays = np.full(q.shape, NEVER)
        delays[q <= kept] = self.of.quantiles(q[q <= kept] / kept)
        return delays

    def subexponential(self) -> SubExponential | None:
        return None if self.missing else self.of.subexponential()
