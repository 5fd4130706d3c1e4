"""What a run is made of, checked before anything is played."""

from __future__ import annotations

from typing import Any

from belated.delays import DelayByAction, DelayLaw, Fixed, OutcomeLaw
from belated.environments import FiniteMDP, GymEnvironment
from belated.errors import InvalidInputError
from belated.validate import integer, refuse

MOST_EPISODES, MOST_ROWS = 2**62, 10**9
"""Beyond the first, times of arrival are no 64-bit integers any more; a row takes 64 bytes."""


def check_algorithm(name: str, value: Any) -> None:
    """Refuse what is not an algorithm."""
    if isinstance(value, type) or not callable(getattr(value, "start", None)):
        raise refuse(name, value, "an algorithm with a method start(problem)")


def check_episodes(episodes: Any, record_every: Any) -> tuple[int, int]:
    """Return both as whole numbers; refuse so many rows that no memory holds them."""
    for name, value in (("episodes", episodes), ("record_every", record_every)):
        integer(name, integer(name, value, at_least=1), at_most=MOST_EPISODES)
    count, every = int(episodes), int(record_every)
    if -(-count // every) > MOST_ROWS:
        raise refuse(
            "episodes", count, f"at most {MOST_ROWS} with record_every={every}: a larger record_every gives fewer rows"
        )
    return count, every


def check_delay(delay: DelayLaw | OutcomeLaw, environment: FiniteMDP | GymEnvironment, episodes: int) -> None:
    """Refuse delays that do not go with the environment or do not last for all episodes."""
    if isinstance(delay, Fixed) and len(delay.delays) < episodes:
        raise InvalidInputError(
            f"delay must have a fixed delay for each of {episodes} episodes, got {len(delay.delays)} of them"
        )
    if isinstance(delay, DelayByAction) and len(delay.laws) != environment.actions:
        raise refuse("delay.laws", len(delay.laws), f"one law for each of {environment.actions} actions")
