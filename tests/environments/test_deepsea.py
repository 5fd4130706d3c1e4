import numpy as np
import pytest

from belated._kernels.streams import stream
from belated.environments import DeepSea
from belated.errors import InvalidInputError
from belated.types import TablePolicy


@pytest.mark.parametrize("size", [2, 3, 10, 15])
def test_optimum_and_always_left(size: int) -> None:
    mdp = DeepSea(size)
    always = np.ones((size, size * size), dtype=np.int64)
    assert mdp.optimal_value == 1.0
    assert mdp.value(TablePolicy(always)) == 1.0
    assert mdp.value(TablePolicy(always * 0)) == pytest.approx(0.01)


def test_differences_are_those_of_the_original_costs() -> None:
    size = 5
    mdp = DeepSea(size)
    for seed in range(20):
        policy = TablePolicy(stream(seed, "policy").integers(2, size=(size, size * size)))
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
        assert mdp.value(TablePolicy(actions)) < 0.011


def test_path_goes_down_one_row_per_step() -> None:
    mdp = DeepSea(4)
    trajectory = mdp.rollout(mdp.optimal_policy(), stream(0, "environment"))
    assert trajectory.rows.tolist() == [0, 5, 10, 15, 15]
    assert trajectory.rewards.tolist() == [0.0, 0.0, 0.0, 1.0]


def test_label_and_checks() -> None:
    assert DeepSea().label == "deepsea-10"
    with pytest.raises(InvalidInputError, match="size must be an integer >= 2, got 1"):
        DeepSea(1)


def bsuite_episode(
    size: int, policy: TablePolicy, *, randomised: bool, stochastic: bool, seed: int, rng: np.random.Generator
) -> float:
    """Play an episode of bsuite's rules, transcribed; return the sum of its rewards."""
    drawn = np.random.RandomState(seed).binomial(1, 0.5, [size, size])
    mapping = drawn if randomised else np.ones_like(drawn)
    column, total = 0, 0.0
    for row in range(size):
        right = policy.act(row, row * size + column) == mapping[row, column]
        if column == size - 1 and right:
            total += 1.0
        if stochastic and row == size - 1 and column in (0, size - 1):
            total += rng.standard_normal()
        if right:
            if rng.random() > 1 / size or not stochastic:
                column = min(column + 1, size - 1)
            total -= 0.01 / size
        else:
            column = max(column - 1, 0)
    return total


@pytest.mark.parametrize("seed", [42, 7])
def test_randomised_actions_are_those_of_bsuite(seed: int) -> None:
    size, rng = 6, np.random.default_rng(0)
    mdp = DeepSea(size, randomised=True, seed=seed)
    assert mdp.optimal_value == 1.0
    for number in range(30):
        policy = TablePolicy(stream(number, "policy").integers(2, size=(size, size * size)))
        total = bsuite_episode(size, policy, randomised=True, stochastic=False, seed=seed, rng=rng)
        assert mdp.value(policy) == pytest.approx(total + 0.01)
    assert not np.array_equal(mdp.transitions, DeepSea(size).transitions)


@pytest.mark.parametrize("randomised", [False, True])
def test_the_stochastic_sea_has_the_mean_and_the_spread_of_bsuite(randomised: bool) -> None:
    size, rng = 5, np.random.default_rng(1)
    mdp = DeepSea(size, randomised=randomised, stochastic=True)
    policy = mdp.optimal_policy()
    theirs = [
        bsuite_episode(size, policy, randomised=randomised, stochastic=True, seed=42, rng=rng) + 0.01
        for _ in range(6000)
    ]
    ours = [mdp.rollout(policy, rng).rewards.sum() for _ in range(6000)]
    error = np.std(theirs) / np.sqrt(6000)
    assert mdp.value(policy) == pytest.approx(np.mean(theirs), abs=4 * error)
    assert np.mean(ours) == pytest.approx(np.mean(theirs), abs=6 * error)
    assert np.std(ours) == pytest.approx(np.std(theirs), rel=0.06)


def test_only_the_bottom_corners_are_noisy() -> None:
    mdp, rng = DeepSea(4, stochastic=True), np.random.default_rng(2)
    for number in range(40):
        played = mdp.rollout(TablePolicy(stream(number, "policy").integers(2, size=(4, 16))), rng)
        assert set(played.rewards[:3].tolist()) <= {0.0, 0.0025}
        assert (played.rewards[3] in (0.0, 0.0025)) == (played.states[3] not in (12, 15))


def test_names_of_the_other_seas() -> None:
    assert DeepSea(4, randomised=True).label == "deepsea-4-randomised"
    assert DeepSea(4, randomised=True, stochastic=True, seed=1).label == "deepsea-4-randomised1-stochastic"
    assert DeepSea(4).to_dict() == {"environment": "deepsea", "size": 4}
    with pytest.raises(InvalidInputError, match="stochastic must be True or False, got 1"):
        DeepSea(4, stochastic=1)  # type: ignore[arg-type]
