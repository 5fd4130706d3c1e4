"""The command `belated`: a thin layer of arguments and messages over the library."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

import belated
from belated.algorithms import DelayedLPSVI, DelayedPSVI, DelayedUCBVI, EpsilonGreedy, RandomPolicy
from belated.delays import Poisson, law_from_text
from belated.environments import SyntheticLinearMDP
from belated.errors import BelatedError
from belated.experiments import systems
from belated.experiments.lemmas import measured_bounds
from belated.experiments.paper import FULL, QUICK
from belated.experiments.searches import SEARCHES
from belated.reports import (
    Replay,
    catalogue,
    describe_file,
    regret_figure,
    save_figure,
    summary_markdown,
    summary_table,
    value_figure,
)
from belated.reports.catalogue import KINDS
from belated.reports.figures import MissingMatplotlibError
from belated.reports.lemmas import mismatches
from belated.reports.lemmas import produce as produce_lemmas
from belated.reports.paper.build import BUILDERS, produce
from belated.reports.search_figure import search_figure
from belated.reports.systems import build as systems_build
from belated.reports.tables import table_markdown
from belated.reports.terminal import print_document
from belated.runner import Experiment, Results, run, run_experiment
from belated.runner.store import from_parquet
from belated.runner.tuning import tune
from belated.storage import Folder
from belated.theory import bounds
from belated.validate import choice, refuse

MISTAKE, INTERRUPTED = 2, 130
"""Exit codes: something given cannot be used; stopped by Ctrl-C."""


class Commands(TyperGroup):
    """All commands; what they raise on purpose becomes one line on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (BelatedError, OSError) as error:
            message = " ".join(str(error).split())
            Console(stderr=True).print(Text(f"error: {message}", style="red"), soft_wrap=True)
            raise typer.Exit(MISTAKE) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=Commands,
    help="Reinforcement learning for rewards that arrive late.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line."""
    app()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"belated {belated.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Take the options that come before any command."""


@app.command("run")
def run_command(
    spec: Annotated[Path, typer.Argument(help="Experiment file (TOML).")],
    out: Annotated[
        str, typer.Option(help="Folder, or address such as s3://bucket/x, that gets a folder of the experiment's name.")
    ] = "results",
    seeds: Annotated[int | None, typer.Option(help="Play seeds 0 to N-1 instead of those in the file.")] = None,
    episodes: Annotated[int | None, typer.Option(help="Play this many episodes instead of those in the file.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time.", show_default="one a core")] = None,
    backend: Annotated[
        str | None, typer.Option(help="What plays them: threads, processes or ray.", show_default="by the agents")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Run an experiment: rows, summary and figures. Finished runs are kept, so the same command resumes."""
    console = Console(quiet=quiet)
    experiment = Experiment.load(spec)
    experiment = dataclasses.replace(
        experiment,
        seeds=experiment.seeds if seeds is None else seeds,
        episodes=experiment.episodes if episodes is None else episodes,
    )
    try:
        results = run_experiment(experiment, folder=out, jobs=jobs, backend=backend, progress=not quiet)
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted; finished runs are kept, and the same command resumes")
        raise
    console.print(summary_table(results))
    _write_reports(results, Folder(out), experiment.name, console)


def _write_reports(results: Results, folder: Folder, name: str, console: Console) -> None:
    files = {"summary.csv": results.summary().write_csv().encode(), "summary.md": summary_markdown(results).encode()}
    try:
        with tempfile.TemporaryDirectory() as here:
            for figure, draw in (("regret.png", regret_figure), ("value.png", value_figure)):
                save_figure(draw(results), Path(here) / figure)
                files[figure] = (Path(here) / figure).read_bytes()
    except MissingMatplotlibError as error:
        console.print(Text(f"no figures: {error}", style="yellow"), soft_wrap=True)
    for file, content in files.items():
        folder.write(f"{name}/{file}", content)
    console.print(Text(f"rows, {', '.join(files)} are in {folder.where(name)}"), soft_wrap=True)


@app.command("paper")
def paper_command(
    full: Annotated[bool, typer.Option("--full", help="All seeds and episodes, instead of a quick look.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Only this figure or table, such as table-2; may be repeated.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds.", show_default="by --full")] = None,
    episodes: Annotated[int | None, typer.Option(help="Episodes per run.", show_default="by --full")] = None,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time.", show_default="one a core")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path("report"),
    resume: Annotated[bool, typer.Option(help="Keep the rows that an earlier run has finished.")] = True,
) -> None:
    """Regenerate the paper's figures and tables, beside the published numbers."""
    console = Console()
    size = FULL if full else QUICK
    try:
        report = produce(
            size, out=out, names=only or tuple(BUILDERS), seeds=seeds, episodes=episodes, jobs=jobs, resume=resume
        )
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted; finished runs are kept, and the same command resumes")
        raise
    print_document(report.document, console)
    console.print(f"wall time {report.seconds:.0f} s", highlight=False)
    console.print(Text(f"the report is {report.index}"), soft_wrap=True)


@app.command("systems")
def systems_command(
    full: Annotated[bool, typer.Option("--full", help="All seeds and episodes, instead of a quick look.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Only this section, such as bandits; may be repeated.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds.", show_default="by --full")] = None,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time.", show_default="one a core")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the study.")] = Path("systems"),
    resume: Annotated[bool, typer.Option(help="Keep the rows that an earlier run has finished.")] = True,
) -> None:
    """Compare every system on common testbeds: bandits, conversions, chains, arbitrary delays, adversaries."""
    console = Console()
    size = systems.FULL if full else systems.QUICK
    try:
        report = systems_build.produce(
            size, out=out, names=only or tuple(systems.ARTEFACTS), seeds=seeds, jobs=jobs, resume=resume
        )
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted; finished runs are kept, and the same command resumes")
        raise
    print_document(report.document, console)
    console.print(f"wall time {report.seconds:.0f} s", highlight=False)
    console.print(Text(f"the study is {report.index}"), soft_wrap=True)


