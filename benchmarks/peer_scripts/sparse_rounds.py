"""Rounds of a bandit whose actions have sparse features, and how somebody plays them; imported by scripts of peers."""

from __future__ import annotations

import heapq
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

#: What a file has of each run: the places and values of each action's features, what each action would bring, and when
#: that is known.
ARRAYS = ("places", "values", "rewards", "known")


class Rounds(NamedTuple):
    """One run: shapes (rounds, actions, nonzero) twice, (rounds, actions) and (rounds,)."""

    places: Any
    values: Any
    rewards: Any
    known: Any
    bits: int
    """There are so many places, as a power of two."""
    seed: int


class Contestant(NamedTuple):
    name: str
    decide: Callable[[int], int]
    learn: Callable[[int, int, float], None]


def play(given: Rounds, contestant: Contestant) -> tuple[float, float]:
    """Return what a contestant earned, and the seconds of processor time of a round."""
    waiting: list[tuple[int, int, int]] = []
    earned, began = 0.0, time.process_time()
    for t in range(len(given.known)):
        while waiting and waiting[0][0] <= t:
            _, before, action = heapq.heappop(waiting)
            contestant.learn(before, action, float(given.rewards[before, action]))
        action = contestant.decide(t)
        earned += float(given.rewards[t, action])
        heapq.heappush(waiting, (int(given.known[t]), t, action))
    return earned, (time.process_time() - began) / len(given.known)


def main(contestants: Callable[[Rounds], Iterator[Contestant]]) -> None:
    """Play each run of the file that the first argument names, and print what came of it, in JSON."""
    with np.load(sys.argv[1]) as file:
        arrays = {name: file[name] for name in ARRAYS}
        bits = int(file["bits"])
    found: dict[str, dict[str, list[float]]] = {}
    for seed in range(len(arrays["known"])):
        run = Rounds(bits=bits, seed=seed, **{name: each[seed] for name, each in arrays.items()})
        for each in contestants(run):
            earned, seconds = play(run, each)
            mine = found.setdefault(each.name, {"earned": [], "seconds": []})
            mine["earned"].append(earned)
            mine["seconds"].append(seconds)
    print(json.dumps(found))
