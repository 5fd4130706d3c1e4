"""Recorded delays: columns of a CSV or Parquet file, and the times at which feedback was sent and arrived."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from belated._util.validate import choice, refuse
from belated.delays._base import NEVER
from belated.errors import DamagedFileError, InvalidInputError
from belated.types import Floats, Ints

if TYPE_CHECKING:
    import polars as pl


def read_columns(path: Path, columns: dict[str, str]) -> list[pl.Series]:
    """Return columns of a CSV or Parquet file; the keys are what the caller's arguments are called."""
    import polars as pl

    kind = path.suffix.lower()
    if kind not in (".csv", ".parquet"):
        raise refuse("path", str(path), "a file called .csv or .parquet")
    if not path.is_file():
        raise refuse("path", str(path), "a file that exists")
    try:
        # All rows of a CSV are looked at: a first fraction far down must not be taken for damage.
        frame = (
            pl.scan_csv(path, infer_schema_length=None, glob=False, try_parse_dates=True)
            if kind == ".csv"
            else pl.scan_parquet(path, glob=False)
        )
        known = frame.collect_schema().names()
        for argument, column in columns.items():
            choice(argument, column, known)
        given = frame.select(*dict.fromkeys(columns.values())).collect()
    except pl.exceptions.PolarsError as error:
        raise DamagedFileError(f"{path} cannot be read as a table: {error}") from None
    return [given[column] for column in columns.values()]


def read_delays(path: Path, column: str) -> Ints:
    """Return the integers of a column."""
    import polars as pl

    (given,) = read_columns(path, {"column": column})
    expected = f"column {column!r} of {path} must hold integers >= 0"
    if not given.dtype.is_numeric():
        raise InvalidInputError(f"{expected}, got values of type {given.dtype}")
    whole = given.cast(pl.Int64, strict=False)
    wrong = (whole.is_null() | (whole.cast(given.dtype) != given) | (whole < 0) | (whole == NEVER)).arg_true()
    if len(wrong):
        raise InvalidInputError(f"{expected}, got {given[wrong[0]]} in row {wrong[0] + 1}")
    return np.asarray(whole, dtype=np.int64)


def read_times(path: Path, sent: str, arrived: str) -> tuple[Floats, Floats]:
    """Return two columns of times as numbers, nan where there is none."""
    import polars as pl

    given = read_columns(path, {"sent": sent, "arrived": arrived})
    known = [each.drop_nulls() for each in given]
    for each in known:
        if len(each) and not each.dtype.is_numeric() and each.dtype not in (pl.Datetime, pl.Date):
            expected = f"column {each.name!r} of {path} must hold numbers, dates or times"
            raise InvalidInputError(f"{expected}, got values of type {each.dtype}")
    if len({each.dtype.is_temporal() for each in known if len(each)}) > 1:
        raise InvalidInputError(f"columns {sent!r} and {arrived!r} of {path} must both hold numbers, or both times")
    numbers = [each.dt.epoch("us") if each.dtype.is_temporal() else each for each in given]
    first, second = (each.cast(pl.Float64, strict=False).to_numpy() for each in numbers)
    return first, second


def as_times(name: str, value: Any) -> Floats:
    """Return times, given as numbers or as dates and times of Python or NumPy, as numbers; nan where there is none."""
    try:
        given = np.asarray(value)
        if given.dtype.kind == "O" and any(hasattr(each, "year") for each in given.flat):
            given = given.astype("datetime64[us]")
        if given.dtype.kind == "M":
            missing = np.isnat(given)
            return np.where(missing, np.nan, given.astype("datetime64[us]").astype(np.int64).astype(np.float64))
        return given.astype(np.float64)
    except (TypeError, ValueError):
        raise refuse(name, value, "numbers, dates or times, one for each episode") from None


def delays_between(sent: Any, arrived: Any) -> Ints:
    """Return the delays, in episodes, of feedback that was sent and arrived at these times.

    An episode is planned when it is sent, and sees what has arrived by then: the feedback of episode k is usable at the
    first k' > k with arrived[k] <= sent[k'], and its delay is k' - k - 1. Episodes are put in the order in which they
    were sent. nan, NaT and None mean that feedback never arrived; what arrived after the last episode was sent has the
    delay that brings it to the end of the record.

    >>> delays_between([0, 10, 20, 30], [12, 11, None, 99]).tolist() == [1, 0, NEVER, 0]
    True
    """
    start, end = as_times("sent", sent), as_times("arrived", arrived)
    if start.ndim != 1 or not start.size or not np.isfinite(start).all():
        raise refuse("sent", sent, "a time for each episode, at least one")
    if end.shape != start.shape:
        raise refuse("arrived", arrived, f"of shape {start.shape}, a time for each that was sent")
    if (end < start).any():
        wrong = int(np.flatnonzero(end < start)[0])
        raise InvalidInputError(f"arrived must not be before sent, but is in row {wrong + 1}")
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    sender = np.arange(start.size)
    planned = np.maximum(np.searchsorted(start, end, side="left"), sender + 1)  # k', the number of episodes if none
    return np.where(np.isnan(end), NEVER, planned - sender - 1)
