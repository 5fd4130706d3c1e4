"""Run every measure; print a table and write it to benchmarks/out as Markdown and JSON."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from belated.storage import write_atomically
from benchmarks.measures import ALL, Measure

HEADINGS = ("Measure", "Median", "Range over repeats", "Target", "Met")


def _cells(measure: Measure) -> tuple[str, ...]:
    spread = f"{measure.low:.3g} – {measure.high:.3g}"
    return measure.name, f"{measure.value:.3g} {measure.unit}", spread, measure.target, "yes" if measure.met else "NO"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="how often each is measured (default 3)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out"), help="where the table is written")
    arguments = parser.parse_args()
    console = Console()
    measures: list[Measure] = []
    with console.status("measuring"):
        for measure in ALL:
            measures += measure(arguments.repeats)
    table = Table(*HEADINGS)
    for each in measures:
        table.add_row(*_cells(each))
    console.print(table)
    lines = [HEADINGS, ("---",) * len(HEADINGS), *map(_cells, measures)]
    markdown = "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
    write_atomically(arguments.out / "speed.md", markdown.encode())
    content = json.dumps([each._asdict() for each in measures], indent=1)
    write_atomically(arguments.out / "speed.json", content.encode())
    console.print(f"written to {arguments.out}/speed.md and speed.json")


if __name__ == "__main__":
    main()
