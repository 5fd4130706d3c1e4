"""The settings of a model: frozen, checked, read from and written to tables of TOML or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from belated.decisions.encoding import Encoding
from belated.decisions.ledger import check_aggregate
from belated.decisions.silence import Silence, check_silence
from belated.decisions.values import LARGEST
from belated.validate import integer, real, refuse


@dataclass(frozen=True)
class Forgetting:
    """Halve the weight of a decision with each half-life: of time, or of decisions made after it. Give one of them."""

    seconds: float | None = None
    decisions: float | None = None

    def __post_init__(self) -> None:
        if (self.seconds is None) == (self.decisions is None):
            raise refuse("forgetting", self, "a half-life in seconds, or one in decisions")
        for name in ("seconds", "decisions"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, real(name, getattr(self, name), above=0.0, at_most=LARGEST))

    def time(self, made: float, number: int) -> float:
        """Return when a decision was made, in half-lives."""
        return made / self.seconds if self.seconds is not None else number / (self.decisions or 1.0)


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """All that makes a model. There is no default for `silence`, since there is no safe guess.

    >>> ModelSettings.from_table("ads", {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}})
    ... # doctest: +SKIP
    """

    silence: Silence
    actions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Names, each with its features; empty: every request brings its own."""
    retired: frozenset[str] = frozenset()
    """Actions that are no longer offered."""
    encoding: Encoding = field(default_factory=Encoding)
    aggregate: str = "sum"
    """How several rewards of one decision are put together: first, last, sum, mean, max or min."""
    forgetting: Forgetting | None = None
    floor: float = 0.01
    """Share of decisions taken at random: every one of K actions has at least the probability floor/K."""
    draws: int = 32
    """Posterior draws per decision, whose winners make its probabilities; 1: none are known."""
    scale: float = 1.0
    noise: float | None = None
    """Standard deviation of the rewards; None: estimated from the residuals."""
    ridge: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_silence(self.silence)
        check_aggregate(self.aggregate)
        real("floor", self.floor, at_least=0.0, at_most=1.0)
        integer("draws", self.draws, at_least=1)
