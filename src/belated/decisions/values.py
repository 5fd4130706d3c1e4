"""The values that pass between an application and its learner, and what silence means."""

from __future__ import annotations

from dataclasses import dataclass, field

from belated.errors import BelatedError
from belated.types import Floats
from belated.validate import integer, real

#: No feature, reward or setting may be larger, and no noise or ridge smaller than its inverse: nothing can overflow.
LARGEST = 1e40


class ConflictError(BelatedError):
    """A decision or a reward that contradicts what is already recorded under the same id."""


@dataclass(frozen=True)
class Unknown:
    """Silence means nothing: only rewards that arrived count."""


@dataclass(frozen=True)
class DefaultAfter:
    """Silence means `reward`, once `decisions` later ones were made; a reward that still comes replaces it."""

    decisions: int
    reward: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "decisions", integer("decisions", self.decisions, at_least=1))
        object.__setattr__(self, "reward", real("reward", self.reward, at_least=-LARGEST, at_most=LARGEST))


@dataclass(frozen=True)
class Decision:
    """What was decided, under an id with which the reward can be reported later."""

    id: str
    """The caller's key, or `d-` and the number."""
    number: int
    """How many decisions there were, this one included."""
    action: int
    """Row of the contexts."""
    probability: float | None
    """Estimate of the chance with which this action is taken, if asked for."""
    features: Floats = field(compare=False, repr=False)
    """That row itself."""
