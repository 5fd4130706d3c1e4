"""What a run is made of, checked before anything is played."""

from __future__ import annotations

from typing import Any

from belated._util.validate import integer, refuse
from belated.delays import DelayByAction, DelayDistribution, OutcomeDelays
from belated.environments import FiniteMDP, GymEnvironment
from belated.errors import InvalidInputError
from belated.types import Algorithm

MOST_EPISODES, MOST_ROWS = 2**62, 10**9
"""Beyond the first, times of arrival are no 64-bit integers any more; a row takes 64 bytes."""


def check_algorithm(name: str, value: Any) -> None:
    """Refuse what is not an algorithm."""
    if isinstance(value, type) or not callable(getattr(value, "start", None)):
        raise refuse(name, value, "an algorithm with a method start(problem)")


def read_seeds(name: str, given: Any) -> Any:
    """Return seeds that were written as text: a number of them, or `first:end`, the end left out; all else as it is.

    >>> read_seeds("seeds", "100:110"), read_seeds("seeds", "3")
    (range(100, 110), 3)
    """
    if not isinstance(given, str):
        return given
    parts = given.split(":")
    if not all(part.isdecimal() and len(part) < 20 for part in parts) or len(parts) > 2:
        raise refuse(name, given, "a number of seeds, or a range such as '100:110'")
    numbers = [int(part) for part in parts]
    if len(numbers) == 2 and numbers[0] >= numbers[1]:
        raise refuse(name, given, "a range with at least one seed, such as '100:110'")
    return numbers[0] if len(numbers) == 1 else range(*numbers)


def check_episodes(episodes: Any, record_every: Any) -> tuple[int, int]:
    """Return both as integers; refuse so many rows that no memory holds them."""
    for name, value in (("episodes", episodes), ("record_every", record_every)):
        integer(name, integer(name, value, at_least=1), at_most=MOST_EPISODES)
    count, every = int(episodes), int(record_every)
    if -(-count // every) > MOST_ROWS:
        raise refuse(
            "episodes", count, f"at most {MOST_ROWS} with record_every={every}: a larger record_every gives fewer rows"
        )
    return count, every


def check_delay(
    delay: DelayDistribution | OutcomeDelays, environment: FiniteMDP | GymEnvironment, episodes: int
) -> None:
    """Refuse delays that do not go with the environment or do not last for all episodes."""
    if isinstance(delay, DelayDistribution) and delay.lasts < episodes:
        raise InvalidInputError(
            f"delay must have a fixed delay for each of {episodes} episodes, got {delay.lasts} of them"
        )
    if isinstance(delay, DelayByAction) and len(delay.delays) != environment.actions:
        raise refuse(
            "delay.delays",
            len(delay.delays),
            f"one distribution for each of {environment.actions} actions",
        )


def table_for(environment: GymEnvironment, algorithm: Algorithm) -> FiniteMDP | None:
    """Return the table that `algorithm` plays with, or None; refuse it if it needs one and there is none.

    An algorithm that says `takes_samples` plays without a table, unless the environment is one of this library with no
    other features; one that says `needs_table = False` does where there is none.
    """
    if getattr(algorithm, "takes_samples", False):
        return environment.own_table
    if environment.table is None and getattr(algorithm, "needs_table", True):
        raise InvalidInputError(
            f"{type(algorithm).__name__} needs a table of all states, which {environment.name} does not have; "
            "AutoPSVI, DelayedQLearning and RandomPolicy need none"
        )
    return environment.table
