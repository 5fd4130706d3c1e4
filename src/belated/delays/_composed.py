"""Delay distributions made of other delay distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from belated._util.validate import probabilities, real
from belated.delays._base import NEVER, IndependentDelays, SubExponential, independent, independents
from belated.types import Floats, Ints


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
        bounded mixtures half the whole range is used if it is less. None as soon as one component has none.
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
        # Scaled rather than searched for: at q = 1 - missing an unbounded distribution has no quantile.
        kept = 1.0 - self.missing
        delays = np.full(q.shape, NEVER)
        delays[q <= kept] = self.of.quantiles(q[q <= kept] / kept)
        return delays

    def subexponential(self) -> SubExponential | None:
        return None if self.missing else self.of.subexponential()
