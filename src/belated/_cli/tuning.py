"""`belated tune`."""

from __future__ import annotations

import json
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated

import typer
from rich.console import Console

from belated._cli.shared import Backend, Jobs, resumable, say


def tune_command(
    search: Annotated[
        str, typer.Argument(help=f"A search of your own (a TOML file), or one of the library's: {', '.join(SEARCHES)}.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the rows, the winners and the picture.")] = Path("tuning"),
    jobs: Jobs = None,
    backend: Backend = None,
) -> None:
    """Search the settings of every agent, with the same budget for each, on seeds that no report uses.

    Finished runs are kept, so the same command resumes.
    """
    from belated._util.validate import choice
    from belated.runner._experiment import file_name
    from belated.runner._tuning import load_search, tune
    from belated_studies.reports.figures import MissingMatplotlibError, save_figure
    from belated_studies.reports.search_figure import search_figure

    console = Console()
    if search.endswith(".toml"):
        chosen = load_search(search)
    else:
        chosen = resolve_name(SEARCHES[choice("the search", search, SEARCHES, other="a file that ends in .toml")])()
    with resumable():
        outcome = tune(chosen, folder=out / "rows", jobs=jobs, backend=backend)
    folder, files = out / file_name(chosen.name), "winners.json, search.csv"
    outcome.save(folder)
    try:
        save_figure(search_figure(outcome), folder / "search.png")
        files = "winners.json, search.csv and search.png"
    except MissingMatplotlibError as error:
        say(console, f"no picture: {error}", "yellow")
    for label, settings in outcome.winners.items():
        say(console, f"{label}: {settings if search in SEARCHES else json.dumps(outcome.specifications[label])}")
    say(console, f"{files} are in {folder}")
