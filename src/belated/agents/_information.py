"""How much an algorithm has learned: log det Ω of each step, by which wrappers decide when to plan again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from numba.extending import overload

from belated._kernels.exp_log import log
from belated._kernels.jit import borrowed, entry_point, kernel, record_method
from belated.agents._base import Record, settle
from belated.types import Floats

#: Tolerance for growth of log det Ω, so that rounding does not decide.
SLACK = 1e-9


@runtime_checkable
class InformedRecord(Record, Protocol):
    """A record that keeps Ω of each step; others are planned on a schedule."""

    def information(self, log_determinants: Floats) -> None:
        """Set `log_determinants` (H,) to log det Ω_h of each step; call `settle` first."""


@record_method
def information(record: InformedRecord, log_determinants: Floats) -> None:
    record.information(log_determinants)


def information_of(record: Record, log_determinants: Floats) -> None:
    """Set `log_determinants`, or leave them if the record keeps no Ω; for kernels around any record."""
    if isinstance(record, InformedRecord):
        record.information(log_determinants)


@overload(information_of, strict=False)  # strict would compare annotations, too
def _information_of(record: Any, log_determinants: Any) -> Callable[[Any, Any], None]:
    if hasattr(record.instance_class, "information"):
        return lambda record, log_determinants: record.information(log_determinants)
    return lambda record, log_determinants: None


@entry_point
def measure(record: InformedRecord, log_determinants: Floats) -> None:
    """Settle what has been learned and set `log_determinants`, called from Python."""
    record = borrowed(record)
    settle(record)
    information(record, log_determinants)


@kernel
def factor_information(factor: Floats, log_determinants: Floats) -> None:
    """Set log det Ω_h = 2·Σ log U_h[i, i]."""
    for h in range(log_determinants.size):
        g = min(h, len(factor) - 1)  # steps may share one factor
        total = 0.0
        for i in range(factor.shape[1]):
            total += log(factor[g, i, i])
        log_determinants[h] = 2.0 * total
