"""The chain against its definition, written down by hand."""

import numpy as np
import pytest

from belated.environments import Chain, environment_from_dict
from belated.errors import InvalidInputError
from belated.types import Policy


@pytest.mark.parametrize("size", [2, 3, 5, 10, 20])
def test_going_right_is_worth_the_chance_of_no_slip(size: int) -> None:
    always = np.ones((size, size), dtype=np.int64)
    assert Chain(size).value(Policy(always)) == pytest.approx((1 - 1 / size) ** (size - 1))
    assert Chain(size).value(Policy(0 * always)) == pytest.approx(0.1)


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
