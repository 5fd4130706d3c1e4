"""The columns of rows: one table, from which arrays, frames and files are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated.delays.base import NEVER
from belated.types import Floats, Ints

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
"""The columns of rows in their order, and what they hold; in frames and files a delay that never ends is null."""


class Journal(NamedTuple):
    """The columns that both loops fill themselves, for every episode of a block."""

    start: Ints
    delay: Ints
    arrived: Ints
    value: Floats
    sampled_return: Floats


def make_journal(episodes: int) -> Journal:
    """Return a journal with room for a block of so many episodes."""
    blank = make_columns(episodes)
    return Journal(**{name: blank[name] for name in Journal._fields})


def make_columns(rows: int) -> dict[str, npt.NDArray[Any]]:
    """Return room for so many rows."""
    return {name: np.zeros(rows, kind) for name, kind in COLUMNS.items()}


def schema() -> dict[str, Any]:
    """Return the columns of a frame of rows with their types."""
    import polars as pl

    return {name: pl.Int64() if kind is np.int64 else pl.Float64() for name, kind in COLUMNS.items()}


def to_frame(columns: dict[str, npt.NDArray[Any]]) -> pl.DataFrame:
    """Return rows as a frame."""
    import polars as pl

    never = columns["delay"] == NEVER
    delay = pl.Series(np.where(never, 0, columns["delay"])).set(pl.Series(never), None)
    return pl.DataFrame({name: delay if name == "delay" else columns[name] for name in COLUMNS})
