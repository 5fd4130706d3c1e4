"""A report in the terminal: its prominent tables, what it opens with, and its summary."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from belated_studies.reports.document import Cell, Document
from belated_studies.reports.document import Table as ReportTable
from belated_studies.reports.formatting import cell_text, published_text
from belated_studies.reports.markup import plain, spans
from belated_studies.reports.style import VERDICT_COLOURS

STYLES = {"good": "green", "fair": "yellow", "poor": "red", "open": "dim"}
VERDICT_STYLES = {verdict: STYLES[colour] for verdict, colour in VERDICT_COLOURS.items()}


def print_document(document: Document, console: Console) -> None:
    """Print the prominent tables of a report, then what it opens with: one table, the summary, and every claim."""
    for table in (table for section in document.sections for table in section.tables):
        if table.prominent:
            console.print(_report_table(table))
    for table in () if document.opening is None else document.opening.tables:
        console.print(_report_table(table))
    for sentence in document.summary:
        console.print(plain(sentence), highlight=False)
    if document.claims:
        console.print("\nWhat the paper says:", style="bold")
    for claim in document.claims:
        console.print(_sentence(claim.sentence), highlight=False)


def _sentence(text: str) -> Text:
    """Return a sentence whose verdicts are set in their colours."""
    shown = Text("• ")
    for kind, part in spans(text):
        shown.append(part, style=VERDICT_STYLES.get(part, "bold") if kind == "bold" else "")
    return shown


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
