"""Time of a feature map per observation, and overhead of `play` per step, in microseconds.

python benchmarks/features.py
"""

from __future__ import annotations

import time
import timeit
from typing import Any

import gymnasium
import numpy as np

from belated.environments import GymEnvironment
from belated.environments._play import play
from belated.features import Features, Fourier, OneHot, Polynomial, RadialBasis, RandomFourier, Tiles
from belated.types import SparseVector

CAR: dict[str, Any] = {"low": (-1.2, -0.07), "high": (0.6, 0.07)}
MAPS: dict[str, tuple[Features, Any]] = {
    "one-hot, 500 states": (OneHot(sizes=(500,)), np.int64(3)),
    "tiles, MountainCar": (Tiles(**CAR), np.array([-0.5, 0.01], np.float32)),
    "tiles, 4 numbers in pairs": (Tiles(low=(-1,) * 4, high=(1,) * 4), np.zeros(4, np.float32)),
    "tiles, 6 numbers in pairs": (Tiles(low=(-1,) * 6, high=(1,) * 6), np.zeros(6, np.float32)),
    "fourier, order 3": (Fourier(**CAR), np.array([-0.5, 0.01], np.float32)),
    "random-fourier, 500": (RandomFourier(**CAR), np.array([-0.5, 0.01], np.float32)),
    "radial-basis, 6 x 6": (RadialBasis(**CAR), np.array([-0.5, 0.01], np.float32)),
    "polynomial, degree 2": (Polynomial(**CAR), np.array([-0.5, 0.01], np.float32)),
}


class Idle:
    """Always takes action 1."""

    def act(self, step: int, state: SparseVector) -> int:
        return 1


def encoding(features: Features, observation: Any, calls: int = 10_000) -> float:
    """Return the microseconds of one `encode`, the minimum of several repeats."""
    features.encode(observation)  # compiled before it is timed
    timer = timeit.Timer(lambda: features.encode(observation), timer=time.process_time)
    return min(timer.repeat(5, calls)) / calls * 1e6


def playing(environment: str, episodes: int = 20, repeats: int = 5) -> float:
    """Return the microseconds per step that `play` adds to resetting and stepping the bare environment."""
    made, bare = GymEnvironment(environment), gymnasium.make(environment)
    sides: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        began, steps = time.process_time(), 0
        for k in range(episodes):
            steps += len(play(made, Idle(), seed=0, episode=k).actions)
        sides[0].append((time.process_time() - began) / steps)
        began, steps = time.process_time(), 0
        for k in range(episodes):
            bare.reset(seed=k)
            over = False
            while not over:
                _, _, terminated, truncated, _ = bare.step(1)
                steps, over = steps + 1, terminated or truncated
        sides[1].append((time.process_time() - began) / steps)
    return (min(sides[0]) - min(sides[1])) * 1e6


def main() -> list[dict[str, Any]]:
    """Measure every map and an environment, print a line for each and return the rows."""
    rows = [{"what": f"encode: {name}", "microseconds": encoding(*given)} for name, given in MAPS.items()]
    rows += [{"what": f"play, a step of {name}", "microseconds": playing(name)} for name in ("MountainCar-v0",)]
    for row in rows:
        print(f"{row['what']:36} {row['microseconds']:6.2f} µs")
    return rows


if __name__ == "__main__":
    main()
