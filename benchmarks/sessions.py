"""Sessions: how fast they are served, and whether they are learned."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.measure import Measure
from benchmarks.problems import Effort
from benchmarks.session_returns import session_returns
from benchmarks.session_speed import session_speed


def sessions(effort: Effort, tell: Callable[[str], None]) -> list[Measure]:
    """Measure both."""
    return [*session_speed(effort), *session_returns(effort, tell)]
