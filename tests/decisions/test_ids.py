"""Ids: no two alike, whoever makes them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from belated.decisions import ClockError
from belated.decisions._ids import CARRIED, CheckedClock, new_id, time_of
from belated.decisions._operations import STEP

FORK = """
import os
from belated.decisions._ids import new_id
new_id(1.0)  # some are made beforehand
reads, writes = os.pipe()
child = os.fork()
os.write(writes, " ".join([new_id(1.0) for _ in range(20)] + [""]).encode())
if child:
    os.waitpid(child, 0)
    print(len(set(os.read(reads, 10_000).split())))
"""


def test_threads_never_get_the_same() -> None:
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.extend(new_id(5.0) for _ in range(2000))) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(set(made)) == 8000
    assert {time_of(each) for each in made} == {5.0}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_process_that_forks_shares_none_with_its_child() -> None:
    found = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["40"]


class Times:
    """What clocks say; the true time, the wrong one, and how often that was read."""

    def __init__(self) -> None:
        self.true, self.wrong, self.own_wrong, self.reads = 0.0, 0.0, 0.0, 0

    def clock(self, *, far: bool = False) -> CheckedClock:
        return CheckedClock(self.read, far=far, own=lambda: 2e9 + self.true + self.own_wrong, passed=lambda: self.true)

    def read(self) -> float:
        self.reads += 1
        return 2e9 + self.true + self.wrong


@pytest.mark.parametrize("wrong", [STEP + 1, -STEP - 1, 86400.0, -86400.0, 3.2e8, -3.2e8])
@pytest.mark.parametrize("far", [False, True])
def test_a_clock_that_jumps_is_refused_until_it_is_right_again(wrong: float, far: bool) -> None:
    times = Times()
    clock = times.clock(far=far)
    for seconds in (0.0, 20.0, 86400.0, 0.0):  # a service may have nothing to do for a day
        times.true += seconds
        assert clock() == pytest.approx(2e9 + times.true)
    times.true, times.wrong = times.true + 20.0, wrong
    for _ in range(3):
        with pytest.raises(ClockError, match="correct it, or restart"):
            clock()
        assert clock.carried() == pytest.approx(2e9 + times.true)
        times.true += 20.0
    if not far:
        assert times.clock()() == times.read()  # a new process takes it as it is
    times.wrong = 0.0
    assert clock() == pytest.approx(2e9 + times.true)


@pytest.mark.parametrize("far", [False, True])
def test_what_is_no_time_is_refused(far: bool) -> None:
    times = Times()
    clock = times.clock(far=far)
    times.wrong = float("nan")
    for _ in range(2):
        with pytest.raises(ClockError):
            clock()
        times.wrong = 0.0
        clock()
        times.true, times.wrong = times.true + 20.0, float("nan")


@pytest.mark.parametrize("step", [STEP, -STEP, 1.0])
def test_a_small_step_is_taken_and_so_is_the_next(step: float) -> None:
    times = Times()
    clock = times.clock()
    clock()
    for _ in range(3):
        times.wrong += step
        assert clock() == 2e9 + times.wrong


def test_a_clock_far_away_is_read_now_and_then() -> None:
    times = Times()
    clock = times.clock(far=True)
    times.wrong = 2.0
    assert clock() == 2e9 + 2.0
    times.true += 0.9 * CARRIED
    times.own_wrong = 1e6  # nobody asks for it any more
    assert (clock(), times.reads) == (2e9 + 2.0 + times.true, 1)
    assert clock.offset() == pytest.approx(1e6 - 2.0)
    times.true += 0.2 * CARRIED
    times.wrong = 3.0
    assert (clock(), times.reads) == (2e9 + 3.0 + times.true, 2)


@pytest.mark.parametrize("wrong", [86400.0, -86400.0])
def test_two_clocks_that_disagree_at_the_start_are_refused_as_one_of_them_is_wrong(wrong: float) -> None:
    times = Times()
    clock = times.clock(far=True)
    times.wrong = wrong
    with pytest.raises(ClockError, match=r"seen from this machine, is 1\.0 days"):
        clock()
    times.wrong = 0.0
    assert clock() == 2e9
