"""What every renderer relies on, checked once with a clear error instead of a broken page."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from belated._util.validate import choice, refuse
from belated.errors import InvalidInputError
from belated_studies.reports.document import VERDICTS, Cell, Chart, Document, Section, Table

_ID = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def check_document(document: Document) -> None:
    """Refuse ids that are not unique or not fit for a file name, ragged tables and curves, unknown verdicts."""
    tables = [table for section in document.parts for table in section.tables]
    charts = [chart for section in document.parts for chart in section.charts]
    parts: list[Section | Table | Chart] = [*document.parts, *tables, *charts]
    for identifier, count in Counter(part.id for part in parts).items():
        if not _ID.fullmatch(identifier):
            raise refuse("the id of a section, table or chart", identifier, "letters, digits, - and _, a letter first")
        if count > 1:
            raise InvalidInputError(f"ids must be unique in a document, got {identifier!r} {count} times")
    for table in tables:
        _check_table(table)
    for chart in charts:
        _check_chart(chart)


def _check_table(table: Table) -> None:
    for row in table.rows:
        if len(row) != len(table.columns):
            raise InvalidInputError(f"rows of table {table.id!r} must have {len(table.columns)} cells, got {len(row)}")
        for cell in row:
            if isinstance(cell, Cell) and cell.verdict is not None:
                choice(f"a verdict in table {table.id!r}", cell.verdict, VERDICTS)


def _check_chart(chart: Chart) -> None:
    for series in chart.series:
        for name, values in (("y", series.y), ("low", series.low), ("high", series.high)):
            if values is not None and values.shape != (series.x.size,):
                raise InvalidInputError(
                    f"{name} of {series.name!r} in chart {chart.id!r} must have shape ({series.x.size},) as x has, "
                    f"got {values.shape}"
                )
        if (series.low is None) != (series.high is None):
            raise InvalidInputError(f"{series.name!r} in chart {chart.id!r} must have both low and high, or neither")
    if chart.categories is not None:
        places = np.arange(len(chart.categories))
        if not chart.bars or any(not np.isin(series.x, places).all() for series in chart.series):
            raise InvalidInputError(f"the categories of chart {chart.id!r} need bars at 0, 1, 2 and so on")
        if len(set(chart.categories)) < len(places):
            raise InvalidInputError(f"the categories of chart {chart.id!r} must be different, got {chart.categories}")
    names = [series.name for series in chart.series]
    if chart.bars and len(set(names)) < len(names):
        raise InvalidInputError(f"the bars of chart {chart.id!r} must have different names, got {names}")
