"""The commands of the studies, all made by one function, and `belated tune`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated

import typer
from rich.console import Console

from belated.cli.shared import AcceptOld, Jobs, resumable, say
from belated.studies import SEARCHES, Entry


def study_command(entry: Entry) -> Callable[..., None]:
    """Return the command of a study."""

    def command(
        full: Annotated[bool, typer.Option("--full", help="All seeds and episodes, instead of a quick look.")] = False,
        only: Annotated[
            list[str] | None, typer.Option(help="Only this part, by the id of its section; may be repeated.")
        ] = None,
        seeds: Annotated[int | None, typer.Option(help="Number of seeds.", show_default="by --full")] = None,
        episodes: Annotated[int | None, typer.Option(help="Episodes per run.", show_default="by --full")] = None,
        jobs: Jobs = None,
        out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path(entry.out),
        resume: Annotated[bool, typer.Option(help="Keep what an earlier call has finished.")] = True,
        accept_old: AcceptOld = False,
        json_file: Annotated[Path | None, typer.Option("--json", help="Write the results to this file, too.")] = None,
    ) -> None:
        from belated.reports.terminal import print_document
        from belated.storage import write_atomically
        from belated.studies.produce import produce

        console, study = Console(), resolve_name(entry.where)
        with resumable():
            report = produce(
                study,
                study.full if full else study.quick,
                out=out,
                only=only or (),
                seeds=seeds,
                episodes=episodes,
                jobs=jobs,
                resume=resume,
                accept_old=accept_old,
            )
        print_document(report.document, console)
        console.print(f"wall time {report.seconds:.0f} s", highlight=False)
        if json_file is not None:
            listed = json.dumps(report.lines, indent=2).encode() if report.lines else report.results.read_bytes()
            write_atomically(json_file, listed)
        say(console, f"the report is {report.index}")

    command.__doc__ = entry.about
    return command


def tune_command(
    search: Annotated[str, typer.Argument(help=f"Which search: {', '.join(SEARCHES)}.")],
    out: Annotated[Path, typer.Option(help="Folder of the rows, the winners and the picture.")] = Path("tuning"),
    jobs: Jobs = None,
    accept_old: AcceptOld = False,
) -> None:
    """Search the settings of every agent, with the same budget for each, on seeds that no report uses."""
    from belated.reports.figures import save_figure
    from belated.reports.search_figure import search_figure
    from belated.runner.tuning import tune
    from belated.validate import choice

    console = Console()
    chosen = resolve_name(SEARCHES[choice("the search", search, SEARCHES)])()
    outcome = tune(chosen, folder=out / "rows", jobs=jobs, accept_old=accept_old)
    outcome.save(out / search)
    save_figure(search_figure(outcome), out / search / "search.png")
    for label, settings in outcome.winners.items():
        say(console, f"{label}: {settings}")
    say(console, f"winners.json, search.csv and search.png are in {out / search}")
