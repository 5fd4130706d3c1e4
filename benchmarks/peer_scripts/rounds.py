"""What the scripts that time linear bandits share: the stream in an .npz file, the clock, and the figures as JSON.

It runs in the environment of a peer, which has NumPy, but not this library.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stream:
    """Contexts (rounds, d), signs of the actions (actions, d), rewards (rounds, actions), and how noisy these are."""

    contexts: Any
    signs: Any
    rewards: Any
    noise: float
    warm_up: int
    """So many first rounds are not timed."""


@dataclass(frozen=True)
class Contestant:
    """A way to use the package: decide(round) returns an action, learn(round, action, reward) learns its reward."""

    what: str
    decide: Callable[[int], int]
    learn: Callable[[int, int, float], Any]


def play(contestant: Contestant, given: Stream) -> float:
    """Return seconds per round."""
    began = 0.0
    for t in range(len(given.rewards)):
        if t == given.warm_up:
            began = time.perf_counter()
        action = contestant.decide(t)
        contestant.learn(t, action, float(given.rewards[t, action]))
    return (time.perf_counter() - began) / (len(given.rewards) - given.warm_up)


def main(contestants: Callable[[Stream], Iterable[Contestant]]) -> None:
    """Time each on the stream in the file that the command line names, and print seconds per round as JSON."""
    import numpy as np

    arrays = np.load(sys.argv[1])
    given = Stream(
        arrays["contexts"], arrays["signs"], arrays["rewards"], float(arrays["noise"]), int(arrays["warm_up"])
    )
    print(json.dumps([{"what": each.what, "seconds": play(each, given)} for each in contestants(given)]))
