"""Hyperparameter search with the same budget of candidates and episodes for every agent, by successive halving.

The candidates of an agent are a grid, or proposals of an Optuna sampler. The seeds of a search are held out from the
report, so no agent is selected and evaluated on the same seeds. Your own search is a TOML file: an experiment whose
agents have ranges instead of settings.
"""

from __future__ import annotations

import itertools
import json
import math
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from belated._util.files import save_json, write_atomically
from belated._util.plugins import needed, reading
from belated._util.validate import choice, flag, integer, real, refuse
from belated.agents import Settings, agent_from_dict
from belated.environments import GymEnvironment
from belated.errors import BelatedError, InvalidInputError
from belated.evaluation import mean_interval
from belated.runner._executor import run_experiment
from belated.runner._experiment import (
    FIELDS,
    MOST_SEEDS,
    WINNERS,
    WINNERS_VERSION,
    Delay,
    Experiment,
    check_fields,
    check_label,
    delays_of,
    environments_of,
    is_range,
    read_seeds,
    read_toml,
    read_winners,
    tables_of,
)
from belated.runner._results import Results
from belated.types import Algorithm, Environment

__all__ = ["Outcome", "Rung", "Search", "Space", "load_search", "load_winners", "tune"]

Point = dict[str, Any]
"""The values of the searched settings."""
MOST_VALUES = 1000
"""The maximum number of values of a range in a grid."""
GRID = "grid"
SAMPLERS = {"random": "RandomSampler", "qmc": "QMCSampler", "tpe": "TPESampler"}
"""Optuna's samplers by their names in search files."""
SMALLER, LARGER = "smaller", "larger"
EDGE = 0.05
"""The fraction of a range, at either end, in which a sampled winner counts as being at the edge."""
ROUNDS = 4
"""The number of rounds in which a sampler that learns from scores proposes its candidates."""
FIRST_SEED = 1000
"""The first tuning seed, if only their number is given."""
_RANGE_FIELDS = ("from", "to", "count", "log")
_MEASURES = ("seeds", "regret", "regret_low", "regret_high", "value")


@dataclass(frozen=True)
class Choices:
    """One of several values."""

    values: tuple[Any, ...]

    def grid(self, name: str) -> list[Any]:
        return list(self.values)

    def value(self, proposed: int) -> Any:
        return self.values[proposed]

    def edge(self, value: Any) -> str | None:
        """Return on which side of `value` nothing was tried, if it is the minimum or maximum of several numbers."""
        numbers = [each for each in self.values if isinstance(each, int | float) and not isinstance(each, bool)]
        if len(numbers) < max(2, len(self.values)):
            return None
        return SMALLER if value == min(numbers) else LARGER if value == max(numbers) else None


