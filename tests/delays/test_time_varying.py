"""Distributions in time, against what they say, worked out by hand or episode by episode."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from delay_distributions import TIME_VARYING, by_label
from hypothesis import given, settings
from hypothesis import strategies as st

from belated._kernels.streams import stream
from belated.delays import (
    DELAYS,
    NEVER,
    Backlog,
    Bursts,
    Constant,
    DelayDistribution,
    Drift,
    Empirical,
    Fixed,
    Geometric,
    Lossy,
    Outages,
    Pareto,
    Periodic,
    Poisson,
    Uniform,
    arrival_schedule,
)
from belated.delays._time_varying import LATE, MOST_WORK
from belated.errors import InvalidInputError
from belated.theory import delay_bound, missing_bound

ANY_DELAYS = st.lists(
    st.one_of(st.integers(0, 30), st.just(NEVER), st.integers(LATE - 2, NEVER)), min_size=1, max_size=40
)


def drawn(distribution: DelayDistribution, count: int, seed: int = 0) -> list[int]:
    return [int(delay) for delay in distribution.sample(stream(seed, "delay"), count)]


@settings(max_examples=200, deadline=None)
@given(delays=ANY_DELAYS, every=st.integers(1, 9), data=st.data())
def test_periodic_hands_out_at_the_first_time_that_feedback_is_there(delays: list[int], every: int, data: Any) -> None:
    offset = data.draw(st.integers(0, every - 1))
    distribution = Periodic(every, Fixed(delays), offset=offset)
    for k, (before, after) in enumerate(zip(delays, drawn(distribution, len(delays)), strict=True)):
        if before >= LATE:
            assert after == before
            continue
        when = k + before + 1
        while when % every != offset:
            when += 1
        assert k + after + 1 == when


def test_periodic_by_hand() -> None:
    assert drawn(Periodic(3), 7) == [2, 1, 0, 2, 1, 0, 2]
    assert drawn(Periodic(3, offset=1), 7) == [0, 2, 1, 0, 2, 1, 0]
    assert drawn(Periodic(3, Constant(1)), 4) == [2, 1, 3, 2]
    assert (Periodic(3).label, Periodic(3, offset=1).label) == ("periodic-3-constant-0", "periodic-3-constant-0-1")
    assert drawn(Periodic(1, Poisson(5)), 100) == drawn(Poisson(5), 100)
    offsets, _ = arrival_schedule(Periodic(24).sample(stream(0, "delay"), 240))
    assert np.flatnonzero(np.diff(offsets)).tolist() == list(range(24, 240, 24))  # a batch every 24 episodes ...
    assert set(np.diff(offsets)) == {0, 24}  # ... of all 24


@settings(max_examples=200, deadline=None)
@given(delays=ANY_DELAYS, cuts=st.lists(st.integers(0, 50), min_size=2, max_size=6, unique=True).map(sorted))
def test_during_an_outage_nothing_arrives_and_all_does_when_it_ends(delays: list[int], cuts: list[int]) -> None:
    windows = list(zip(cuts[::2], cuts[1::2], strict=False))
    after = drawn(Outages(windows[::-1], Fixed(delays)), len(delays))
    for k, (before, late) in enumerate(zip(delays, after, strict=True)):
        when = k + before + 1
        (hit,) = [end for start, end in windows if start <= when < end] or [when]
        assert k + late + 1 == hit


def test_hundreds_arrive_together_after_an_outage() -> None:
    delays = Outages([[100, 900]], Constant(0)).sample(stream(0, "delay"), 1000)
    offsets, order = arrival_schedule(delays)
    arrived = np.diff(offsets)
    assert (arrived[1:100] == 1).all()
    assert (arrived[100:900] == 0).all()
    assert order[offsets[900] : offsets[901]].tolist() == list(range(99, 900))
    assert (arrived[901:] == 1).all()


def test_drift_by_hand() -> None:
    assert drawn(Drift(Constant(10), Constant(0), start=1, end=5), 7) == [10, 10, 8, 5, 2, 0, 0]
    assert drawn(Drift(Constant(0), Lossy(Constant(1), 1), start=1, end=3), 4) == [0, 0, NEVER, NEVER]
    far = Drift(Constant(NEVER - 1), Constant(NEVER - 2), start=1, end=3)
    assert drawn(far, 4) == [NEVER - 1, NEVER - 1, LATE, NEVER - 2]


def test_a_drift_begins_as_the_one_distribution_and_ends_as_the_other() -> None:
    distribution = Drift(Poisson(3), Geometric(50), start=200, end=700)
    found = drawn(distribution, 1000)
    assert found[:201] == drawn(Poisson(3), 1000)[:201]
    assert found[700:] == drawn(Geometric(50), 1000)[700:]
    ends = np.array([drawn(Poisson(3), 1000), drawn(Geometric(50), 1000)])[:, 200:701]
    assert (ends.min(axis=0) <= found[200:701]).all()
    assert (found[200:701] <= ends.max(axis=0)).all()
    middle = distribution.draw(stream(4, "delay"), 20_000, 450, None)[0][:1].tolist()
    half = [distribution.draw(stream(seed, "delay"), 1, 450, None)[0][0] for seed in range(2000)]
    assert middle == half[4:5]
    assert np.mean(half) == pytest.approx((3 + 50) / 2, abs=2.5)  # five standard errors of the mean


def test_bursts_last_and_come_as_often_as_they_say() -> None:
    distribution = Bursts(Constant(1), Constant(9), begin=0.02, end=0.1)
    inside = distribution.sample(stream(1, "delay"), 100_000) == 9
    assert inside.mean() == pytest.approx(0.02 / 0.12, abs=0.02)
    assert distribution.mean == pytest.approx(1 + 8 * 0.02 / 0.12)
    starts = np.flatnonzero(np.diff(inside.astype(int)) == 1)
    assert starts.size / (~inside).sum() == pytest.approx(0.02, abs=0.002)
    assert inside.sum() / starts.size == pytest.approx(10, abs=1)
    first = [distribution.sample(stream(seed, "delay"), 1)[0] == 9 for seed in range(2000)]
    assert np.mean(first) == pytest.approx(1 / 6, abs=0.04)


def test_bursts_follow_the_chain_step_by_step() -> None:
    distribution = Bursts(Uniform(0, 9), Poisson(60), begin=0.2, end=0.4)
    rng, within, expected = stream(3, "delay"), None, []
    for _ in range(300):
        chain, level = rng.random(), rng.random()
        within = chain < 1 / 3 if within is None else (chain >= 0.4 if within else chain < 0.2)
        expected.append((distribution.burst if within else distribution.calm).quantile(level))
    assert drawn(distribution, 300, seed=3) == expected
    assert distribution.draw(stream(3, "delay"), 300, 0, None)[1] is within


def test_bursts_that_always_turn_alternate() -> None:
    found = drawn(Bursts(Constant(0), Constant(5), begin=1, end=1), 6)
    assert sorted(found[:2]) == [0, 5]
    assert found == found[:2] * 3


def test_a_backlog_is_worked_off_unit_by_unit() -> None:
    distribution = Backlog(Geometric(4), rate=5)
    work = drawn(Geometric(4), 500, seed=2)
    units = np.repeat(np.arange(500), work)  # the episode that brought each unit, in the order in which they are done
    finished: list[int] = []  # when each of them is done, five from one episode to the next
    for now in range(700):
        finished += [now] * min(5, int((units <= now).sum()) - len(finished))
    brought = np.cumsum(work)
    expected = [max(finished[brought[k] - 1], k) if brought[k] else k for k in range(500)]
    assert drawn(distribution, 500, seed=2) == [ready - k for k, ready in enumerate(expected)]


def test_backlog_by_hand() -> None:
    assert drawn(Backlog(Constant(5), rate=2), 4) == [2, 3, 5, 6]  # 5/2, 8/2, 11/2, 14/2, rounded up, less one
    distribution = Backlog(Empirical([0, 6]), rate=2)
    delays, left = distribution.draw(stream(0, "delay"), 50, 0, None)
    work, backlog, expected = drawn(Empirical([0, 6]), 50), 0, []
    for each in work:
        expected.append(max(math.ceil((backlog + each) / 2) - 1, 0))
        backlog = max(backlog + each - 2, 0)
    assert delays.tolist() == expected
    assert left == backlog
    assert max(expected) > 10  # three units come for every two that are done
    assert Backlog(Constant(2), rate=2).mean == 0.0
    assert Backlog(Poisson(2), rate=2).mean == math.inf
    assert math.isnan(Backlog(Poisson(2), rate=3).mean)


def test_a_backlog_stays_a_number_however_much_work_comes() -> None:
    distribution = Backlog(Pareto(1.01, 2.0**53), rate=1)
    state, delays = None, np.zeros(0, np.int64)
    for first in range(0, 3000, 1000):
        delays, state = distribution.draw(stream(1, "delay"), 1000, first, state)
    assert delays.min() > 0
    assert state == 3000 * (MOST_WORK - 1)
    assert distribution.draw(stream(1, "delay"), 1, 5, LATE)[1] == LATE


def test_means_are_those_of_long_samples() -> None:
    for distribution, size in [
        (Periodic(7, Poisson(5), offset=3), 70_000),
        (Outages([[10, 500]], Poisson(5)), 400_000),
        (Drift(Poisson(50), Poisson(5), start=10, end=500), 400_000),
    ]:
        assert distribution.sample(stream(5, "delay"), size).mean() == pytest.approx(distribution.mean, abs=0.4)
    assert Periodic(5, Lossy(Constant(1), 0.1)).mean == math.inf
    assert math.isnan(Periodic(5, Fixed([1])).mean)


@pytest.mark.parametrize("distribution", TIME_VARYING, ids=by_label)
def test_the_theorems_do_not_apply(distribution: DelayDistribution) -> None:
    assert distribution.subexponential() is None
    for bound in (delay_bound, missing_bound):
        with pytest.raises(InvalidInputError, match=rf"^delay must be independent and .*{distribution.label} is not"):
            bound(distribution, 1000, 0.1)


BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: Periodic(0), "every must be an integer >= 1"),
    (lambda: Periodic(2.5), "every must be an integer"),  # type: ignore[arg-type]
    (lambda: Periodic(3, offset=3), "offset must be an integer >= 0 and <= 2, got 3"),
    (lambda: Periodic(3, 5), "of must be a delay distribution, got 5"),  # type: ignore[arg-type]
    (lambda: Outages([]), r"windows must have shape \(any, 2\), got \(0,\)"),
    (lambda: Outages(np.zeros((0, 2), int)), "windows must be at least one pair"),  # type: ignore[arg-type]
    (lambda: Outages([[5, 5]]), r"windows must be .* pair \[start, end\] with start < end"),
    (lambda: Outages([[1, 5], [4, 9]]), "windows must be .* none of them overlapping or adjacent"),
    (lambda: Outages([[1, 5], [5, 9]]), "windows must be .* none of them overlapping or adjacent"),
    (lambda: Outages([[-1, 5]]), "windows must hold integers"),
    (lambda: Outages([[1, 5, 9]]), r"windows must have shape \(any, 2\)"),
    (lambda: Outages([[1, 5]], 3), "of must be a delay distribution, got 3"),  # type: ignore[arg-type]
    (lambda: Drift(Constant(1), Constant(2), start=5, end=5), "end must be an integer >= 6"),
    (lambda: Drift(Fixed([1]), Constant(2), 0, 5), "before must be a distribution of independent draws"),  # type: ignore[arg-type]
    (lambda: Drift(Constant(1), Periodic(2), 0, 5), "after must be a distribution of independent draws"),  # type: ignore[arg-type]
    (lambda: Bursts(Constant(0), Constant(1), begin=0, end=0.1), "begin must be a finite number > 0 and <= 1"),
    (lambda: Bursts(Constant(0), Constant(1), begin=0.1, end=1.1), "end must be a finite number > 0 and <= 1"),
    (lambda: Bursts(Fixed([1]), Constant(1), 0.1, 0.1), "calm must be a distribution of independent"),  # type: ignore[arg-type]
    (lambda: Bursts(Constant(0), 1, 0.1, 0.1), "burst must be a delay distribution, got 1"),  # type: ignore[arg-type]
    (lambda: Backlog(Constant(1), rate=0), "rate must be an integer >= 1"),
    (lambda: Backlog(Pareto(1, 2), rate=3), "work must be a distribution of finite mean, got Pareto"),
    (lambda: Backlog(Lossy(Constant(1), 0.1), rate=3), "work must be a distribution of finite mean, got Lossy"),
    (lambda: Backlog(Fixed([1]), rate=3), "work must be a distribution of independent draws"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_settings_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^{message}"):
        make()


@pytest.mark.parametrize(
    ("distribution", "first", "state", "message"),
    [
        (
            Bursts(Constant(0), Constant(1), 0.1, 0.1),
            5,
            None,
            "state must be what the previous draw returned",
        ),
        (Bursts(Constant(0), Constant(1), 0.1, 0.1), 5, 3, "state must be"),
        (Backlog(Constant(1), 2), 5, None, "state must be what the previous draw returned"),
        (Backlog(Constant(1), 2), 0, 3, "state must be what the previous draw returned, None for the first"),
        (Backlog(Constant(1), 2), 5, -3, "state must be an integer >= 0"),
    ],
)
def test_a_state_of_something_else_is_refused(
    distribution: DelayDistribution, first: int, state: object, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"^{message}"):
        distribution.draw(stream(0, "delay"), 3, first, state)


def test_all_are_known_by_name() -> None:
    assert {
        name for name, distribution in DELAYS.items() if distribution.__module__ == "belated.delays._time_varying"
    } == {
        "periodic",
        "outages",
        "drift",
        "bursts",
        "backlog",
    }
