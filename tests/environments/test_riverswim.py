import numpy as np
import pytest

from belated.environments import RiverSwim
from belated.errors import InvalidInputError


def test_probabilities_by_hand() -> None:
    mdp = RiverSwim(states=3, horizon=2)
    left = [[1, 0, 0], [1, 0, 0], [0, 1, 0]]
    right = [[0.65, 0.35, 0], [0.05, 0.6, 0.35], [0, 0.05, 0.95]]
    np.testing.assert_allclose(mdp.transitions[0, :, 0], left, atol=1e-15)
    np.testing.assert_allclose(mdp.transitions[1, :, 1], right, atol=1e-15)
    assert mdp.rewards[0].tolist() == [[0.005, 0.0], [0.0, 0.0], [0.0, 1.0]]
    assert mdp.start.tolist() == [1.0, 0.0, 0.0]
    assert mdp.dimension == 6


def test_optimal_value_of_the_default() -> None:
    mdp = RiverSwim()
    assert mdp.optimal_value == pytest.approx(7.078032487918632, abs=1e-12)
    assert mdp.optimal_policy().actions[0].tolist() == [1] * 5
    assert max(mdp.linearity()) < 1e-12


def test_optimal_value_by_hand() -> None:
    # Two states, two steps: swim first; the second step pays 1 at the far end, 0.005 at the near one.
    assert RiverSwim(states=2, horizon=2).optimal_value == pytest.approx(0.35 + 0.65 * 0.005)
    # Three states are too many to cross in time: go left twice.
    assert RiverSwim(states=3, horizon=2).optimal_value == pytest.approx(0.01)


def test_no_room_to_stay() -> None:
    mdp = RiverSwim(states=3, forward=0.9, backward=0.1)
    assert mdp.transitions[0, 1, 1].tolist() == [0.1, 0.0, 0.9]


def test_labels() -> None:
    assert RiverSwim().label == "riverswim-5"
    assert RiverSwim(6, 30, 0.4, 0.1).label == "riverswim-6-h30-forward0.4-backward0.1"


def test_bad_settings_are_named() -> None:
    with pytest.raises(InvalidInputError, match="states must be an integer >= 2, got 1"):
        RiverSwim(states=1)
    with pytest.raises(InvalidInputError, match="horizon must be an integer >= 1, got 0"):
        RiverSwim(horizon=0)
    with pytest.raises(InvalidInputError, match=r"forward must be a finite number >= 0 and <= 1, got 1\.5"):
        RiverSwim(forward=1.5)
    with pytest.raises(InvalidInputError, match=r"forward \+ backward must be .* <= 1, got 1.2"):
        RiverSwim(forward=0.7, backward=0.5)
