"""What the artefacts of the study of exploration share: sizes, problems, bars, and the agents beside `AutoPSVI`."""

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
"""The labels of agents; `LEARNED` is `AutoPSVI` on features that are learned whatever the observations are."""
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


SLACK = 1.1
SET = "set before it was played"
"""The source of a bar that somebody thought a good agent should reach."""


@dataclass(frozen=True, kw_only=True)
class Bar:
    """What `AutoPSVI` has to show; all that is given."""

    value: float | None = None
    """The least mean return of the last fifth of the episodes."""
    within: int | None = None
    """The episode by which every seed has solved it."""
    regret: float | None = None
    """The most regret, as a multiple of that of the best agent beside it."""
    before: float | None = None
    """The regret of an earlier rule, of which it may have at most `SLACK` times as much."""
    steps: float | None = None
    """The most steps to the goal, over the episodes of the last fifth that reach it."""
    lost: float | None = None
    """The largest part of the seeds that may end with the worse choice: in most of the last fifth of the episodes."""
    of_dqn: float | None = None
    """The least return, as a part of that of DQN."""
    not_below_dqn: bool = False
    """Whether its interval has to reach that of DQN."""
    time_of_dqn: bool = False
    """Whether it may take no more processor time than DQN."""
    milliseconds: float | None = None
    """The most processor time of an episode."""
    source: str = SET
    """Where the bar comes from."""


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
    searches: Mapping[str, str] = field(default_factory=dict)
    """Of an agent whose settings a search has found, its name."""
    optimum: float | None = None
    """The best return, where the rows do not say it."""
    published: str = ""
    small: bool = False
    """Whether a quick look has it."""
    share: float = 1.0
    """Its seeds, as a multiple of those of the size."""
    every: int = 1
    """Every so many episodes get a row."""
    through: Mapping[str, tuple[Callable[[], Any], Algorithm]] = field(default_factory=dict)
    """Agents that see it through other features: by label, how the environment is made for them, and the agent."""

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
        """Return its runs; other features are other experiments, with the same labels."""
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
