"""What can be asked of a model, as values: a service collects them and has many done in one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Decide(NamedTuple):
    """Choose an action, or write down the caller's own choice."""

    context: Mapping[str, Any]
    """Numbers, categories and tags, as the encoding declares them."""
    actions: Sequence[str] | Mapping[str, Mapping[str, Any]] | None = None
    """Those on offer; None: all that are not retired. A mapping gives features of their own for this request."""
    key: str | None = None
    """A name of the caller's by which a repeated request finds its decision."""
    active: bool = True
    """False: it counts only once it is activated."""
    size: int = 1
    """How many actions to rank."""
    chosen: str | Sequence[str] | None = None
    """Shadow mode: what the caller chose, or the caller's ranking; ours is only compared."""
    probability: float | None = None
    """The probability with which the caller chose it, if that is known."""
    id: str | None = None
    """An id of the caller's; None: a new one."""
    made: float | None = None
    """When it was made, if it is recorded later than that."""


class Reward(NamedTuple):
    """A reward for a decision."""

    id: str
    reward: float
    event: str = ""
    """The sender's name of the event: a repeat is harmless, and two equal rewards with two names are two."""
    version: int = 0
    """0 for the original; a correction has a higher one, and the highest counts."""
    correction: bool = False
    """Replace whatever is newest. With a queue that may deliver twice or out of order, use versions."""
    observed: float | None = None
    """When it happened, in seconds since 1970; by this `first` and `last` go."""
    slot: int | None = None
    """Which place of a ranking was chosen, from 0."""


class Activate(NamedTuple):
    """A decision made with `active=False` was shown: from now on it counts."""

    id: str


class Cancel(NamedTuple):
    """Take a decision back: what it taught is unlearned exactly, and its rewards are no longer learned."""

    id: str


Operation = Decide | Reward | Activate | Cancel
