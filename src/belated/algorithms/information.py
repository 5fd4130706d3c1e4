"""How much an algorithm has learned: log det Ω of each step, by which others decide when to plan anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from belated.algorithms.epsilon_greedy import EpsilonGreedyRecord
from belated.algorithms.greedy import GreedyRecord
from belated.algorithms.lpsvi import LPSVIRecord
from belated.algorithms.ofu import OFURecord
from belated.algorithms.psvi import PSVIRecord
from belated.algorithms.tabular_ucbvi import TabularRecord
from belated.algorithms.ucbvi import UCBVIRecord
from belated.compiled import F, allocating_kernel, by_record, entry_point, kernel
from belated.types import Floats

#: Growth short of what was asked by no more than this, in log det Ω, is enough: rounding must not decide.
SLACK = 1e-9


def information(record: Any, log_determinants: Floats) -> None:
    """Set `log_determinants` (H,) to log det Ω_h of each step: compiled, chosen by the type of `record`."""


def _no_information(record: Any, log_determinants: Floats) -> None:
    """Leave it: a record that is not among the `INFORMED` is planned on a schedule."""


_register = by_record(information, otherwise=_no_information)
#: The records whose information is known.
INFORMED: set[type] = set()


def informs(record: type) -> Callable[[F], F]:
    """Register the kernel that gives the `information` of `record`."""
    INFORMED.add(record)
    return _register(record)


@entry_point
def measure(record: Any, log_determinants: Floats) -> None:
    """Set `log_determinants`, called from Python."""
    information(record, log_determinants)


@kernel
def factor_information(factor: Floats, log_determinants: Floats) -> None:
    """Set log det Ω_h = 2·Σ log U_h[i, i]."""
    for h in range(log_determinants.size):
        total = 0.0
        for i in range(factor.shape[1]):
            total += np.log(factor[h, i, i])
        log_determinants[h] = 2.0 * total


@kernel
def information_of_factor(agent: Any, log_determinants: Floats) -> None:
    """From the factor that the agent keeps."""
    factor_information(agent.learned.factor, log_determinants)


for _record in (PSVIRecord, UCBVIRecord, GreedyRecord, EpsilonGreedyRecord):
    informs(_record)(information_of_factor)


@informs(OFURecord)
@kernel
def ofu_information(agent: OFURecord, log_determinants: Floats) -> None:
    """From its factor, of the only step."""
    factor_information(agent.learned.factor.reshape((1, *agent.learned.factor.shape)), log_determinants)


@informs(LPSVIRecord)
@allocating_kernel
def lpsvi_information(agent: LPSVIRecord, log_determinants: Floats) -> None:
    """From the factor if there is one, else from Ω itself: O(d³), still less than a chain of d/3 steps."""
    if agent.sampler == 2:
        factor_information(agent.learned.factor, log_determinants)
    else:
        for h in range(log_determinants.size):
            log_determinants[h] = np.linalg.slogdet(agent.learned.precision[h])[1]


@informs(TabularRecord)
@kernel
def tabular_information(agent: TabularRecord, log_determinants: Floats) -> None:
    """With one-hot features Ω = I + diag N."""
    for h in range(log_determinants.size):
        total = 0.0
        for count in agent.learned.visits[h]:
            total += np.log(1.0 + count)
        log_determinants[h] = total
