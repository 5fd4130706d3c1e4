"""The command `belated`: a thin layer of arguments and messages over the library.

A command imports what it needs when it runs, so that `belated --help` loads next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Annotated

import typer

from belated._cli.bounds import bounds_command
from belated._cli.deciding import decisions, serve_command
from belated._cli.looking import list_command, plot_command, show_command
from belated._cli.playing import demo_command, run_command, tune_command
from belated._cli.shared import Commands
from belated.errors import InvalidInputError

PANEL = "Study"
#: The commands of belated-studies; if it is not installed, each of them says how to install it.
STUDIES = ("paper", "systems", "lemmas", "exploration", "trials")


def add_installed_commands(app: typer.Typer) -> None:
    """Add the commands of installed packages; a missing or broken one is added as a command that says so."""
    installed = {point.name: point for point in entry_points(group="belated.commands")}
    for name in dict.fromkeys([*STUDIES, *sorted(installed)]):
        if name not in installed:
            how = f"pip install belated-studies, or make {name} in a clone"
            _add_failing(app, name, f"belated {name} is part of belated-studies, which is not installed: {how}")
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

    about = "Part of belated-studies." if name in STUDIES else "Cannot be imported."
    anything = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(name, help=about, rich_help_panel=PANEL, context_settings=anything)(command)


app = typer.Typer(
    cls=Commands,
    help="Reinforcement learning for rewards that arrive late.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

#: All commands, by what people do.
COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Run": {"run": run_command, "tune": tune_command, "demo": demo_command},
    "Decide": {"serve": serve_command},
    "Look": {"plot": plot_command, "list": list_command, "show": show_command, "bounds": bounds_command},
}
for _panel, _commands in COMMANDS.items():
    for _name, _command in _commands.items():
        app.command(_name, rich_help_panel=_panel)(_command)
app.add_typer(decisions, name="decisions", rich_help_panel="Decide")
add_installed_commands(app)


def main() -> None:
    app()


def _print_version(wanted: bool) -> None:
    if wanted:
        from belated import __version__

        typer.echo(f"belated {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Handle the options that precede any command."""
