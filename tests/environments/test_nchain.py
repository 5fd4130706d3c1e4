"""The N-chain against its definition, written down by hand."""

import numpy as np
import pytest

from belated._kernels.streams import stream
from belated.environments import NChain
from belated.errors import InvalidInputError
from belated.types import Policy


@pytest.mark.parametrize("size", [3, 10, 25, 100])
def test_the_optimum_is_ten_and_the_left_end_pays_a_crumb(size: int) -> None:
    chain = NChain(size)
    always = np.ones((size + 8, size), dtype=np.int64)
    assert chain.optimal_value == pytest.approx(10.0)
    assert chain.value(Policy(always)) == pytest.approx(10.0)
    # the first step begins in the second state; all others at the left end
    assert chain.value(Policy(0 * always)) == pytest.approx(0.001 * (size + 7))


@pytest.mark.parametrize("slip", [0.0, 0.2, 1.0])
def test_values_with_slips_are_those_of_a_simulation_by_hand(slip: float) -> None:
    size, rng = 5, np.random.default_rng(0)
    policy = Policy(stream(1, "policy").integers(2, size=(size + 8, size)))
    returns = []
    for _ in range(4000):
        state, total = 1, 0.0
        for step in range(size + 8):
            total += {0: 0.001, size - 1: 1.0}.get(state, 0.0)
            right = (policy.act(step, state) == 1) != (rng.random() < slip)
            state = min(max(state + (1 if right else -1), 0), size - 1)
        returns.append(total)
    error = np.std(returns) / np.sqrt(len(returns))
    assert NChain(size, slip).value(Policy(policy.actions)) == pytest.approx(np.mean(returns), abs=4 * error + 1e-12)


def test_names_and_checks() -> None:
    assert (NChain().label, NChain(10, slip=0.05).label) == ("nchain-25", "nchain-10-slip0.05")
    with pytest.raises(InvalidInputError, match="size must be an integer >= 3, got 2"):
        NChain(2)
    with pytest.raises(InvalidInputError, match=r"slip must be a finite number >= 0 and <= 1, got 1\.5"):
        NChain(5, slip=1.5)
