"""`belated list`, `belated show` and `belated plot`: inspect components, files and results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from belated._cli.shared import say


def list_command(
    kind: Annotated[str | None, typer.Argument(help="agents, delays or environments.", show_default="all")] = None,
) -> None:
    """Show the names that an experiment file can use, with their settings and defaults."""
    from belated._cli.tables import KINDS, catalogue

    console = Console()
    for each in KINDS if kind is None else [kind]:
        console.print(catalogue(each))


def show_command(
    file: Annotated[Path, typer.Argument(help="Rows or results (.parquet), or a saved agent (.npz).")],
) -> None:
    """Show the content of a file written by belated."""
    from belated._cli.tables import describe_file

    Console().print(describe_file(file))


def plot_command(
    where: Annotated[Path, typer.Argument(help="Folder of an experiment's rows, or saved results (.parquet).")],
    kind: Annotated[str, typer.Option(help="What to plot: regret, value, returns or delays.")] = "regret",
    out: Annotated[
        Path | None,
        typer.Option(help="Output file: .png, .pdf or .svg.", show_default="KIND.png beside the rows"),
    ] = None,
    environment: Annotated[str | None, typer.Option(help="Only this environment.", show_default="all")] = None,
    delay: Annotated[str | None, typer.Option(help="Only this delay distribution.", show_default="all")] = None,
    log: Annotated[str | None, typer.Option(help="Logarithmic axes: x, y or xy.", show_default="x for delays")] = None,
) -> None:
    """Plot the results of a folder: curves with bands over seeds, one panel per delay."""
    from belated._cli.figures import panel_figure
    from belated._util.plot_style import save_figure
    from belated.runner import Results

    single = where.is_file()
    results = (Results.load if single else Results.read)(where)
    scale = ("x" if kind == "delays" else "") if log is None else log
    figure = panel_figure(results, kind, environment, delay, scale)
    picture = (where.with_name(f"{where.stem}-{kind}.png") if single else where / f"{kind}.png") if out is None else out
    save_figure(figure, picture)
    say(Console(), f"the plot is {picture}")
