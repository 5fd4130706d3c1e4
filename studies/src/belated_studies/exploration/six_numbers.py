"""Six continuous numbers in spaces whose bounds say little: features have to be learned."""

from __future__ import annotations

from functools import cache, partial

from belated.agents import DelayedQLearning
from belated.environments import GymEnvironment
from belated_studies.exploration.peers import Game
from belated_studies.exploration.problems import Q_LEARNING, Bar, Problem
from belated_studies.exploration.section import artefact
from belated_studies.peer_scripts.continuous_worlds import Drone, PointMass

MODULE = "continuous_worlds"
"""Which the script of the peers finds beside it."""
GAMES = {
    "point-mass": Game(f"{MODULE}:PointMass-v0", by_hand=True, seeds=10),
    "drone": Game(f"{MODULE}:Drone-v0", by_hand=True, seeds=10),
}


BAR = Bar(of_dqn=0.7, time_of_dqn=True, source="DQN on the same late episodes")


@cache
def problems() -> tuple[Problem, ...]:
    """Return the problems."""
    return (
        _problem("point mass", "point-mass", partial(GymEnvironment, PointMass, horizon=40)),
        _problem("drone", "drone", partial(GymEnvironment, Drone, horizon=60)),
    )


def _problem(name: str, label: str, make: partial[GymEnvironment]) -> Problem:
    return Problem(
        name=name,
        label=label,
        make=make,
        episodes=250,
        bars={"poisson-10": BAR},
        others={Q_LEARNING: DelayedQLearning()},
        small=label == "drone",
    )


ARTEFACT = artefact(
    "six-numbers",
    10,
    "Six continuous numbers",
    [
        "A noisy point mass with three positions and three velocities, and a drone in the plane. Their spaces state "
        "[-10, 10] and [-5, 5]; all values stay within 2. AutoPSVI learns features (a network, its own choice), "
        "Q-learning has tiles. DQN's settings were chosen by hand so that it learns both. The constants of the network "
        "were chosen with seeds from 2000 on, on the point mass and on classic control; the drone was tried with two "
        "of those seeds."
    ],
    problems,
    games=GAMES,
)
