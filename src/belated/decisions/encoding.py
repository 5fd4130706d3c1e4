"""From JSON to features: a declared, versioned encoding of contexts and actions.

The terms of a context are a constant, its numbers, one term for each category and one for each tag; an action has its
own. With `weights="per action"` every action has a block of weights for the context's terms. With `weights="shared"`
there is one block for the products of a context's and an action's terms. Numbers have places of their own, in the
order of their declaration; the values of categories and tags are not known beforehand, so they are hashed, by BLAKE2,
into `hashed` places with a sign: the same on every machine and for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from belated.types import Floats

#: Of the way features are computed; written down with the settings. It changes if the same JSON would give others.
VERSION = 1


class Table(NamedTuple):
    """The actions on offer, as the posterior sees them."""

    names: tuple[str, ...]
    rows: Floats
    """Shape (actions, dimension)."""
    owners: tuple[str, ...] | None
    """Names of the blocks, one for each action; None if they share one."""


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """What a context and an action may say, and where it goes in a feature vector."""

    features: tuple[str, ...] = ()
    """Names of the context's numbers."""
    categories: tuple[str, ...] = ()
    """Names of the context's categories: strings."""
    tags: tuple[str, ...] = ()
    """Names of the context's lists of strings."""
    action_features: tuple[str, ...] = ()
    action_categories: tuple[str, ...] = ()
    action_tags: tuple[str, ...] = ()
    weights: str = "per action"
    """`"per action"`, or `"shared"`."""
    hashed: int = 0
    """Places for categories and tags, and for their products."""

    @property
    def dimension(self) -> int:
        """Length of a feature vector."""
        raise NotImplementedError

    def table(self, context: Mapping[str, Any], actions: Mapping[str, Mapping[str, Any]]) -> Table:
        """Return the features of each action in this context, or refuse what was not declared."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it, with its version."""
        raise NotImplementedError

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Encoding:
        """Return what `to_dict` wrote; refuse a version that is not known."""
        raise NotImplementedError


def names(name: str, value: Sequence[str]) -> tuple[str, ...]:
    """Return names as a tuple, refusing what is empty or repeated."""
    raise NotImplementedError
