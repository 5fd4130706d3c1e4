"""The search for settings: the same number of candidates and episodes for every agent, by successive halving.

The seeds of a search are never those of the report, so no agent is judged on the luck that it was chosen for.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from belated._util.files import save_json, write_atomically
from belated._util.validate import integer, refuse
from belated.delays import DelayDistribution, OutcomeDelays
from belated.environments import FiniteMDP, GymEnvironment
from belated.errors import InvalidInputError
from belated.evaluation import mean_interval
from belated.runner._executor import run_experiment
from belated.runner._experiment import Experiment
from belated.runner._labels import check_label
from belated.runner._results import Results
from belated.runner._spaces import Candidates, Point, Sampled, Space
from belated.runner._winners import KIND, VERSION, load_winners
from belated.types import Algorithm

__all__ = ["Outcome", "Rung", "Search", "Space", "load_winners", "tune"]

_MEASURES = ("seeds", "regret", "regret_low", "regret_high", "value")


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
    environment: FiniteMDP | GymEnvironment
    delay: DelayDistribution | OutcomeDelays
    spaces: Mapping[str, Space] | Mapping[str, Candidates]
    rungs: Sequence[Rung]
    report_seeds: Sequence[int]

    def __post_init__(self) -> None:
        """Refuse a search that is not fair, or not a search."""
        for name, kinds in (
            ("environment", (FiniteMDP, GymEnvironment)),
            ("delay", (DelayDistribution, OutcomeDelays)),
        ):
            if not isinstance(getattr(self, name), kinds):
                raise refuse(name, getattr(self, name), f"a {kinds[0].__name__}")
        spaces = self.spaces.values() if isinstance(self.spaces, Mapping) else [None]
        if not all(isinstance(space, Space | Sampled) for space in spaces):
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
            raise InvalidInputError(f"rungs must keep ever fewer of {left[0]} candidates, the last 1, got {left[1:]}")
        shared = sorted(set(self.tuning_seeds) & set(self.report_seeds))
        if shared:
            raise InvalidInputError(f"tuning seeds must not be report seeds, got {shared} in both")

    @property
    def measure(self) -> str:
        """What is compared: "regret", the least is best; where nobody knows the optimum, "return", the most is best."""
        sampled = isinstance(self.environment, GymEnvironment) and self.environment.table is None
        return "return" if sampled else "regret"

    @property
    def tuning_seeds(self) -> tuple[int, ...]:
        """All seeds that any rung plays."""
        return tuple(sorted({seed for rung in self.rungs for seed in rung.seeds}))


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a search found: the best settings of each agent, and a row for every agent, candidate and rung it played."""

    search: Search
    winners: dict[str, Any]
    """The agents, by label."""
    specifications: dict[str, dict[str, Any]]
    """The same as plain values."""
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
            "winners": self.specifications,
        }
        write_atomically(Path(folder) / "search.csv", self.table.write_csv().encode())
        save_json(Path(folder) / "winners.json", KIND, VERSION, content)


def tune(
    search: Search,
    *,
    folder: str | Path,
    jobs: int | None = None,
    backend: str | None = None,
    progress: bool = True,
    accept_old: bool = False,
) -> Outcome:
    """Play the search and return the settings of least mean cumulative regret; ties go to the earlier candidate.

    Finished runs are kept in `folder` and never played again: an interrupted search goes on to the same outcome. Runs
    that another belated has left there are refused unless `accept_old`. `jobs`, `backend` and `progress` are those of
    `run_experiment`.

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
    options = {"folder": folder, "jobs": jobs, "backend": backend, "progress": progress, "accept_old": accept_old}
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
"""Of each agent and candidate, the numbers of a row of the table."""


def _measured(
    search: Search, number: int, left: dict[str, dict[int, Point]], options: Mapping[str, Any]
) -> tuple[Measured, dict[str, dict[int, Point]]]:
    """Play a rung; return what was measured, and the candidates: those `left`, in the first rung all of them."""
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
    """Play some candidates; what is played is labelled by its settings, so that a grid can grow."""
    names = {
        (label, n): json.dumps([label, one], default=repr) for label, left in points.items() for n, one in left.items()
    }
    agents = {name: search.spaces[label].algorithm(points[label][n]) for (label, n), name in names.items()}
    results = run_experiment(_experiment(search, number, agents), **options)
    parts = results.frame.partition_by("agent", as_dict=True)
    found = {name: _numbers(search, Results(parts[name,])) for name in agents}
    return {label: {n: found[names[label, n]] for n in left} for label, left in points.items()}


def _numbers(search: Search, results: Results) -> dict[str, Any]:
    """Return the numbers of one candidate."""
    if search.measure == "regret":
        row = results.summary().row(0, named=True)
        return {name: row[name] for name in _MEASURES}
    returns = results.returns(agent=results.agents[0])
    mean = mean_interval(returns.mean(axis=1))
    return {"seeds": len(returns), "return": mean.value, "return_low": mean.low, "return_high": mean.high}


def _score(search: Search, numbers: Mapping[str, Any]) -> float:
    """Return what is to be small."""
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
