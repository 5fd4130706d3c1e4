"""The searches for the settings of the paper's agents in simulators: of equal size for each, on seeds of their own.

Steps share one regression, as the dynamics allow. Rungs are short, since posterior draws find these goals within dozens
of episodes or not at all.
"""

from __future__ import annotations

from belated.agents import DelayedLPSVI, DelayedPSVI, DelayedUCBVI
from belated.delays import Poisson
from belated.environments import GymEnvironment
from belated.runner import Rung, Search, Space
from belated_studies.exploration.problems import FULL
from belated_studies.searching import grid

SPACES = {
    "psvi": Space(DelayedPSVI(shared=True), {"scale": grid(0.03, 10, 6)}),
    "lpsvi": Space(DelayedLPSVI(shared=True, sampler="preconditioned"), {"temperature": grid(0.001, 100, 6)}),
    "ucbvi": Space(DelayedUCBVI(shared=True), {"bonus": grid(0.03, 10, 6)}),
}
"""Six candidates each."""


def mountain_car() -> Search:
    """Return the search on MountainCar."""
    return _search("mountain-car", GymEnvironment("MountainCar-v0"), 60)


def cart_pole() -> Search:
    """Return the search on CartPole with H = 200."""
    return _search("cart-pole", GymEnvironment("CartPole-v1", horizon=200), 60)


def acrobot() -> Search:
    """Return the search on Acrobot."""
    return _search("acrobot", GymEnvironment("Acrobot-v1"), 20)


def _search(name: str, environment: GymEnvironment, episodes: int) -> Search:
    return Search(
        name=name,
        environment=environment,
        delay=Poisson(10),
        spaces=SPACES,
        rungs=(
            Rung(episodes=episodes, seeds=range(1000, 1001), keep=2),
            Rung(episodes=episodes, seeds=range(1001, 1003), keep=1),
        ),
        report_seeds=range(FULL.seeds),
    )
