"""A report in the terminal: its prominent tables, what it opens with, and its summary."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from belated_studies.reports.document import VERDICTS, Cell, Document
from belated_studies.reports.document import Table as ReportTable
from belated_studies.reports.formatting import cell_text, published_text
from belated_studies.reports.markup import plain

VERDICT_STYLES = dict(zip(VERDICTS, ("green", "yellow", "red", "dim"), strict=True))


def print_document(document: Document, console: Console) -> None:
    """Print the prominent tables of a report, then what it opens with: one table and the summary."""
    for table in (table for section in document.sections for table in section.tables):
        if table.prominent:
            console.print(_report_table(table))
    for table in () if document.opening is None else document.opening.tables:
        console.print(_report_table(table))
    for sentence in document.summary:
        console.print(plain(sentence), highlight=False)


def _report_table(table: ReportTable) -> Table:
    shown = Table(title=Text(table.title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for heading in table.columns:
        shown.add_column(Text(heading))
    for row in table.rows:
        shown.add_row(*(_entry(entry) for entry in row))
    return shown


def _entry(entry: str | Cell) -> Text:
    if isinstance(entry, str):
        return Text(entry)
    text = Text(cell_text(entry))
    if entry.published is not None:
        text.append(f"\npaper {published_text(entry)}", style="dim")
    if entry.verdict is not None:
        text.append(f"\n{entry.verdict}", style=VERDICT_STYLES[entry.verdict])
    return text
