"""Small learners with a clock that the test moves, and what they are compared with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from belated._util.files import load_arrays
from belated.decisions import (
    Decision,
    DecisionLearner,
    Unknown,
)
from belated.decisions._saving import KIND, VERSION

Floats = npt.NDArray[np.float64]
TWO = np.eye(2)


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def learner_of(dimension: int = 2, **changes: Any) -> DecisionLearner:
    """Return a learner with a clock of its own."""
    return DecisionLearner(dimension, **{"silence": Unknown(), "noise": 1.0, "clock": Clock(), **changes})


def wait(learner: DecisionLearner, seconds: float) -> None:
    """Move the learner's clock."""
    clock: Any = learner._engine._clock
    clock.now += seconds


def assert_fits(learner: DecisionLearner, log: list[tuple[Floats, float]], ridge: float = 1.0) -> None:
    """Compare with a ridge regression on what counts."""
    d = learner.dimension
    x = np.array([features for features, _ in log]).reshape(-1, d)
    mean = np.linalg.solve(x.T @ x + ridge * np.eye(d), x.T @ np.array([reward for _, reward in log]))
    np.testing.assert_allclose(learner.mean(), mean, rtol=1e-9, atol=1e-12)
    assert learner.learned == len(log)


def decide_many(learner: DecisionLearner, n: int, seed: int = 0) -> list[Decision]:
    """Make decisions in random contexts."""
    rng = np.random.default_rng(seed)
    return [learner.decide(rng.standard_normal((3, learner.dimension))) for _ in range(n)]


def state(learner: DecisionLearner, folder: Path) -> tuple[str, list[bytes]]:
    """Return all that a learner knows, bit for bit."""
    learner.save(folder / "state.npz")
    header, arrays = load_arrays(folder / "state.npz", KIND, VERSION)
    return json.dumps(header), [arrays[name].tobytes() for name in sorted(arrays)]
