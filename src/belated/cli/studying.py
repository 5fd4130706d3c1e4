"""The commands of the studies, all made by one function, and `belated tune`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated

import typer
from rich.console import Console

from belated.cli.shared import AcceptOld, Backend, Jobs, resumable, say
from belated.studies import SEARCHES, Entry


def study_command(entry: Entry) -> Callable[..., None]:
    """Return the command of a study."""

    def command(
        full: Annotated[bool, typer.Option("--full", help="All seeds and episodes, instead of a quick look.")] = False,
        only: Annotated[
            list[str] | None, typer.Option(help="Only this part, by the id of its section; may be repeated.")
        ] = None,
        seeds: Annotated[
            str | None, typer.Option(help="Number of seeds, or a range such as 100:110.", show_default="by --full")
        ] = None,
        episodes: Annotated[int | None, typer.Option(help="Episodes per run.", show_default="by --full")] = None,
        agent: Annotated[str | None, typer.Option(help="Play only the cells of this agent.")] = None,
        delay: Annotated[str | None, typer.Option(help="Play only the cells of this delay law.")] = None,
        environment: Annotated[str | None, typer.Option(help="Play only the cells of this environment.")] = None,
        jobs: Jobs = None,
        out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path(entry.out),
        resume: Annotated[bool, typer.Option(help="Keep what an earlier call has finished.")] = True,
        accept_old: AcceptOld = False,
        json_file: Annotated[Path | None, typer.Option("--json", help="Write the results to this file, too.")] = None,
    ) -> None:
        from belated.reports.terminal import print_document
        from belated.runner.parts import read_seeds
        from belated.storage import write_atomically
        from belated.studies.cells import play_cells
        from belated.studies.produce import produce

        console, study = Console(), resolve_name(entry.where)
        size, some = study.full if full else study.quick, read_seeds("--seeds", seeds)
        pick = {"agent": agent, "delay": delay, "environment": environment}
        options = {"out": out, "only": only or (), "seeds": some, "episodes": episodes}
        options |= {"jobs": jobs, "resume": resume, "accept_old": accept_old}
        if any(pick.values()) or isinstance(some, range):
            with resumable():
                document, lines = play_cells(study, size, pick, **options)
            print_document(document, console)
            if json_file is not None:
                write_atomically(json_file, json.dumps(lines, indent=2).encode())
            return
        with resumable():
            report = produce(study, size, **options)
        print_document(report.document, console)
        console.print(f"wall time {report.seconds:.0f} s", highlight=False)
        if json_file is not None:
            listed = json.dumps(report.lines, indent=2).encode() if report.lines else report.results.read_bytes()
            write_atomically(json_file, listed)
        say(console, f"the report is {report.index}")

    command.__doc__ = entry.about
    return command


def tune_command(
    search: Annotated[
        str, typer.Argument(help=f"A search of your own (a TOML file), or one of the library's: {', '.join(SEARCHES)}.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the rows, the winners and the picture.")] = Path("tuning"),
    jobs: Jobs = None,
    accept_old: AcceptOld = False,
    backend: Backend = None,
) -> None:
    """Search the settings of every agent, with the same budget for each, on seeds that no report uses.

    Finished runs are kept, so the same command resumes.
    """
    from belated.reports.figures import MissingMatplotlibError, save_figure
    from belated.reports.search_figure import search_figure
    from belated.runner.labels import file_name
    from belated.runner.sweeps import load_search
    from belated.runner.tuning import tune
    from belated.validate import choice

    console = Console()
    if search.endswith(".toml"):
        chosen = load_search(search)
    else:
        chosen = resolve_name(SEARCHES[choice("the search", search, SEARCHES, other="a file that ends in .toml")])()
    with resumable():
        outcome = tune(chosen, folder=out / "rows", jobs=jobs, backend=backend, accept_old=accept_old)
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
