"""The stopwatch, on a clock of its own."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_info

from belated_studies.timing import Spread, spread, stopwatch, timed


class Clock:
    """A clock that work moves on, a millisecond a piece."""

    def __init__(self) -> None:
        self.now = 0.0
        self.counts: list[int] = []

    def work(self, count: int) -> None:
        self.counts.append(count)
        self.now += 0.001 * count


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("belated_studies.timing.time.perf_counter", lambda: clock.now)
    return clock


def test_the_stopwatch_counts_until_a_reading_lasts_long_enough(clock: Clock) -> None:
    read = stopwatch(clock.work, 0.05)
    assert read() == pytest.approx(0.001)
    assert clock.counts[0] == 1  # it compiles
    assert clock.counts[-1] >= 50
    assert clock.counts[-1] == clock.counts[-2]


def test_a_single_unit_that_lasts_long_enough_is_read_alone(clock: Clock) -> None:
    stopwatch(clock.work, 0.0005)()
    assert clock.counts == [1, 1, 1]


def test_readings_are_summed_up(clock: Clock) -> None:
    assert spread([0.25, 0.125, 4.0]) == Spread(0.25, 0.125, 4.0)
    assert spread([2.0, 4.0]).median == 3.0
    assert timed(clock.work, repeats=3, least_seconds=0.01).times(1000) == pytest.approx((1.0, 1.0, 1.0))
    assert clock.counts[-3:] == [clock.counts[-1]] * 3


def test_work_is_timed_on_one_thread_of_blas() -> None:
    threads: list[int] = []
    timed(lambda count: threads.extend(each["num_threads"] for each in threadpool_info()), repeats=1, least_seconds=0)
    assert threads
    assert set(threads) == {1}
