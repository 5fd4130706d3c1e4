"""The commands of the studies, created by one function. A study is imported when its command runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated

import typer
from rich.console import Console

from belated._cli.shared import Jobs, resumable, say


def study_command(
    name: str, about: str, *, out: str, full_help: str = "All seeds and episodes, instead of a quick look."
) -> Callable[..., None]:
    """Return the command of the study `belated_studies.name`; `out` is the default folder of its report."""
    default_out = Path(out)

    def command(
        full: bool = False,
        only: Annotated[
            list[str] | None, typer.Option(help="Only this part, by the id of its section; may be repeated.")
        ] = None,
        seeds: Annotated[
            str | None, typer.Option(help="Number of seeds, or a range such as 100:110.", show_default="by --full")
        ] = None,
        episodes: Annotated[int | None, typer.Option(help="Episodes per run.", show_default="by --full")] = None,
        agent: Annotated[str | None, typer.Option(help="Play only the cells of this agent.")] = None,
        delay: Annotated[str | None, typer.Option(help="Play only the cells of this delay distribution.")] = None,
        environment: Annotated[str | None, typer.Option(help="Play only the cells of this environment.")] = None,
        jobs: Jobs = None,
        out: Annotated[Path, typer.Option(help="Folder of the report.")] = default_out,
        resume: Annotated[bool, typer.Option(help="Keep what an earlier call has finished.")] = True,
        json_file: Annotated[Path | None, typer.Option("--json", help="Write the results to this file, too.")] = None,
    ) -> None:
        from belated._util.files import write_atomically
        from belated.runner._experiment import read_seeds
        from belated_studies.produce import produce
        from belated_studies.reports.terminal import print_document
        from belated_studies.subset import play_cells

        console, study = Console(), resolve_name(f"belated_studies.{name}:STUDY")
        size, some = study.full if full else study.quick, read_seeds("--seeds", seeds)
        pick = {"agent": agent, "delay": delay, "environment": environment}
        options = {"out": out, "only": only or (), "seeds": some, "episodes": episodes}
        options |= {"jobs": jobs, "resume": resume}
        if any(pick.values()) or isinstance(some, range):
            with resumable():
                document, lines = play_cells(study, size, pick, **options)
            print_document(document, console)
            if json_file is not None:
                write_atomically(json_file, json.dumps(lines, indent=2).encode())
            return
        options["only"] = only or study.usual(full)
        with resumable():
            report = produce(study, size, **options)
        print_document(report.document, console)
        console.print(f"wall time {report.seconds:.0f} s", highlight=False)
        if json_file is not None:
            listed = json.dumps(report.lines, indent=2).encode() if report.lines else report.results.read_bytes()
            write_atomically(json_file, listed)
        say(console, f"the report is {report.index}")

    command.__doc__ = about
    command.__annotations__["full"] = Annotated[bool, typer.Option("--full", help=full_help)]
    return command


paper = study_command(
    "paper",
    "Regenerate the paper's figures and tables at their full size, beside the published numbers.",
    out="report",
    full_help="Also the studies around it: open details, sequences, temperature, computation, dependence on delay.",
)
systems = study_command(
    "systems",
    "Compare every system on common testbeds: bandits, conversions, chains, arbitrary delays, adversaries.",
    out="systems",
)
lemmas = study_command(
    "lemmas", "Check what the paper's lemmas and theorems claim on small problems, in about a minute.", out="lemmas"
)
exploration = study_command(
    "exploration",
    "Show the untuned agent beside tuned ones, DQN and PPO, on problems that have to be explored.",
    out="exploration",
)
trials = study_command(
    "trials",
    "Learn by age on randomised trials with their own event times, beside one window, OTF and other packages.",
    out="trials",
)
