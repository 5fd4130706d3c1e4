"""`belated run`, `belated tune` and `belated demo`."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from belated._cli.shared import Backend, Jobs, resumable, say

if TYPE_CHECKING:
    from belated._util.files import Folder
    from belated.runner import Results, Search


def run_command(
    spec: Annotated[Path, typer.Argument(help="Experiment file (TOML).")],
    out: Annotated[
        str, typer.Option(help="Folder, or URL such as s3://bucket/x, for a folder named like the experiment.")
    ] = "results",
    seeds: Annotated[
        str | None, typer.Option(help="Play seeds 0 to N-1, or a range such as 100:110, instead of those in the file.")
    ] = None,
    episodes: Annotated[int | None, typer.Option(help="Play this many episodes instead of those in the file.")] = None,
    jobs: Jobs = None,
    backend: Backend = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Run an experiment: rows, summary and figures. Finished runs are stored, so the same command resumes."""
    from belated._util.files import Folder
    from belated.runner import Experiment, file_name, run_experiment
    from belated.runner._experiment import read_toml
    from belated.runner._summary import summary_table

    console = Console(quiet=quiet)
    instead = {name: given for name, given in (("seeds", seeds), ("episodes", episodes)) if given is not None}
    experiment = Experiment.from_dict(read_toml(spec, "experiment") | instead, folder=spec.parent)
    with resumable():
        results = run_experiment(experiment, folder=out, jobs=jobs, backend=backend, progress=not quiet)
    console.print(summary_table(results.summary()))
    _write_reports(results, Folder(out), file_name(experiment.name), console)


def _write_reports(results: Results, folder: Folder, name: str, console: Console) -> None:
    import tempfile

    from belated._cli.figures import panel_figure
    from belated._util.plot_style import save_figure
    from belated.errors import MissingExtraError
    from belated.runner._summary import summary_markdown

    summary = results.summary()
    files = {"summary.csv": summary.write_csv().encode(), "summary.md": summary_markdown(summary).encode()}
    known = results.frame["value"].null_count() == 0  # in a simulator only the returns are known
    try:
        with tempfile.TemporaryDirectory() as here:
            for kind in ("regret", "value") if known else ("returns",):
                picture = Path(here) / f"{kind}.png"
                save_figure(panel_figure(results, kind), picture)
                files[picture.name] = picture.read_bytes()
    except MissingExtraError as error:
        say(console, f"no figures: {error}", "yellow")
    for file, content in files.items():
        folder.write(f"{name}/{file}", content)
    say(console, f"rows, {', '.join(files)} are in {folder.where(name)}")


def demo_command() -> None:
    """Watch five agents learn while feedback is late, in about ten seconds."""
    # before the imports, which take a second
    Console(stderr=True).print("Five agents learn while feedback is late; the first time, they are compiled.")
    from belated._cli.demo import play_demo

    play_demo(Console())


def tune_command(
    search: Annotated[
        str, typer.Argument(help="Your own search (a TOML file), or the name of one of belated-studies.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the rows, the winners and the plot.")] = Path("tuning"),
    jobs: Jobs = None,
    backend: Backend = None,
) -> None:
    """Search the settings of every agent, with the same budget for each, on held-out seeds.

    Finished runs are stored, so the same command resumes.
    """
    from belated._cli.figures import search_figure
    from belated._util.plot_style import save_figure
    from belated.errors import MissingExtraError
    from belated.runner import file_name, tune

    console, chosen = Console(), find_search(search)
    with resumable():
        outcome = tune(chosen, folder=out / "rows", jobs=jobs, backend=backend)
    folder, files = out / file_name(chosen.name), "winners.json, search.csv"
    outcome.save(folder)
    try:
        save_figure(search_figure(outcome), folder / "search.png")
        files = "winners.json, search.csv and search.png"
    except MissingExtraError as error:
        say(console, f"no plot: {error}", "yellow")
    say(console, str(outcome))
    say(console, f"{files} are in {folder}")


def find_search(name: str) -> Search:
    """Return the search of a TOML file, or of an entry point in the group `belated.searches`."""
    from belated._util.validate import choice
    from belated.errors import InvalidInputError
    from belated.runner import load_search

    if name.endswith(".toml"):
        return load_search(name)
    known = {point.name: point for point in entry_points(group="belated.searches")}
    if not known:
        raise InvalidInputError(
            f"the search must be a file that ends in .toml, got {name!r}; "
            "named searches are part of belated-studies: pip install belated-studies"
        )
    found: Search = known[choice("the search", name, known, other="a file that ends in .toml")].load()()
    return found
