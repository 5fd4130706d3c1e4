"""Gymnasium's classic control: observations that no table holds."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from belated.environments import GymEnvironment
from belated.environments._gym_bridge import load_gymnasium
from belated_studies.exploration.peers import Game
from belated_studies.exploration.problems import SET, Bar, Problem, learned, searched
from belated_studies.exploration.published import ACROBOT, CART_POLE, MOUNTAIN_CAR
from belated_studies.exploration.section import artefact

GAMES = {
    "car": Game("MountainCar-v0"),
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
    cart, car = partial(GymEnvironment, "CartPole-v1"), partial(GymEnvironment, "MountainCar-v0")
    dqn = "set with the returns of DQN and PPO here in view"
    quick = Bar(value=-112.0, milliseconds=10.0, source=f"the return: {dqn}; the time: {SET}")
    return (
        _problem("MountainCar", "car", car, 500, quick, None, MOUNTAIN_CAR, small=True),
        _problem("MountainCar, reward only at the goal", "car-sparse", sparse, 400, _at(0.85, SET), 1.0),
        _problem("CartPole, H = 200", "cart-200", partial(cart, horizon=200), 300, _at(195.0, SET), 200.0, small=True),
        _problem("CartPole, H = 500", "cart-500", cart, 500, _at(475.0, "Gymnasium's threshold"), 500.0, CART_POLE),
        _problem("Acrobot", "acrobot", partial(GymEnvironment, "Acrobot-v1"), 500, _at(-115.0, dqn), None, ACROBOT),
    )


def _at(value: float, source: str) -> Bar:
    return Bar(value=value, source=source)


SEARCHES = {
    **dict.fromkeys(("car", "car-sparse"), "mountain-car-greedy"),
    **dict.fromkeys(("cart-200", "cart-500"), "cart-pole-greedy"),
    "acrobot": "acrobot-greedy",
}
SLOW = ("cart-500", "acrobot")
"""What takes minutes a run: fewer seeds play it."""


def _problem(
    name: str,
    label: str,
    make: partial[GymEnvironment],
    episodes: int,
    bar: Bar,
    optimum: float | None,
    published: str = "",
    small: bool = False,
) -> Problem:
    return Problem(
        name=name,
        label=label,
        make=make,
        episodes=episodes,
        bars={"poisson-10": bar},
        target=bar.value,
        optimum=optimum,
        published=published,
        small=small,
        share=0.3 if label in SLOW else 1.0,
        through=learned(make) if label not in ("car-sparse", "acrobot") else {},
        **searched(SEARCHES[label]),
    )


ARTEFACT = artefact(
    "classic-control",
    5,
    "Classic control",
    [
        "AutoPSVI chooses its features by itself; “learned features” forces a network, which is its own choice for "
        "Acrobot. Q-learning has tiles over the bounds of the space, and DQN and PPO use networks. "
        "Solved: a mean return over 100 episodes that reaches the bar."
    ],
    problems,
    games=GAMES,
)
