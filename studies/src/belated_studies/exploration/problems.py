"""What the artefacts of the study of exploration share: sizes, problems, bars, and the agents beside `AutoPSVI`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from belated.agents import AutoPSVI, DelayedPSRL, DelayedQLearning
from belated.delays import Constant, DelayDistribution, Poisson
from belated.runner import Experiment
from belated.types import Algorithm
from belated_studies import study
from belated_studies.systems import arbitrary, chains
from belated_studies.winners import tuned

AUTO, PSRL, Q_LEARNING = "auto-psvi", "psrl", "q-learning"
"""The labels of the agents that nobody has searched settings for."""
NONE: dict[str, DelayDistribution] = {"none": Constant(0)}
POISSON: dict[str, DelayDistribution] = {"poisson-10": Poisson(10)}
DELAY_NAMES = {
    "none": "none",
    **{f"poisson-{mean}": f"Poisson {mean}" for mean in (5, 10, 50)},
    "multinomial": "Multinomial {10, 20, 30}",
    "poisson": "Poisson 50",
    "pareto": "Pareto, shape 1, scale 500",
    **arbitrary.DELAY_NAMES,
    **{label: f"Poisson {mean}" if mean else "none" for mean, label in chains.DELAYS.items()},
}
WINDOW = 100
"""Over how many episodes a return is averaged before it counts as solved, as Gymnasium has it."""


@dataclass(frozen=True, kw_only=True)
class Size(study.Size):
    """How much is played: each problem says how many episodes it has."""

    large: bool
    """Whether the larger problems are played, too."""
    episodes: int
    """The most episodes of a run; a problem that has fewer is played as it is."""

    def resized(self, *, seeds: int | None = None, episodes: int | None = None) -> Self:
        """Return this size with other seeds, and at most so many episodes."""
        size = super().resized(seeds=seeds, episodes=episodes)
        return size if episodes is None else replace(size, name=f"{self.name}-{episodes}-episodes")


FULL = Size(name="full", seeds=10, large=True, episodes=5000)
QUICK = Size(name="quick", seeds=2, large=False, episodes=5000)


@dataclass(frozen=True, kw_only=True)
class Bar:
    """What `AutoPSVI` has to show; all that is given."""

    value: float | None = None
    """The least mean return of the last fifth of the episodes."""
    within: int | None = None
    """The episode by which every seed has solved it."""
    regret: float | None = None
    """The most regret, as a multiple of that of the best agent beside it with tuned settings."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """One environment, its delays, and who plays in it for how long."""

    name: str
    """How it is called in the report."""
    label: str
    """How its experiment and its environment are called in rows."""
    make: Callable[[], Any]
    """Return the environment, when it is first needed."""
    episodes: int
    bars: Mapping[str, Bar]
    """By the delay."""
    target: float | None = None
    """The mean return that counts as solved; None: nothing does."""
    window: int = WINDOW
    """The episodes over which it is the mean."""
    delays: Mapping[str, DelayDistribution] = field(default_factory=POISSON.copy)
    others: Mapping[str, Algorithm]
    """The agents beside `AutoPSVI`."""
    borrowed: Mapping[str, str] = field(default_factory=dict)
    """Of an agent whose settings were searched for on another problem, which one."""
    tuned: Sequence[str] = ()
    """The agents whose settings a search has found."""
    optimum: float | None = None
    """The best return, where the rows do not say it."""
    published: str = ""
    small: bool = False
    """Whether a quick look has it."""

    @cached_property
    def world(self) -> Any:
        """The environment."""
        return self.make()

    def shortened(self, size: Size) -> int:
        """Return how many episodes are played."""
        return min(self.episodes, size.episodes)

    def experiment(self, size: Size) -> Experiment:
        """Return its runs."""
        return Experiment(
            name=self.label,
            environments={self.label: self.world},
            agents={AUTO: AutoPSVI(), **self.others},
            delays=self.delays,
            episodes=self.shortened(size),
            seeds=size.seeds,
        )


def chosen(problems: Sequence[Problem], size: Size) -> list[Problem]:
    """Return the problems of this size."""
    return [each for each in problems if size.large or each.small]


def with_defaults() -> dict[str, Algorithm]:
    """Return the agents beside `AutoPSVI` that play as they are."""
    return {PSRL: DelayedPSRL(), Q_LEARNING: DelayedQLearning()}


def borrowed() -> dict[str, Algorithm]:
    """Return the agents for a problem on which nobody has searched for settings: those found elsewhere, and defaults.

    Delayed-PSVI and UCBVI as RiverSwim's search left them, ε-greedy as that on the synthetic MDP did.
    """
    river = tuned("riverswim")
    return {
        "psvi": river["psvi"],
        "ucbvi": river["ucbvi"],
        "epsilon-greedy": tuned("synthetic")["epsilon-greedy"],
        **with_defaults(),
    }


BORROWED = {"psvi": "RiverSwim", "ucbvi": "RiverSwim", "epsilon-greedy": "the synthetic MDP"}
"""Where the settings of `borrowed` come from."""
SEARCHED = tuple(BORROWED)
