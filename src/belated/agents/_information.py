"""How much an algorithm has learned: log det Ω of each step, by which others decide when to plan again.

An algorithm that knows it registers a kernel for its record with `informs`, in its own file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belated._kernels.exp_log import log
from belated._kernels.jit import F, by_record, entry_point, kernel
from belated.agents._base import settle
from belated.types import Floats

#: Growth short of what was asked by no more than this, in log det Ω, is enough: rounding must not decide.
SLACK = 1e-9


def _no_information(record: Any, log_determinants: Floats) -> None:
    """Leave it: a record that is not among the `INFORMED` is planned on a schedule."""


@by_record(otherwise=_no_information)
def information(record: Any, log_determinants: Floats) -> None:
    """Set `log_determinants` (H,) to log det Ω_h of each step: compiled, chosen by the type of `record`.

    What `learn` has put off must be settled.
    """


#: The records whose information is known.
INFORMED: set[type] = set()


def informs(record: type) -> Callable[[F], F]:
    """Register the kernel that gives the `information` of `record`."""
    INFORMED.add(record)
    return information.register(record)


@entry_point
def measure(record: Any, log_determinants: Floats) -> None:
    """Settle what has been learned and set `log_determinants`, called from Python."""
    settle(record)
    information(record, log_determinants)


@kernel
def factor_information(factor: Floats, log_determinants: Floats) -> None:
    """Set log det Ω_h = 2·Σ log U_h[i, i]."""
    for h in range(log_determinants.size):
        g = min(h, len(factor) - 1)  # one factor may be that of all steps
        total = 0.0
        for i in range(factor.shape[1]):
            total += log(factor[g, i, i])
        log_determinants[h] = 2.0 * total


@kernel
def information_of_factor(agent: Any, log_determinants: Floats) -> None:
    """From the factor that the agent keeps."""
    factor_information(agent.learned.factor, log_determinants)
