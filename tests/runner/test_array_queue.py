"""The heap of what is in flight, against Python's own."""

from __future__ import annotations

import heapq

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from belated.runner._array_queue import ArrayQueue, make_array_queue, send, take_first, with_room
from belated.types import Floats, Ints

HORIZON = 2


def trajectory(origin: int) -> tuple[Ints, Ints, Floats]:
    """Return a trajectory that tells of which episode it is."""
    return np.full(HORIZON + 1, origin), np.full(HORIZON, -origin), np.full(HORIZON, origin / 2)


def check(post: ArrayQueue, expected: list[tuple[int, int]]) -> None:
    """Compare what is in flight, check the order of the heap, and that every slot is used once or free once."""
    size = int(post.size[0])
    rows = post.heap[:size]
    assert sorted((int(due), int(origin)) for due, origin, _ in rows) == sorted(expected)
    for at in range(1, size):
        assert tuple(rows[(at - 1) // 2, :2]) < tuple(rows[at, :2])
    assert sorted(post.heap[:, 2].tolist()) == list(range(len(post.heap)))
    for _, origin, slot in rows:
        for stored, sent in zip((post.states, post.actions, post.rewards), trajectory(int(origin)), strict=True):
            np.testing.assert_array_equal(stored[slot], sent)


@settings(max_examples=150, deadline=None)
@given(
    operations=st.lists(st.one_of(st.none(), st.integers(0, 12)), max_size=60),
    capacity=st.integers(1, 5),
)
def test_the_post_is_a_heap(operations: list[int | None], capacity: int) -> None:
    """An operation is a trajectory that is sent, due at some time, or None: take the earliest."""
    post = make_array_queue(capacity, HORIZON)
    reference: list[tuple[int, int]] = []
    for origin, due in enumerate(operations):
        if due is not None:
            post = with_room(post, 1)
            send(post, due, origin, *trajectory(origin))
            heapq.heappush(reference, (due, origin))
        elif reference:
            first = tuple(post.heap[0, :2].tolist())
            slot = take_first(post)
            assert first == heapq.heappop(reference)
            for stored, sent in zip((post.states, post.actions, post.rewards), trajectory(first[1]), strict=True):
                np.testing.assert_array_equal(stored[slot], sent)  # still there until the next is sent
        check(post, reference)
    while reference:
        assert tuple(post.heap[0, :2].tolist()) == heapq.heappop(reference)
        take_first(post)
    assert post.size[0] == 0


def test_room_is_made_only_when_it_is_needed() -> None:
    post = make_array_queue(3, HORIZON)
    for origin in range(2):
        send(post, 9 - origin, origin, *trajectory(origin))
    assert with_room(post, 1) is post
    doubled = with_room(post, 2)
    assert len(doubled.heap) == 6
    assert len(with_room(post, 50).heap) == 52
    check(doubled, [(9, 0), (8, 1)])
    send(doubled, 1, 2, *trajectory(2))
    check(doubled, [(9, 0), (8, 1), (1, 2)])
    check(post, [(9, 0), (8, 1)])  # the smaller one is left alone


def test_of_those_due_at_once_the_oldest_comes_first() -> None:
    post = make_array_queue(8, HORIZON)
    for origin in (5, 2, 7, 0, 3):
        send(post, 4, origin, *trajectory(origin))
    assert [int(post.states[take_first(post), 0]) for _ in range(5)] == [0, 2, 3, 5, 7]
