"""What a file of the library holds: rows of one run, results of an experiment, or a saved agent."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from belated._cli.summary import spark, summary_table
from belated._util.files import load_arrays
from belated._util.validate import refuse
from belated.agents._saving import KIND, VERSION
from belated.errors import DamagedFileError
from belated.runner import Results
from belated.runner._store import from_parquet

_CURVE = 50  # characters of a mini curve: fits 80 columns next to its name
_LONGEST = 200  # characters shown of one setting; a table of actions has thousands


def describe_file(path: Path) -> RenderableType:
    """Return what `path`, a `.parquet` or `.npz` file of the library, holds; refuse a damaged or foreign file."""
    if path.suffix == ".npz":
        return _agent(path)
    if path.suffix != ".parquet":
        raise refuse("the file", str(path), "a .parquet file of rows or a .npz file of an agent")
    frame, about = from_parquet(path)
    if "format" in about:
        return summary_table(Results.load(path))
    return _run(path, frame, about)


def _run(path: Path, frame: pl.DataFrame, about: dict[str, object]) -> RenderableType:
    if frame.is_empty():
        raise DamagedFileError(f"{path} must have at least one row, got none")
    value, optimal = frame["value"].to_numpy(), frame["optimal"].to_numpy()
    facts = [
        *((name, _plain(given)) for name, given in about.items()),
        ("value", spark(value, _CURVE, low=min(0.0, value.min()), high=max(value.max(), optimal.max()))),
        ("", f"from {value[0]:.2f} to {value[-1]:.2f}, at best {value.max():.2f}, optimal {optimal.mean():.2f}"),
        ("regret", f"{frame['regret'][-1]:,.2f}"),
    ]
    if "record_every" not in about:  # else the rows do not tell of every arrival
        facts.append(("arrived", f"{frame['arrived'].sum():,} of {frame.height:,} trajectories"))
    return _facts("rows of one run", facts)


def _plain(given: object) -> object:
    """Return a specification as `name = value` pairs, and anything else as it is."""
    return ", ".join(f"{name} = {value}" for name, value in given.items()) if isinstance(given, dict) else given


def _agent(path: Path) -> RenderableType:
    header, arrays = load_arrays(path, KIND, VERSION)
    try:
        features = arrays.pop("features")
        states, actions, dimension = features.shape
        settings, horizon = dict(header["settings"]), header["horizon"]
    except (KeyError, TypeError, ValueError):
        raise DamagedFileError(f"{path} does not hold the settings and the features of an agent") from None
    stream = "saved with it" if header.get("rng") else "not saved"
    sizes = f"{states} states, {actions} actions, {dimension} features, {horizon} steps"
    facts = _facts("a saved agent", [*settings.items(), ("problem", sizes), ("random stream", stream)])
    return Group(facts, _memory({name.removeprefix("memory."): values for name, values in arrays.items()}))


def _memory(arrays: dict[str, npt.NDArray[Any]]) -> Table:
    table = Table(title="what it has learned", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for heading in ("array", "shape", "type", "least", "greatest"):
        table.add_column(heading, justify="left" if heading in ("array", "type") else "right")
    for name, values in arrays.items():
        ends = (f"{np.min(values):.4g}", f"{np.max(values):.4g}") if values.size else ("–", "–")
        table.add_row(Text(name), " × ".join(str(n) for n in values.shape), str(values.dtype), *ends)
    return table


def _facts(title: str, facts: Iterable[tuple[str, object]]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, show_header=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        shown = str(value)
        table.add_row(Text(name), Text(shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"))
    return table
