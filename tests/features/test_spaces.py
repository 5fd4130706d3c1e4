from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from belated.features._base import fault_finder, vector

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
    find = fault_finder(space)
    space.seed(0)
    for _ in range(50):
        observation = space.sample()
        assert find(observation) is None
        numbers = vector(observation)
        assert find(numbers) is None
        longer = find(np.append(numbers, 0.0))
        assert longer == (f"{numbers.size + 1} numbers instead of {numbers.size}", True)
        for bad in (np.nan, np.inf, 1e300):
            wrong = numbers.copy()
            wrong[-1] = bad
            said = find(wrong)
            assert said is not None and said.fatal and f"{bad:g} at index {numbers.size - 1}" in said.message


def test_real_numbers_may_leave_their_bounds_and_integers_may_not() -> None:
    def fatal(space: spaces.Space[Any], observation: Any) -> bool | None:
        found = fault_finder(space)(observation)
        return None if found is None else found.fatal

    assert fatal(spaces.Box(-1.0, 1.0, (2,)), np.array([0.0, 7.0])) is False
    assert fatal(spaces.Box(-np.inf, np.inf, (2,)), np.array([0.0, 7.0])) is None
    assert fatal(spaces.Discrete(3), 7) is True
    assert fatal(spaces.MultiDiscrete([3, 3]), np.array([-1, 0])) is True
    assert fatal(spaces.Tuple((spaces.Discrete(3), spaces.Box(0, 1, ()))), (2, 1.5)) is False
    assert fatal(spaces.Tuple((spaces.Discrete(3), spaces.Box(0, 1, ()))), (3, 1.5)) is True


@pytest.mark.parametrize(
    "observation",
    [
        "left",
        b"1",
        None,
        np.array(["1"]),
        np.array([1j]),
        np.array([None]),
        np.ma.array([1], mask=[True]),
        {1},
        [10**400],
    ],
    ids=repr,
)
def test_what_is_no_number_is_named(observation: Any) -> None:
    said = fault_finder(spaces.Discrete(2))(observation)
    assert said is not None and said.fatal and "an observation must be numbers" in said.message
