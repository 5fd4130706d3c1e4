"""The numbers of a report as records, for other programs to read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from belated_studies.reports.document import Block, Cell, Chart, Claim, Section, Table


def section_records(section: Section) -> Iterator[dict[str, Any]]:
    """Yield a record for every measured cell of the tables, and for every end of a curve.

    >>> table = Table(id="t", title="", caption="", columns=["", "Agent", "Value"],
    ...               rows=[[Block("tuned"), "psvi", Cell(value=2.0)]])
    >>> (record,) = section_records(Section(id="s", title="", tables=[table]))
    >>> record["where"], record["row"], record["column"], record["block"], record["value"]
    ('t', 'psvi', 'Value', 'tuned', 2.0)
    """
    for table in section.tables:
        yield from _table_records(table)
    for chart in section.charts:
        yield from _chart_records(chart)


def claim_record(claim: Claim) -> dict[str, Any]:
    """Return a claim as a record: verdict and evidence are those of the printed settings, if they were played.

    >>> from belated_studies.reports.document import HOLDS, Finding
    >>> found = claim_record(Claim(claim="Late is late.", where="s", printed=Finding(HOLDS, "2 of 2")))
    >>> found["verdict"], found["evidence"], found["tuned"]
    ('holds', '2 of 2', None)
    """
    printed, tuned = (None if found is None else asdict(found) for found in (claim.printed, claim.tuned))
    return {
        "claim": claim.claim,
        "artefact": claim.where,
        **(printed or {"verdict": None, "evidence": None}),
        "tuned": tuned,
        "because": claim.because or None,
    }


def _table_records(table: Table) -> Iterator[dict[str, Any]]:
    for row in table.rows:
        block = next((entry for entry in row if isinstance(entry, Block)), table.block)
        texts = [entry for entry in row if isinstance(entry, str) and not isinstance(entry, Block)]
        for column, entry in zip(table.columns, row, strict=True):
            if isinstance(entry, Cell) and entry.value is not None:
                yield _record(table.id, " · ".join(texts), column, block, entry)


def _chart_records(chart: Chart) -> Iterator[dict[str, Any]]:
    if chart.bars:
        return
    for series in chart.series:
        low, high = (float("nan") if band is None else float(band[-1]) for band in (series.low, series.high))
        end = Cell(value=float(series.y[-1]), low=low, high=high)
        yield _record(chart.id, series.name, f"end of curve, {chart.x_label} {series.x[-1]:g}", chart.block, end)


def _record(where: str, row: str, column: str, block: Block | None, cell: Cell) -> dict[str, Any]:
    return {
        "where": where,
        "row": row,
        "column": column,
        "block": block,
        "value": cell.value,
        "low": _number(cell.low),
        "high": _number(cell.high),
        "published": cell.published,
        "published_spread": cell.published_spread,
        "verdict": cell.verdict,
    }


def _number(value: float) -> float | None:
    """Return `value`, or None for what JSON cannot say."""
    return None if value != value else value
