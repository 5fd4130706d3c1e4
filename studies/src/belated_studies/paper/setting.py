"""What the paper's experiments have in common: how much is played, the worlds, the delays, and how they are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from belated.agents import Settings
from belated.delays import DelayDistribution, Multinomial, Pareto, Poisson
from belated.environments import FiniteMDP, SyntheticLinearMDP
from belated.runner import Experiment
from belated_studies.reports.document import Block
from belated_studies.study import Size


@dataclass(frozen=True, kw_only=True)
class PaperSize(Size):
    """The paper's scale, or a part of it."""

    episodes: int
    riverswim_seeds: int

    @property
    def folder(self) -> str:
        """The folder of the rows: the same for all that have as many episodes."""
        return f"{self.episodes}-episodes"

    def resized(self, *, seeds: int | None = None, episodes: int | None = None) -> Self:
        """Return this size with other seeds, also those of RiverSwim, and episodes."""
        size = super().resized(seeds=seeds, episodes=episodes)
        return size if seeds is None else replace(size, riverswim_seeds=seeds)


FULL = PaperSize(name="full", episodes=5000, seeds=10, riverswim_seeds=5)

#: Every result is shown for both; `agents` says what they are.
LITERAL, TUNED = BLOCKS = (Block("literal"), Block("tuned"))
BLOCK_NAMES = {
    LITERAL: "literal: the paper's printed hyper-parameters",
    TUNED: "tuned: the best of one search of equal size for each agent",
}

POISSON = Poisson(50)
#: The three delays of the synthetic MDP. The paper's Pareto "scale 500" is read as the classical minimum.
DELAYS: dict[str, DelayDistribution] = {
    "multinomial": Multinomial([10, 20, 30], [0.5, 0.3, 0.2]),
    "poisson": POISSON,
    "pareto": Pareto(1.0, 500.0),
}
LOMAX = Pareto(1.0, 500.0, kind="lomax")
DELAY_NAMES = {
    "multinomial": "Multinomial {10, 20, 30}",
    "poisson": "Poisson, E[τ] = 50",
    "pareto": "Pareto, shape 1, scale 500",
    "lomax": "Lomax, shape 1, scale 500",
}


def synthetic(pairs: int) -> SyntheticLinearMDP:
    """Return the synthetic MDP with |S||A| = `pairs`; it has two states."""
    return SyntheticLinearMDP(actions=pairs // 2)


def experiment(
    name: str,
    size: PaperSize,
    agents: Mapping[str, Settings],
    *,
    world: FiniteMDP | Mapping[str, FiniteMDP] | None = None,
    delays: Mapping[str, DelayDistribution] | None = None,
    seeds: int | None = None,
) -> Experiment:
    """Return an experiment of the paper: on the synthetic MDP with |A| = 20 under Poisson delays, unless it says so."""
    return Experiment(
        name=name,
        environments=synthetic(40) if world is None else world,
        agents=agents,
        delays={"poisson": POISSON} if delays is None else delays,
        episodes=size.episodes,
        seeds=size.seeds if seeds is None else seeds,
    )
