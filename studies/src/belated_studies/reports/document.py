"""A report as data: sections of text, tables and charts.

Builders turn stored rows into a `Document`; renderers turn a document into HTML, figures and tables. Neither knows
the other. A document is checked when it is made, so that renderers can rely on it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from belated._util.validate import choice, refuse
from belated.errors import InvalidInputError
from belated.types import Floats

_ID = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

#: How a measured number compares with the published one, how a tuned one does, and what becomes of a claim.
VERDICTS = (
    *("reproduced", "not reproduced"),
    *("reaches the optimum", "better than published", "as published", "worse than published"),
    *("holds", "does not hold", "cannot be judged"),
)
HOLDS, FAILS, OPEN = VERDICTS[-3:]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One measured number, with its interval and the published number where there is one."""

    value: float | None
    """None: not measured."""
    low: float = float("nan")
    high: float = float("nan")
    published: float | None = None
    published_spread: float | None = None
    """The ± that the paper prints."""
    verdict: str | None = None
    digits: int = 2
    note: str = ""
    """What to say in place of, or after, the number."""


class Block(str):
    """The group of agents of which a row, a table or a chart speaks.

    To a reader it is text like any other; in the records of a report it is the `block` of every number in its row.
    """

    __slots__ = ()


Row = Sequence[str | Cell]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of text and cells under column headings."""

    id: str
    title: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Row]
    block: Block | None = None
    """Of all its rows, where they do not say it themselves."""
    prominent: bool = False
    """Whether it is shown in the terminal, too."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """One curve, with a band where there is an interval."""

    name: str
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None
    dashed: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Chart:
    """Curves or bars over one pair of axes."""

    id: str
    title: str
    caption: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    block: Block | None = None
    level: tuple[str, float] | None = None
    """A labelled horizontal line, such as the optimum."""
    bars: bool = False
    categories: Sequence[str] | None = None
    """Of bars, what stands under the places 0, 1, 2 and so on, which are then the x of every series."""
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Section:
    """A heading with paragraphs, tables and charts."""

    id: str
    title: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()


@dataclass(frozen=True)
class Finding:
    """What became of a claim with some settings, and the numbers that say so."""

    verdict: str
    """One of `HOLDS`, `FAILS` and `OPEN`."""
    evidence: str


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of the paper beside what was measured of it."""

    claim: str
    """In the paper's words, shortened."""
    where: str
    """The id of the section with the numbers."""
    printed: Finding | None
    """With the paper's printed settings; None if that was not played."""
    tuned: Finding | None = None
    because: str = ""
    """What makes the difference between the two."""

    @property
    def sentence(self) -> str:
        """The claim and its findings as one sentence."""
        told = [
            f"**{found.verdict}** {how} ({found.evidence})"
            for found, how in ((self.printed, "with the printed settings"), (self.tuned, "tuned"))
            if found is not None
        ]
        because = f", because {self.because}" if self.because else ""
        return f"“{self.claim}” ({self.place}): {'; '.join(told)}{because}."

    @property
    def place(self) -> str:
        """Where its numbers are, in words."""
        return self.where.replace("-", " ").capitalize()


@dataclass(frozen=True, kw_only=True, eq=False)
class Document:
    """A whole report."""

    title: str
    summary: Sequence[str]
    """What a reader with ten seconds should take away, as sentences."""
    facts: Mapping[str, str]
    """Seeds, episodes, versions, wall time: what is needed to judge and to repeat it."""
    sections: Sequence[Section] = field(default_factory=tuple)
    claims: Sequence[Claim] = ()
    """What the paper says, each sentence with its verdict: what a reader sees first."""
    opening: Section | None = None
    """The picture and the table that a reader sees first, before the summary; its title is not shown."""

    def __post_init__(self) -> None:
        """Refuse ids that are not unique or not fit for a file name, ragged tables and curves, unknown verdicts."""
        tables = [table for section in self.parts for table in section.tables]
        charts = [chart for section in self.parts for chart in section.charts]
        parts: list[Section | Table | Chart] = [*self.parts, *tables, *charts]
        for identifier, count in Counter(part.id for part in parts).items():
            if not _ID.fullmatch(identifier):
                expected = "letters, digits, - and _, a letter first"
                raise refuse("the id of a section, table or chart", identifier, expected)
            if count > 1:
                raise InvalidInputError(f"ids must be unique in a document, got {identifier!r} {count} times")
        for table in tables:
            _check_table(table)
        for chart in charts:
            _check_chart(chart)
        for claim in self.claims:
            choice("the section of a claim", claim.where, [section.id for section in self.sections])
            for found in (claim.printed, claim.tuned):
                if found is not None:
                    choice("the verdict on a claim", found.verdict, (HOLDS, FAILS, OPEN))

    @property
    def parts(self) -> Sequence[Section]:
        """The opening, if there is one, and the sections."""
        return [*([] if self.opening is None else [self.opening]), *self.sections]


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
