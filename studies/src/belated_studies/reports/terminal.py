"""Tables and mini curves for the terminal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from belated._util.validate import array, integer, real
from belated.runner import Results
from belated_studies.reports.cells import cell_text, published_text
from belated_studies.reports.document import VERDICTS, Cell, Document
from belated_studies.reports.document import Table as ReportTable
from belated_studies.reports.markup import plain
from belated_studies.reports.summary import HEADINGS, interval_note, summary_rows

BLOCKS = "▁▂▃▄▅▆▇█"
VERDICT_STYLES = dict(zip(VERDICTS, ("green", "yellow", "red", "dim"), strict=True))


def summary_table(results: Results) -> Table:
    """Return a table with a row for each environment, delay and agent, the least regret of each comparison in bold.

    An environment or a delay that is the only one is named in the title instead of in a column.
    """
    rows = summary_rows(results)
    columns = [i for i, name in enumerate(HEADINGS) if i > 1 or len({row.cells[i] for row in rows}) > 1]
    title = ", ".join(rows[0].cells[i] for i in (0, 1) if i not in columns)
    table = Table(
        title=Text(title) if title else None,
        title_justify="left",
        title_style="bold",
        caption=interval_note(results),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for i in columns:
        number = i > 2
        table.add_column(HEADINGS[i], justify="right" if number else "left", no_wrap=number, overflow="fold")
    group: tuple[str, ...] = ()
    for row in rows:
        first = group != row.cells[:2]
        if first and group:
            table.add_section()
        group = row.cells[:2]
        cells = [Text(row.cells[i] if first or i > 1 else "", style="bold" if row.best else "") for i in columns]
        table.add_row(*cells)
    return table


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


def spark(values: npt.ArrayLike, width: int, *, low: float | None = None, high: float | None = None) -> str:
    """Return `values` as a curve of at most `width` characters, each the mean of its share of the values.

    `low` and `high` are the values of the lowest and the highest block, by default those of the curve itself.

    >>> spark([0, 1, 2, 3, 4, 5, 6, 7], width=8)
    '▁▂▃▄▅▆▇█'
    >>> spark([0, 1, 2, 3, 4, 5, 6, 7], width=4)
    '▁▃▆█'
    >>> spark([0.5, 0.5], width=4, low=0.0, high=1.0)
    '▅▅'
    """
    curve = array("values", values, (None,))
    length = min(integer("width", width, at_least=1), curve.size)
    if length == 0:
        return ""
    edges = np.arange(length) * curve.size // length
    means = np.add.reduceat(curve, edges) / np.diff(edges, append=curve.size)
    bottom = float(means.min()) if low is None else real("low", low)
    top = float(means.max()) if high is None else real("high", high, at_least=bottom)
    if top == bottom:
        return BLOCKS[0] * length
    levels = np.clip(np.floor((means - bottom) / (top - bottom) * len(BLOCKS)), 0, len(BLOCKS) - 1)
    return "".join(BLOCKS[int(level)] for level in levels)
