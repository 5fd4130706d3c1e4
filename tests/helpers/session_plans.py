"""A set of plans that a test writes down: member j takes the action that `choose` says."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from belated.types import Floats


class WrittenPlans(NamedTuple):
    """Shares of the actions, for each step and each member: the contexts do not matter."""

    shares: Floats
    """Shape (steps, members, actions)."""

    @property
    def members(self) -> int:
        return int(self.shares.shape[1])

    def distributions(self, step: int, state: Any) -> Floats:
        offered = self.shares[step][:, state.offered]
        found: Floats = offered / offered.sum(axis=1, keepdims=True)
        return found

    def to_bytes(self) -> bytes:
        return np.array(self.shares.shape).tobytes() + self.shares.tobytes()


def read_plans(settings: Any, content: bytes) -> WrittenPlans:
    """Return what `to_bytes` wrote."""
    shape = np.frombuffer(content[:24], np.int64)
    return WrittenPlans(np.frombuffer(content[24:]).reshape(shape))
