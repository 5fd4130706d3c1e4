from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from belated.environments import FiniteMDP, RandomLinearMDP, SyntheticLinearMDP
from belated.environments._linear import ALPHA
from belated.errors import InvalidInputError, UnknownNameError


def good_pair(variant: str, state: int, action: int) -> int:
    if variant == "joint":
        return int(state == 0 and action == 0)
    return int((state == 0) == (action == 0))


@pytest.mark.parametrize("actions", [2, 50, 256])
def test_published_optimum(actions: int) -> None:
    assert SyntheticLinearMDP(actions).optimal_value == pytest.approx(11.96, abs=1e-12)
    assert SyntheticLinearMDP(actions, variant="appendix").optimal_value == pytest.approx(19.8, abs=1e-12)


@pytest.mark.parametrize("variant", ["joint", "appendix"])
def test_tables_follow_the_formulas(variant: str) -> None:
    mdp = SyntheticLinearMDP(actions=6, variant=variant)
    assert mdp.alpha == ALPHA
    for state in range(2):
        for action in range(6):
            good = good_pair(variant, state, action)
            bits = [int(bit) for bit in f"{action:08b}"]
            assert mdp.features[state, action].tolist() == [*bits, good, 1 - good]
            for h, alpha in enumerate(ALPHA):
                assert mdp.rewards[h, state, action] == (0.99 if good else 0.01)
                for after in range(2):
                    distribution = good * ((1 - after) ^ alpha) + (1 - good) * (after ^ alpha)
                    assert mdp.transitions[h, state, action, after] == distribution


@pytest.mark.parametrize("variant", ["joint", "appendix"])
@pytest.mark.parametrize("normalise", [False, True])
def test_both_variants_are_linear(variant: str, normalise: bool) -> None:
    mdp = SyntheticLinearMDP(actions=50, variant=variant, normalise=normalise)
    assert max(mdp.linearity()) < 1e-12
    assert mdp.dimension == 10


def test_norms() -> None:
    raw, unit = SyntheticLinearMDP(256), SyntheticLinearMDP(256, normalise=True)
    assert np.linalg.norm(raw.features, axis=-1).max() == pytest.approx(3.0)
    np.testing.assert_allclose(unit.features * 3.0, raw.features)
    assert unit.optimal_value == raw.optimal_value


def test_alpha_is_repeated_or_cut_for_other_horizons() -> None:
    assert SyntheticLinearMDP(2, horizon=45).alpha == (ALPHA * 3)[:45]
    assert SyntheticLinearMDP(2, horizon=3).alpha == (1, 1, 1)


def test_own_alpha() -> None:
    # With alpha always 0 the good pair leads back to itself.
    mdp = SyntheticLinearMDP(2, horizon=5, alpha=[0] * 5)
    assert mdp.optimal_value == pytest.approx(5 * 0.99)


def test_bernoulli_keeps_the_values() -> None:
    mdp = SyntheticLinearMDP(4, bernoulli=True)
    assert mdp.bernoulli
    assert mdp.optimal_value == pytest.approx(11.96)


def test_labels_tell_settings_apart() -> None:
    settings: list[dict[str, Any]] = [
        {},
        {"actions": 4},
        {"horizon": 10},
        {"alpha": [0] * 20},
        {"alpha": [1] * 20},
        {"variant": "appendix"},
        {"normalise": True},
        {"bernoulli": True},
    ]
    labels = [SyntheticLinearMDP(**setting).label for setting in settings]
    assert len(set(labels)) == len(labels)
    assert labels[0] == "synthetic-a50"
    assert labels[2] == "synthetic-a50-h10"
    assert SyntheticLinearMDP(alpha=ALPHA).label == "synthetic-a50"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"actions": 1}, "actions must be an integer >= 2 and <= 256, got 1"),
        ({"actions": 257}, "actions must be .* got 257"),
        ({"horizon": 0}, "horizon must be an integer >= 1, got 0"),
        ({"alpha": [1, 0]}, r"alpha must have shape \(20,\), got \(2,\)"),
        ({"alpha": [2] * 20}, r"alpha must hold integers in 0..1, got 2"),
        ({"normalise": "yes"}, "normalise must be True or False, got 'yes'"),
        ({"bernoulli": None}, "bernoulli must be True or False, got None"),
    ],
)
def test_bad_settings_are_named(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        SyntheticLinearMDP(**setting)


def test_unknown_variant() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'joint'"):
        SyntheticLinearMDP(variant="joined")


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