@app.command("tune")
def tune_command(
    search: Annotated[str, typer.Argument(help=f"Which search: {', '.join(SEARCHES)}.")],
    out: Annotated[Path, typer.Option(help="Folder of the rows, the winners and the picture.")] = Path("tuning"),
    jobs: Annotated[int | None, typer.Option(help="Runs at a time.", show_default="one a core")] = None,
) -> None:
    """Search the settings of every agent, with the same budget for each, on seeds that no report uses."""
    console = Console()
    chosen = SEARCHES[choice("the search", search, SEARCHES)]
    outcome = tune(chosen, folder=out / "rows", jobs=jobs)
    outcome.save(out / search)
    save_figure(search_figure(outcome), out / search / "search.png")
    for label, settings in outcome.winners.items():
        console.print(Text(f"{label}: {settings}"), soft_wrap=True)
    console.print(Text(f"winners.json, search.csv and search.png are in {out / search}"), soft_wrap=True)


@app.command("bounds")
def bounds_command(
    dimension: Annotated[int, typer.Option("--dimension", "-d", help="Feature dimension d.")],
    horizon: Annotated[int, typer.Option("--horizon", "-H", help="Steps per episode, H.")],
    episodes: Annotated[int, typer.Option("--episodes", "-K", help="Number of episodes, K.")],
    delta: Annotated[float, typer.Option(help="Probability δ with which a bound may fail.")] = 0.05,
    delay: Annotated[
        str, typer.Option(help="Delay law with its settings, such as poisson:mean=50.")
    ] = "constant:value=0",
    run_file: Annotated[
        Path | None,
        typer.Option("--run", help="Rows of one run (.parquet, from belated run), to print what it measured beside."),
    ] = None,
) -> None:
    """Print the constants and regret bounds of the paper's theorems for a problem of the given size."""
    found = bounds(dimension, horizon, episodes, delta, law_from_text(delay))
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
        note = f"note: the bounds are not for this run, whose {'; '.join(differs)}"
        console.print(Text(note, style="yellow"), soft_wrap=True)


@app.command("lemmas")
def lemmas_command(
    out: Annotated[Path, typer.Option(help="Folder of the page, the table and the figures.")] = Path("lemmas"),
) -> None:
    """Check what the paper's lemmas and theorems claim on small problems, in about a minute."""
    console = Console()
    report = produce_lemmas(out)
    for table in report.sections[0].tables:
        console.print(Markdown(table_markdown(table)))
    for sentence in report.summary:
        console.print(Text(sentence), soft_wrap=True)
    console.print(Text(f"index.html, tables and figures are in {out}"), soft_wrap=True)


@app.command("list")
def list_command(
    kind: Annotated[str | None, typer.Argument(help="agents, delays or environments.", show_default="all")] = None,
) -> None:
    """Show the names that an experiment file can use, with their settings and defaults."""
    console = Console()
    for each in KINDS if kind is None else [kind]:
        console.print(catalogue(each))


@app.command("show")
def show_command(
    file: Annotated[Path, typer.Argument(help="Rows or results (.parquet), or a saved agent (.npz).")],
) -> None:
    """Show what a file of the library holds."""
    Console().print(describe_file(file))


@app.command("demo")
def demo_command() -> None:
    """Watch five agents learn while feedback is late, in about ten seconds."""
    play_demo(Console())


def play_demo(console: Console, *, episodes: int = 1000, seconds: float = 6.0) -> None:
    """Play the demo's agents and tell it over `seconds`; at once when `console` is not a terminal."""
    agents = {
        "DelayedPSVI": DelayedPSVI(scale=5.0, noise=0.1),
        "DelayedLPSVI": DelayedLPSVI(sampler="preconditioned", temperature=25.0, noise=0.1),
        "DelayedUCBVI": DelayedUCBVI(),
        "EpsilonGreedy": EpsilonGreedy(),
        "RandomPolicy": RandomPolicy(),
    }
    with console.status("playing; the first start compiles kernels, which takes about half a minute"):
        results = run(SyntheticLinearMDP(actions=20), agents, Poisson(50), episodes=episodes, seeds=1, progress=False)
    replay = Replay(results)
    if console.is_terminal:
        _animate(console, replay, seconds)
    else:
        console.print(replay.frame(replay.episodes))
    console.print(replay.takeaway(), highlight=False)


def _animate(console: Console, replay: Replay, seconds: float) -> None:
    begun = time.monotonic()
    with Live(replay.frame(1), console=console, auto_refresh=False) as live:
        passed = 0.0
        while passed < 1.0:
            time.sleep(1 / 15)
            passed = min((time.monotonic() - begun) / seconds, 1.0)
            live.update(replay.frame(max(1, round(passed * replay.episodes))), refresh=True)
