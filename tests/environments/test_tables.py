"""The tables of a finite MDP: brought into one shape, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from belated._kernels.streams import stream
from belated.environments import FiniteMDP
from belated.errors import InvalidInputError
from belated.types import Policy

SWAP = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])


MEANS = np.array([[0.0, 0.25], [1.0, 0.5]])


def random_policy(mdp: FiniteMDP, seed: int) -> Policy:
    return Policy(stream(seed, "policy").integers(mdp.actions, size=(mdp.horizon, mdp.states)))


def test_one_table_for_all_steps_equals_explicit_copies() -> None:
    short = FiniteMDP(SWAP, MEANS, horizon=4)
    versions = [
        FiniteMDP(np.stack([SWAP] * 4), np.stack([MEANS] * 4)),
        FiniteMDP(np.stack([SWAP] * 4), MEANS),
        FiniteMDP(SWAP, np.stack([MEANS] * 4)),
    ]
    policy = random_policy(short, 1)
    assert short.world.transitions.shape == (1, 2, 2, 2)
    assert short.world.rewards.shape == (1, 1, 2, 2)
    for long in versions:
        assert long.world.transitions.shape == long.world.cumulative.shape == (4, 2, 2, 2)
        assert long.world.rewards.shape == (1, 4, 2, 2)
        np.testing.assert_array_equal(short.transitions, long.transitions)
        np.testing.assert_array_equal(short.rewards, long.rewards)
        np.testing.assert_array_equal(short.optimal_values(), long.optimal_values())
        np.testing.assert_array_equal(short.values(policy), long.values(policy))
        first, second = (mdp.rollout(policy, stream(9, "environment")) for mdp in (short, long))
        np.testing.assert_array_equal(first.states, second.states)
        np.testing.assert_array_equal(first.rewards, second.rewards)


def test_default_features_are_one_hot() -> None:
    features = FiniteMDP(SWAP, MEANS, horizon=1).features
    np.testing.assert_array_equal(features.reshape(4, 4), np.eye(4))


BAD = [
    ({"horizon": None}, "horizon must be given"),
    ({"horizon": 0}, "horizon must be an integer >= 1, got 0"),
    ({"horizon": 2.0}, "horizon must be an integer"),
    ({"transitions": np.stack([SWAP] * 4)}, "must agree, got 4 from transitions, 3 from horizon"),
    ({"rewards": np.stack([MEANS] * 2)}, "must agree, got 2 from rewards, 3 from horizon"),
    ({"transitions": SWAP[:, :, :1] * 0 + 1}, r"transitions must have shape \(S, A, S\)"),
    ({"transitions": SWAP[0]}, r"transitions must have shape \(any, any, any\), got \(2, 2\)"),
    ({"transitions": SWAP * 0.9}, r"transitions must sum to one .* got 0.9 at index \(0, 0\)"),
    ({"transitions": [[[2, -1]] * 2] * 2}, "transitions must be non-negative, got -1"),
    ({"transitions": [[[1], [1, 0]]]}, "transitions must be an array of numbers"),
    ({"transitions": SWAP * np.nan}, "transitions must be finite, got nan"),
    ({"rewards": MEANS[:, :1]}, r"rewards must have shape \(2, 2\), got \(2, 1\)"),
    ({"rewards": MEANS + 0.5}, r"rewards must be within \[0, 1\], got 1.5 at index \(1, 0\)"),
    ({"rewards": MEANS - 0.5}, r"rewards must be within \[0, 1\], got -0.5 at index \(0, 0\)"),
    ({"rewards": MEANS * np.nan}, "rewards must be finite"),
    ({"features": np.ones((2, 3, 1))}, r"features must have shape \(2, 2, any\), got \(2, 3, 1\)"),
    ({"features": np.ones((2, 2, 0))}, "the number d of features must be"),
    ({"start": 2}, "start must be an integer >= 0 and <= 1, got 2"),
    ({"transitions": [[[0.5, 0.4]]]}, r"transitions must have shape \(S, A, S\) or \(H, S, A, S\), got \(1, 1, 2\)"),
    ({"features": np.full((2, 2, 1), 1e160)}, r"features must be of magnitude at most 1e\+40, got 1e\+160"),
    ({"horizon": 10**9}, "horizon must be an integer <= 1000000, got 1000000000"),
    ({"start": [0.5, 0.6]}, "start must sum to one"),
    ({"start": [1.0]}, r"start must have shape \(2,\), got \(1,\)"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_named(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"transitions": SWAP, "rewards": MEANS, "horizon": 3}
    FiniteMDP(**good)
    with pytest.raises(InvalidInputError, match=message):
        FiniteMDP(**{**good, **change})
