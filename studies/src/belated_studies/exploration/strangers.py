"""Blackjack and a pendulum, played without any setting."""

from __future__ import annotations

from functools import cache, partial

from belated.agents import DelayedQLearning
from belated.environments import GymEnvironment
from belated_studies.exploration.problems import Q_LEARNING, Problem, by_number
from belated_studies.exploration.section import artefact
from belated_studies.exploration.worlds import blackjack_table, pendulum


@cache
def problems() -> tuple[Problem, ...]:
    """Return both."""
    table = partial(GymEnvironment, blackjack_table, horizon=20, reward_range=(-1.0, 1.0))
    return (
        Problem(
            name="Blackjack",
            label="blackjack",
            make=partial(GymEnvironment, "Blackjack-v1", horizon=20),
            episodes=2000,
            bars={},
            small=True,
            **by_number(table, "blackjack"),
        ),
        Problem(
            name="Pendulum, five torques",
            label="pendulum",
            make=partial(GymEnvironment, pendulum, horizon=200),
            episodes=250,
            bars={},
            share=0.3,
            others={Q_LEARNING: DelayedQLearning()},
        ),
    )


ARTEFACT = artefact(
    "strangers",
    13,
    "Blackjack and a pendulum",
    [
        "Played unchanged, with no settings. Q-learning is given a table of the observations of Blackjack, and tiles "
        "for the pendulum."
    ],
    problems,
)
