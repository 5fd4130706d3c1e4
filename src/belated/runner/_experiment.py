"""Experiments as data: every combination of environments, agents, delays and seeds is one run with an id."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from belated._kernels.jit import STRICT
from belated._util.files import check_maker, load_json
from belated._util.plugins import reading
from belated._util.validate import integer, refuse
from belated._util.version import stamp
from belated.agents import CompiledSettings, FixedPolicy, Settings, agent_from_dict
from belated.agents._wrapper import describe
from belated.delays import DelayByAction, DelayDistribution, OutcomeDelays, delay_from_dict
from belated.environments import FiniteMDP, GymEnvironment, any_environment_from_dict
from belated.environments._trial import Trial
from belated.errors import DamagedFileError, InvalidInputError
from belated.types import Algorithm, Environment, Plays, SaysWhereItPlays

FIELDS = ("name", "episodes", "seeds", "environments", "agents", "delays")
"""The fields that an experiment file must have."""
OPTIMAL = "optimal"
"""The agent that plays the optimal policy of the environment."""
WINNERS, WINNERS_VERSION = "belated-winners", 1


class Winners(NamedTuple):
    """The winners of a search, as read from its file."""

    path: Path
    settings: dict[str, dict[str, Any]]
    tuning_seeds: list[int]


def read_toml(path: str | Path, what: str) -> dict[str, Any]:
    """Return the plain values of a TOML file, called a `what` file in error messages."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no {what} file {file}")
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, a huge integer, or nested too deeply
        raise InvalidInputError(f"{file} is not a TOML file: {error}") from None


def read_winners(path: str | Path) -> Winners:
    """Read a file of winners; raise DamagedFileError if it is damaged or foreign."""
    content = load_json(Path(path), WINNERS, WINNERS_VERSION)
    winners, seeds = content.get("winners"), content.get("tuning_seeds", [])
    if not isinstance(winners, dict) or not winners:
        raise DamagedFileError(f"{path} is not a {WINNERS} file with winners")
    if not isinstance(seeds, list) or not all(isinstance(seed, int) for seed in seeds):
        raise DamagedFileError(f"{path} is not a {WINNERS} file with seeds")
    return Winners(Path(path), winners, seeds)


def check_fields(what: str, values: Any, needed: Sequence[str], others: Sequence[str] = ()) -> None:
    """Raise InvalidInputError unless `values` is a table with the fields of `what`."""
    if not isinstance(values, Mapping):
        raise refuse(f"the {what}", values, "a mapping")
    article = "an" if what[0] in "aeiou" else "a"
    unknown = sorted(set(values) - {*needed, *others})
    missing = sorted(set(needed) - set(values))
    if unknown:
        listed = ", ".join((*needed, *others))
        raise InvalidInputError(f"{article} {what} has the fields {listed}, got {unknown[0]!r}")
    if missing:
        raise InvalidInputError(f"{article} {what} needs the field {missing[0]!r}")


def tables_of(values: Mapping[str, Any], name: str) -> dict[str, dict[str, Any]]:
    """Return the field `name`, a table of tables by label."""
    table = values.get(name, {})
    if not isinstance(table, Mapping) or not all(isinstance(part, Mapping) for part in table.values()):
        raise refuse(name, table, "a table of tables, one for each label")
    return {label: dict(part) for label, part in table.items()}


def environments_of(values: Mapping[str, Any]) -> dict[str, FiniteMDP | GymEnvironment]:
    return {label: any_environment_from_dict(part) for label, part in tables_of(values, "environments").items()}


def delays_of(values: Mapping[str, Any]) -> dict[str, DelayDistribution | OutcomeDelays]:
    return {label: delay_from_dict(part) for label, part in tables_of(values, "delays").items()}


def agents_of(
    values: Mapping[str, Any],
    environments: Mapping[str, FiniteMDP | GymEnvironment],
    included: Sequence[Winners],
) -> dict[str, Algorithm]:
    """Return the agents of an experiment, and those of the winners that it includes.

    A file of winners is a data file: it may name the `classes` of the experiment, and imports nothing else.
    """
    found = {label: _agent(label, part, environments) for label, part in tables_of(values, "agents").items()}
    for winners in included:
        with reading(values.get("classes", [])):
            for label, settings in winners.settings.items():
                if label in found:
                    raise InvalidInputError(
                        f"the agent {label!r} of {winners.path} must not be in the experiment as well"
                    )
                found[label] = _agent(label, settings, environments)
    return found


