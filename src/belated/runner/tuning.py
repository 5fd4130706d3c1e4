"""The search for settings: the same number of candidates and episodes for every agent, by successive halving.

The seeds of a search are never those of the report, so no agent is judged on the luck that it was chosen for.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from belated.algorithms import Settings, algorithm_from_dict
from belated.delays import DelayLaw, OutcomeLaw
from belated.environments import FiniteMDP
from belated.errors import BelatedError, DamagedFileError, InvalidInputError
from belated.runner.engine import run_experiment
from belated.runner.experiment import Experiment
from belated.runner.results import Results
from belated.storage import load_json, save_json, write_atomically
from belated.validate import integer, refuse

KIND, VERSION = "belated-winners", 1
_MEASURES = ("seeds", "regret", "regret_low", "regret_high", "value")


@dataclass(frozen=True)
class Space:
    """Candidates of one agent: `base` with every combination of the values in `grid`.

    >>> from belated import DelayedPSVI
    >>> space = Space(DelayedPSVI(), {"scale": [0.1, 1.0], "draws": [1, 4]})
    >>> [(settings.scale, settings.draws) for settings in space.candidates()]
    [(0.1, 1), (0.1, 4), (1.0, 1), (1.0, 4)]
    """

    base: Settings
    grid: Mapping[str, Sequence[Any]]

    def __post_init__(self) -> None:
        """Refuse what is not a grid, and every candidate that its settings refuse."""
        if not isinstance(self.base, Settings):
            raise refuse("base", self.base, "settings of an algorithm")
        if not isinstance(self.grid, Mapping) or not self.grid:
            raise refuse("grid", self.grid, "a mapping from settings to their values, at least one")
        known = [field.name for field in fields(self.base)]
        for name in self.grid:
            if name not in known:
                listed = ", ".join(known) or "none"
                raise InvalidInputError(f"{self.base.kind} has no setting {name!r}; its settings are: {listed}")
        object.__setattr__(self, "grid", {name: _values(name, values) for name, values in self.grid.items()})
        self.candidates()

    def candidates(self) -> list[Settings]:
        """Return all candidates; the last setting of the grid changes fastest."""
        return [
            replace(self.base, **dict(zip(self.grid, values, strict=True)))
            for values in itertools.product(*self.grid.values())
        ]


@dataclass(frozen=True)
class Rung:
    """One round: play what is left on `seeds` for `episodes` episodes, keep the best `keep` of each agent.

    >>> Rung(episodes=200, seeds=range(100, 103), keep=4)
    Rung(episodes=200, seeds=(100, 101, 102), keep=4)
    """

    episodes: int
    seeds: Sequence[int]
    keep: int

    def __post_init__(self) -> None:
        """Refuse what is not a round."""
        object.__setattr__(self, "episodes", integer("episodes", self.episodes, at_least=1))
        object.__setattr__(self, "seeds", _seeds("seeds", self.seeds))
        object.__setattr__(self, "keep", integer("keep", self.keep, at_least=1))


@dataclass(frozen=True)
class Search:
    """A search of the same budget for every agent, on seeds that the report does not use.

    >>> from belated import DelayedPSVI, DelayedUCBVI, Poisson, RiverSwim
    >>> spaces = {"psvi": Space(DelayedPSVI(), {"scale": [0.1, 1.0]}), "ucbvi": Space(DelayedUCBVI(), {"bonus": [1.0]})}
    >>> Search("river", RiverSwim(), Poisson(5), spaces, [Rung(100, [50, 51], keep=1)], report_seeds=range(10))
    Traceback (most recent call last):
    belated.errors.InvalidInputError: spaces must have equal numbers of candidates, ..., got psvi: 2, ucbvi: 1
    """

    name: str
    environment: FiniteMDP
    delay: DelayLaw | OutcomeLaw
    spaces: Mapping[str, Space]
    rungs: Sequence[Rung]
    report_seeds: Sequence[int]

    def __post_init__(self) -> None:
        """Refuse a search that is not fair, or not a search."""
        for name, kinds in (("environment", (FiniteMDP,)), ("delay", (DelayLaw, OutcomeLaw))):
            if not isinstance(getattr(self, name), kinds):
                raise refuse(name, getattr(self, name), f"a {kinds[0].__name__}")
        if not isinstance(self.spaces, Mapping) or not all(isinstance(space, Space) for space in self.spaces.values()):
            raise refuse("spaces", self.spaces, "a mapping from labels to Space objects")
        if not isinstance(self.rungs, Sequence) or not all(isinstance(rung, Rung) for rung in self.rungs):
            raise refuse("rungs", self.rungs, "a sequence of Rung objects")
        if not self.spaces or not self.rungs:
            raise InvalidInputError(f"{'rungs' if self.spaces else 'spaces'} must not be empty")
        object.__setattr__(self, "spaces", dict(self.spaces))
        object.__setattr__(self, "rungs", tuple(self.rungs))
        object.__setattr__(self, "report_seeds", _seeds("report_seeds", self.report_seeds))
        self._check_fairness()
        _experiment(self, 0, {label: space.base for label, space in self.spaces.items()})  # checks name and labels

    def _check_fairness(self) -> None:
        counts = {label: len(space.candidates()) for label, space in self.spaces.items()}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{label}: {count}" for label, count in counts.items())
            raise InvalidInputError(f"spaces must have equal numbers of candidates, for an equal budget, got {listed}")
        left = [max(counts.values()), *(rung.keep for rung in self.rungs)]
        if left[-1] != 1 or any(after >= before for before, after in itertools.pairwise(left)):
            raise InvalidInputError(f"rungs must keep ever fewer of {left[0]} candidates, the last 1, got {left[1:]}")
        shared = sorted(set(self.tuning_seeds) & set(self.report_seeds))
        if shared:
            raise InvalidInputError(f"tuning seeds must not be report seeds, got {shared} in both")

    @property
    def tuning_seeds(self) -> tuple[int, ...]:
        """All seeds that any rung plays."""
        return tuple(sorted({seed for rung in self.rungs for seed in rung.seeds}))


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a search found: the best settings of each agent, and a row for every agent, candidate and rung it played."""

    search: Search
    winners: dict[str, Settings]
    table: pl.DataFrame
    seconds: float
    """How long this call took; what an earlier one had finished costs nothing."""

    def save(self, folder: str | Path) -> None:
        """Write `winners.json`, with what the search was, and `search.csv`, the table."""
        described = _experiment(self.search, 0, self.winners).runs()[0].describe()
        content = {
            "search": self.search.name,
            "environment": described["environment"],
            "delay": described["delay"],
            "tuning_seeds": self.search.tuning_seeds,
            "report_seeds": self.search.report_seeds,
            "rungs": [asdict(rung) for rung in self.search.rungs],
            "winners": {label: settings.to_dict() for label, settings in self.winners.items()},
        }
        write_atomically(Path(folder) / "search.csv", self.table.write_csv().encode())
        save_json(Path(folder) / "winners.json", KIND, VERSION, content)


