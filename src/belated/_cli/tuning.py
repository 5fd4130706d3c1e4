"""`belated tune`."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from belated._cli.shared import Backend, Jobs, resumable, say

if TYPE_CHECKING:
    from belated.runner import Search


def tune_command(
    search: Annotated[
        str, typer.Argument(help="A search of your own (a TOML file), or the name of one that belated-studies brings.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the rows, the winners and the picture.")] = Path("tuning"),
    jobs: Jobs = None,
    backend: Backend = None,
) -> None:
    """Search the settings of every agent, with the same budget for each, on seeds that no report uses.

    Finished runs are kept, so the same command resumes.
    """
    from belated._cli.search_figure import search_figure
    from belated._util.plot_style import MissingMatplotlibError, save_figure
    from belated.runner import file_name, tune

    console, chosen = Console(), find_search(search)
    with resumable():
        outcome = tune(chosen, folder=out / "rows", jobs=jobs, backend=backend)
    folder, files = out / file_name(chosen.name), "winners.json, search.csv"
    outcome.save(folder)
    try:
        save_figure(search_figure(outcome), folder / "search.png")
        files = "winners.json, search.csv and search.png"
    except MissingMatplotlibError as error:
        say(console, f"no picture: {error}", "yellow")
    for label, settings in outcome.specifications.items():
        say(console, f"{label}: {json.dumps(settings)}")
    say(console, f"{files} are in {folder}")


def find_search(name: str) -> Search:
    """Return the search of a TOML file, or one of the entry points `belated.searches`: functions that return one."""
    from belated._util.validate import choice
    from belated.errors import InvalidInputError
    from belated.runner import load_search

    if name.endswith(".toml"):
        return load_search(name)
    known = {point.name: point for point in entry_points(group="belated.searches")}
    if not known:
        raise InvalidInputError(
            f"the search must be a file that ends in .toml, got {name!r}; "
            "searches with names come with belated-studies: pip install belated-studies"
        )
    found: Search = known[choice("the search", name, known, other="a file that ends in .toml")].load()()
    return found
