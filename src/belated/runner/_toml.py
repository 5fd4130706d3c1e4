"""Experiment files: the plain values of a TOML file as environments, agents and delays."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from belated._util.files import load_json
from belated._util.validate import refuse
from belated.agents import FixedPolicy, agent_from_dict
from belated.delays import DelayDistribution, OutcomeDelays, delay_from_dict
from belated.environments import FiniteMDP, GymEnvironment, any_environment_from_dict
from belated.errors import DamagedFileError, InvalidInputError
from belated.types import Algorithm

FIELDS = ("name", "episodes", "seeds", "environments", "agents", "delays")
"""The fields that an experiment file must have."""
OPTIMAL = "optimal"
"""The agent that plays the best policy of the environment."""
WINNERS, WINNERS_VERSION = "belated-winners", 1


class Winners(NamedTuple):
    """The winners of a search, as its file has them."""

    path: Path
    settings: dict[str, dict[str, Any]]
    tuning_seeds: list[int]


def read_toml(path: str | Path, what: str) -> dict[str, Any]:
    """Return the plain values of a TOML file, which errors call a `what` file."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no {what} file {file}")
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, a number of thousands of digits, too deep
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
    """Return the agents of an experiment, and those of the winners that it includes."""
    given = tables_of(values, "agents")
    for winners in included:
        for label, settings in winners.settings.items():
            if label in given:
                raise InvalidInputError(f"the agent {label!r} of {winners.path} must not be in the experiment as well")
            given[label] = settings
    return {label: _agent(label, part, environments) for label, part in given.items()}


def winners_of(values: Mapping[str, Any], folder: str | Path) -> list[Winners]:
    """Read the files of winners that the field `include` names, relative to `folder`."""
    given = values.get("include", [])
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise refuse("include", given, "the path of a file of winners, or a list of them")
    return [read_winners(Path(folder) / each) for each in listed]


def check_unseen(seeds: Sequence[int], included: Sequence[Winners]) -> None:
    """Raise InvalidInputError if winners were found on one of `seeds`: they would be judged on their luck."""
    for winners in included:
        shared = sorted(set(seeds) & set(winners.tuning_seeds))
        if shared:
            raise InvalidInputError(
                f"seeds must not be those of the search that gave {winners.path}, got {shared} in both"
            )


def is_range(value: Any) -> bool:
    """Whether the value of a setting is one to be searched: a table with `choices`, or with `from` and `to`.

    >>> is_range({"choices": [1, 2]}), is_range({"algorithm": "greedy"}), is_range(3)
    (True, False, False)
    """
    return isinstance(value, Mapping) and ("choices" in value or "from" in value or "to" in value)


def _agent(label: str, part: Mapping[str, Any], environments: Mapping[str, FiniteMDP | GymEnvironment]) -> Algorithm:
    for name, value in part.items() if isinstance(part, Mapping) else ():
        if is_range(value):
            raise InvalidInputError(
                f"{name} of the agent {label!r} must be a value to be played, got the range {value}: search it with "
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
