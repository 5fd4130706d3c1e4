"""`python -m attacks`: attack the promises of the library, and print the results."""

from __future__ import annotations

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from attacks.apart import Outcome, attack_apart
from attacks.listed import ATTACKS, SIZES

BROKEN, MISTAKE = 1, 2
"""Exit codes: a promise was broken; invalid input."""

app = typer.Typer(add_completion=False)


@app.command()
def main(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer attempts of each kind; takes a minute or two.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Only this attack; may be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random choices.")] = 0,
) -> None:
    """Attack the promises of the library: ten minutes on two cores, using only its own files and processes."""
    unknown = sorted(set(only or []) - set(ATTACKS))
    if unknown:
        typer.echo(f"error: there is no attack {unknown[0]!r}; there are: {', '.join(ATTACKS)}", err=True)
        raise typer.Exit(MISTAKE)
    size = SIZES["quick" if quick else "full"]
    names = [name for name in ATTACKS if not only or name in only]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="belated-attacks-") as folder, ThreadPoolExecutor(2) as two:

        def one(name: str) -> Outcome:
            left = began + size.total - time.monotonic()
            outcome = attack_apart(name, size.tries[name], min(size.seconds, left), seed, Path(folder))
            typer.echo(f"{name}: {outcome.held} held, {outcome.broken} broken, {outcome.took:.0f} s", err=True)
            return outcome

        longest_first = sorted(names, key=lambda name: name != "kills")  # it waits more than it works
        found = dict(zip(longest_first, two.map(one, longest_first), strict=True))
    outcomes = {name: found[name] for name in names}
    show(outcomes)
    raise typer.Exit(BROKEN if any(outcome.broken for outcome in outcomes.values()) else 0)


def show(outcomes: dict[str, Outcome]) -> None:
    """Print the table, and explain what broke."""
    table = Table("Promise", "Attack", "Attacks", "Held", "Broken", "Remarks", box=box.SIMPLE_HEAD)
    for name, outcome in outcomes.items():
        count = outcome.held + outcome.broken
        broken = Text(str(outcome.broken), style="red" if outcome.broken else "")
        table.add_row(ATTACKS[name].promise, name, str(count), str(outcome.held), broken, "; ".join(outcome.notes))
    console = Console()
    if not console.is_terminal:
        console = Console(width=140)
    console.print(table)
    for name, outcome in outcomes.items():
        for detail in outcome.details:
            console.print(Text(f"broken: {name}: {detail}"), soft_wrap=True)


if __name__ == "__main__":
    app()
