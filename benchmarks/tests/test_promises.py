"""The figures about what the service learns, on cases small enough to be seen through."""

from __future__ import annotations

import math

import numpy as np
import pytest

from belated.decisions import ByAge
from benchmarks import probabilities, silence


def test_beliefs_are_off_by_the_worse_arm() -> None:
    error = math.sqrt(0.05 * 0.95 / 400)
    believed = silence.Beliefs.of(np.array([0.1, 0.05 + 2 * error]), np.array([10.0, 400.0]))
    assert believed.off == pytest.approx(2.0)


def test_by_age_the_truth_is_what_comes_up_to_the_ages_that_were_reached() -> None:
    ages = ByAge(6000.0, ages=2)  # they end after 1500 seconds, the slow arm's mean delay, and 6000
    rates = np.array([0.1 * (1 - math.exp(-1)), 0.05])
    nobody = [np.zeros(0), np.zeros(0)]
    early = silence.Beliefs.by_age(rates, ages, np.array([[100.0, 100.0], [0.0, 0.0]]), nobody)
    assert early.off < 1e-9
    assert early.errors[0] == pytest.approx(math.sqrt(rates[0] * (1 - rates[0]) / 100))
    whole = silence.Beliefs.by_age(np.array(silence.RATES), ages, np.full((2, 2), 50.0), nobody)
    assert whole.off < 1e-9
    # of decisions that were made 1500 seconds ago, e⁻¹ of the slow arm's yeses are still to come
    just = silence.Beliefs.by_age(rates, ByAge(1500.0), np.full((8, 2), 50.0), [np.full(50, 1500.0)] * 2)
    assert just.off_so_far < 1e-9 < just.off


def test_yeses_are_told_late_and_all_of_them_in_the_end() -> None:
    told: list[int] = []

    def beliefs(time: float) -> silence.Beliefs:
        return silence.Beliefs.of(np.array([len(told) / 3_000, 0.05]), np.array([3_000.0, 1.0]))

    played = silence.play(
        silence.Agent(lambda number, time: 0, lambda n, time: told.append(n), beliefs), 3_000, 1, True
    )
    assert played.share == 1.0
    assert len(set(told)) == len(told)
    assert played.live.rates[0] < 0.08  # half of them were still in flight
    assert played.after.off < 3.0


def test_estimates_by_hand() -> None:
    logged, rewards = np.array([1 / 3, 1 / 6, 2 / 3]), np.array([1.0, 1.0, 0.0])
    (value, error), (normed, _), effective = probabilities._estimates(logged, rewards)
    assert (value, normed) == pytest.approx((1.0, 3.0 / 3.5))
    assert error == pytest.approx(1.0 / math.sqrt(3))
    assert effective == pytest.approx(3.5**2 / 5.25)


def test_a_log_of_true_probabilities_is_not_strange() -> None:
    log = probabilities.play(400, 1.0, 0)  # at random: the estimate is the mean
    assert log.effective == pytest.approx(400)
    assert log.strange < -2.0 * math.log(0.001)
    assert abs(log.ips[0] - probabilities.RATES[:, 0].mean()) < 4 * log.ips[1]
