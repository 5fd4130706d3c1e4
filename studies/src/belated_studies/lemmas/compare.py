"""The rows of one run beside the bounds of the theorems."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import polars as pl

from belated.delays import NEVER, delay_from_dict
from belated.environments import environment_from_dict
from belated.errors import BelatedError
from belated.theory import Bounds
from belated_studies.lemmas.tools import in_flight


def measured_bounds(rows: pl.DataFrame, horizon: int) -> dict[str, float]:
    """Return what one run measured of the quantities that the theorems bound, by their symbols.

    What depends on every episode is left out where the rows are not of every episode.
    """
    found = dict.fromkeys(("R₁", "R₂", "R_b") if horizon == 1 else ("R₁", "R₂"), float(rows["regret"][-1]))
    if rows.height == rows["episode"][-1] + 1:
        delays = rows["delay"].fill_null(NEVER).to_numpy()
        arrives = delays[delays != NEVER]
        found["E[τ]"] = float(arrives.mean()) if arrives.size else float("inf")
        found["max τ"] = float(delays.max()) if arrives.size == delays.size else float("inf")
        found["max U"] = float(in_flight(delays[np.newaxis]).max())
    return found


def mismatches(found: Bounds, rows: pl.DataFrame, about: Mapping[str, Any]) -> list[str]:
    """Return in what the run that `about` describes differs from the problem that `found` bounds."""
    asked = {"d": found.dimension, "H": found.horizon, "K": found.episodes, "delay": found.delay.label}
    played: dict[str, object] = {"K": int(rows["episode"][-1]) + 1}
    with suppress(
        BelatedError
    ):  # an environment or a distribution that has no specification, or not one of this version
        played["delay"] = delay_from_dict(about.get("delay")).label
    with suppress(BelatedError):
        world = environment_from_dict(about.get("environment"))  # type: ignore[arg-type]
        played |= {"d": world.dimension, "H": world.horizon}
    return [
        f"{name} is {played[name]}, not {asked[name]}" for name in asked if played.get(name) not in (None, asked[name])
    ]
