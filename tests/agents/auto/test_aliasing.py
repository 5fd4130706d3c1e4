"""Observations that do not identify states are noticed, and chance is not taken for them."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from belated import AutoPSVI, Poisson
from belated.agents._auto.aliasing import Aliasing, dependence
from belated.environments import GymEnvironment
from belated.errors import InvalidInputError
from belated.runner import simulate


class Grid(gymnasium.Env[Any, Any]):
    """A grid of 8×8 cells with four moves, seen by squares of `by` cells; the corner pays 1 and ends the episode."""

    action_space = spaces.Discrete(4)

    def __init__(self, by: int) -> None:
        self.by, self.observation_space = by, spaces.Discrete((8 // by) ** 2)

    def _seen(self) -> int:
        x, y = self.cell // self.by
        return int(x * (8 // self.by) + y)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.cell = np.zeros(2, np.int64)
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        if self.np_random.random() < 0.2:
            action = self.np_random.integers(4)
        self.cell = np.clip(self.cell + [(0, 1), (1, 0), (0, -1), (-1, 0)][int(action)], 0, 7)
        there = bool(self.cell.min() == 7)
        return self._seen(), float(there), there, False, {}


def test_a_grid_seen_by_squares_is_noticed_and_told_once() -> None:
    environment = GymEnvironment(Grid, by=2, horizon=60, reward_range=(0.0, 1.0))
    with pytest.warns(UserWarning, match="do not identify states") as told:
        simulate(environment, AutoPSVI(), Poisson(2), episodes=140, seed=0)
    assert len(told) == 1


@pytest.mark.parametrize(
    ("environment", "settings"),
    [
        (Grid, {"by": 1, "horizon": 60, "reward_range": (0.0, 1.0)}),
        ("FrozenLake-v1", {"horizon": 50}),
        ("Blackjack-v1", {"horizon": 20}),
    ],
)
def test_chance_alone_is_not(environment: Any, settings: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate(GymEnvironment(environment, **settings), AutoPSVI(), Poisson(2), episodes=400, seed=0)


def test_the_evidence_is_a_ratio_of_likelihoods() -> None:
    counts = np.array([5.0, 0.0, 3.0, 9.0])
    wanted, n = 0.0, counts.sum()
    for (i, j), count in zip(itertools.product(range(2), repeat=2), counts, strict=True):
        together, before, after = count / n, counts.reshape(2, 2)[i].sum() / n, counts.reshape(2, 2)[:, j].sum() / n
        wanted += count * math.log(together / (before * after)) if count else 0.0
    assert dependence(counts[np.newaxis])[0] == pytest.approx(wanted)


def test_order_does_not_matter_and_what_is_saved_goes_on() -> None:
    rng = np.random.default_rng(0)
    paths = [(rng.integers(5, size=9), rng.integers(2, size=8)) for _ in range(20)]
    one, other = Aliasing(99), Aliasing(99)
    for path in paths:
        one.note(*path)
    for path in paths[::-1]:
        other.note(*path)
    first, second = (
        dict(zip(map(tuple, m["aliasing.pairs"].tolist()), m["aliasing.counts"].tolist(), strict=True))
        for m in (one.memory(), other.memory())
    )
    assert first == second
    again = Aliasing(99)
    again.restore(one.memory())
    for each in (one, again):
        each.note(*paths[0])
    assert all(np.array_equal(one.memory()[name], again.memory()[name]) for name in one.memory())
    with pytest.raises(InvalidInputError, match="the previous and next states"):
        again.restore({**one.memory(), "aliasing.seen": np.array([2, 0])})
