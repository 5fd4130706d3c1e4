"""Delays from the times at which feedback was sent and arrived."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belated.delays import NEVER, FeedbackQueue, Fixed
from belated.delays._recorded import as_times, delays_between
from belated.errors import DamagedFileError, InvalidInputError, UnknownNameError

DAY = datetime(2024, 3, 1)
SENT = [DAY + timedelta(minutes=10 * k) for k in range(4)]
ARRIVED = [DAY + timedelta(minutes=12), DAY + timedelta(minutes=11), None, DAY + timedelta(days=2)]
DELAYS = (1, 0, NEVER, 0)


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(st.tuples(st.integers(0, 40), st.one_of(st.none(), st.integers(0, 60))), min_size=1, max_size=20))
def test_each_episode_sees_what_has_arrived_when_it_is_sent(rows: list[tuple[int, int | None]]) -> None:
    rows = sorted(rows, key=lambda row: row[0])  # ties keep their order
    sent = [when for when, _ in rows]
    arrived = [None if late is None else when + late for when, late in rows]
    buffer: FeedbackQueue[int] = FeedbackQueue()
    seen: set[int] = set()
    for k, delay in enumerate(delays_between(sent, arrived).tolist()):
        seen |= {origin for origin, _ in buffer.arrived(k)}
        assert seen == {j for j in range(k) if (there := arrived[j]) is not None and there <= sent[k]}
        buffer.add(k, delay, k)
    assert buffer.lost == arrived.count(None)


def test_rows_are_put_in_the_order_of_sending() -> None:
    assert delays_between([30, 0, 20, 10], [99, 12, np.nan, 11]).tolist() == list(DELAYS)


@pytest.mark.parametrize(
    ("sent", "arrived"),
    [
        ([0, 10, 20, 30], [12, 11, None, 99]),
        ([0.0, 1.0, 2.0, 3.0], [1.2, 1.1, np.nan, 9.9]),
        (SENT, ARRIVED),
        (np.array(SENT, dtype="datetime64[s]"), np.array(ARRIVED, dtype="datetime64[ms]")),
        (pl.Series(SENT), pl.Series(ARRIVED)),
    ],
)
def test_times_are_numbers_or_dates(sent: Any, arrived: Any) -> None:
    assert Fixed.from_times(sent, arrived) == Fixed(DELAYS)


def test_times_of_files(tmp_path: Path) -> None:
    zone = [None if each is None else each.replace(tzinfo=UTC) for each in ARRIVED]
    frames = {
        "times": pl.DataFrame({"sent": SENT, "arrived": ARRIVED}),
        "zoned": pl.DataFrame({"sent": [each.replace(tzinfo=UTC) for each in SENT], "arrived": zone}),
        "numbers": pl.DataFrame({"sent": [0.5, 10, 20, 30], "arrived": [12, 11, None, 99]}),
    }
    for name, frame in frames.items():
        frame.write_csv(tmp_path / f"{name}.csv")
        frame.write_parquet(tmp_path / f"{name}.parquet")
        for kind in ("csv", "parquet"):
            path = tmp_path / f"{name}.{kind}"
            assert Fixed.from_file(path, sent="sent", arrived="arrived") == Fixed(DELAYS)
    days = tmp_path / "days.csv"
    days.write_text("id,out,back\n1,2024-03-02,2024-03-02\n0,2024-03-01,2024-03-03\n2,2024-03-03,\n")
    assert Fixed.from_file(str(days), sent="out", arrived="back").delays == (1, 0, NEVER)
    days.write_text("id,out,back\n1,5,\n0,6,\n")
    assert Fixed.from_file(days, sent="out", arrived="back").delays == (NEVER, NEVER)


def test_bad_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("sent,arrived,late,day\n1,3,soon,2024-03-01\n2,1,later,2024-03-02\n")
    with pytest.raises(InvalidInputError, match="arrived must not be before sent, but is in row 2"):
        Fixed.from_file(path, sent="sent", arrived="arrived")
    with pytest.raises(InvalidInputError, match=r"column 'late' of .* must hold numbers, dates or times.* String"):
        Fixed.from_file(path, sent="sent", arrived="late")
    with pytest.raises(InvalidInputError, match=r"columns 'sent' and 'day' of .* must both hold numbers, or"):
        Fixed.from_file(path, sent="sent", arrived="day")
    with pytest.raises(UnknownNameError, match=r"sent must be one of .*got 'send'; did you mean 'sent'"):
        Fixed.from_file(path, sent="send", arrived="arrived")
    path.write_text("")
    with pytest.raises(DamagedFileError, match="cannot be read"):
        Fixed.from_file(path, sent="sent", arrived="arrived")


@pytest.mark.parametrize(
    ("sent", "arrived", "message"),
    [
        ([], [], "sent must be a time for each episode"),
        ([1, None], [2, 3], "sent must be a time for each episode"),
        ([[1]], [[2]], "sent must be a time for each episode"),
        ([1, 2], [2], r"arrived must be of shape \(2,\)"),
        ([1, 2], [2, 1], "arrived must not be before sent, but is in row 2"),
        (["a"], [2], "sent must be numbers, dates or times"),
        ([1], [object()], "arrived must be numbers, dates or times"),
    ],
)
def test_bad_times_are_refused(sent: Any, arrived: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^{message}"):
        delays_between(sent, arrived)


def test_what_is_no_time_is_nan() -> None:
    assert np.isnan(as_times("arrived", [None, DAY])).tolist() == [True, False]
    assert as_times("arrived", np.array([DAY], "datetime64[D]"))[0] == 1709251200e6
