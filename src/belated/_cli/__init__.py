"""The command `belated`: a thin layer of arguments and messages over the library.

A command imports what it needs when it runs, so that `belated --help` loads next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from belated._cli.bounds import bounds_command
from belated._cli.deciding import decisions, serve_command
from belated._cli.looking import list_command, plot_command, show_command
from belated._cli.running import demo_command, run_command
from belated._cli.shared import Commands
from belated._cli.studying import add_installed_commands
from belated._cli.tuning import tune_command

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
    """Take the options that come before any command."""
