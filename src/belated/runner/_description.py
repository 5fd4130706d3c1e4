"""The one description of a run: everything that its rows depend on, as plain values, and what made them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from belated._kernels.jit import STRICT
from belated._util.files import check_maker
from belated._util.version import stamp
from belated.agents._wrapper import describe
from belated.delays import DelayDistribution, OutcomeDelays
from belated.errors import InvalidInputError
from belated.types import Algorithm, Environment

MADE_BY = "made_by"
"""The field that tells which belated made the rows."""
LABELS = "labels"
"""The field that has the labels of which a file name shows only a part. All others tell what was played."""


def describe_run(
    environment: Environment,
    algorithm: Algorithm,
    delay: DelayDistribution | OutcomeDelays,
    episodes: int,
    seed: int,
    record_every: int,
) -> dict[str, Any]:
    """Return everything that the rows of a run depend on: equal descriptions, equal rows."""
    return {
        "environment": environment.describe(),
        "agent": describe(algorithm),
        "delay": delay.to_dict(),
        "episodes": episodes,
        "seed": seed,
        **({"record_every": record_every} if record_every > 1 else {}),
        **({"strict": True} if STRICT else {}),  # sums in another order: rows of both kinds must not mix
        MADE_BY: stamp(),
    }


def defaults_of(algorithm: Algorithm) -> dict[str, Any]:
    """Return the settings of an agent that have a default, with it.

    >>> from belated import AutoPSVI
    >>> defaults_of(AutoPSVI(prior=0.5))["prior"]
    0.1
    """
    settings: Any = algorithm
    known = fields(settings) if is_dataclass(settings) else ()
    return {each.name: each.default for each in known if each.default is not MISSING}


def check_about(
    where: str,
    kept: dict[str, Any],
    wanted: dict[str, Any],
    *,
    accept_old: bool,
    defaults: Mapping[str, Any] | None = None,
) -> None:
    """Refuse a file `where` whose description is not `wanted`; another belated may have made it if `accept_old`.

    Then its agent may lack settings that have come since, as long as they have their `defaults` now.
    """
    wanted = json.loads(json.dumps(wanted))
    if accept_old and isinstance(kept.get("agent"), dict) and isinstance(wanted.get("agent"), dict):
        since = {name: value for name, value in (defaults or {}).items() if name in wanted["agent"]}
        kept = {**kept, "agent": {**since, **kept["agent"]}}
    for name in {**wanted, **kept}:
        before, now = kept.get(name), wanted.get(name)
        if name not in (MADE_BY, LABELS) and before != now:
            raise InvalidInputError(
                f"{where} holds rows of other settings: {name} was {before!r}, now it is {now!r}; "
                "use another folder, or delete the file to run it again"
            )
    check_maker(where, kept.get(MADE_BY), accept_old=accept_old)
