import numpy as np
import pytest

from belated.environments import DeepSea
from belated.errors import InvalidInputError
from belated.rng import stream
from belated.types import Policy


@pytest.mark.parametrize("size", [2, 3, 10, 15])
def test_optimum_and_always_left(size: int) -> None:
    mdp = DeepSea(size)
    always = np.ones((size, size * size), dtype=np.int64)
    assert mdp.optimal_value == 1.0
    assert mdp.value(Policy(always)) == 1.0
    assert mdp.value(Policy(always * 0)) == pytest.approx(0.01)


def test_differences_are_those_of_the_original_costs() -> None:
    size = 5
    mdp = DeepSea(size)
    for seed in range(20):
        policy = Policy(stream(seed, "policy").integers(2, size=(size, size * size)))
        column, total = 0, 0.0
        for row in range(size):
            right = policy.act(row, row * size + column) == 1
            total += (-0.01 / size if right else 0.0) + (right and column == size - 1)
            column = min(column + 1, size - 1) if right else max(column - 1, 0)
        assert mdp.value(policy) == pytest.approx(total + 0.01)


def test_a_single_wrong_move_loses_the_treasure() -> None:
    mdp = DeepSea(4)
    for wrong in range(4):
        actions = np.ones((4, 16), dtype=np.int64)
        actions[wrong] = 0
        assert mdp.value(Policy(actions)) < 0.011


def test_path_goes_down_one_row_per_step() -> None:
    mdp = DeepSea(4)
    trajectory = mdp.rollout(mdp.optimal_policy(), stream(0, "environment"))
    assert trajectory.states.tolist() == [0, 5, 10, 15, 15]
    assert trajectory.rewards.tolist() == [0.0, 0.0, 0.0, 1.0]


def test_label_and_checks() -> None:
    assert DeepSea().label == "deepsea-10"
    with pytest.raises(InvalidInputError, match="size must be a whole number >= 2, got 1"):
        DeepSea(1)
