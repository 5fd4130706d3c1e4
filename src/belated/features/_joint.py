"""`Joint`: features φ(s, a) of observation and action together, as the paper has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from belated._util.plugins import load, name_of
from belated._util.validate import integer, refuse
from belated.features._adapters import numbers
from belated.features._base import MOST_DENSE, Features, Seen
from belated.types import SparseRows


@dataclass(frozen=True, kw_only=True)
class Joint(Features):
    """φ(s, a) as a function of observation and action, so that actions can share what is learned.

    `function(observation, action)` returns `width` numbers and must be frozen: the same features for the same pair,
    always. Given as `"package.module:name"`, or as a function that has such a name, it can be saved and stand in an
    experiment's file.

    >>> phi = Joint(function=lambda observation, action: [1.0, observation * action], actions=2, width=2)
    >>> phi.encode(3.0).values.tolist()
    [1.0, 1.0, 3.0]
    """

    kind: ClassVar[str] = "joint"

    function: Callable[[Any, int], Any] | str
    actions: int | None = None
    """Number of actions; None: those of the environment."""
    width: int | None = None
    """Number of features; None: as many as the function returns for the environment's first observation."""

    def __post_init__(self) -> None:
        if not isinstance(self.function, str) and not callable(self.function):
            raise refuse("function", self.function, "a function, or a name of the form 'package.module:name'")
        for name, value in (("actions", self.actions), ("width", self.width)):
            if value is not None:
                integer(name, value, at_least=1)
        if self.width is not None:
            integer("width", self.width, at_most=MOST_DENSE)

    @cached_property
    def _call(self) -> Callable[[Any, int], Any]:
        call: Callable[[Any, int], Any] = (
            load("function", self.function) if isinstance(self.function, str) else self.function
        )
        return call

    @property
    def size(self) -> int:
        if self.width is None:
            raise refuse("width", None, "given, or that of an environment")
        return self.width

    def fitted(self, seen: Seen) -> Self:
        first = seen.observations[0]
        features = numbers("function", self._call(first, 0))
        if self.actions not in (None, seen.actions):
            raise refuse("actions", self.actions, f"{seen.actions}, as many as the environment has")
        filled = replace(self, actions=seen.actions, width=self.width or features.size)
        if not np.array_equal(numbers("function", self._call(first, 0)), features):
            raise refuse("function", self.function, "frozen: the same pair has given two different features")
        return filled

    def encode(self, observation: Any) -> SparseRows:
        if self.actions is None:
            raise refuse("actions", None, "given, or those of an environment")
        rows = [numbers("function", self._call(observation, action)) for action in range(self.actions)]
        for row in rows:
            if row.size != self.size or not np.isfinite(row).all():
                raise refuse("function", row, f"returning {self.size} finite numbers")
        nonzero = [np.flatnonzero(row) for row in rows]
        return SparseRows(
            np.cumsum([0, *map(len, nonzero)]),
            np.concatenate(nonzero),
            np.concatenate([row[kept] for row, kept in zip(rows, nonzero, strict=True)]),
        )

    def to_dict(self) -> dict[str, Any]:
        name = self.function if isinstance(self.function, str) else name_of(self.function)
        if name is None:
            raise refuse("function", self.function, "importable by name to be saved, as 'package.module:name'")
        return {**super().to_dict(), "function": name}
