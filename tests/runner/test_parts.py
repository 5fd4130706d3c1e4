"""What a run is made of, each part checked by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from refusals import refusals

from belated import Constant, DelayByAction, Fixed, Greedy, InvalidInputError, Outages, Periodic, RiverSwim
from belated.runner._experiment import MOST_EPISODES, MOST_ROWS, check_algorithm, check_delay, check_episodes


def test_what_just_fits_is_accepted() -> None:
    check_algorithm("algorithm", Greedy())
    assert check_episodes(MOST_ROWS, 1) == (MOST_ROWS, 1)
    assert check_episodes(MOST_EPISODES, MOST_EPISODES) == (MOST_EPISODES, MOST_EPISODES)
    check_delay(Fixed([1, 2, 3]), RiverSwim(), 3)
    check_delay(DelayByAction([Constant(0)] * 2), RiverSwim(), 3)


@refusals(
    (
        lambda: check_algorithm("agents['a']", Greedy),
        r"agents\['a'\] must be an algorithm with a method start\(problem\)",
    ),
    (
        lambda: check_algorithm("algorithm", RiverSwim()),
        r"algorithm must be an algorithm with a method start\(problem\)",
    ),
    (lambda: check_episodes(0, 1), "episodes must be an integer >= 1, got 0"),
    (lambda: check_episodes(5, 0.5), "record_every must be an integer >= 1, got 0.5"),
    (
        lambda: check_episodes(MOST_EPISODES + 1, MOST_EPISODES),
        "episodes must be an integer <= 4611686018427387904",
    ),
    (lambda: check_episodes(2 * MOST_ROWS + 1, 2), "episodes must be at most 1000000000 with record_every=2"),
    (lambda: check_delay(Fixed([1, 2]), RiverSwim(), 3), "a fixed delay for each of 3 episodes, got 2 of them"),
    (
        lambda: check_delay(Outages([[1, 9]], Periodic(2, Fixed([1, 2]))), RiverSwim(), 3),
        "a fixed delay for each of 3 episodes, got 2 of them",
    ),
    (
        lambda: check_delay(DelayByAction([Constant(0)] * 3), RiverSwim(), 3),
        r"delay\.delays must be one for each of 2 actions, got 3",
    ),
)
def test_what_does_not_is_refused_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()
