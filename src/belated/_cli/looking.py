"""`belated list`, `belated show`, `belated plot` and `belated bounds`: look something up."""

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
    from belated_studies.reports.catalogue import KINDS, catalogue

    console = Console()
    for each in KINDS if kind is None else [kind]:
        console.print(catalogue(each))


def show_command(
    file: Annotated[Path, typer.Argument(help="Rows or results (.parquet), or a saved agent (.npz).")],
) -> None:
    """Show what a file of the library holds."""
    from belated_studies.reports.files import describe_file

    Console().print(describe_file(file))


def plot_command(
    where: Annotated[
        Path, typer.Argument(help="Folder of an experiment's rows, or results that were saved (.parquet).")
    ],
    kind: Annotated[str, typer.Option(help="What is drawn: regret, value, returns or delays.")] = "regret",
    out: Annotated[
        Path | None,
        typer.Option(help="File of the picture: .png, .pdf or .svg.", show_default="KIND.png beside the rows"),
    ] = None,
    environment: Annotated[str | None, typer.Option(help="Only this environment.", show_default="all")] = None,
    delay: Annotated[str | None, typer.Option(help="Only this distribution of delays.", show_default="all")] = None,
    log: Annotated[str | None, typer.Option(help="Logarithmic axes: x, y or xy.", show_default="x for delays")] = None,
) -> None:
    """Draw the results of a folder: curves with bands over seeds, a panel for each delay."""
    from belated._util.plot_style import save_figure
    from belated.runner import Results
    from belated_studies.reports.figures import panel_figure

    single = where.is_file()
    results = (Results.load if single else Results.read)(where)
    scale = ("x" if kind == "delays" else "") if log is None else log
    figure = panel_figure(results, kind, environment, delay, scale)
    picture = (where.with_name(f"{where.stem}-{kind}.png") if single else where / f"{kind}.png") if out is None else out
    save_figure(figure, picture)
    say(Console(), f"the picture is {picture}")


def bounds_command(
    dimension: Annotated[int, typer.Option("--dimension", "-d", help="Feature dimension d.")],
    horizon: Annotated[int, typer.Option("--horizon", "-H", help="Steps per episode, H.")],
    episodes: Annotated[int, typer.Option("--episodes", "-K", help="Number of episodes, K.")],
    delta: Annotated[float, typer.Option(help="Probability δ with which a bound may fail.")] = 0.05,
    delay: Annotated[
        str, typer.Option(help="Delay distribution with its settings, such as poisson:mean=50.")
    ] = "constant:value=0",
    run_file: Annotated[
        Path | None,
        typer.Option("--run", help="Rows of one run (.parquet, from belated run), to print what it measured beside."),
    ] = None,
) -> None:
    """Print the constants and regret bounds of the paper's theorems for a problem of the given size."""
    from rich import box
    from rich.table import Table

    from belated._util.validate import refuse
    from belated.delays import delay_from_text
    from belated.runner._store import from_parquet
    from belated.theory import bounds
    from belated_studies.lemmas.compare import measured_bounds, mismatches

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
        say(console, f"note: the bounds are not for this run, whose {'; '.join(differs)}", "yellow")
