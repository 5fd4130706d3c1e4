"""Overhead of `LateFeedback` per step of an environment, in microseconds.

python benchmarks/late_feedback.py
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import gymnasium
import numpy as np

from belated import Poisson
from belated.gymnasium import LateFeedback, LateFeedbackVector

ENVIRONMENTS = ("FrozenLake-v1", "CartPole-v1")
COUNT = 8


def play(env: gymnasium.Env[Any, Any], steps: int) -> float:
    """Return the CPU seconds of this many steps and the resets between them."""
    actions = np.random.default_rng(0).integers(env.action_space.n, size=steps).tolist()  # type: ignore[attr-defined]
    env.reset(seed=0)
    began = time.process_time()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return time.process_time() - began


def play_vector(envs: Any, steps: int) -> float:
    """Return the CPU seconds of this many steps of sub-environments."""
    actions = np.random.default_rng(0).integers(envs.single_action_space.n, size=(steps // COUNT, COUNT))
    envs.reset(seed=0)
    began = time.process_time()
    for row in actions:
        envs.step(row)
    return time.process_time() - began


def overhead(environment: str, unit: str, vector: bool, steps: int = 40_000, repeats: int = 5) -> float:
    """Return the overhead of the wrapper in microseconds per step, from the minima over interleaved repeats."""
    bare: list[float] = []
    wrapped: list[float] = []
    for _ in range(repeats):
        if vector:
            makers = [partial(gymnasium.make, environment)] * COUNT
            bare.append(play_vector(gymnasium.vector.SyncVectorEnv(makers), steps))
            envs = LateFeedbackVector(gymnasium.vector.SyncVectorEnv(makers), Poisson(10), unit)
            wrapped.append(play_vector(envs, steps))
        else:
            bare.append(play(gymnasium.make(environment), steps))
            wrapped.append(play(LateFeedback(gymnasium.make(environment), Poisson(10), unit), steps))
    return (min(wrapped) - min(bare)) / steps * 1e6


def main() -> list[dict[str, Any]]:
    """Measure every combination, print a line for each and return the rows."""
    rows = []
    for environment in ENVIRONMENTS:
        for vector in (False, True):
            for unit in ("trajectory", "reward"):
                added = overhead(environment, unit, vector)
                rows.append({"environment": environment, "vector": vector, "unit": unit, "microseconds": added})
                kind = f"vector of {COUNT}" if vector else "single"
                print(f"{environment:14} {kind:12} {unit:12} {added:5.2f} µs a step")
    return rows


if __name__ == "__main__":
    main()
