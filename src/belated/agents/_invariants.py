"""Invariants of what an agent has learned, checked when it is loaded, with an error message for each violation.

The kernels rely on these: an index out of bounds would be undefined behaviour there. Each algorithm states its own in
`check_learned`, and `restore` checks them before anything is replaced. By then shapes and types have been checked, and
floats are finite.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from belated.errors import InvalidInputError
from belated.types import Floats, Ints, TableProblem

#: The maximum count: beyond it floats are not exact, and sums could overflow 64 bits.
LARGEST_COUNT = 2**53


def require(holds: Any, name: str, expected: str) -> None:
    """Raise InvalidInputError for the array `name` of a memory unless all of `holds` is true."""
    if not np.all(holds):
        raise InvalidInputError(f"memory[{name!r}] must {expected}")


def check_memory(
    memory: dict[str, npt.NDArray[Any]], wanted: dict[str, npt.NDArray[Any]]
) -> dict[str, npt.NDArray[Any]]:
    """Return copies of the arrays of a memory, after checking names, types, shapes and finiteness."""
    if set(wanted) != set(memory):
        raise InvalidInputError(f"memory must hold the arrays {sorted(wanted)}, got {sorted(memory)}")
    copies = {name: np.array(values) for name, values in memory.items()}
    for name, target in wanted.items():
        given = copies[name]
        if given.shape != target.shape or given.dtype != target.dtype:
            raise InvalidInputError(
                f"memory[{name!r}] must be {target.dtype} of shape {target.shape}, "
                f"got {given.dtype} of shape {given.shape}"
            )
        require(np.isfinite(given), name, "be finite")
    return copies


def counts(name: str, values: npt.NDArray[np.integer[Any]], *, least: int = 0) -> None:
    """Require counts between `least` and `LARGEST_COUNT`."""
    inside = (values >= least) & (values <= LARGEST_COUNT)
    require(inside, name, f"hold counts from {least} to {LARGEST_COUNT}")


def within(name: str, values: npt.NDArray[np.integer[Any]], size: int) -> None:
    """Require indices below `size`."""
    require((values >= 0) & (values < size), name, f"hold integers in 0..{size - 1}")


def factor(name: str, values: npt.NDArray[np.floating[Any]]) -> None:
    """Require upper triangular matrices, in the last two axes, with a positive diagonal."""
    require(np.diagonal(values, axis1=-2, axis2=-1) > 0, name, "have a positive diagonal")
    require(np.tril(values, -1) == 0, name, "be zero below the diagonal")


def precision(name: str, values: Floats) -> None:
    """Require symmetric positive definite matrices."""
    require(np.isclose(values, np.swapaxes(values, -1, -2), rtol=1e-6), name, "be symmetric")
    try:
        np.linalg.cholesky(values)
    except np.linalg.LinAlgError:
        require(False, name, "be positive definite")


def rewards(name: str, values: Floats, problem: TableProblem) -> None:
    """Require rewards within the problem's range."""
    low, high = problem.reward_range
    require((values >= low) & (values <= high), name, "hold rewards within the problem's range")


def reward_sums(name: str, sums: Floats, visits: Ints, problem: TableProblem) -> None:
    """Require sums that are possible for this many rewards within the problem's range, up to rounding."""
    slack = 1e-9 * (1.0 + np.abs(sums))
    for end, sign in zip(problem.reward_range, (1.0, -1.0), strict=True):
        if np.isfinite(end):
            require(sign * (sums - end * visits) >= -slack, name, "be sums of rewards within the problem's range")
    require((sums == 0) | (visits > 0), name, "be zero where nothing was visited")
