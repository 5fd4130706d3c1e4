"""The searches for settings of the agents beside `AutoPSVI`: of equal size for each, on seeds of their own.

Each family of problems has a search, on a development problem of the same family. Steps share one regression wherever
the dynamics allow. Twelve candidates each in tables, and six in simulators, where a run takes seconds; rungs are short
there, since posterior draws find these goals within dozens of episodes or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from belated.agents import (
    DelayedLPSVI,
    DelayedPHE,
    DelayedPSRL,
    DelayedPSVI,
    DelayedQLearning,
    DelayedUCBVI,
    EpsilonGreedy,
)
from belated.delays import DelayDistribution, Poisson
from belated.environments import DeepSea, GymEnvironment, NChain, RiverSwim
from belated.runner import Rung, Search, Space
from belated.types import Environment
from belated_studies.exploration.problems import FULL
from belated_studies.exploration.tables import arms, dense, lock, lottery
from belated_studies.exploration.worlds import blackjack_table
from belated_studies.exploration.worlds import grid as grid_of
from belated_studies.searching import grid

WHERE = {
    "arms": "two arms that pay with .45 and .6",
    "lotteries": "the lottery with 10 sure steps",
    "locks": "another lock of 12 cells",
    "strict-locks": "another lock of 12 cells that ends",
    **dict.fromkeys(("dense", "dense-by-step", "dense-sure", "dense-by-step-sure"), "another MDP of the same kind"),
    "nchain": "the N-chain of 40",
    "deepsea": "DeepSea 8",
    "rivers": "RiverSwim with 8 states and 40 steps",
    "lakes": "FrozenLake 4×4, not slippery",
    "slippery-lakes": "FrozenLake 4×4, slippery",
    "cliff": "CliffWalking",
    "taxi": "Taxi",
    "grids": "MiniGrid Empty 6×6",
    "blackjack": "Blackjack",
    **dict.fromkeys(("mountain-car", "mountain-car-greedy"), "MountainCar"),
    **dict.fromkeys(("cart-pole", "cart-pole-greedy"), "CartPole, H = 200"),
    **dict.fromkeys(("acrobot", "acrobot-greedy"), "Acrobot"),
    "synthetic": "the synthetic MDP with 50 actions under Poisson 50",
    "riverswim": "RiverSwim under Poisson 5",
    "chain": "the chain of 10 under Poisson 200",
    "adversarial": "the adversary that switches",
}
"""What each search was made on, with development seeds; the last four are searches of other studies."""


def spaces(environment: Environment) -> dict[str, Space]:
    """Return twelve candidates each of the agents that play tables."""
    shared, long = environment.problem.homogeneous, float(environment.problem.horizon)
    drawn = {"noise": grid(0.001, 1, 4), "ridge": distinct(1.0, 1 / long, long**-2)}
    return {
        "psvi": Space(DelayedPSVI(shared=shared), drawn),
        "phe": Space(DelayedPHE(shared=shared), drawn),
        "ucbvi": Space(DelayedUCBVI(shared=shared), {"bonus": grid(0.01, 10, 6), "ridge": distinct(1.0, long**-2)}),
        "psrl": Space(
            DelayedPSRL(), {"concentration": [0.01, 0.1, 1.0], "noise": [0.1, 1.0], "reward_mean": [0.0, 1.0]}
        ),
        "epsilon-greedy": Space(EpsilonGreedy(shared=shared), {"epsilon": grid(0.003, 0.3, 6), "ridge": [1.0, 0.01]}),
        "q-learning": Space(DelayedQLearning(), {"epsilon": grid(0.01, 0.3, 4), "step_size": [0.1, 0.3, 1.0]}),
    }


def distinct(*ridges: float) -> list[float]:
    """Return ridges of three digits, and hundredths of the last for those that are there already, as with one step.

    >>> distinct(1.0, 0.1, 0.01), distinct(1.0, 1.0, 1.0)
    ([1.0, 0.1, 0.01], [1.0, 0.01, 0.0001])
    """
    found: list[float] = []
    for ridge in (float(f"{each:.3g}") for each in ridges):
        found.append(ridge if ridge not in found else found[-1] / 100)
    return found


SAMPLED = {
    "psvi": Space(DelayedPSVI(shared=True), {"scale": grid(0.03, 10, 6)}),
    "lpsvi": Space(DelayedLPSVI(shared=True, sampler="preconditioned"), {"temperature": grid(0.001, 100, 6)}),
    "ucbvi": Space(DelayedUCBVI(shared=True), {"bonus": grid(0.03, 10, 6)}),
}
"""In simulators, the agents of the paper."""
GREEDY = {
    "epsilon-greedy": Space(EpsilonGreedy(shared=True), {"epsilon": grid(0.003, 0.3, 6)}),
    "q-learning": Space(DelayedQLearning(), {"epsilon": [0.01, 0.03, 0.1], "step_size": [0.1, 0.5]}),
}
"""In simulators, the usual ones."""


def _search(
    name: str,
    environment: Environment,
    episodes: int,
    candidates: Mapping[str, Space],
    delay: DelayDistribution | None = None,
    seeds: tuple[int, int] = (2, 5),
    keep: int = 4,
) -> Search:
    """Return a search whose first rung has the first of `seeds`, the second the others, all of them from 1000 on."""
    first, second = seeds
    return Search(
        name=name,
        environment=environment,
        delay=delay or Poisson(10),
        spaces=candidates,
        rungs=(
            Rung(episodes=episodes, seeds=range(1000, 1000 + first), keep=keep),
            Rung(episodes=episodes, seeds=range(1000 + first, 1000 + first + second), keep=1),
        ),
        report_seeds=range(FULL.seeds),
    )


def _table(name: str, environment: Environment, episodes: int, **given: Any) -> Search:
    return _search(name, environment, episodes, spaces(environment), **given)


def _simulator(name: str, environment: GymEnvironment, episodes: int) -> Search:
    candidates = GREEDY if name.endswith("-greedy") else SAMPLED
    return _search(name, environment, episodes, candidates, seeds=(1, 2), keep=2)


def _only(search: Search, *agents: str) -> Search:
    """Return the search of these agents alone: the others would take hours or cannot play it."""
    kept = {agent: space for agent, space in search.spaces.items() if agent in agents}
    return replace(search, spaces=kept)


WITHOUT_PHE = ("psvi", "ucbvi", "psrl", "epsilon-greedy", "q-learning")
"""LSVI-PHE solves a system for each draw, which takes too long where there are hundreds of features."""


def two_arms() -> Search:
    return _table("arms", arms(0.45, 0.6), 4000, seeds=(20, 50))


def lotteries() -> Search:
    return _table("lotteries", lottery(10), 4000, seeds=(10, 30))


def locks() -> Search:
    return _table("locks", lock(12, seed=100), 1000)


def strict_locks() -> Search:
    return _only(_table("strict-locks", lock(12, seed=100, ends=True), 1000), *WITHOUT_PHE)


def dense_shared() -> Search:
    return _table("dense", dense(100, by_step=False), 2000)


def dense_by_step() -> Search:
    return _table("dense-by-step", dense(100, by_step=True), 2000)


def dense_sure() -> Search:
    return _table("dense-sure", dense(100, by_step=False, sure=True), 1000)


def dense_by_step_sure() -> Search:
    return _table("dense-by-step-sure", dense(100, by_step=True, sure=True), 1000)


def nchain() -> Search:
    return _table("nchain", NChain(40), 1000)


def deepsea() -> Search:
    return _table("deepsea", DeepSea(8, randomised=True), 240)


def rivers() -> Search:
    return _table("rivers", RiverSwim(8, 40), 1000)


def lakes() -> Search:
    return _table("lakes", GymEnvironment("FrozenLake-v1", is_slippery=False), 200)


def slippery_lakes() -> Search:
    return _only(_table("slippery-lakes", GymEnvironment("FrozenLake-v1"), 300, seeds=(1, 3)), *WITHOUT_PHE)


def cliff() -> Search:
    search = _table("cliff", GymEnvironment("CliffWalking-v1", horizon=200), 100, seeds=(1, 2), keep=2)
    return _only(search, *WITHOUT_PHE)


def taxi() -> Search:
    return _only(_table("taxi", GymEnvironment("Taxi-v4"), 200, seeds=(1, 2), keep=2), "q-learning")


def grids() -> Search:
    empty = GymEnvironment(grid_of, world="MiniGrid-Empty-6x6-v0", table=True, horizon=144, reward_range=(0.0, 1.0))
    return _only(_table("grids", empty, 100, seeds=(1, 2), keep=2), "q-learning")


def blackjack() -> Search:
    table = GymEnvironment(blackjack_table, horizon=20, reward_range=(-1.0, 1.0))
    return _only(_table("blackjack", table, 1000, seeds=(1, 2), keep=2), "q-learning")


def mountain_car(name: str = "mountain-car") -> Search:
    return _simulator(name, GymEnvironment("MountainCar-v0"), 60)


def cart_pole(name: str = "cart-pole") -> Search:
    return _simulator(name, GymEnvironment("CartPole-v1", horizon=200), 60)


def acrobot(name: str = "acrobot") -> Search:
    return _simulator(name, GymEnvironment("Acrobot-v1"), 20)


def mountain_car_greedy() -> Search:
    return mountain_car("mountain-car-greedy")


def cart_pole_greedy() -> Search:
    return cart_pole("cart-pole-greedy")


def acrobot_greedy() -> Search:
    return acrobot("acrobot-greedy")
