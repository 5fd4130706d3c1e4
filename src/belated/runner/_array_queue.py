"""Trajectories in flight, in arrays: a heap by the time of arrival, as large as what is in flight at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.jit import copy, kernel
from belated._util.validate import array, indices
from belated.errors import InvalidInputError
from belated.types import Floats, Ints


class Post(NamedTuple):
    """A binary heap of what has been sent and has not arrived, and the trajectories themselves."""

    heap: Ints
    """Rows (due, origin, slot), the earliest first; beyond the heap's end the third entries are the free slots."""
    size: Ints
    """How many are in flight, in an array of one."""
    states: Ints
    """The states of each slot, (capacity, H+1)."""
    actions: Ints
    rewards: Floats


def make_post(capacity: int, horizon: int) -> Post:
    """Return an empty post with room for `capacity` trajectories."""
    heap = np.zeros((capacity, 3), np.int64)
    heap[:, 2] = np.arange(capacity)
    return Post(
        heap,
        np.zeros(1, np.int64),
        np.zeros((capacity, horizon + 1), np.int64),
        np.zeros((capacity, horizon), np.int64),
        np.zeros((capacity, horizon)),
    )


def with_room(post: Post, more: int) -> Post:
    """Return `post`, or a larger copy if it cannot take `more` trajectories."""
    capacity = len(post.heap)
    if post.size[0] + more <= capacity:
        return post
    larger = make_post(max(2 * capacity, int(post.size[0]) + more), post.actions.shape[1])
    larger.size[:] = post.size
    for target, source in zip(larger, post, strict=True):
        if source is not post.size:
            target[:capacity] = source
    return larger


def most_at_once(post: Post, delays: Ints, first: int) -> int:
    """Return how many trajectories can arrive together at most while the episodes with these `delays` are played.

    They begin with number `first`; an episode has a delay for each of its outcomes, shape (episodes, outcomes).

    >>> most_at_once(make_post(8, horizon=1), np.array([[2], [1], [9], [0]]), first=100)
    2
    """
    count = len(delays)
    sent, outcome = np.nonzero(delays < count)
    due = np.concatenate([np.maximum(post.heap[: post.size[0], 0] - first, 0), sent + delays[sent, outcome] + 1])
    return int(np.bincount(due[due < count], minlength=1).max())


def checked_post(arrays: dict[str, npt.NDArray[Any]], horizon: int, states: int, actions: int) -> Post:
    """Return a post made of `arrays` by name, refusing what compiled code could not read."""
    capacity, top = len(arrays["heap"]), np.iinfo(np.int64).max
    heap = indices("heap", arrays["heap"], (capacity, 3), top)
    size = indices("size", arrays["size"], (1,), capacity + 1)
    if not np.array_equal(np.sort(heap[:, 2]), np.arange(capacity)):
        raise InvalidInputError("heap must name every slot once")
    return Post(
        heap.copy(),  # what was checked is read-only
        size.copy(),
        indices("states", arrays["states"], (capacity, horizon + 1), states).copy(),
        indices("actions", arrays["actions"], (capacity, horizon), actions).copy(),
        array("rewards", arrays["rewards"], (capacity, horizon)).copy(),
    )


@kernel
def send(post: Post, due: int, origin: int, states: Ints, actions: Ints, rewards: Floats) -> None:
    """Put the trajectory of episode `origin` in flight; it arrives when episode `due` is planned."""
    heap, at = post.heap, post.size[0]
    post.size[0] += 1
    slot = heap[at, 2]
    copy(states, post.states[slot])
    copy(actions, post.actions[slot])
    copy(rewards, post.rewards[slot])
    while at > 0:
        above = (at - 1) // 2
        if heap[above, 0] < due or (heap[above, 0] == due and heap[above, 1] < origin):
            break
        copy(heap[above], heap[at])
        at = above
    heap[at, 0], heap[at, 1], heap[at, 2] = due, origin, slot


@kernel
def take_first(post: Post) -> int:
    """Remove the earliest trajectory and return its slot, which stays as it is until the next `send`."""
    heap = post.heap
    slot = heap[0, 2]
    post.size[0] -= 1
    end = post.size[0]
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
