"""From the plain values of a TOML file to environments, agents and delays, for experiments and for searches."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from belated._util.validate import refuse
from belated.agents import FixedPolicy, agent_from_dict
from belated.delays import DelayDistribution, OutcomeDelays, delay_from_dict
from belated.environments import FiniteMDP, GymEnvironment, any_environment_from_dict
from belated.errors import InvalidInputError
from belated.runner._ranges import is_range
from belated.runner._winners import read_winners
from belated.types import Algorithm

OPTIMAL = "optimal"
"""The agent that plays the best policy of the environment."""


def read_toml(path: str | Path, what: str) -> dict[str, Any]:
    """Return the plain values of a TOML file, which is called `what` where there is none."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no {what} file {file}")
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, a number of thousands of digits, too deep
        raise InvalidInputError(f"{file} is not a TOML file: {error}") from None


def check_fields(what: str, values: Any, needed: Sequence[str], others: Sequence[str] = ()) -> None:
    """Refuse plain values that are not a table with the fields of `what`."""
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
    """Return the environments by label."""
    return {label: any_environment_from_dict(part) for label, part in tables_of(values, "environments").items()}


def delays_of(values: Mapping[str, Any]) -> dict[str, DelayDistribution | OutcomeDelays]:
    """Return the delay distributions by label."""
    return {label: delay_from_dict(part) for label, part in tables_of(values, "delays").items()}


def agents_of(
    values: Mapping[str, Any], environments: Mapping[str, FiniteMDP | GymEnvironment], folder: str | Path
) -> dict[str, Algorithm]:
    """Return the agents by label, those of included winners among them; their paths are relative to `folder`."""
    given = tables_of(values, "agents")
    for path in included(values, folder):
        for label, winner in read_winners(path)["winners"].items():
            if label in given:
                raise InvalidInputError(f"the agent {label!r} of {path} must not be in the experiment as well")
            given[label] = winner
    return {label: _agent(label, part, environments) for label, part in given.items()}


def included(values: Mapping[str, Any], folder: str | Path) -> list[Path]:
    """Return the files of winners that an experiment includes."""
    given = values.get("include", [])
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise refuse("include", given, "the path of a file of winners, or a list of them")
    return [Path(folder) / each for each in listed]


def check_unseen(seeds: Sequence[int], files: Sequence[Path]) -> None:
    """Refuse seeds on which the winners in `files` were found: they would be judged on luck they were chosen for."""
    for path in files:
        shared = sorted(set(seeds) & set(read_winners(path).get("tuning_seeds", ())))
        if shared:
            raise InvalidInputError(f"seeds must not be those of the search that gave {path}, got {shared} in both")


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