def winners_of(values: Mapping[str, Any], folder: str | Path) -> list[Winners]:
    """Read the files of winners that the field `include` names, relative to `folder`."""
    given = values.get("include", [])
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise refuse("include", given, "the path of a file of winners, or a list of them")
    return [read_winners(Path(folder) / each) for each in listed]


def check_unseen(seeds: Sequence[int], included: Sequence[Winners]) -> None:
    """Raise InvalidInputError if winners were tuned on one of `seeds`: evaluation seeds must be held out."""
    for winners in included:
        shared = sorted(set(seeds) & set(winners.tuning_seeds))
        if shared:
            raise InvalidInputError(
                f"seeds must not be those of the search that gave {winners.path}, got {shared} in both"
            )


def is_range(value: Any) -> bool:
    """Whether the value of a setting is a search range: a table with `choices`, or with `from` and `to`.

    >>> is_range({"choices": [1, 2]}), is_range({"algorithm": "greedy"}), is_range(3)
    (True, False, False)
    """
    return isinstance(value, Mapping) and ("choices" in value or "from" in value or "to" in value)


def _agent(label: str, part: Mapping[str, Any], environments: Mapping[str, FiniteMDP | GymEnvironment]) -> Algorithm:
    for name, value in part.items() if isinstance(part, Mapping) else ():
        if is_range(value):
            raise InvalidInputError(
                f"{name} of the agent {label!r} must be a single value, got the range {value}: search it with "
                "`belated tune`, and include the winners"
            )
    if not isinstance(part, Mapping) or part.get("algorithm") != OPTIMAL:
        return agent_from_dict(part, also=[OPTIMAL])
    if len(environments) != 1:
        raise InvalidInputError(f"the agent 'optimal' needs exactly one environment, got {len(environments)}")
    (environment,) = environments.values()
    if not isinstance(environment, FiniteMDP):
        raise InvalidInputError("the agent 'optimal' needs an environment with tables")
    return FixedPolicy(actions=environment.optimal_policy().actions)


MOST_EPISODES, MOST_ROWS = 2**62, 10**9
"""Maximum episodes, so that times of arrival fit into 64 bits, and maximum rows, of 64 bytes each."""


def check_algorithm(name: str, value: Any) -> None:
    if isinstance(value, type) or not callable(getattr(value, "start", None)):
        raise refuse(name, value, "an algorithm with a method start(problem)")


def read_seeds(name: str, given: Any) -> Any:
    """Parse seeds given as text: their number, or `first:end` with an exclusive end; return anything else unchanged.

    >>> read_seeds("seeds", "100:110"), read_seeds("seeds", "3")
    (range(100, 110), 3)
    """
    if not isinstance(given, str):
        return given
    parts = given.split(":")
    if not all(part.isdecimal() and len(part) < 20 for part in parts) or len(parts) > 2:
        raise refuse(name, given, "a number of seeds, or a range such as '100:110'")
    numbers = [int(part) for part in parts]
    if len(numbers) == 2 and numbers[0] >= numbers[1]:
        raise refuse(name, given, "a range with at least one seed, such as '100:110'")
    return numbers[0] if len(numbers) == 1 else range(*numbers)


