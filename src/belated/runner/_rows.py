"""The columns of rows, for arrays, frames and files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._util.validate import array, indices, refuse
from belated.delays._base import NEVER
from belated.environments import FiniteMDP
from belated.types import Environment, Floats, Ints

if TYPE_CHECKING:
    import polars as pl

COLUMNS: dict[str, type[np.int64 | np.float64]] = {
    "episode": np.int64,
    "start": np.int64,
    "delay": np.int64,
    "arrived": np.int64,
    "value": np.float64,
    "optimal": np.float64,
    "sampled_return": np.float64,
    "regret": np.float64,
}
"""The columns of rows in order, with their types; in frames and files an infinite delay is null."""


UNKNOWABLE = ("value", "optimal", "regret")
"""Columns that are null in environments without a table."""


class BlockRows(NamedTuple):
    """The columns that both loops fill, for every episode of a block."""

    start: Ints
    delay: Ints
    arrived: Ints
    value: Floats
    sampled_return: Floats


def make_block_rows(episodes: int) -> BlockRows:
    """Allocate the rows of a block of that many episodes."""
    blank = make_columns(episodes)
    return BlockRows(**{name: blank[name] for name in BlockRows._fields})


def make_columns(rows: int) -> dict[str, npt.NDArray[Any]]:
    return {name: np.zeros(rows, kind) for name, kind in COLUMNS.items()}


def schema() -> dict[str, Any]:
    import polars as pl

    return {name: pl.Int64() if kind is np.int64 else pl.Float64() for name, kind in COLUMNS.items()}


def to_frame(columns: dict[str, npt.NDArray[Any]]) -> pl.DataFrame:
    import polars as pl

    never = columns["delay"] == NEVER
    delay = pl.Series(np.where(never, 0, columns["delay"])).set(pl.Series(never), None)
    frame = pl.DataFrame({name: delay if name == "delay" else columns[name] for name in COLUMNS})
    return frame.with_columns(pl.col(*UNKNOWABLE).fill_nan(None))


def from_frame(frame: pl.DataFrame) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of rows, the inverse of `to_frame`."""
    missing = {name: np.nan if kind is np.float64 else NEVER for name, kind in COLUMNS.items()}
    return {name: frame[name].fill_null(missing[name]).to_numpy() for name in COLUMNS}


def recorded(episodes: Ints, last: int, every: int) -> Ints:
    """Return the `episodes` that get a row: every n-th, and the `last`."""
    if every == 1:
        return episodes
    kept: Ints = episodes[((episodes + 1) % every == 0) | (episodes == last)]
    return kept


def value_bounds(environment: FiniteMDP) -> tuple[float, float]:
    """Return bounds on the value of any policy: H times the minimum and maximum mean reward, up to rounding."""
    rewards, horizon = environment.world.rewards, environment.horizon
    low, high = horizon * float(rewards.min()), horizon * float(rewards.max())
    slack = 1e-6 * (1.0 + abs(low) + abs(high))
    return low - slack, high + slack


def check_rows(
    columns: dict[str, npt.NDArray[Any]],
    environment: Environment,
    episodes: int,
    every: int,
    played: int | None = None,
) -> None:
    """Raise `InvalidInputError` unless these can be the rows of a run, or of its first `played` episodes."""
    whole = episodes if played is None else played
    wanted = -(-episodes // every) if whole == episodes else whole // every
    if set(columns) != set(COLUMNS):
        raise refuse("the columns", sorted(columns), f"{sorted(COLUMNS)}")
    for name, kind in COLUMNS.items():
        if columns[name].dtype != kind or columns[name].shape != (wanted,):
            raise refuse(f"column {name}", columns[name].shape, f"{wanted} of type {np.dtype(kind)}")
    episode, start, delay, arrived = (columns[name] for name in ("episode", "start", "delay", "arrived"))
    if not np.array_equal(episode, recorded(np.arange(whole), episodes - 1, every)):
        raise refuse("column episode", episode, "the recorded episodes")
    states = environment.states if isinstance(environment, FiniteMDP) else np.iinfo(np.int64).max
    indices("column start", start, (wanted,), states)
    for name, values in (("delay", delay), ("arrived", arrived)):
        if values.min(initial=0) < 0:
            raise refuse(f"column {name}", values.min(), "at least 0")
    if not isinstance(environment, FiniteMDP) or (wanted and np.isnan(columns["value"]).all()):  # played step by step
        _check_sampled(columns, wanted)
        return
    value, optimal = (array(f"column {name}", columns[name], (wanted,)) for name in ("value", "optimal"))
    regret = array("column regret", columns["regret"], (wanted,))
    array("column sampled_return", columns["sampled_return"], (wanted,))
    low, high = value_bounds(environment)
    for name, values in (("value", value), ("optimal", optimal)):
        if values.size and (values.min() < low or values.max() > high):
            raise refuse(f"column {name}", values, f"within [{low:g}, {high:g}]")
    if (np.abs(np.diff(regret, prepend=0.0)) > (high - low) * np.diff(episode, prepend=-1)).any():
        raise refuse("column regret", regret, f"growing by at most {high - low:g} per episode")
    if (arrived > episode).any():
        raise refuse("column arrived", arrived, "at most the number of earlier episodes")
    if every == 1:
        _check_sums(delay, arrived, regret, optimal - value)


def _check_sampled(columns: dict[str, npt.NDArray[Any]], wanted: int) -> None:
    """Raise `InvalidInputError` unless rows of a simulator have returns, but no values and no regret."""
    array("column sampled_return", columns["sampled_return"], (wanted,))
    known = [np.isfinite(columns[name]).all() for name in UNKNOWABLE]
    if not all(known) and not all(np.isnan(columns[name]).all() for name in UNKNOWABLE):
        raise refuse("columns value, optimal and regret", "some", "all known or all unknown")


def _check_sums(delay: Ints, arrived: Ints, regret: Floats, gaps: Floats) -> None:
    """Raise `InvalidInputError` if the regret and arrivals of complete rows contradict the other columns."""
    if not np.array_equal(regret, np.cumsum(gaps)):
        raise refuse("column regret", regret, "the running sum of optimal − value")
    due = np.minimum(delay, delay.size) + np.arange(delay.size) + 1
    if not np.array_equal(arrived, np.bincount(due[due < delay.size], minlength=delay.size)):
        raise refuse("column arrived", arrived, "the arrivals implied by the delays")