def tune(
    search: Search,
    *,
    folder: str | Path,
    jobs: int | None = None,
    progress: bool = True,
    accept_old: bool = False,
) -> Outcome:
    """Play the search and return the settings of least mean cumulative regret; ties go to the earlier candidate.

    Finished runs are kept in `folder` and never played again: an interrupted search goes on to the same outcome. Runs
    that another belated has left there are refused unless `accept_old`.

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
    survivors = {label: dict(enumerate(space.candidates())) for label, space in search.spaces.items()}
    table: list[dict[str, Any]] = []
    for number, rung in enumerate(search.rungs):
        agents = {f"{label}-{n:03d}": each for label, left in survivors.items() for n, each in left.items()}
        experiment = _experiment(search, number, agents)
        results = run_experiment(experiment, folder=folder, jobs=jobs, progress=progress, accept_old=accept_old)
        parts = results.frame.partition_by("agent", as_dict=True)
        for label, left in survivors.items():
            found = {n: Results(parts[f"{label}-{n:03d}",]).summary().row(0, named=True) for n in left}
            regret = {n: float(row["regret"]) for n, row in found.items()}
            best = sorted(regret, key=regret.__getitem__)[: rung.keep]
            for n, settings in left.items():
                place = {"agent": label, "candidate": n, "settings": json.dumps(settings.to_dict())}
                measures = {name: found[n][name] for name in _MEASURES}
                table.append({**place, "rung": number, "episodes": rung.episodes, **measures, "kept": n in best})
            survivors[label] = {n: settings for n, settings in left.items() if n in best}
    winners = {label: settings for label, left in survivors.items() for settings in left.values()}
    return Outcome(search, winners, pl.DataFrame(table), time.perf_counter() - began)


def load_winners(path: str | Path, *, accept_old: bool = False) -> dict[str, Settings]:
    """Return the winners of a file that `Outcome.save` wrote; refuse a damaged or foreign file."""
    winners = load_json(Path(path), KIND, VERSION, accept_old=accept_old).get("winners")
    if not isinstance(winners, dict) or not winners:
        raise DamagedFileError(f"{path} is not a {KIND} file with winners")
    try:
        return {label: algorithm_from_dict(settings) for label, settings in winners.items()}
    except (BelatedError, TypeError) as error:
        raise InvalidInputError(f"{path} does not hold usable settings: {error}") from error


def _experiment(search: Search, number: int, agents: Mapping[str, Settings]) -> Experiment:
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


def _values(name: str, given: Any) -> tuple[Any, ...]:
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise refuse(f"grid[{name!r}]", given, "a sequence of values, at least one")
    plain = tuple(value.item() if isinstance(value, np.generic) else value for value in given)
    if any(value in plain[:i] for i, value in enumerate(plain)):
        raise refuse(f"grid[{name!r}]", given, "values that differ")
    return plain
