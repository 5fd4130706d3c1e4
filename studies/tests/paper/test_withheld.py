"""The adversary keeps back what would teach most, and never more than its budget."""

from __future__ import annotations

import numpy as np

from belated.environments import FiniteMDP
from belated.types import Trajectory
from belated_studies.paper.withheld import CONSTANT, WITHHELD, Withholding, agents, play


def arms(count: int) -> FiniteMDP:
    return FiniteMDP(np.ones((1, count, 1)), rewards=np.linspace(0.2, 0.8, count)[np.newaxis], horizon=1)


def pull(arm: int) -> Trajectory:
    return Trajectory(np.zeros(2, np.int64), np.array([arm]), np.array([0.5]))


def test_it_delivers_what_is_known_and_keeps_back_what_is_new() -> None:
    adversary = Withholding(arms(3), held=1)
    assert adversary.deliver(0, pull(0)) == []
    assert [each.episode for each in adversary.deliver(1, pull(0))] == [0]  # of two alike the older one
    assert [each.episode for each in adversary.deliver(2, pull(2))] == [1]  # arm 2 is new, arm 0 is known by now
    assert [each.episode for each in adversary.deliver(3, pull(0))] == [3]
    assert [each.episode for each in adversary.deliver(4, pull(1))] == [2]  # both are new: the older one
    assert adversary.delays == 5


def test_what_an_episode_teaches_is_what_it_adds_to_the_log_determinant() -> None:
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(1, 4, 3))
    mdp = FiniteMDP(np.ones((1, 4, 1)), rewards=np.zeros((1, 4)), features=phi, horizon=1)
    adversary, omega = Withholding(mdp, held=0), np.eye(3)
    for episode, arm in enumerate(rng.integers(4, size=20).tolist()):
        x = phi[0, arm]
        grown = omega + np.outer(x, x)
        gain = np.linalg.slogdet(grown)[1] - np.linalg.slogdet(omega)[1]
        assert np.isclose(adversary._teaches(x[np.newaxis]), gain)
        adversary.deliver(episode, pull(arm))
        omega = grown


def test_a_budget_is_a_budget() -> None:
    mdp, settings = arms(4), agents()["psvi"]
    _, constant = play(mdp, settings, CONSTANT, 7, 60, seed=0)
    _, withheld = play(mdp, settings, WITHHELD, 7, 60, seed=0)
    assert constant == 7 * 60
    assert withheld == 7 * 60 - sum(range(7))  # there are not seven to keep at first
