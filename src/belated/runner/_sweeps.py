"""A search of your own, declared in a TOML file: an experiment whose agents have ranges instead of settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from belated._util.validate import choice, integer, refuse
from belated.errors import InvalidInputError
from belated.runner._experiment import FIELDS
from belated.runner._parts import read_seeds
from belated.runner._ranges import is_range, range_from_dict
from belated.runner._spaces import SAMPLERS, Candidates, Sampled, Space
from belated.runner._specs import check_fields, delays_of, environments_of, read_toml, tables_of
from belated.runner._tuning import Rung, Search

FIRST_SEED = 1000
"""Tuning seeds that are given as a number begin here."""
GRID = "grid"


def load_search(path: str | Path) -> Search:
    """Read a search from a TOML file; see the how-to on sweeps for its layout."""
    return search_from_dict(read_toml(path, "search"))


def search_from_dict(values: Mapping[str, Any]) -> Search:
    """Return the search that plain values describe.

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
        report_seeds=_report_seeds(values["seeds"]),
    )


def _space(label: str, part: dict[str, Any], tune: Mapping[str, Any]) -> Candidates:
    """Return the candidates of an agent."""
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
        raise InvalidInputError(f"the sampler {sampler!r} needs the field 'candidates': how many it may propose")
    return Sampled(
        base=base, ranges=ranges, sampler=sampler, count=integer("candidates", tune["candidates"], at_least=1)
    )


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
        seeds = read_seeds("seeds", each["seeds"])
        if isinstance(seeds, int) and not isinstance(seeds, bool):  # a rung decides on seeds that none before has seen
            seeds = range(first, first + integer("seeds", seeds, at_least=1, at_most=10**6))
            first = seeds.stop
        rungs.append(Rung(each.get("episodes", episodes), seeds, each.get("keep", 1)))
    return rungs


def _report_seeds(given: Any) -> Any:
    seeds = read_seeds("seeds", given)
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        return range(integer("seeds", seeds, at_least=1, at_most=10**6))
    return seeds
