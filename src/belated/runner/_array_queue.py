"""Trajectories in flight, in arrays: a heap by time of arrival, with capacity for what is in flight at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.jit import copy, kernel
from belated._util.validate import array, indices
from belated.errors import InvalidInputError
from belated.types import Floats, Ints


class ArrayQueue(NamedTuple):
    """A binary heap by time of arrival, and the trajectories in flight."""

    heap: Ints
    """Rows (due, origin, slot), earliest first; beyond the heap's end the third entries are the free slots."""
    size: Ints
    """Number of trajectories in flight, shape (1,)."""
    states: Ints
    """The states of each slot, (capacity, H+1)."""
    actions: Ints
    rewards: Floats


def make_array_queue(capacity: int, horizon: int) -> ArrayQueue:
    heap = np.zeros((capacity, 3), np.int64)
    heap[:, 2] = np.arange(capacity)
    return ArrayQueue(
        heap,
        np.zeros(1, np.int64),
        np.zeros((capacity, horizon + 1), np.int64),
        np.zeros((capacity, horizon), np.int64),
        np.zeros((capacity, horizon)),
    )


def with_room(queue: ArrayQueue, more: int) -> ArrayQueue:
    """Return `queue`, or a larger copy if it has no room for `more` trajectories."""
    capacity = len(queue.heap)
    if queue.size[0] + more <= capacity:
        return queue
    larger = make_array_queue(max(2 * capacity, int(queue.size[0]) + more), queue.actions.shape[1])
    larger.size[:] = queue.size
    for target, source in zip(larger, queue, strict=True):
        if source is not queue.size:
            target[:capacity] = source
    return larger


def checked_array_queue(arrays: dict[str, npt.NDArray[Any]], horizon: int, states: int, actions: int) -> ArrayQueue:
    """Return a queue made of named `arrays`; raise `InvalidInputError` if compiled code could not read them safely."""
    capacity, top = len(arrays["heap"]), np.iinfo(np.int64).max
    heap = indices("heap", arrays["heap"], (capacity, 3), top)
    size = indices("size", arrays["size"], (1,), capacity + 1)
    if not np.array_equal(np.sort(heap[:, 2]), np.arange(capacity)):
        raise InvalidInputError("heap must name every slot once")
    return ArrayQueue(
        heap.copy(),  # what was checked is read-only
        size.copy(),
        indices("states", arrays["states"], (capacity, horizon + 1), states).copy(),
        indices("actions", arrays["actions"], (capacity, horizon), actions).copy(),
        array("rewards", arrays["rewards"], (capacity, horizon)).copy(),
    )


@kernel
def send(queue: ArrayQueue, due: int, origin: int, states: Ints, actions: Ints, rewards: Floats) -> None:
    """Put the trajectory of episode `origin` in flight; it arrives when episode `due` is planned."""
    heap, at = queue.heap, queue.size[0]
    queue.size[0] += 1
    slot = heap[at, 2]
    copy(states, queue.states[slot])
    copy(actions, queue.actions[slot])
    copy(rewards, queue.rewards[slot])
    while at > 0:
        above = (at - 1) // 2
        if heap[above, 0] < due or (heap[above, 0] == due and heap[above, 1] < origin):
            break
        copy(heap[above], heap[at])
        at = above
    heap[at, 0], heap[at, 1], heap[at, 2] = due, origin, slot


@kernel
def take_first(queue: ArrayQueue) -> int:
    """Remove the earliest trajectory and return its slot, whose content is valid until the next `send`."""
    heap = queue.heap
    slot = heap[0, 2]
    queue.size[0] -= 1
    end = queue.size[0]
    due, origin, moved = heap[end, 0], heap[end, 1], heap[end, 2]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= end:
            break
        right = below + 1
        if right < end and (
            heap[right, 0] < heap[below, 0] or (heap[right, 0] == heap[below, 0] and heap[right, 1] < heap[below, 1])
        ):
            below = right
        if due < heap[below, 0] or (due == heap[below, 0] and origin < heap[below, 1]):
            break
        copy(heap[below], heap[at])
        at = below
    heap[at, 0], heap[at, 1], heap[at, 2] = due, origin, moved
    heap[end, 2] = slot
    return int(slot)
