from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from belated.features._base import outside, vector

SPACES: list[spaces.Space[Any]] = [
    spaces.Discrete(5, start=-2),
    spaces.MultiDiscrete([3, 4]),
    spaces.MultiBinary(4),
    spaces.Box(-1.0, 2.0, (2, 3)),
    spaces.Box(-np.inf, np.inf, (3,)),
    spaces.Tuple((spaces.Discrete(3), spaces.Box(0, 1, (2,)))),
    spaces.Dict({"z": spaces.Discrete(2), "a": spaces.Tuple((spaces.MultiBinary(2), spaces.Box(0, 1, ())))}),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_observations_of_the_space_are_inside_and_others_are_not(space: spaces.Space[Any]) -> None:
    check = outside(space)
    space.seed(0)
    for _ in range(50):
        observation = space.sample()
        assert check(observation) is None
        numbers = vector(observation)
        assert check(numbers) is None
        assert check(np.append(numbers, 0.0)) == f"{numbers.size + 1} numbers instead of {numbers.size}"
        wrong = numbers.copy()
        wrong[-1] = np.nan
        said = check(wrong)
        assert said is not None and f"nan at index {numbers.size - 1}" in said
        if not np.isinf(np.asarray(getattr(space, "high", 0.0))).any():
            wrong[-1] = 1e9
            assert check(wrong) is not None


def test_what_is_no_number_is_named() -> None:
    said = outside(spaces.Discrete(2))("left")
    assert said is not None and "an observation must be numbers" in said
