"""What a run is made of, checked before anything is played."""

from __future__ import annotations

from typing import Any

from belated._util.validate import integer, refuse
from belated.delays import DelayByAction, DelayDistribution, OutcomeDelays
from belated.environments import FiniteMDP, GymEnvironment
from belated.errors import InvalidInputError
from belated.types import Algorithm, Environment, SaysWhereItPlays

MOST_EPISODES, MOST_ROWS = 2**62, 10**9
"""Beyond the first, times of arrival are no 64-bit integers any more; a row takes 64 bytes."""


def check_algorithm(name: str, value: Any) -> None:
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


def check_delay(delay: DelayDistribution | OutcomeDelays, environment: Environment, episodes: int) -> None:
    """Raise `InvalidInputError` if delays do not go with the environment or do not last for all episodes."""
    if isinstance(delay, DelayDistribution) and delay.lasts < episodes:
        raise InvalidInputError(
            f"delay must have a fixed delay for each of {episodes} episodes, got {delay.lasts} of them"
        )
    actions = environment.problem.actions
    if isinstance(delay, DelayByAction) and len(delay.delays) != actions:
        raise refuse("delay.delays", len(delay.delays), f"one for each of {actions} actions")


def table_for(environment: Environment, algorithm: Algorithm) -> FiniteMDP | None:
    """Return the table that `algorithm` plays on in a simulator, None if it plays on features.

    An algorithm that needs a table where there is none is refused.
    """
    plays = algorithm.plays if isinstance(algorithm, SaysWhereItPlays) else "tables"
    table = environment.table if isinstance(environment, GymEnvironment) else None
    if plays == "features":
        return environment.own_table if isinstance(environment, GymEnvironment) else None
    if table is None and plays == "tables":
        name = environment.name if isinstance(environment, GymEnvironment) else environment.label
        raise InvalidInputError(
            f"{type(algorithm).__name__} needs a table of all states, which {name} does not have; "
            "AutoPSVI and the other regression agents need none"
        )
    return table