@dataclass(frozen=True, kw_only=True)
class Range:
    """A number between two bounds, an integer if both bounds are; with `log`, on a logarithmic scale."""

    low: float
    high: float
    log: bool = False
    count: int | None = None
    """Number of values in a grid."""

    @property
    def integral(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    def grid(self, name: str) -> list[float]:
        """Return `count` evenly spaced values; for integers without a count, all of them.

        Interior values are rounded to three digits, so that they can be quoted.

        >>> Range(low=0.1, high=2.0, log=True, count=3).grid("scale"), Range(low=1, high=4).grid("draws")
        ([0.1, 0.447, 2.0], [1, 2, 3, 4])
        """
        if self.count is None:
            if not self.integral or self.log:
                raise InvalidInputError(f"{name} needs the field 'count' for a grid: the number of values")
            return [float(n) if not self.integral else n for n in range(int(self.low), int(self.high) + 1)]
        between = np.geomspace if self.log else np.linspace
        spaced = between(self.low, self.high, self.count)[1:-1].tolist()
        inner = [round(value) if self.integral else float(f"{value:.3g}") for value in spaced]
        return list(dict.fromkeys([self.low, *inner, self.high]))

    def value(self, proposed: float) -> float:
        """Return a sampler's proposal, rounded to four digits and within the bounds."""
        return proposed if self.integral else min(max(float(f"{proposed:.4g}"), self.low), self.high)

    def edge(self, value: float) -> str | None:
        """Return the side of the range if `value` is in its outermost 5 %."""
        low, high, here = (math.log(each) if self.log else each for each in (self.low, self.high, value))
        place = (here - low) / (high - low)
        return SMALLER if place <= EDGE else LARGER if place >= 1 - EDGE else None


def range_from_dict(name: str, values: Mapping[str, Any]) -> Choices | Range:
    """Return the range described by a table of a search file.

    >>> range_from_dict("scale", {"from": 0.1, "to": 10, "count": 3, "log": True}).grid("scale")
    [0.1, 1.0, 10]
    """
    known = ("choices",) if "choices" in values else _RANGE_FIELDS
    for field in values:
        if field not in known:
            raise InvalidInputError(f"the range of {name} has the fields {', '.join(known)}, got {field!r}")
    if "choices" in values:
        return Choices(checked_values(f"the choices of {name}", values["choices"]))
    for field in ("from", "to"):
        if field not in values:
            raise InvalidInputError(f"the range of {name} needs the field {field!r}")
        real(f"{field} of {name}", values[field])
    low, high, log = values["from"], values["to"], flag(f"log of {name}", values.get("log", False))
    real(f"to of {name}", high, above=low)
    if log:
        real(f"from of {name}, on a logarithmic scale,", low, above=0)
    count = values.get("count")
    if count is not None:
        count = integer(f"count of {name}", count, at_least=2, at_most=MOST_VALUES)
    elif isinstance(low, int) and isinstance(high, int):
        integer(f"to of {name}", high, at_most=low + MOST_VALUES)
    return Range(low=low, high=high, log=log, count=count)


def checked_values(name: str, given: Any) -> tuple[Any, ...]:
    """Return the values of a setting as plain values, at least one and without repetition."""
    if not isinstance(given, list | tuple | range | np.ndarray) or not len(given):
        raise refuse(name, given, "a sequence of at least one value")
    plain = tuple(value.item() if isinstance(value, np.generic) else value for value in given)
    if any(value in plain[:i] for i, value in enumerate(plain)):
        raise refuse(name, given, "distinct values")
    return plain


@dataclass(frozen=True)
class Candidates(ABC):
    """The candidates of one agent: a grid, or proposals of a sampler."""

    base: Settings | Mapping[str, Any]
    """Settings, or the plain values of a specification, possibly of your own class."""

    @abstractmethod
    def searched(self) -> Mapping[str, Choices | Range]:
        """Return the searched settings with their ranges."""

    @property
    def names(self) -> list[str]:
        """The names of the searched settings."""
        return list(self.searched())

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of candidates."""

    @abstractmethod
    def rounds(self) -> Generator[list[Point], list[float], None]:
        """Yield the candidates of each round; receives the scores of the round, lower is better."""

    def specification(self, point: Point) -> dict[str, Any]:
        """Return a candidate as plain values."""
        if isinstance(self.base, Settings):
            return replace(self.base, **point).to_dict()
        return {**self.base, **point}

    def algorithm(self, point: Point) -> Algorithm:
        """Return a candidate as an algorithm."""
        if isinstance(self.base, Settings):
            return replace(self.base, **point)
        return agent_from_dict(self.specification(point))

    def edges(self, point: Point) -> dict[str, str]:
        """Return which settings of a candidate are at the edge of the search, and in which direction to extend it.

        The direction is "smaller" or "larger"; settings that cannot go further, such as a probability of 1, are left
        out.

        >>> from belated import DelayedPSVI
        >>> space = Space(DelayedPSVI(), {"scale": [0.1, 1.0, 10.0], "draws": [1, 4]})
        >>> space.edges({"scale": 10.0, "draws": 1})
        {'scale': 'larger'}
        """
        found = {name: side for name, one in self.searched().items() if (side := one.edge(point[name]))}
        return {name: side for name, side in found.items() if self._goes_on(point, name, side)}

    def _goes_on(self, point: Point, name: str, side: str) -> bool:
        value = point[name]
        step = 1 if isinstance(value, int) else 0.01 * (abs(value) or 1.0)
        try:
            self.algorithm({**point, name: value + (step if side == LARGER else -step)})
        except BelatedError:
            return False
        return True


@dataclass(frozen=True)
class Space(Candidates):
    """Candidates of one agent: `base` with every combination of the values in `grid`.

    >>> from belated import DelayedPSVI
    >>> space = Space(DelayedPSVI(), {"scale": [0.1, 1.0], "draws": [1, 4]})
    >>> [(settings.scale, settings.draws) for settings in space.candidates()]
    [(0.1, 1), (0.1, 4), (1.0, 1), (1.0, 4)]
    """

    grid: Mapping[str, Sequence[Any]]

    def __post_init__(self) -> None:
        if not isinstance(self.base, Settings) and not (isinstance(self.base, Mapping) and "algorithm" in self.base):
            raise refuse("base", self.base, "settings of an algorithm")
        if not isinstance(self.grid, Mapping) or not self.grid:
            raise refuse("grid", self.grid, "a mapping from at least one setting to its values")
        if isinstance(self.base, Settings):
            known = [field.name for field in fields(self.base)]
            for name in self.grid:
                if name not in known:
                    listed = ", ".join(known) or "none"
                    raise InvalidInputError(f"{self.base.kind} has no setting {name!r}; its settings are: {listed}")
        grid = {name: checked_values(f"grid[{name!r}]", values) for name, values in self.grid.items()}
        object.__setattr__(self, "grid", grid)
        self.candidates()  # raises if the settings reject one of them

    def searched(self) -> Mapping[str, Choices | Range]:
        return {name: Choices(tuple(values)) for name, values in self.grid.items()}

    @property
    def count(self) -> int:
        return len(self.points())

    def points(self) -> list[Point]:
        """Return all combinations; the last setting of the grid changes fastest."""
        return [dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())]

    def rounds(self) -> Generator[list[Point], list[float], None]:
        yield self.points()

    def candidates(self) -> list[Algorithm]:
        """Return all candidates, in the order of `points`."""
        return [self.algorithm(point) for point in self.points()]


@dataclass(frozen=True)
class Sampled(Candidates):
    """Candidates of one agent proposed by an Optuna sampler, deterministic given the scores."""

    ranges: Mapping[str, Choices | Range]
    sampler: str
    most: int
    """Maximum number of proposals."""

    def __post_init__(self) -> None:
        choice("sampler", self.sampler, SAMPLERS)
        integer("candidates", self.most, at_least=1)
        for point in next(self.rounds()):
            self.algorithm(point)  # raises if the settings reject the first proposals

    def searched(self) -> Mapping[str, Choices | Range]:
        return self.ranges

    @property
    def count(self) -> int:
        return self.most

    def rounds(self) -> Generator[list[Point], list[float], None]:
        """Yield the sampler's proposals; an adaptive sampler gets the scores of earlier rounds."""
        optuna, learns = needed("optuna", "tune"), self.sampler == "tpe"
        each = -(-self.most // (ROUNDS if learns else 1))
        options = {"n_startup_trials": each} if learns else {}
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about experimental samplers
            study = optuna.create_study(sampler=getattr(optuna.samplers, SAMPLERS[self.sampler])(seed=0, **options))
        asked = {name: _distribution(optuna, one) for name, one in self.ranges.items()}
        left = self.most
        while left:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                trials = [study.ask(asked) for _ in range(min(each, left))]
            scores = yield [
                {name: one.value(trial.params[name]) for name, one in self.ranges.items()} for trial in trials
            ]
            for trial, score in zip(trials, scores or (), strict=False):
                study.tell(trial, score)
            left -= len(trials)


def _distribution(optuna: Any, one: Choices | Range) -> Any:
    if isinstance(one, Choices):  # by index, since Optuna expects plain values
        return optuna.distributions.CategoricalDistribution(range(len(one.values)))
    kind = optuna.distributions.IntDistribution if one.integral else optuna.distributions.FloatDistribution
    return kind(one.low, one.high, log=one.log)


@dataclass(frozen=True)
class Rung:
    """One round: play the remaining candidates on `seeds` for `episodes` episodes, keep the best `keep` of each agent.

    >>> Rung(episodes=200, seeds=range(100, 103), keep=4)
    Rung(episodes=200, seeds=(100, 101, 102), keep=4)
    """

    episodes: int
    seeds: Sequence[int]
    keep: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "episodes", integer("episodes", self.episodes, at_least=1))
        object.__setattr__(self, "seeds", _seeds("seeds", self.seeds))
        object.__setattr__(self, "keep", integer("keep", self.keep, at_least=1))


@dataclass(frozen=True)
class Search:
    """A search with the same budget for every agent, on seeds that are held out from the report.

    >>> from belated import DelayedPSVI, DelayedUCBVI, Poisson, RiverSwim
    >>> spaces = {"psvi": Space(DelayedPSVI(), {"scale": [0.1, 1.0]}), "ucbvi": Space(DelayedUCBVI(), {"bonus": [1.0]})}
    >>> Search("river", RiverSwim(), Poisson(5), spaces, [Rung(100, [50, 51], keep=1)], report_seeds=range(10))
    Traceback (most recent call last):
    belated.errors.InvalidInputError: spaces must have equal numbers of candidates, ..., got psvi: 2, ucbvi: 1
    """

    name: str
    environment: Environment
    delay: Delay
    spaces: Mapping[str, Candidates]
    rungs: Sequence[Rung]
    report_seeds: Sequence[int]

    def __post_init__(self) -> None:
        if not isinstance(self.environment, Environment):
            raise refuse("environment", self.environment, "a FiniteMDP")
        if not isinstance(self.delay, Delay):
            raise refuse("delay", self.delay, "a DelayDistribution")
        spaces = self.spaces.values() if isinstance(self.spaces, Mapping) else [None]
        if not all(isinstance(space, Candidates) for space in spaces):
            raise refuse("spaces", self.spaces, "a mapping from labels to Space objects")
        if not isinstance(self.rungs, Sequence) or not all(isinstance(rung, Rung) for rung in self.rungs):
            raise refuse("rungs", self.rungs, "a sequence of Rung objects")
        if not self.spaces or not self.rungs:
            raise InvalidInputError(f"{'rungs' if self.spaces else 'spaces'} must not be empty")
        object.__setattr__(self, "spaces", dict(self.spaces))
        object.__setattr__(self, "rungs", tuple(self.rungs))
        object.__setattr__(self, "report_seeds", _seeds("report_seeds", self.report_seeds))
        self._check_fairness()
        for label in self.spaces:
            check_label("the label of an agent", label)
        check_label("name", self.name)

    def _check_fairness(self) -> None:
        counts = {label: space.count for label, space in self.spaces.items()}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{label}: {count}" for label, count in counts.items())
            raise InvalidInputError(f"spaces must have equal numbers of candidates, for an equal budget, got {listed}")
        left = [max(counts.values()), *(rung.keep for rung in self.rungs)]
        if left[-1] != 1 or any(after >= before for before, after in itertools.pairwise(left)):
            raise InvalidInputError(f"rungs must keep ever fewer of {left[0]} candidates, finally 1, got {left[1:]}")
        shared = sorted(set(self.tuning_seeds) & set(self.report_seeds))
        if shared:
            raise InvalidInputError(f"tuning seeds must not be report seeds, got {shared} in both")

    @property
    def measure(self) -> str:
        """The objective: "regret", or "return" in a simulator, whose optimum is unknown."""
        sampled = isinstance(self.environment, GymEnvironment) and self.environment.own_table is None
        return "return" if sampled else "regret"

    @property
    def tuning_seeds(self) -> tuple[int, ...]:
        """The seeds of all rungs."""
        return tuple(sorted({seed for rung in self.rungs for seed in rung.seeds}))


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a search: the best settings of each agent, and one row per agent, candidate and rung."""

    search: Search
    winners: dict[str, Algorithm]
    """The agents, by label."""
    specifications: dict[str, dict[str, Any]]
    """The winners as plain values."""
    table: pl.DataFrame
    seconds: float
    """Duration of this call, without runs that had finished earlier."""

    @property
    def edges(self) -> dict[str, dict[str, str]]:
        """The settings of each winner at the edge of its search, and in which direction better ones may be.

        `{"psvi": {"scale": "smaller"}}`: the best scale is the smallest one tried, so try smaller ones.
        """
        points = {
            label: {name: self.specifications[label][name] for name in space.names}
            for label, space in self.search.spaces.items()
        }
        found = {label: self.search.spaces[label].edges(point) for label, point in points.items()}
        return {label: edges for label, edges in found.items() if edges}

    def __str__(self) -> str:
        """Return the winners, one per line, followed by the settings to extend."""
        lines = []
        for label, settings in self.specifications.items():
            lines.append(f"{label}: {json.dumps(settings)}")
            for name, side in self.edges.get(label, {}).items():
                lines.append(f"  {name} = {settings[name]} is at the edge of the search: try {side} values, too")
        return "\n".join(lines)

    def save(self, folder: str | Path) -> None:
        """Write `winners.json`, with a description of the search, and `search.csv`, the table."""
        described = _experiment(self.search, 0, self.winners).runs()[0].describe()
        content = {
            "search": self.search.name,
            "environment": described["environment"],
            "delay": described["delay"],
            "tuning_seeds": self.search.tuning_seeds,
            "report_seeds": self.search.report_seeds,
            "rungs": [asdict(rung) for rung in self.search.rungs],
            "winners": self.specifications,
        }
        write_atomically(Path(folder) / "search.csv", self.table.write_csv().encode())
        save_json(Path(folder) / "winners.json", WINNERS, WINNERS_VERSION, content)


def tune(
    search: Search, *, folder: str | Path, jobs: int | None = None, backend: str | None = None, progress: bool = True
) -> Outcome:
    """Play the search and return the settings with the lowest mean cumulative regret; ties go to the earlier candidate.

    Finished runs are stored in `folder` and not played again: an interrupted search resumes to the same outcome. Runs
    of another version of belated are rejected. `jobs`, `backend` and `progress` are those of `run_experiment`.

    >>> import tempfile
    >>> from belated import DelayedPSVI, Poisson, RiverSwim
    >>> spaces = {"psvi": Space(DelayedPSVI(), {"scale": [0.5, 1.0, 100.0]})}
    >>> rungs = [Rung(200, [50, 51], keep=2), Rung(500, [50, 51, 52], keep=1)]
    >>> search = Search("river", RiverSwim(), Poisson(5), spaces, rungs, report_seeds=range(10))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     outcome = tune(search, folder=folder, progress=False)
    ...     outcome.save(folder)
    ...     assert load_winners(folder + "/winners.json") == outcome.winners
    >>> outcome.table.filter("kept").select("rung", "candidate").rows()
    [(0, 0), (0, 1), (1, 1)]
    """
    began = time.perf_counter()
    options = {"folder": folder, "jobs": jobs, "backend": backend, "progress": progress}
    survivors: dict[str, dict[int, Point]] = {}
    table: list[dict[str, Any]] = []
    for number, rung in enumerate(search.rungs):
        measured, survivors = _measured(search, number, survivors, options)
        for label, left in survivors.items():
            found = measured[label]
            best = sorted(left, key=lambda n: _score(search, found[n]))[: rung.keep]
            for n, point in left.items():
                settings = json.dumps(search.spaces[label].specification(point))
                place = {"agent": label, "candidate": n, "settings": settings, "rung": number}
                table.append({**place, "episodes": rung.episodes, **found[n], "kept": n in best})
            survivors[label] = {n: point for n, point in left.items() if n in best}
    won = {label: point for label, left in survivors.items() for point in left.values()}
    winners = {label: search.spaces[label].algorithm(point) for label, point in won.items()}
    specifications = {label: search.spaces[label].specification(point) for label, point in won.items()}
    return Outcome(search, winners, specifications, pl.DataFrame(table), time.perf_counter() - began)


Measured = dict[str, dict[int, dict[str, Any]]]
"""For each agent and candidate, the numbers of a row of the table."""


def _measured(
    search: Search, number: int, left: dict[str, dict[int, Point]], options: Mapping[str, Any]
) -> tuple[Measured, dict[str, dict[int, Point]]]:
    """Play a rung; return the measurements, and its candidates: those `left`, or all in the first rung."""
    if number:
        return _played(search, number, left, options), left
    measured: Measured = {label: {} for label in search.spaces}
    candidates: dict[str, dict[int, Point]] = {label: {} for label in search.spaces}
    rounds = {label: space.rounds() for label, space in search.spaces.items()}
    asked = {label: next(each) for label, each in rounds.items()}
    while asked:
        now = {label: dict(enumerate(points, len(candidates[label]))) for label, points in asked.items()}
        for label, found in _played(search, 0, now, options).items():
            measured[label] |= found
            candidates[label] |= now[label]
        scores = {label: [_score(search, measured[label][n]) for n in points] for label, points in now.items()}
        asked = {}
        for label, told in scores.items():
            try:
                asked[label] = rounds[label].send(told)
            except StopIteration:
                continue
    return measured, candidates


def _played(
    search: Search, number: int, points: Mapping[str, Mapping[int, Point]], options: Mapping[str, Any]
) -> Measured:
    """Play some candidates; runs are labelled by their settings, so that a grid can be extended."""
    names = {
        (label, n): json.dumps([label, one], default=repr) for label, left in points.items() for n, one in left.items()
    }
    agents = {name: search.spaces[label].algorithm(points[label][n]) for (label, n), name in names.items()}
    results = run_experiment(_experiment(search, number, agents), **options)
    parts = results.frame.partition_by("agent", as_dict=True)
    found = {name: _numbers(search, Results(parts[name,])) for name in agents}
    return {label: {n: found[names[label, n]] for n in left} for label, left in points.items()}


def _numbers(search: Search, results: Results) -> dict[str, Any]:
    if search.measure == "regret":
        row = results.summary().row(0, named=True)
        return {name: row[name] for name in _MEASURES}
    returns = results.returns(agent=results.agents[0])
    mean = mean_interval(returns.mean(axis=1))
    return {"seeds": len(returns), "return": mean.value, "return_low": mean.low, "return_high": mean.high}


def _score(search: Search, numbers: Mapping[str, Any]) -> float:
    return float(numbers["regret"]) if search.measure == "regret" else -float(numbers["return"])


def _experiment(search: Search, number: int, agents: Mapping[str, Algorithm]) -> Experiment:
    rung = search.rungs[number]
    return Experiment(
        name=f"{search.name}-rung-{number}",
        environments=search.environment,
        agents=agents,
        delays=search.delay,
        episodes=rung.episodes,
        seeds=rung.seeds,
    )


def _seeds(name: str, given: Any) -> tuple[int, ...]:
    seeds = [integer(name, seed, at_least=0) for seed in given] if isinstance(given, Sequence) else []
    if not seeds or len(set(seeds)) < len(seeds):
        raise refuse(name, given, "a sequence of seeds, at least one, and each only once")
    return tuple(seeds)


def load_winners(path: str | Path, classes: Iterable[Any] = ()) -> dict[str, Algorithm]:
    """Return the winners of a file that `Outcome.save` wrote; raise an error if it is damaged or foreign.

    The file may name built-in classes, those of plugins, and `classes`, which you trust; nothing else is imported.
    """
    winners = read_winners(path).settings
    try:
        with reading(classes):
            return {label: agent_from_dict(settings) for label, settings in winners.items()}
    except (BelatedError, TypeError) as error:
        raise InvalidInputError(f"{path} does not contain valid settings: {error}") from error


def load_search(path: str | Path) -> Search:
    """Read a search from a TOML file; see the how-to on sweeps for its layout."""
    return search_from_dict(read_toml(path, "search"))


def search_from_dict(values: Mapping[str, Any]) -> Search:
    """Return the search described by plain values.

    >>> search = search_from_dict({
    ...     "name": "river", "episodes": 100, "seeds": 10,
    ...     "environments": {"river": {"environment": "riverswim"}},
    ...     "delays": {"late": {"distribution": "poisson", "mean": 5}},
    ...     "agents": {"psvi": {"algorithm": "psvi", "scale": {"choices": [0.1, 1.0]}}},
    ...     "tune": {"seeds": 3},
    ... })
    >>> search.rungs, search.spaces["psvi"].count
    ((Rung(episodes=100, seeds=(1000, 1001, 1002), keep=1),), 2)
    """
    check_fields("search", values, (*FIELDS, "tune"))
    tune = values["tune"]
    check_fields("search's table 'tune'", tune, (), ("seeds", "rungs", "sampler", "candidates"))
    environments, delays = environments_of(values), delays_of(values)
    for name, table in (("environment", environments), ("delay distribution", delays)):
        if len(table) != 1:
            raise InvalidInputError(f"a search must have one {name}, got {len(table)}")
    return Search(
        name=values["name"],
        environment=next(iter(environments.values())),
        delay=next(iter(delays.values())),
        spaces={label: _space(label, part, tune) for label, part in tables_of(values, "agents").items()},
        rungs=_rungs(tune, values["episodes"]),
        report_seeds=_read_seeds(values["seeds"], 0),
    )


def _space(label: str, part: dict[str, Any], tune: Mapping[str, Any]) -> Candidates:
    ranges = {name: range_from_dict(f"{label}.{name}", value) for name, value in part.items() if is_range(value)}
    if not ranges:
        raise InvalidInputError(
            f"the agent {label!r} has no range to search, such as scale = {{ choices = [0.1, 1.0] }}; "
            "leave it out, and put it into the experiment that includes the winners"
        )
    base = {name: value for name, value in part.items() if name not in ranges}
    if "algorithm" not in base:
        raise refuse(f"the agent {label!r}", part, "a table with the field 'algorithm'")
    sampler = choice("sampler", tune.get("sampler", GRID), [GRID, *SAMPLERS])
    if sampler == GRID:
        if "candidates" in tune:
            raise refuse("candidates", tune["candidates"], "left out for a grid, which has all combinations")
        return Space(base, {name: one.grid(f"the range of {label}.{name}") for name, one in ranges.items()})
    if "candidates" not in tune:
        raise InvalidInputError(f"the sampler {sampler!r} needs the field 'candidates': the number of proposals")
    return Sampled(base, ranges, sampler, integer("candidates", tune["candidates"], at_least=1))


def _rungs(tune: Mapping[str, Any], episodes: Any) -> list[Rung]:
    """Return the rungs: those of the file, or a single one on all tuning seeds."""
    if ("rungs" in tune) == ("seeds" in tune):
        raise InvalidInputError("a search's table 'tune' needs either the field 'seeds' or the field 'rungs'")
    given = tune.get("rungs", [{"seeds": tune.get("seeds")}])
    if not isinstance(given, list):
        raise refuse("rungs", given, "a list of tables")
    rungs, first = [], FIRST_SEED
    for each in given:
        check_fields("rung", each, ("seeds",), ("episodes", "keep"))
        seeds = _read_seeds(each["seeds"], first)
        rungs.append(Rung(each.get("episodes", episodes), seeds, each.get("keep", 1)))
        if isinstance(read_seeds("seeds", each["seeds"]), int):  # a rung uses seeds that no earlier rung has used
            first = seeds.stop
    return rungs


def _read_seeds(given: Any, first: int) -> Any:
    """Parse the seeds of a search; if only their number is given, they begin with `first`."""
    seeds = read_seeds("seeds", given)
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        return range(first, first + integer("seeds", seeds, at_least=1, at_most=MOST_SEEDS))
    return seeds
