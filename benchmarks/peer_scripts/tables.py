"""What the scripts share that play tables as bandits: the rounds in an .npz file, their order, and the answers as JSON.

It runs in the environment of a peer, which has NumPy, but not this library.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

#: What the file has of each run: the first fields of `Run`.
ARRAYS = ("rows", "answers", "arrives")


@dataclass(frozen=True)
class Run:
    """One run, round by round; what all agents of a run are given is the same."""

    rows: Any
    """The features of each round, shape (rounds, d); the first is a constant."""
    answers: Any
    """The action that is right in each round."""
    arrives: Any
    """Before which round the reward of each comes; -1 for never."""
    actions: int
    half_life: float
    """Rounds in which what is known should be forgotten by half; 0 for never."""
    seed: int


@dataclass(frozen=True)
class Contestant:
    """A way to use the package: decide(round) returns an action, learn(round, action, reward) learns a late reward."""

    what: str
    decide: Callable[[int], int]
    learn: Callable[[int, int, float], Any]


def play(contestant: Contestant, run: Run) -> list[int]:
    """Return for each round whether the answer was right, 1 or 0; rewards are told when they arrive, in that order."""
    due: dict[int, list[int]] = {}
    chosen: list[int] = []
    right: list[int] = []
    for t, answer in enumerate(run.answers.tolist()):
        for late in due.pop(t, ()):
            contestant.learn(late, chosen[late], float(right[late]))
        chosen.append(contestant.decide(t))
        right.append(int(chosen[t] == answer))
        due.setdefault(int(run.arrives[t]), []).append(t)
    return right


def main(contestants: Callable[[Run], Iterable[Contestant]]) -> None:
    """Let each play the runs in the file that the command line names, and print what was right, as JSON."""
    import numpy as np

    with np.load(sys.argv[1]) as archive:
        given = dict(archive)
    found: dict[str, list[list[int]]] = {}
    actions, half_life = int(given["actions"]), float(given["half_life"])
    for seed, (rows, answers, arrives) in enumerate(zip(*(given[name] for name in ARRAYS), strict=True)):
        run = Run(rows, answers, arrives, actions, half_life, seed)
        for each in contestants(run):
            found.setdefault(each.what, []).append(play(each, run))
    print(json.dumps(found))
