"""LunarLander, which needs Box2D and is left out without it."""

from __future__ import annotations

from functools import cache, partial

from belated.agents import DelayedQLearning
from belated.environments import GymEnvironment
from belated_studies.exploration.peers import Game
from belated_studies.exploration.problems import Q_LEARNING, Bar, Problem
from belated_studies.exploration.section import artefact
from belated_studies.exploration.worlds import has, left_out

GAMES = {"lunar": Game("LunarLander-v3")} if has("Box2D") else {}


@cache
def problems() -> tuple[Problem, ...]:
    """Return the lander, with as many seeds as the peers have."""
    if not has("Box2D"):
        return ()
    bar = Bar(not_below_dqn=True, milliseconds=20.0, source="DQN on the same late episodes; the time: set before")
    return (
        Problem(
            name="LunarLander",
            label="lunar",
            make=partial(GymEnvironment, "LunarLander-v3"),
            episodes=600,
            bars={"poisson-10": bar},
            others={Q_LEARNING: DelayedQLearning()},
            share=0.3,
        ),
    )


ARTEFACT = artefact(
    "lander",
    12,
    "LunarLander",
    [
        "Eight numbers, some of which leave the bounds of their space. AutoPSVI learns features by itself here, so "
        "there is no separate row with learned features. Q-learning has tiles.",
        *left_out("Box2D"),
    ],
    problems,
    games=GAMES,
)
