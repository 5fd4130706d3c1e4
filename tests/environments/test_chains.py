"""The chains against their definitions, written down by hand."""

import numpy as np
import pytest

from belated._kernels.streams import stream
from belated.environments import Chain, NChain, RiverSwim, environment_from_dict
from belated.errors import InvalidInputError
from belated.types import TablePolicy


@pytest.mark.parametrize("size", [2, 3, 5, 10, 20])
def test_going_right_is_worth_the_chance_of_no_slip(size: int) -> None:
    always = np.ones((size, size), dtype=np.int64)
    assert Chain(size).value(TablePolicy(always)) == pytest.approx((1 - 1 / size) ** (size - 1))
    assert Chain(size).value(TablePolicy(0 * always)) == pytest.approx(0.1)


def test_two_states_by_hand() -> None:
    chain = Chain(2)
    # right: on with 1/2 and then 1; back with 1/2 and then the comfort of 0.05
    assert chain.optimal_value == pytest.approx(0.5 * 1 + 0.5 * 0.05)
    np.testing.assert_allclose(chain.transitions[0, 0], [[1.0, 0.0], [0.5, 0.5]])
    np.testing.assert_allclose(chain.transitions[0, 1], [[1.0, 0.0], [0.5, 0.5]])
    np.testing.assert_allclose(chain.rewards[0], [[0.05, 0.0], [0.0, 1.0]])


def test_the_best_policy_goes_right_at_first() -> None:
    assert Chain(10).optimal_policy().act(0, 0) == 1


def test_specification_and_name() -> None:
    chain = environment_from_dict(Chain(7).to_dict())
    assert isinstance(chain, Chain)
    assert (chain.states, chain.horizon, chain.label) == (7, 7, "chain-7")


@pytest.mark.parametrize("size", [1, 2.5, "ten", None])
def test_a_chain_of_another_size_is_refused(size: object) -> None:
    with pytest.raises(InvalidInputError, match="size must"):
        Chain(size)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [3, 10, 25, 100])
def test_the_optimum_is_ten_and_the_left_end_pays_a_crumb(size: int) -> None:
    chain = NChain(size)
    always = np.ones((size + 8, size), dtype=np.int64)
    assert chain.optimal_value == pytest.approx(10.0)
    assert chain.value(TablePolicy(always)) == pytest.approx(10.0)
    # the first step begins in the second state; all others at the left end
    assert chain.value(TablePolicy(0 * always)) == pytest.approx(0.001 * (size + 7))


@pytest.mark.parametrize("slip", [0.0, 0.2, 1.0])
def test_values_with_slips_are_those_of_a_simulation_by_hand(slip: float) -> None:
    size, rng = 5, np.random.default_rng(0)
    policy = TablePolicy(stream(1, "policy").integers(2, size=(size + 8, size)))
    returns = []
    for _ in range(4000):
        state, total = 1, 0.0
        for step in range(size + 8):
            total += {0: 0.001, size - 1: 1.0}.get(state, 0.0)
            right = (policy.act(step, state) == 1) != (rng.random() < slip)
            state = min(max(state + (1 if right else -1), 0), size - 1)
        returns.append(total)
    error = np.std(returns) / np.sqrt(len(returns))
    assert NChain(size, slip).value(TablePolicy(policy.actions)) == pytest.approx(
        np.mean(returns), abs=4 * error + 1e-12
    )


def test_names_and_checks() -> None:
    assert (NChain().label, NChain(10, slip=0.05).label) == ("nchain-25", "nchain-10-slip0.05")
    with pytest.raises(InvalidInputError, match="size must be an integer >= 3, got 2"):
        NChain(2)
    with pytest.raises(InvalidInputError, match=r"slip must be a finite number >= 0 and <= 1, got 1\.5"):
        NChain(5, slip=1.5)


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
