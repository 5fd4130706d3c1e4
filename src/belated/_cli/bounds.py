"""`belated bounds`: the constants and bounds of the theorems, optionally beside the measurements of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from belated._cli.shared import say

if TYPE_CHECKING:
    import polars as pl

    from belated.theory import Bounds


def bounds_command(
    dimension: Annotated[int, typer.Option("--dimension", "-d", help="Feature dimension d.")],
    horizon: Annotated[int, typer.Option("--horizon", "-H", help="Steps per episode, H.")],
    episodes: Annotated[int, typer.Option("--episodes", "-K", help="Number of episodes, K.")],
    delta: Annotated[float, typer.Option(help="Probability δ that a bound fails.")] = 0.05,
    delay: Annotated[
        str, typer.Option(help="Delay distribution with its settings, such as poisson:mean=50.")
    ] = "constant:value=0",
    run_file: Annotated[
        Path | None,
        typer.Option("--run", help="Rows of a run (.parquet, from belated run), to print its measurements, too."),
    ] = None,
) -> None:
    """Print the constants and regret bounds of the paper's theorems for a problem of the given size."""
    from rich import box
    from rich.table import Table

    from belated._util.validate import refuse
    from belated.delays import delay_from_text
    from belated.runner._store import from_parquet
    from belated.theory import bounds

    found = bounds(dimension, horizon, episodes, delta, delay_from_text(delay))
    measured: dict[str, float] = {}
    differs: list[str] = []
    if run_file is not None:
        rows, about = from_parquet(run_file)
        if "format" in about or rows.is_empty():
            raise refuse("--run", str(run_file), "the rows of one run")
        measured, differs = measured_bounds(rows, horizon), mismatches(found, rows, about)
    table = Table("", "Quantity", "Bound or setting", *(["Measured"] if measured else []), box=box.SIMPLE_HEAD)
    for row in found.to_rows():
        beside = [f"{measured[row.symbol]:,.4g}" if row.symbol in measured else ""] if measured else []
        table.add_row(row.symbol, row.meaning, f"{row.value:,.4g}", *beside)
    console = Console()
    console.print(table)
    if differs:
        say(console, f"note: the bounds do not apply to this run, whose {'; '.join(differs)}", "yellow")


def measured_bounds(rows: pl.DataFrame, horizon: int) -> dict[str, float]:
    """Return the measured values of the quantities that the theorems bound, by their symbols.

    Quantities that need every episode are left out if `record_every` was set.
    """
    import numpy as np

    found = dict.fromkeys(("R₁", "R₂", "R_b") if horizon == 1 else ("R₁", "R₂"), float(rows["regret"][-1]))
    if rows.height == rows["episode"][-1] + 1:
        arrives = rows["delay"].drop_nulls().to_numpy()  # null: never
        found["E[τ]"] = float(arrives.mean()) if arrives.size else float("inf")
        found["max τ"] = float(arrives.max()) if arrives.size == rows.height else float("inf")
        arrivals = np.sort((rows["episode"] + rows["delay"]).drop_nulls().to_numpy())
        episodes = np.arange(rows.height)
        found["max U"] = float((episodes + 1 - np.searchsorted(arrivals, episodes, side="right")).max())
    return found


def mismatches(found: Bounds, rows: pl.DataFrame, about: Mapping[str, Any]) -> list[str]:
    """Return how the run described by `about` differs from the problem of the bounds `found`."""
    from contextlib import suppress

    from belated._util.plugins import reading
    from belated.delays import delay_from_dict
    from belated.environments import environment_from_dict
    from belated.errors import BelatedError

    asked = {"d": found.dimension, "H": found.horizon, "K": found.episodes, "delay": found.delay.label}
    played: dict[str, object] = {"K": int(rows["episode"][-1]) + 1}
    # unknown without a valid specification, or if it names classes that a data file must not import
    with suppress(BelatedError), reading([]):
        played["delay"] = delay_from_dict(about.get("delay")).label
    with suppress(BelatedError), reading([]):
        world = environment_from_dict(about.get("environment"))  # type: ignore[arg-type]
        played |= {"d": world.dimension, "H": world.horizon}
    return [
        f"{name} is {played[name]}, not {asked[name]}" for name in asked if played.get(name) not in (None, asked[name])
    ]
