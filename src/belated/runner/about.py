"""The one description of a run: everything that its rows depend on, as plain values, and what made them."""

from __future__ import annotations

import json
from typing import Any

from belated.algorithms.around import describe
from belated.compiled import STRICT
from belated.delays import DelayLaw, OutcomeLaw
from belated.environments import FiniteMDP, GymEnvironment
from belated.errors import InvalidInputError
from belated.stamp import stamp
from belated.storage import check_maker
from belated.types import Algorithm

MADE_BY = "made_by"
"""The field that tells which belated made the rows."""
LABELS = "labels"
"""The field that has the labels of which a file name shows only a part. All others tell what was played."""


def describe_run(
    environment: FiniteMDP | GymEnvironment,
    algorithm: Algorithm,
    delay: DelayLaw | OutcomeLaw,
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


def check_about(where: str, kept: dict[str, Any], wanted: dict[str, Any], *, accept_old: bool) -> None:
    """Refuse a file `where` whose description is not `wanted`; another belated may have made it if `accept_old`."""
    wanted = json.loads(json.dumps(wanted))
    for name in {**wanted, **kept}:
        before, now = kept.get(name), wanted.get(name)
        if name not in (MADE_BY, LABELS) and before != now:
            raise InvalidInputError(
                f"{where} holds rows of other settings: {name} was {before!r}, now it is {now!r}; "
                "use another folder, or delete the file to run it again"
            )
    check_maker(where, kept.get(MADE_BY), accept_old=accept_old)
