"""Recorded delays: resampled (`Empirical`) or replayed (`Fixed`), from arrays, files or timestamps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from belated._util.validate import choice, refuse
from belated.delays._base import NEVER, DelayDistribution, integer_delays
from belated.delays._distributions import Tabulated
from belated.errors import DamagedFileError, InvalidInputError
from belated.types import Floats, Ints

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, repr=False)
class Empirical(Tabulated):
    """Delays drawn with replacement from observed ones.

    >>> delay = Empirical([3, 0, 7, 3])
    >>> delay.mean, delay.quantile(0.5), delay.label
    (3.25, 3, 'empirical-4')
    """

    observed: Sequence[int] | Ints

    def checked(self) -> dict[str, Any]:
        return {"observed": integer_delays("observed", self.observed)}

    @classmethod
    def from_file(cls, path: str | Path, column: str) -> Empirical:
        """Return the distribution of the delays in one column of a CSV or Parquet file."""
        return cls(read_delays(Path(path), column))

    def _weighted(self) -> tuple[Ints, Floats]:
        values, counts = np.unique(np.array(self.observed), return_counts=True)
        return values, counts.astype(np.float64)


@dataclass(frozen=True, repr=False)
class Fixed(DelayDistribution):
    """A recorded or adversarial sequence: episode i has the delay `delays[i]`, whatever the random stream.

    It may contain `NEVER` and must be as long as the run. It is not random, so it has no sub-exponential parameters.

    >>> Fixed([5, 0, 2]).sample(np.random.default_rng(0), 2).tolist()
    [5, 0]
    """

    delays: Sequence[int] | Ints

    def checked(self) -> dict[str, Any]:
        return {"delays": integer_delays("delays", self.delays, maximum=NEVER)}

    @classmethod
    def from_times(cls, sent: Any, arrived: Any) -> Fixed:
        """Return the delays from the times at which episodes were sent and their feedback arrived.

        Times are numbers, or dates and times of Python or NumPy; nan, NaT or None means that feedback never arrived. An
        episode can use feedback that has arrived when it is sent. Episodes are sorted by when they were sent.

        >>> Fixed.from_times(sent=[0, 10, 20, 30], arrived=[12, 11, 35, None]).delays[:3]
        (1, 0, 1)
        """
        return cls(delays_between(sent, arrived))

    @classmethod
    def from_file(cls, path: str | Path, *, sent: str, arrived: str) -> Fixed:
        """Return `from_times` of two columns of a CSV or Parquet file; an empty cell is feedback that never arrived."""
        return cls.from_times(*read_times(Path(path), sent, arrived))

    @property
    def lasts(self) -> int:
        return len(self.delays)

    @property
    def mean(self) -> float:
        """The average delay, infinite if any feedback never arrives."""
        return math.inf if NEVER in self.delays else float(np.mean(np.array(self.delays)))

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        if first + count > len(self.delays):
            raise refuse("size", first + count, f"at most {len(self.delays)}, the number of fixed delays")
        return np.array(self.delays[first : first + count], dtype=np.int64), None


def read_columns(path: Path, columns: dict[str, str]) -> list[pl.Series]:
    """Return columns of a CSV or Parquet file; the keys are the names of the caller's arguments, for errors."""
    import polars as pl

    kind = path.suffix.lower()
    if kind not in (".csv", ".parquet"):
        raise refuse("path", str(path), "a file called .csv or .parquet")
    if not path.is_file():
        raise refuse("path", str(path), "a file that exists")
    try:
        # Types are inferred from all rows of a CSV: a late first fraction must not be mistaken for damage.
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
    """Return two columns of times as numbers, nan where a cell is empty."""
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
    """Return numbers, or dates and times of Python or NumPy, as numbers; nan where missing."""
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
    """Return delays in episodes, from the times at which episodes were sent and their feedback arrived.

    An episode is planned when it is sent, with the feedback that has arrived by then: the feedback of episode k is
    usable at the first k' > k with arrived[k] <= sent[k'], and its delay is k' - k - 1. Episodes are sorted by when
    they were sent. nan, NaT and None mean that feedback never arrived; feedback that arrived after the last episode was
    sent gets the delay that ends with the record.

    >>> delays_between([0, 10, 20, 30], [12, 11, None, 99]).tolist() == [1, 0, NEVER, 0]
    True
    """
    start, end = as_times("sent", sent), as_times("arrived", arrived)
    if start.ndim != 1 or not start.size or not np.isfinite(start).all():
        raise refuse("sent", sent, "a time for each episode (at least one)")
    if end.shape != start.shape:
        raise refuse("arrived", arrived, f"of shape {start.shape}, one time for each episode sent")
    if (end < start).any():
        wrong = int(np.flatnonzero(end < start)[0])
        raise InvalidInputError(f"arrived must not be before sent, but is in row {wrong + 1}")
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    sender = np.arange(start.size)
    planned = np.maximum(np.searchsorted(start, end, side="left"), sender + 1)  # k', the number of episodes if none
    return np.where(np.isnan(end), NEVER, planned - sender - 1)
