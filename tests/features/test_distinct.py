from __future__ import annotations

import numpy as np

from belated.features import Distinct


def test_a_feature_for_each_observation() -> None:
    rows = np.random.default_rng(0).integers(0, 3, size=(2000, 147)).astype(float)
    rows[1000:] = rows[:1000]
    numbers = [int(Distinct().encode(row).indices[0]) for row in rows]
    assert numbers[:1000] == numbers[1000:] and len(set(numbers)) == 1000
    assert all(0 <= number < Distinct().size for number in numbers)


def test_a_zero_is_a_zero() -> None:
    assert Distinct().encode([0.0]).indices == Distinct().encode([-0.0]).indices
    assert Distinct().encode({"b": 1, "a": np.array([2])}).indices == Distinct().encode([2.0, 1.0]).indices
