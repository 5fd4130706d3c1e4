"""A module as a user writes it, in a folder of its own: an agent, an environment, a distribution and features."""

from __future__ import annotations

from pathlib import Path

SOURCE = '''
"""Classes of a user's own."""

from dataclasses import dataclass

import numpy as np

import belated
from belated.features import Features
from belated.types import SparseVector


class Coin:
    """Plays at random, and knows how often it was told something."""

    def __init__(self, heads=0.5, note=""):
        if heads > 1:
            raise ValueError("heads is a probability")
        self.heads, self.note = heads, note

    def start(self, problem):
        return CoinAgent(self.heads, problem)


class CoinAgent:
    def __init__(self, heads, problem):
        self.heads, self.shape = heads, (problem.horizon, problem.states)

    def plan(self, rng):
        return belated.TablePolicy((rng.random(self.shape) < self.heads).astype(np.int64))

    def learn(self, batch):
        pass


@dataclass(frozen=True)
class Around:
    """An algorithm around another one."""

    base: object
    times: int = 1

    def start(self, problem):
        return self.base.start(problem)


class Corridor(belated.FiniteMDP):
    """A corridor with a reward at its end."""

    def __init__(self, rooms=3):
        steps = np.eye(rooms)[[[max(s - 1, 0), min(s + 1, rooms - 1)] for s in range(rooms)]]
        rewards = np.zeros((rooms, 2))
        rewards[-1, 1] = 1.0
        super().__init__(steps, rewards, horizon=rooms + 1, name=f"corridor-{rooms}")


def river(states=3) -> belated.FiniteMDP:
    return belated.RiverSwim(states=states, horizon=4)


@dataclass(frozen=True)
class Twice(belated.Constant):
    """Twice as late."""

    @property
    def mean(self):
        return 2.0 * self.value

    def draw(self, rng, count, first, state):
        delays, state = super().draw(rng, count, first, state)
        return 2 * delays, state


@dataclass(frozen=True, kw_only=True)
class First(Features):
    """The first numbers of an observation."""

    numbers: int = 2

    @property
    def size(self):
        return self.numbers

    def encode(self, observation):
        return SparseVector(np.arange(self.numbers), np.asarray(observation, dtype=np.float64)[: self.numbers])


number = 3


def unsaid(heads=0.5):
    """Do what an import must never lead to: a marker is left when it is called."""
    open("marker", "w").close()
    return Coin(heads)


def liar(heads=0.5) -> Coin:
    return heads


class Thread:
    """Has a method start, but not that of an algorithm."""

    def __init__(self):
        open("marker", "w").close()

    def start(self): ...
'''

BROKEN = "import numpy\n\n\nraise RuntimeError('no such table')\n"
MISSING = "import there_is_no_such_package\n"


def write_modules(folder: Path, name: str) -> None:
    """Write the module, called `name`, and two that cannot be imported, beside it."""
    (folder / f"{name}.py").write_text(SOURCE, encoding="utf-8")
    (folder / f"{name}_broken.py").write_text(BROKEN, encoding="utf-8")
    (folder / f"{name}_missing.py").write_text(MISSING, encoding="utf-8")


TOML = """
name = "été / river"
episodes = 30
seeds = 2
environments."corridor [of 4]" = { environment = "NAME:Corridor", rooms = 4 }
agents."coin | $1 σ" = { algorithm = "NAME:Coin", heads = 0.9 }
agents.best = { algorithm = "optimal" }
delays."😀" = { distribution = "NAME:Twice", value = 2 }
"""
