"""Tables of a report as Markdown to read, CSV to compute with, and LaTeX to put into a paper."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

from belated._util.files import write_atomically
from belated_studies.reports.document import Cell, Document, Table
from belated_studies.reports.formatting import cell_text, holds_numbers, published_text
from belated_studies.reports.latex import table_latex
from belated_studies.reports.markup import plain, spans
from belated_studies.reports.style import VERDICT_SYMBOLS

__all__ = ["cell_text", "table_csv", "table_latex", "table_markdown", "write_tables"]

_PARTS = ("value", "low", "high", "published", "published spread", "verdict", "note")


def write_tables(document: Document, folder: str | Path) -> None:
    """Write every table of `document` into `folder` as `.md`, `.csv` and `.tex`, named by its id."""
    for section in document.parts:
        for table in section.tables:
            for ending, write in (("md", table_markdown), ("csv", table_csv), ("tex", table_latex)):
                write_atomically(Path(folder) / f"{table.id}.{ending}", write(table).encode())


def table_markdown(table: Table) -> str:
    """Return `table` as a Markdown table under its title, with its caption below."""
    rules = ["---:" if holds_numbers(table, i) else ":---" for i in range(len(table.columns))]
    lines = [
        f"**{_escape(table.title)}**",
        "",
        _line([_escape(column) for column in table.columns]),
        _line(rules),
        *(_line([_entry(entry) for entry in row]) for row in table.rows),
    ]
    if table.caption:
        lines += ["", _escape(table.caption)]
    return "\n".join(lines) + "\n"


def table_csv(table: Table) -> str:
    """Return `table` as CSV with numbers in full precision, each part of a cell in a column of its own."""
    numbers = [holds_numbers(table, i) for i in range(len(table.columns))]
    content = io.StringIO()
    writer = csv.writer(content, lineterminator="\n")
    heading = [
        name
        for column, number in zip(table.columns, numbers, strict=True)
        for name in ([f"{plain(column)} {part}" for part in _PARTS] if number else [plain(column)])
    ]
    writer.writerow(heading)
    for row in table.rows:
        writer.writerow([part for entry, number in zip(row, numbers, strict=True) for part in _parts(entry, number)])
    return content.getvalue()


def _parts(entry: str | Cell, number: bool) -> list[str]:
    if isinstance(entry, str):
        # Text among numbers is a remark: the columns of numbers stay numbers.
        return [*[""] * (len(_PARTS) - 1), plain(entry)] if number else [plain(entry)]
    figures = (entry.value, entry.low, entry.high, entry.published, entry.published_spread)
    shown = ["" if figure is None or math.isnan(figure) else repr(float(figure)) for figure in figures]
    return [*shown, entry.verdict or "", plain(entry.note)]


def _entry(entry: str | Cell) -> str:
    if isinstance(entry, str):
        return _escape(entry)
    parts = [_escape(cell_text(entry))]
    if entry.published is not None:
        parts.append(f"paper {published_text(entry)}")
    if entry.verdict is not None:
        parts.append(f"{VERDICT_SYMBOLS[entry.verdict]} {entry.verdict}")
    return "; ".join(parts)


def _line(entries: list[str]) -> str:
    return "| " + " | ".join(entries) + " |"


def _escape(text: str) -> str:
    """Return `text` for a Markdown cell: its own markup stays, whatever else would act as markup does not."""
    written = []
    for kind, part in spans(text.replace("\n", " ")):
        part = part.replace("|", r"\|")  # even inside code, a bar would end the cell
        if kind == "code":
            written.append(f"`{part}`")
            continue
        for sign in "*_`":
            part = part.replace(sign, "\\" + sign)
        part = part.replace("](", r"]\(").replace("&", "&amp;").replace("<", "&lt;")
        written.append(f"**{part}**" if kind == "bold" else part)
    return "".join(written)
