"""The shop funnel against its definition, written down by hand."""

from __future__ import annotations

import numpy as np
import pytest

from belated.environments import ShopFunnel, environment_from_dict
from belated.types import TablePolicy


def test_the_best_visit_by_hand() -> None:
    """With one step for each page nobody may stay: 0.8·0.8·0.75 get to the checkout, and clicks on the way pay."""
    funnel = ShopFunnel(horizon=4)
    right = TablePolicy(np.tile([0, 1, 1, 2, 0], (4, 1)))
    stays = 0.0
    # who has stayed on a page once is a step behind: three may get to the product page, and no further
    on = [1.0]
    for share, pays in ((0.8, 0.05), (0.8, 0.05), (0.75, 0.05)):
        stays += on[-1] * pays
        on.append(on[-1] * share)
    behind = [0.1, 0.8 * 0.1 + 0.1 * 0.8, 0.8 * 0.8 * 0.1 + 0.8 * 0.1 * 0.8 + 0.1 * 0.8 * 0.8]
    value = stays + on[3] * 0.9 + 0.05 * (behind[0] + behind[1] + behind[2])
    value += 0.05 * (0.1**2 + 3 * 0.8 * 0.1**2)  # two steps behind
    value += 0.05 * 0.1**3  # three
    assert funnel.value(right) == pytest.approx(value)


def test_what_pays_at_once_is_not_what_pays_in_the_end() -> None:
    funnel = ShopFunnel()
    greedy = TablePolicy(np.tile(funnel.rewards[0].argmax(axis=1), (6, 1)))
    assert funnel.optimal_policy().actions[0].tolist()[:4] == [0, 1, 1, 2]
    assert funnel.value(greedy) < 0.55 * funnel.optimal_value


def test_who_is_gone_stays_gone() -> None:
    funnel = ShopFunnel()
    np.testing.assert_array_equal(funnel.transitions[0, -1, :, -1], 1.0)
    np.testing.assert_array_equal(funnel.rewards[0, -1], 0.0)
    np.testing.assert_array_equal(funnel.transitions[0, 3, :, -1], 1.0)


def test_specification() -> None:
    funnel = environment_from_dict(ShopFunnel(8).to_dict())
    assert isinstance(funnel, ShopFunnel)
    assert (funnel.horizon, funnel.label) == (8, "funnel-h8")
