"""Tables for a terminal: the content of a file, and the names of components."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from belated._util.files import load_arrays
from belated._util.validate import array, choice, integer, real, refuse
from belated.agents import AGENTS
from belated.agents import _registry as algorithms
from belated.agents._saving import KIND, VERSION
from belated.delays import DELAYS
from belated.delays import _registry as delays
from belated.environments import ENVIRONMENTS
from belated.environments import _registry as environments
from belated.errors import DamagedFileError, InvalidInputError
from belated.runner import Results
from belated.runner._store import from_parquet
from belated.runner._summary import summary_table

BLOCKS = "▁▂▃▄▅▆▇█"


def spark(values: npt.ArrayLike, width: int, *, low: float | None = None, high: float | None = None) -> str:
    """Return `values` as a curve of at most `width` characters, each the mean of its part of the values.

    `low` and `high` are the values of the lowest and highest block, by default the minimum and maximum of the curve.

    >>> spark([0, 1, 2, 3, 4, 5, 6, 7], width=8)
    '▁▂▃▄▅▆▇█'
    >>> spark([0, 1, 2, 3, 4, 5, 6, 7], width=4)
    '▁▃▆█'
    >>> spark([0.5, 0.5], width=4, low=0.0, high=1.0)
    '▅▅'
    """
    curve = array("values", values, (None,))
    length = min(integer("width", width, at_least=1), curve.size)
    if length == 0:
        return ""
    edges = np.arange(length) * curve.size // length
    means = np.add.reduceat(curve, edges) / np.diff(edges, append=curve.size)
    bottom = float(means.min()) if low is None else real("low", low)
    top = float(means.max()) if high is None else real("high", high, at_least=bottom)
    if top == bottom:
        return BLOCKS[0] * length
    levels = np.clip(np.floor((means - bottom) / (top - bottom) * len(BLOCKS)), 0, len(BLOCKS) - 1)
    return "".join(BLOCKS[int(level)] for level in levels)


_CURVE = 50  # characters of a mini curve: fits 80 columns next to its name
_LONGEST = 200  # characters shown of one setting; a table of actions has thousands


def describe_file(path: Path) -> RenderableType:
    """Describe a `.parquet` or `.npz` file of belated; raise an error for a damaged or foreign file."""
    if path.suffix == ".npz":
        return _agent(path)
    if path.suffix != ".parquet":
        raise refuse("the file", str(path), "a .parquet file of rows or a .npz file of an agent")
    frame, about = from_parquet(path)
    if "format" in about:
        return summary_table(Results.load(path).summary())
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
    if "record_every" not in about:  # otherwise some arrivals are missing from the rows
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
        raise DamagedFileError(f"{path} does not have the settings and features of an agent") from None
    stream = "saved with it" if header.get("rng") else "not saved"
    sizes = f"{states} states, {actions} actions, {dimension} features, {horizon} steps"
    facts = _facts("a saved agent", [*settings.items(), ("problem", sizes), ("random stream", stream)])
    return Group(facts, _memory({name.removeprefix("memory."): values for name, values in arrays.items()}))


def _memory(arrays: dict[str, npt.NDArray[Any]]) -> Table:
    table = Table(title="learned arrays", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
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


KINDS: dict[str, Mapping[str, type[Any]]] = {"agents": AGENTS, "delays": DELAYS, "environments": ENVIRONMENTS}

_NAMED = {"agents": algorithms.KIND, "delays": delays.KIND, "environments": environments.KIND}

#: The field of a specification that takes the names of a kind.
FIELDS = {"agents": "algorithm", "delays": "distribution", "environments": "environment"}

NOTES = {
    "agents": 'In an experiment file, algorithm = "optimal" is the optimal policy of the environment.',
    "environments": 'In an experiment file, environment = "gymnasium" with id = "CartPole-v1" uses Gymnasium.',
}


def catalogue(kind: str) -> Table:
    """Return the names of a kind, each with a one-line description and its settings."""
    choice("kind", kind, KINDS)
    table = Table(title=kind, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, show_lines=True)
    table.caption, table.caption_justify = NOTES.get(kind), "left"
    table.add_column(FIELDS[kind], no_wrap=True)
    table.add_column("description and settings")
    for name in _NAMED[kind].names():
        try:
            described = _described(_NAMED[kind].own(name) or KINDS[kind][name])
        except InvalidInputError as error:  # a broken entry point: all others are still listed
            described = Text(str(error), style="red")
        table.add_row(Text(name, style="bold"), described)
    return table


def _described(made: Any) -> Text:
    text = Text((inspect.getdoc(made) or "").split("\n\n")[0].replace("\n", " "))
    return text.append("\n" + (", ".join(settings(made)) or "no settings"), style="cyan")


def settings(made: type[Any]) -> list[str]:
    """Return the settings of a class as named in a specification, with their defaults if they have one.

    >>> from belated import Pareto
    >>> settings(Pareto)
    ['shape', 'scale', "kind='classical'"]
    """
    keys = {f.name: f.metadata.get("key", f.name) for f in fields(made)} if is_dataclass(made) else {}
    return [
        keys.get(name, name) + ("" if given.default is given.empty else f"={given.default!r}")
        for name, given in inspect.signature(made).parameters.items()
    ]
