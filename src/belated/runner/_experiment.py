"""An experiment is data: every combination of environments, agents, delays and seeds is one run with an id."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from belated._util.validate import integer, refuse
from belated.delays import DelayDistribution, OutcomeDelays
from belated.environments import FiniteMDP, GymEnvironment
from belated.errors import InvalidInputError
from belated.runner._description import describe_run
from belated.runner._labels import check_label, file_name
from belated.runner._parts import check_algorithm, check_delay, check_episodes, read_seeds, table_for
from belated.runner._specs import agents_of, check_fields, check_unseen, delays_of, environments_of, included, read_toml
from belated.types import Algorithm

T = TypeVar("T")
Distribution = DelayDistribution | OutcomeDelays
Environment = FiniteMDP | GymEnvironment
"""One with tables, or one that can only be sampled."""
Delays = Distribution | Sequence[Distribution] | Mapping[str, DelayDistribution] | Mapping[str, Distribution]
"""One distribution of delays, or several, with or without labels."""
Agents = Algorithm | Sequence[Algorithm] | Mapping[str, Algorithm]
"""One algorithm, or several, with or without labels."""
MOST_SEEDS = 10**6
FIELDS = ("name", "episodes", "seeds", "environments", "agents", "delays")
"""What an experiment file must say."""


@dataclass(frozen=True, eq=False)
class Run:
    """One run: the unit of work, of resumption and of distribution."""

    experiment: str
    environment_label: str
    agent_label: str
    delay_label: str
    environment: Any
    """An `Environment`."""
    algorithm: Algorithm
    delay: Distribution
    episodes: int
    seed: int
    record_every: int = 1

    @property
    def id(self) -> str:
        """The run's name, also the path of its rows: `table-2/synthetic-a20/psvi/poisson-50/seed-07`."""
        labels = (self.experiment, self.environment_label, self.agent_label, self.delay_label)
        return "/".join([*map(file_name, labels), f"seed-{self.seed:02d}"])

    @property
    def rows(self) -> int:
        """How many rows the run gives."""
        return -(-self.episodes // self.record_every)

    def describe(self) -> dict[str, Any]:
        """Return everything that the rows depend on, as plain values: equal descriptions, equal rows."""
        return describe_run(self.environment, self.algorithm, self.delay, self.episodes, self.seed, self.record_every)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Every combination of environments, agents, delays and seeds, each played for `episodes` episodes.

    Single values, sequences and mappings from labels are all accepted for environments and delays; agents come as
    a mapping from labels. `seeds` is a number (seeds 0, 1, ...) or a sequence. With `record_every` n only every n-th
    episode and the last get a row; cumulative regret stays exact.

    Examples
    --------
    >>> from belated import DelayedPSVI, Poisson, RiverSwim
    >>> experiment = Experiment(
    ...     name="first",
    ...     environments=RiverSwim(),
    ...     agents={"psvi": DelayedPSVI()},
    ...     delays=[Poisson(5), Poisson(50)],
    ...     episodes=100,
    ...     seeds=2,
    ... )
    >>> [run.id for run in experiment.runs()][:2]
    ['first/riverswim-5/psvi/poisson-5/seed-00', 'first/riverswim-5/psvi/poisson-5/seed-01']
    """

    name: str
    environments: Mapping[str, Any] | Sequence[Environment] | Environment
    agents: Mapping[str, Algorithm]
    delays: Delays
    episodes: int
    seeds: int | Sequence[int]
    record_every: int = 1

    def __post_init__(self) -> None:
        """Give everything a label and refuse what is not an experiment."""
        check_label("name", self.name)
        episodes, record_every = check_episodes(self.episodes, self.record_every)
        seeds = _seeds(self.seeds)
        if not isinstance(self.agents, Mapping):
            raise refuse("agents", self.agents, "a mapping from labels to algorithms")
        agents = {check_label("the label of an agent", label): agent for label, agent in self.agents.items()}
        for label, agent in agents.items():
            check_algorithm(f"agents[{label!r}]", agent)
        environments = _labelled("environments", self.environments, (FiniteMDP, GymEnvironment))
        delays = _labelled("delays", self.delays, (DelayDistribution, OutcomeDelays))
        for environment, delay in itertools.product(environments.values(), delays.values()):
            check_delay(delay, environment, episodes)
        for environment, agent in itertools.product(environments.values(), agents.values()):
            if isinstance(environment, GymEnvironment):
                table_for(environment, agent)  # which refuses an agent that cannot play there
        for name, value in (
            ("episodes", episodes),
            ("record_every", record_every),
            ("seeds", seeds),
            ("agents", _some("agents", agents)),
            ("environments", environments),
            ("delays", delays),
        ):
            object.__setattr__(self, name, value)

    def runs(self) -> list[Run]:
        """Return all runs, seeds innermost."""
        assert isinstance(self.environments, dict)
        assert isinstance(self.delays, dict)
        assert isinstance(self.seeds, tuple)
        return [
            Run(self.name, *labels, environment, agent, delay, self.episodes, seed, self.record_every)
            for environment_label, environment in self.environments.items()
            for agent_label, agent in self.agents.items()
            for delay_label, delay in self.delays.items()
            for seed in self.seeds
            for labels in [(environment_label, agent_label, delay_label)]
        ]

    @classmethod
    def load(cls, path: str | Path) -> Experiment:
        """Read an experiment from a TOML file; see the how-to on experiments for its layout."""
        return cls.from_dict(read_toml(path, "experiment"), folder=Path(path).parent)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, folder: str | Path = ".") -> Experiment:
        """Return the experiment that plain values describe.

        The agent ``{algorithm = "optimal"}`` stands for the best policy of the environment, of which there must then
        be only one. `include` names files of winners, relative to `folder`, whose agents are added.
        """
        if isinstance(values, Mapping) and "include" in values:
            values = {"agents": {}, **values}
        if isinstance(values, Mapping) and "tune" in values:
            raise InvalidInputError(
                "a file with the table 'tune' is for `belated tune`; an experiment includes its winners"
            )
        check_fields("experiment", values, FIELDS, ("record_every", "include"))
        environments = environments_of(values)
        experiment = cls(
            name=values["name"],
            environments=environments,
            agents=agents_of(values, environments, folder),
            delays=delays_of(values),
            episodes=values["episodes"],
            seeds=read_seeds("seeds", values["seeds"]),
            record_every=values.get("record_every", 1),
        )
        assert isinstance(experiment.seeds, tuple)
        check_unseen(experiment.seeds, included(values, folder))
        return experiment


def _seeds(given: Any) -> tuple[int, ...]:
    if not isinstance(given, Iterable):
        given = range(integer("seeds", integer("seeds", given, at_least=1), at_most=MOST_SEEDS))
    first = itertools.islice(given, MOST_SEEDS + 1)
    seeds = tuple(integer("seeds", integer("seeds", seed, at_least=0), at_most=2**63 - 1) for seed in first)
    if not seeds or len(set(seeds)) < len(seeds):
        raise refuse("seeds", seeds, "at least one, and each only once")
    if len(seeds) > MOST_SEEDS:
        raise refuse("seeds", given, f"at most {MOST_SEEDS} of them")
    return seeds


def _some(name: str, values: dict[str, T]) -> dict[str, T]:
    if not values:
        raise InvalidInputError(f"{name} must not be empty")
    return values


def labelled_agents(given: Any) -> Mapping[str, Algorithm]:
    """Return one algorithm or several as a mapping from labels: without labels of their own, the names of their kinds.

    >>> from belated import AutoPSVI, Greedy
    >>> list(labelled_agents([AutoPSVI(), Greedy()]))
    ['auto-psvi', 'greedy']
    """
    if isinstance(given, Mapping):
        return given
    several = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    for agent in several:
        check_algorithm("agents", agent)
    return _unique("agents", [(getattr(agent, "kind", type(agent).__name__), agent) for agent in several])


def _labelled(name: str, given: Any, kinds: tuple[type[Any], ...]) -> dict[str, Any]:
    """Return `given`, one of `kinds` or many, as a mapping from labels."""
    values: list[tuple[str, Any]]
    if isinstance(given, Mapping):
        values = list(given.items())
    elif isinstance(given, Iterable) and not isinstance(given, str):
        values = [(getattr(value, "label", ""), value) for value in given]
    else:
        values = [(getattr(given, "label", ""), given)]
    for _, value in values:
        if not isinstance(value, kinds):
            raise refuse(name, value, f"{kinds[0].__name__} objects")
    return _some(name, _unique(name, values))


def _unique(name: str, values: list[tuple[str, Any]]) -> dict[str, Any]:
    labels = [check_label(f"the label of one of {name}", label) for label, _ in values]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise InvalidInputError(f"{name} has two entries labelled {twice!r}; give a mapping with labels of your own")
    return dict(values)
