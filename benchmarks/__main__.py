"""`python -m benchmarks`: measure speed side by side."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from belated._util.plot_style import save_figure
from belated.errors import BelatedError, MissingExtraError
from belated_studies.reports.report import write_report
from belated_studies.reports.terminal import print_document
from benchmarks.groups import bench
from benchmarks.large import large_document
from benchmarks.report import picture, terminal, write

MISTAKE = 2
"""Exit code for invalid input."""

app = typer.Typer(add_completion=False)


@app.command()
def main(
    out: Annotated[Path, typer.Option(help="Folder for the table, the figures and the plot.")] = Path("bench"),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repeats and smaller sizes; takes a minute.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Only this group of measures; may be repeated.")] = None,
    profile: Annotated[bool, typer.Option("--profile", help="Also show where the time of an episode goes.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write every figure to this file, too.")] = None,
    large: Annotated[
        bool, typer.Option("--large", help="Instead: time against d up to 4096, and many arrivals at once.")
    ] = False,
) -> None:
    """Measure speed side by side: against other packages, a naive program and the limits of this machine."""
    console = Console()
    try:
        if large:
            measure_large(console, out)
        else:
            measure(console, out, quick=quick, only=only or [], profile=profile, json_file=json_file)
    except (BelatedError, OSError) as error:
        Console(stderr=True).print(Text(f"error: {' '.join(str(error).split())}", style="red"), soft_wrap=True)
        raise typer.Exit(MISTAKE) from None


@contextmanager
def telling(console: Console) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the current work: in place on a terminal, otherwise as lines on stderr."""
    if not console.is_terminal:
        yield lambda text: print(text, file=sys.stderr, flush=True)
        return
    with console.status("measuring") as status:
        yield status.update


def measure_large(console: Console, out: Path) -> None:
    """Measure and show what grows with d."""
    with telling(console) as tell:
        document = large_document(tell)
    print_document(document, console)
    console.print(Text(f"written: {write_report(document, out / 'large')}"), soft_wrap=True)


def measure(
    console: Console, out: Path, *, quick: bool, only: list[str], profile: bool, json_file: Path | None
) -> None:
    """Measure the groups asked for, show them and write them."""
    with telling(console) as tell:
        report = bench(quick=quick, only=only, profile=profile, tell=tell)
    console.print(terminal(report))
    written = write(report, out, json_file)
    try:
        if (drawn := picture(report)) is not None:
            save_figure(drawn, out / "speed.png")
            written.append(out / "speed.png")
    except MissingExtraError as error:
        console.print(Text(f"no picture: {error}", style="yellow"), soft_wrap=True)
    console.print(Text(f"written: {', '.join(map(str, written))}"), soft_wrap=True)


if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