def check_episodes(episodes: Any, record_every: Any) -> tuple[int, int]:
    """Return both as integers; raise `InvalidInputError` if there would be too many rows for memory."""
    for name, value in (("episodes", episodes), ("record_every", record_every)):
        integer(name, integer(name, value, at_least=1), at_most=MOST_EPISODES)
    count, every = int(episodes), int(record_every)
    if -(-count // every) > MOST_ROWS:
        raise refuse(
            "episodes", count, f"at most {MOST_ROWS} with record_every={every}: a larger record_every gives fewer rows"
        )
    return count, every


def check_delay(delay: DelayDistribution | OutcomeDelays, environment: Environment, episodes: int) -> None:
    """Raise `InvalidInputError` if delays do not match the environment or do not cover all episodes."""
    if isinstance(delay, DelayDistribution) and delay.lasts < episodes:
        raise InvalidInputError(
            f"delay must have a fixed delay for each of {episodes} episodes, got {delay.lasts} of them"
        )
    actions = environment.problem.actions
    if isinstance(delay, DelayByAction) and len(delay.delays) != actions:
        raise refuse("delay.delays", len(delay.delays), f"one for each of {actions} actions")


def where(algorithm: Algorithm) -> Plays:
    """Return where an algorithm plays: on tables, unless it declares otherwise."""
    return algorithm.plays if isinstance(algorithm, SaysWhereItPlays) else "tables"


def check_reports(environment: Environment, algorithm: Algorithm, delay: DelayDistribution | OutcomeDelays) -> None:
    """Raise `InvalidInputError` if algorithm or delay do not suit the reports of a trial."""
    if not isinstance(environment, Trial):
        return
    if not isinstance(delay, DelayDistribution):
        wanted = "the same for all outcomes in a trial, whose events have their own delays: usually Constant(0)"
        raise refuse("delay", delay, wanted)
    adds = isinstance(algorithm, CompiledSettings) and algorithm.adds_reports
    if isinstance(algorithm, Settings) and not environment.told and not adds:
        raise InvalidInputError(
            f"{type(algorithm).__name__} needs every reward as a whole, but {environment.label} reports single events "
            "only: use told=True, or LearnByAge, OTFLinUCB or OTFLinTS"
        )
    if environment.signals and isinstance(algorithm, CompiledSettings) and not algorithm.hears_signals:
        wanted = f"without signals for {algorithm}: LearnByAge(signals=True) learns from them"
        raise refuse("the trial", environment.label, wanted)


def table_for(environment: Environment, algorithm: Algorithm) -> FiniteMDP | None:
    """Return the table that `algorithm` plays on in a simulator, None if it plays on features.

    Raises `InvalidInputError` if the algorithm needs a table and there is none.
    """
    plays = where(algorithm)
    if plays == "steps":
        return None
    table = environment.table if isinstance(environment, GymEnvironment) else None
    if plays == "features":
        return environment.own_table if isinstance(environment, GymEnvironment) else None
    if table is None and plays == "tables":
        name = environment.name if isinstance(environment, GymEnvironment) else environment.label
        raise InvalidInputError(
            f"{type(algorithm).__name__} needs a table of all states, which {name} does not have; "
            "AutoPSVI and the other regression agents do not need one"
        )
    return table


T = TypeVar("T")
Delay = DelayDistribution | OutcomeDelays
Environments = Environment | Sequence[Environment] | Mapping[str, FiniteMDP] | Mapping[str, Environment]
"""One environment, or several, with or without labels."""
Agents = Algorithm | Sequence[Algorithm] | Mapping[str, Algorithm]
"""One algorithm, or several, with or without labels."""
Delays = Delay | Sequence[Delay] | Mapping[str, DelayDistribution] | Mapping[str, Delay]
"""One delay distribution, or several, with or without labels."""
MOST_SEEDS = 10**6
MADE_BY = "made_by"
"""The field of a description with the version of belated that made the rows."""
LABELS = "labels"
"""The field of a file of rows with the labels that its name shows only in part."""

LONGEST_NAME, SHOWN = 150, 60
"""Maximum length of a label used as file name, and how much of a longer one is shown."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=-]*")
# summary.csv is in the same folder; Windows drops a trailing dot
_LIKE_A_FILE = re.compile(r".*(\.[a-z]+|\.)", re.ASCII)
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


@runtime_checkable
class Named(Protocol):
    """An algorithm with a name for files and labels, like the built-in ones."""

    kind: str


@dataclass(frozen=True, eq=False)
class Run:
    """One run: the unit of work, of resumption and of distribution.

    Everything about it is validated here, once. Missing labels are derived from the parts.

    >>> from belated import Poisson, RandomPolicy, RiverSwim
    >>> Run(RiverSwim(), RandomPolicy(), Poisson(5), episodes=100, seed=7).id
    'simulate/riverswim-5/RandomPolicy/poisson-5/seed-07'
    """

    environment: Environment
    algorithm: Algorithm
    delay: Delay
    episodes: int
    seed: int
    record_every: int = 1
    experiment: str = "simulate"
    environment_label: str = ""
    agent_label: str = ""
    delay_label: str = ""

    def __post_init__(self) -> None:
        given: object = self.environment
        if not isinstance(given, Environment):
            wanted = "of type FiniteMDP or GymEnvironment, or a belated.types.Environment"
            raise refuse("environment", given, wanted)
        check_algorithm("algorithm", self.algorithm)
        if not isinstance(self.delay, Delay):
            raise refuse("delay", self.delay, "of type DelayDistribution")
        episodes, record_every = check_episodes(self.episodes, self.record_every)
        check_delay(self.delay, self.environment, episodes)
        check_reports(self.environment, self.algorithm, self.delay)
        if not isinstance(self.environment, FiniteMDP):
            table_for(self.environment, self.algorithm)  # raises if the algorithm cannot play there
        for name, value in (
            ("episodes", episodes),
            ("record_every", record_every),
            ("seed", integer("seed", self.seed, at_least=0)),
            ("environment_label", self.environment_label or self.environment.label),
            ("agent_label", self.agent_label or type(self.algorithm).__name__),
            ("delay_label", self.delay_label or self.delay.label),
        ):
            object.__setattr__(self, name, value)

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the parts, by the names of their columns in rows."""
        return {
            "environment": self.environment_label,
            "delay_distribution": self.delay_label,
            "agent": self.agent_label,
        }

    @cached_property
    def id(self) -> str:
        """The run's name, also the path of its rows: `table-2/synthetic-a20/psvi/poisson-50/seed-07`."""
        labels = (self.experiment, self.environment_label, self.agent_label, self.delay_label)
        return "/".join([*map(file_name, labels), f"seed-{self.seed:02d}"])

    @property
    def rows(self) -> int:
        """Number of rows of the run."""
        return -(-self.episodes // self.record_every)

    def describe(self) -> dict[str, Any]:
        """Return everything that the rows depend on, as plain values: equal descriptions mean equal rows."""
        return dict(self._description)

    @cached_property
    def _description(self) -> dict[str, Any]:
        """Computed once and sent to workers, where a user's class may have a different name."""
        return {
            "environment": self.environment.describe(),
            "agent": describe(self.algorithm),
            "delay": self.delay.to_dict(),
            "episodes": self.episodes,
            "seed": self.seed,
            **({"record_every": self.record_every} if self.record_every > 1 else {}),
            **({"strict": True} if STRICT else {}),  # sums in a different order: rows of both kinds must not mix
            MADE_BY: stamp(),
        }


def check_description(where: str, kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise InvalidInputError unless the file `where`, with the description `kept`, matches the run `wanted`."""
    wanted = json.loads(json.dumps(wanted))
    for name in {**wanted, **kept}:
        before, now = kept.get(name), wanted.get(name)
        if name not in (MADE_BY, LABELS) and before != now:
            raise InvalidInputError(
                f"{where} has rows of other settings: {name} was {before!r}, now it is {now!r}; "
                "use another folder, or delete the file to run it again"
            )
    if kept.get(MADE_BY) != wanted.get(MADE_BY):
        check_maker(where, kept.get(MADE_BY))


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Every combination of environments, agents, delays and seeds, each played for `episodes` episodes.

    Environments and delays may be single values, sequences or mappings from labels; agents must be a mapping from
    labels. `seeds` is a number (seeds 0, 1, ...) or a sequence. With `record_every` n only every n-th episode and the
    last get a row; cumulative regret is still exact.

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
    environments: Environments
    agents: Mapping[str, Algorithm]
    delays: Delays
    episodes: int
    seeds: int | Sequence[int]
    record_every: int = 1

    def __post_init__(self) -> None:
        check_label("name", self.name)
        if not isinstance(self.agents, Mapping):
            raise refuse("agents", self.agents, "a mapping from labels to algorithms")
        episodes, record_every = check_episodes(self.episodes, self.record_every)
        for name, value in (
            ("episodes", episodes),
            ("record_every", record_every),
            ("seeds", _seeds(self.seeds)),
            ("agents", agents_by_label(self.agents)),
            ("environments", _by_label("environments", self.environments, _environment_label)),
            ("delays", _by_label("delays", self.delays, _delay_label)),
        ):
            object.__setattr__(self, name, value)
        self._runs(1)  # creating a run checks that its parts match

    def runs(self) -> list[Run]:
        """Return all runs; seeds vary fastest."""
        return self._runs(None)

    def _runs(self, seeds: int | None) -> list[Run]:
        assert isinstance(self.environments, dict)
        assert isinstance(self.delays, dict)
        assert isinstance(self.seeds, tuple)
        return [
            Run(environment, agent, delay, self.episodes, seed, self.record_every, self.name, *labels)
            for environment_label, environment in self.environments.items()
            for agent_label, agent in self.agents.items()
            for delay_label, delay in self.delays.items()
            for labels in [(environment_label, agent_label, delay_label)]
            for seed in self.seeds[:seeds]
        ]

    @classmethod
    def load(cls, path: str | Path) -> Experiment:
        """Read an experiment from a TOML file; see the how-to on experiments for its layout."""
        return cls.from_dict(read_toml(path, "experiment"), folder=Path(path).parent)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, folder: str | Path = ".") -> Experiment:
        """Return the experiment described by plain values.

        The agent ``{algorithm = "optimal"}`` is the optimal policy of the environment, of which there must then be only
        one. `include` names files of winners, relative to `folder`, whose agents are added; `classes` are the names,
        `module:Name`, that those may use besides the built-in ones.
        """
        if isinstance(values, Mapping) and "include" in values:
            values = {"agents": {}, **values}
        if isinstance(values, Mapping) and "tune" in values:
            raise InvalidInputError(
                "a file with the table 'tune' is for `belated tune`; an experiment includes its winners"
            )
        check_fields("experiment", values, FIELDS, ("record_every", "include", "classes"))
        environments, winners = environments_of(values), winners_of(values, folder)
        experiment = cls(
            name=values["name"],
            environments=environments,
            agents=agents_of(values, environments, winners),
            delays=delays_of(values),
            episodes=values["episodes"],
            seeds=read_seeds("seeds", values["seeds"]),
            record_every=values.get("record_every", 1),
        )
        assert isinstance(experiment.seeds, tuple)
        check_unseen(experiment.seeds, winners)
        return experiment


def _seeds(given: Any) -> tuple[int, ...]:
    if not isinstance(given, Iterable):
        given = range(integer("seeds", integer("seeds", given, at_least=1), at_most=MOST_SEEDS))
    first = itertools.islice(given, MOST_SEEDS + 1)
    seeds = tuple(integer("seeds", integer("seeds", seed, at_least=0), at_most=2**63 - 1) for seed in first)
    if not seeds or len(set(seeds)) < len(seeds):
        raise refuse("seeds", seeds, "at least one, without repetition")
    if len(seeds) > MOST_SEEDS:
        raise refuse("seeds", given, f"at most {MOST_SEEDS} of them")
    return seeds


def _by_label(name: str, given: Any, label_of: Callable[[str, Any], str]) -> dict[str, Any]:
    """Return one or many as a mapping from labels; `label_of` checks each and returns its default label."""
    what = "the label of an agent" if name == "agents" else f"the label of one of {name}"
    found: dict[str, Any] = {}
    if isinstance(given, Mapping):
        for label, value in given.items():
            label_of(f"{name}[{check_label(what, label)!r}]", value)
            found[label] = value
    else:
        for value in given if isinstance(given, Iterable) and not isinstance(given, str) else [given]:
            label = check_label(what, label_of(name, value))
            if label in found:
                raise InvalidInputError(
                    f"{name} has two entries labelled {label!r}; give a mapping with your own labels"
                )
            found[label] = value
    if not found:
        raise InvalidInputError(f"{name} must not be empty")
    return found


def agents_by_label(given: Agents) -> dict[str, Algorithm]:
    """Return one algorithm or several as a mapping from labels, by default the names of their kinds.

    >>> from belated import AutoPSVI, Greedy
    >>> list(agents_by_label([AutoPSVI(), Greedy()]))
    ['auto-psvi', 'greedy']
    """
    return _by_label("agents", given, _agent_label)


def _agent_label(name: str, value: Any) -> str:
    check_algorithm(name, value)
    return value.kind if isinstance(value, Named) else type(value).__name__


def _environment_label(name: str, value: Any) -> str:
    if not isinstance(value, Environment):
        raise refuse(name.partition("[")[0], value, "FiniteMDP objects")
    return value.label


def _delay_label(name: str, value: Any) -> str:
    if not isinstance(value, Delay):
        raise refuse(name.partition("[")[0], value, "DelayDistribution objects")
    return value.label


def check_label(name: str, value: Any) -> str:
    """Validate a label: any non-empty text."""
    if not isinstance(value, str) or not value.strip():
        raise refuse(name, value, "a non-empty text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise refuse(name, value, "a text that can be written as UTF-8") from None
    return value


def file_name(label: str) -> str:
    """Return the file or folder name of `label`: the label if it is safe, else a part of it and a digest.

    Different labels have different names: a safe label has no `~`, and digests are of the whole label.

    >>> file_name("psvi-0.1"), file_name("posterior sampling, σ = 0.1")
    ('psvi-0.1', 'posterior-sampling-=-0.1~187a39ef889d890f')
    """
    plain = _PLAIN.fullmatch(label) and not _LIKE_A_FILE.fullmatch(label) and not _RESERVED.fullmatch(label)
    if plain and len(label) <= LONGEST_NAME:
        return label
    letters = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()  # é is shown as e
    shown = re.sub(r"[^A-Za-z0-9.+=]+", "-", letters)[:SHOWN].strip("-.")
    return f"{shown}~{hashlib.sha256(label.encode()).hexdigest()[:16]}"
