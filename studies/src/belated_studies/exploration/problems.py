"""Shared by the artefacts of the exploration study: sizes, problems, bars, and the agents besides `AutoPSVI`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self

from belated.agents import AutoPSVI
from belated.delays import Constant, DelayDistribution, Poisson
from belated.runner import Experiment
from belated.types import Algorithm
from belated_studies import study
from belated_studies.systems import arbitrary, chains
from belated_studies.winners import tuned

AUTO, LEARNED, PSRL, Q_LEARNING = "auto-psvi", "auto-psvi-learned", "psrl", "q-learning"
"""The labels of agents; `LEARNED` is `AutoPSVI` on learned features in any case."""
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
"""Number of episodes over which the return is averaged for "solved", as in Gymnasium."""


@dataclass(frozen=True, kw_only=True)
class Size(study.Size):
    """The size of the study; each problem has its own number of episodes."""

    large: bool
    """Whether the larger problems are played, too."""
    episodes: int
    """Maximum number of episodes of a run."""

    def resized(self, *, seeds: int | None = None, episodes: int | None = None) -> Self:
        """Return this size with other seeds, and a maximum number of episodes."""
        size = super().resized(seeds=seeds, episodes=episodes)
        return size if episodes is None else replace(size, name=f"{self.name}-{episodes}-episodes")


FULL = Size(name="full", seeds=10, large=True, episodes=5000)
QUICK = Size(name="quick", seeds=2, large=False, episodes=5000)


SLACK = 1.1
SET = "set before it was played"
"""The source of a bar that was set in advance."""


@dataclass(frozen=True, kw_only=True)
class Bar:
    """The bars for `AutoPSVI`; all given ones must be met."""

    value: float | None = None
    """Minimum mean return over the last fifth of the episodes."""
    within: int | None = None
    """The episode by which every seed must have solved it."""
    regret: float | None = None
    """Maximum regret, as a multiple of that of the best other agent."""
    before: float | None = None
    """The regret of an earlier rule; at most `SLACK` times as much is allowed."""
    steps: float | None = None
    """Maximum steps to the goal, over the episodes of the last fifth that reach it."""
    lost: float | None = None
    """Maximum fraction of seeds that make the worse choice in most of the last fifth of the episodes."""
    of_dqn: float | None = None
    """Minimum return, as a fraction of DQN's."""
    not_below_dqn: bool = False
    """Whether its interval must reach that of DQN."""
    time_of_dqn: bool = False
    """Whether it must not take more CPU time than DQN."""
    milliseconds: float | None = None
    """Maximum CPU time per episode."""
    source: str = SET
    """The source of the bar."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """One environment with its delays, agents and number of episodes."""

    name: str
    """Its name in the report."""
    label: str
    """The label of its experiment and environment in rows."""
    make: Callable[[], Any]
    """Return the environment, when it is first needed."""
    episodes: int
    bars: Mapping[str, Bar]
    """By the delay."""
    target: float | None = None
    """The mean return that counts as solved; None if there is none."""
    window: int = WINDOW
    """The number of episodes of that mean."""
    delays: Mapping[str, DelayDistribution] = field(default_factory=POISSON.copy)
    others: Mapping[str, Algorithm]
    """The agents besides `AutoPSVI`."""
    searches: Mapping[str, str] = field(default_factory=dict)
    """For agents with searched settings, the name of the search."""
    optimum: float | None = None
    """The optimal return, if it is not in the rows."""
    published: str = ""
    small: bool = False
    """Whether it is part of a quick run."""
    share: float = 1.0
    """Number of seeds, as a multiple of the size's."""
    every: int = 1
    """Every n-th episode gets a row."""
    through: Mapping[str, tuple[Callable[[], Any], Algorithm]] = field(default_factory=dict)
    """Agents with other features: by label, a function that creates their environment, and the agent."""

    @cached_property
    def world(self) -> Any:
        """The environment."""
        return self.make()

    def shortened(self, size: Size) -> int:
        """Return how many episodes are played."""
        return min(self.episodes, size.episodes)

    def seeds(self, size: Size) -> int:
        """Return how many seeds are played."""
        return max(1, round(self.share * size.seeds))

    @property
    def agents(self) -> tuple[str, ...]:
        """All agents that are played here, in the order of the report."""
        return AUTO, *self.through, *self.others

    def experiment_of(self, agent: str) -> str:
        """Return the name of the experiment with the runs of `agent`."""
        return f"{self.label}-{agent}" if agent in self.through else self.label

    def experiments(self, size: Size) -> list[Experiment]:
        """Return its runs; other features are separate experiments with the same labels."""
        others = [
            self._experiment(self.experiment_of(label), make(), {label: agent}, size)
            for label, (make, agent) in self.through.items()
        ]
        return [self._experiment(self.label, self.world, {AUTO: AutoPSVI(), **self.others}, size), *others]

    def _experiment(self, name: str, world: Any, agents: Mapping[str, Algorithm], size: Size) -> Experiment:
        return Experiment(
            name=name,
            environments={self.label: world},
            agents=agents,
            delays=self.delays,
            episodes=self.shortened(size),
            seeds=self.seeds(size),
            record_every=self.every,
        )


def learned(make: partial[Any]) -> dict[str, tuple[Callable[[], Any], Algorithm]]:
    """Return `AutoPSVI` on learned features, as `Problem.through` has it."""
    return {LEARNED: (partial(make, features="learned"), AutoPSVI())}


def by_number(table: Callable[[], Any], search: str) -> dict[str, Any]:
    """Return Q-learning in a table of observations, with the settings of a search, as fields of a `Problem`."""
    return {"through": {Q_LEARNING: (table, tuned(search)[Q_LEARNING])}, "searches": {Q_LEARNING: search}, "others": {}}


def chosen(problems: Sequence[Problem], size: Size) -> list[Problem]:
    """Return the problems of this size."""
    return [each for each in problems if size.large or each.small]


def searched(*names: str, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the agents that the searches called `names` have settings of, and where each has its settings from.

    An agent that two searches have is called by both names the second time, and those `without`
    are left out. Both are fields of a `Problem`: `Problem(..., **searched("lakes"))`.
    """
    found: dict[str, tuple[Algorithm, str]] = {}
    for name in names:
        for agent, settings in tuned(name).items():
            if agent not in without:
                found[f"{agent}-{name}" if agent in found else agent] = settings, name
    return {
        "others": {agent: settings for agent, (settings, _) in found.items()},
        "searches": {agent: name for agent, (_, name) in found.items()},
    }
