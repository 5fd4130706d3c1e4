"""The buffer neither loses, duplicates nor hands out early, and the schedule agrees with it."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belated.delays import NEVER, FeedbackQueue, arrival_schedule
from belated.errors import InvalidInputError

DELAYS = st.lists(st.one_of(st.integers(0, 12), st.integers(0, NEVER), st.just(NEVER)), max_size=30)


def run(delays: list[int]) -> list[list[tuple[int, str]]]:
    """Plan and play each episode, and return what each plan was given."""
    buffer: FeedbackQueue[str] = FeedbackQueue()
    given_out = []
    for episode, delay in enumerate(delays):
        given_out.append(buffer.arrived(episode))
        buffer.add(episode, delay, f"item {episode}")
    return given_out


@given(DELAYS)
def test_each_item_is_handed_out_once_and_when_due(delays: list[int]) -> None:
    for planned, batch in enumerate(run(delays)):
        due = [k for k, delay in enumerate(delays) if k + delay + 1 == planned]
        assert batch == [(k, f"item {k}") for k in due]


@given(DELAYS, st.sets(st.integers(0, 60)))
def test_skipped_plans_lose_nothing(delays: list[int], planned: set[int]) -> None:
    buffer: FeedbackQueue[int] = FeedbackQueue()
    order = np.random.default_rng(len(delays)).permutation(len(delays)).tolist()
    for k in order:
        buffer.add(k, delays[k], k)
    received: list[int] = []
    for episode in sorted(planned):
        batch = buffer.arrived(episode)
        assert batch == sorted(batch)
        received += [item for _, item in batch]
        expected = {k for k, delay in enumerate(delays) if k + delay <= episode - 1}
        assert sorted(received) == sorted(expected)
        never = {k for k, delay in enumerate(delays) if delay == NEVER}
        assert buffer.waiting() == sorted(set(range(len(delays))) - expected - never)
        assert buffer.in_flight == len(delays) - len(expected) - len(never)
        assert buffer.lost == len(never)
        assert buffer.oldest == min(buffer.waiting(), default=None)
        assert buffer.arrived(episode) == []


def test_delay_zero_is_usable_in_the_very_next_episode() -> None:
    assert run([0, 0, 0]) == [[], [(0, "item 0")], [(1, "item 1")]]


def test_what_never_arrives_is_counted_and_not_kept() -> None:
    buffer: FeedbackQueue[str] = FeedbackQueue()
    assert (buffer.in_flight, buffer.oldest, buffer.waiting(), buffer.lost) == (0, None, [], 0)
    buffer.add(3, NEVER, "lost")
    buffer.add(4, NEVER - 1, "very late")
    with pytest.raises(InvalidInputError, match="episode must be one that was not added already, got 3"):
        buffer.add(3, 0, "again")
    assert buffer.arrived(NEVER) == []
    assert (buffer.in_flight, buffer.oldest, buffer.waiting(), buffer.lost) == (1, 4, [4], 1)
    assert buffer.arrived(NEVER + 4) == [(4, "very late")]
    assert (buffer.in_flight, buffer.lost) == (0, 1)


def test_memory_does_not_grow_with_what_is_lost() -> None:
    def after(episodes: int) -> int:
        buffer: FeedbackQueue[int] = FeedbackQueue()
        for episode in range(episodes):
            buffer.arrived(episode)
            buffer.add(episode, NEVER if episode % 2 else 3, episode)
        assert buffer.lost == episodes // 2
        return len(pickle.dumps(buffer))

    assert after(20_000) < after(100) + 50  # longer numbers, not more of them


def test_items_need_not_be_comparable() -> None:
    buffer: FeedbackQueue[dict[str, int]] = FeedbackQueue()
    buffer.add(0, 1, {"a": 1})
    buffer.add(1, 0, {"b": 2})
    assert buffer.arrived(2) == [(0, {"a": 1}), (1, {"b": 2})]


@pytest.mark.parametrize(
    ("episode", "delay", "message"),
    [
        (4, 9, "episode must be >= 5, the last one planned, got 4"),
        (0, 0, "episode must be >= 5, the last one planned, got 0"),
        (7, 0, "episode must be one that was not added already, got 7"),
        (-1, 0, "episode must be an integer >= 0, got -1"),
        (8, -1, "delay must be an integer >= 0 .*got -1"),
        (8, 1.5, "delay must be an integer .*got 1.5"),
        (8, NEVER + 1, f"delay must be an integer .*got {NEVER + 1}"),
    ],
)
def test_a_refused_item_changes_nothing(episode: int, delay: int, message: str) -> None:
    buffer: FeedbackQueue[str] = FeedbackQueue()
    buffer.add(0, 0, "early")
    buffer.arrived(5)
    buffer.add(7, 2, "kept")
    with pytest.raises(InvalidInputError, match=message):
        buffer.add(episode, delay, "refused")
    assert buffer.waiting() == [7]
    assert buffer.arrived(100) == [(7, "kept")]


def test_time_does_not_run_backwards() -> None:
    buffer: FeedbackQueue[str] = FeedbackQueue()
    buffer.arrived(5)
    with pytest.raises(InvalidInputError, match="episode must be >= 5, the last one planned, got 4"):
        buffer.arrived(4)
    buffer.add(5, 0, "now")
    assert buffer.arrived(6) == [(5, "now")]


@given(DELAYS)
def test_schedule_agrees_with_the_buffer(delays: list[int]) -> None:
    offsets, order = arrival_schedule(np.array(delays, dtype=np.int64))
    assert offsets.dtype == order.dtype == np.int64
    assert offsets.shape == (len(delays) + 1,)
    assert offsets[-1] == order.size
    scheduled = [order[i:j].tolist() for i, j in pairwise(offsets.tolist())]
    assert scheduled == [[k for k, _ in batch] for batch in run(delays)]


def test_schedule_keeps_simultaneous_arrivals_in_order() -> None:
    delays = np.random.default_rng(0).integers(0, 300, size=1000)
    offsets, order = arrival_schedule(delays)
    for k, (i, j) in enumerate(pairwise(offsets.tolist())):
        assert order[i:j].tolist() == np.flatnonzero(np.arange(1000) + delays + 1 == k).tolist()


@pytest.mark.parametrize("delays", [[1, -3], [0.5], [[1, 2]]])
def test_schedule_refuses_what_is_no_list_of_delays(delays: list[object]) -> None:
    with pytest.raises(InvalidInputError, match="delays must"):
        arrival_schedule(np.array(delays))


@given(DELAYS, st.integers(0, 40))
def test_items_and_flush_are_what_is_still_in_flight(delays: list[int], planned: int) -> None:
    queue: FeedbackQueue[str] = FeedbackQueue()
    for k in np.random.default_rng(planned).permutation(len(delays)).tolist():
        queue.add(k, delays[k], f"item {k}")
    queue.arrived(planned)
    left = [(k, delay) for k, delay in enumerate(delays) if delay != NEVER and k + delay + 1 > planned]
    assert queue.items() == sorted((k + delay + 1, k, f"item {k}") for k, delay in left)
    assert queue.in_flight == len(left)  # looking takes nothing
    assert queue.flush() == [(k, f"item {k}") for k, _ in left]
    assert (queue.in_flight, queue.oldest, queue.items(), queue.flush()) == (0, None, [], [])
    assert queue.lost == sum(delay == NEVER for delay in delays)
    queue.add(max(planned, len(delays)), 0, "next")
    assert queue.in_flight == 1


def test_items_are_returned_although_they_cannot_be_compared() -> None:
    queue: FeedbackQueue[object] = FeedbackQueue()
    first, second = object(), object()
    queue.add(1, 0, second)
    queue.add(0, 1, first)
    assert queue.items() == [(2, 0, first), (2, 1, second)]
    assert queue.flush() == [(0, first), (1, second)]
