"""What there is by name, of the library and of installed packages: agents, delays and environments with settings."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from belated._util.validate import choice
from belated.agents import AGENTS
from belated.agents import _registry as algorithms
from belated.delays import DELAYS
from belated.delays import _registry as delays
from belated.environments import ENVIRONMENTS
from belated.environments import _registry as environments
from belated.errors import InvalidInputError

KINDS: dict[str, Mapping[str, type[Any]]] = {"agents": AGENTS, "delays": DELAYS, "environments": ENVIRONMENTS}

_NAMED = {"agents": algorithms.KIND, "delays": delays.KIND, "environments": environments.KIND}

#: The field of a specification that takes the names of a kind.
FIELDS = {"agents": "algorithm", "delays": "distribution", "environments": "environment"}

NOTES = {
    "agents": 'In an experiment file, algorithm = "optimal" stands for the best policy of the environment.',
    "environments": 'In an experiment file, environment = "gymnasium" with id = "CartPole-v1" is one of Gymnasium.',
}


def catalogue(kind: str) -> Table:
    """Return the names of a kind, with what each is in one line and its settings."""
    choice("kind", kind, KINDS)
    table = Table(title=kind, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, show_lines=True)
    table.caption, table.caption_justify = NOTES.get(kind), "left"
    table.add_column(FIELDS[kind], no_wrap=True)
    table.add_column("what it is, and its settings")
    for name in _NAMED[kind].names():
        try:
            described = _described(_NAMED[kind].own(name) or KINDS[kind][name])
        except InvalidInputError as error:  # a package whose entry point leads nowhere: all others are still listed
            described = Text(str(error), style="red")
        table.add_row(Text(name, style="bold"), described)
    return table


def _described(made: Any) -> Text:
    text = Text((inspect.getdoc(made) or "").split("\n\n")[0].replace("\n", " "))
    return text.append("\n" + (", ".join(settings(made)) or "no settings"), style="cyan")


def settings(made: type[Any]) -> list[str]:
    """Return the settings of a class as a specification names them, with their defaults where they have one.

    >>> from belated import Pareto
    >>> settings(Pareto)
    ['shape', 'scale', "kind='classical'"]
    """
    keys = {f.name: f.metadata.get("key", f.name) for f in fields(made)} if is_dataclass(made) else {}
    return [
        keys.get(name, name) + ("" if given.default is given.empty else f"={given.default!r}")
        for name, given in inspect.signature(made).parameters.items()
    ]
