from typing import Any

import numpy as np
import pytest

from belated.environments import FiniteMDP, RandomLinearMDP
from belated.errors import InvalidInputError


@pytest.mark.parametrize("seed", range(5))
def test_exactly_linear_with_small_features(seed: int) -> None:
    mdp = RandomLinearMDP(seed=seed)
    assert max(mdp.linearity()) < 1e-13
    assert np.linalg.norm(mdp.features, axis=-1).max() <= 1.0
    np.testing.assert_allclose(mdp.features.sum(axis=-1), 1.0)


def test_fewer_features_than_corners_are_not_linear() -> None:
    mdp = RandomLinearMDP()
    cut = np.array(mdp.features)[..., :-1]
    worse = FiniteMDP(mdp.transitions, mdp.rewards, features=cut).linearity()
    assert min(worse) > 0.01


def test_steps_differ() -> None:
    mdp = RandomLinearMDP()
    assert not np.allclose(mdp.transitions[0], mdp.transitions[1])
    assert not np.allclose(mdp.rewards[0], mdp.rewards[1])


def test_actions_matter() -> None:
    mdp = RandomLinearMDP()
    assert len(np.unique(mdp.optimal_policy().actions)) > 1


def test_the_seed_decides() -> None:
    first, again, other = RandomLinearMDP(seed=1), RandomLinearMDP(seed=1), RandomLinearMDP(seed=2)
    np.testing.assert_array_equal(first.transitions, again.transitions)
    assert not np.array_equal(first.transitions, other.transitions)
    assert (first.seed, other.seed) == (1, 2)


def test_sizes_and_labels() -> None:
    mdp = RandomLinearMDP(states=6, actions=3, dimension=2, horizon=4, seed=9, bernoulli=True)
    assert mdp.transitions.shape == (4, 6, 3, 6)
    assert mdp.features.shape == (6, 3, 2)
    assert mdp.label == "random-linear-s6-a3-d2-h4-9-bernoulli"
    assert RandomLinearMDP().label == "random-linear-s10-a4-d5-h8-0"


@pytest.mark.parametrize("field", ["states", "actions", "dimension", "horizon"])
def test_sizes_are_checked(field: str) -> None:
    settings: dict[str, Any] = {field: 0}
    with pytest.raises(InvalidInputError, match=f"{field} must be an integer >= 1, got 0"):
        RandomLinearMDP(**settings)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="seed must be an integer >= 0, got -1"):
        RandomLinearMDP(seed=-1)
