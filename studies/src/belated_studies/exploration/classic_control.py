"""Gymnasium's classic control: observations that no table holds."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from belated.agents import DelayedQLearning
from belated.environments import GymEnvironment
from belated.environments._gym_bridge import load_gymnasium
from belated_studies.exploration.peers import Game
from belated_studies.exploration.problems import Q_LEARNING, Bar, Problem
from belated_studies.exploration.published import ACROBOT, CART_POLE, MOUNTAIN_CAR
from belated_studies.exploration.section import artefact

GAMES = {
    "car": Game("MountainCar-v0"),
    "car-sparse": Game("MountainCar-v0", sparse=True),
    "cart-200": Game("CartPole-v1", steps=200),
    "cart-500": Game("CartPole-v1"),
    "acrobot": Game("Acrobot-v1"),
}


def sparse_mountain_car() -> Any:
    """Return MountainCar-v0 with a reward of 1 at the goal and of 0 elsewhere."""
    gymnasium = load_gymnasium()

    class AtTheGoal(gymnasium.Wrapper):  # type: ignore[misc,name-defined]
        """Pays when the episode terminates."""

        def step(self, action: Any) -> Any:
            observation, _, terminated, truncated, info = self.env.step(action)
            return observation, float(terminated), terminated, truncated, info

    return AtTheGoal(gymnasium.make("MountainCar-v0"))


@cache
def problems() -> tuple[Problem, ...]:
    """Return the problems with their bars."""
    sparse = partial(GymEnvironment, sparse_mountain_car, horizon=200, reward_range=(0.0, 1.0))
    cart = partial(GymEnvironment, "CartPole-v1")
    return (
        _problem(
            "MountainCar", "car", partial(GymEnvironment, "MountainCar-v0"), 500, -118.0, None, MOUNTAIN_CAR, True
        ),
        _problem("MountainCar, reward only at the goal", "car-sparse", sparse, 400, 0.85, 1.0, ""),
        _problem("CartPole, H = 200", "cart-200", partial(cart, horizon=200), 300, 190.0, 200.0, "", True),
        _problem("CartPole, H = 500", "cart-500", cart, 500, 450.0, 500.0, CART_POLE),
        _problem("Acrobot", "acrobot", partial(GymEnvironment, "Acrobot-v1"), 500, -150.0, None, ACROBOT),
    )


def _problem(
    name: str,
    label: str,
    make: partial[GymEnvironment],
    episodes: int,
    bar: float,
    optimum: float | None,
    published: str,
    small: bool = False,
) -> Problem:
    return Problem(
        name=name,
        label=label,
        make=make,
        episodes=episodes,
        bars={"poisson-10": Bar(value=bar)},
        target=bar,
        others={Q_LEARNING: DelayedQLearning()},
        optimum=optimum,
        published=published,
        small=small,
    )


ARTEFACT = artefact(
    "classic-control",
    5,
    "Classic control",
    [
        "AutoPSVI chooses its features by itself, tiles over what it has seen for CartPole and MountainCar and learned "
        "ones for Acrobot; Q-learning has tiles over the bounds of the space, and DQN and PPO use networks. Solved: a "
        "mean return over 100 episodes that reaches the bar."
    ],
    problems,
    games=GAMES,
)
