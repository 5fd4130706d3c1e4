"""The commands of installed packages, by the entry points `belated.commands`, such as those of belated-studies."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

import typer

from belated.errors import InvalidInputError

PANEL = "Study"
#: The commands of belated-studies: without it each says how to get it.
STUDIES = ("paper", "systems", "lemmas", "exploration")


def add_installed_commands(app: typer.Typer) -> None:
    """Add the commands of installed packages; what is missing or cannot be imported becomes one that says so."""
    installed = {point.name: point for point in entry_points(group="belated.commands")}
    for name in dict.fromkeys([*STUDIES, *sorted(installed)]):
        if name not in installed:
            how = f"pip install belated-studies, or make {name} in a clone"
            _add_failing(app, name, f"belated {name} comes with belated-studies, which is not installed: {how}")
            continue
        try:
            command: Callable[..., None] = installed[name].load()
        except (ImportError, AttributeError) as error:
            _add_failing(app, name, f"belated {name} is {installed[name].value}, which cannot be imported: {error}")
        else:
            app.command(name, rich_help_panel=PANEL)(command)


def _add_failing(app: typer.Typer, name: str, sentence: str) -> None:
    """Add a command that takes any arguments and fails with `sentence`."""

    def command() -> None:
        raise InvalidInputError(sentence)

    about = "Comes with belated-studies." if name in STUDIES else "Cannot be imported."
    anything = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(name, help=about, rich_help_panel=PANEL, context_settings=anything)(command)
