"""A report as data: sections of text, tables and charts, before any ink.

Builders turn stored rows into a `Document`; renderers turn a document into HTML, figures and tables. Neither knows
the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from belated._util.plot_style import thin as thin
from belated.types import Floats

#: How a measured number compares with the published one.
VERDICTS = ("reproduced", "ordering reproduced", "not reproduced", "not enough episodes")


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Document:
    """A whole report."""

    title: str
    summary: Sequence[str]
    """What a reader with ten seconds should take away, as sentences."""
    facts: Mapping[str, str]
    """Seeds, episodes, versions, wall time: what is needed to judge and to repeat it."""
    sections: Sequence[Section] = field(default_factory=tuple)
    opening: Section | None = None
    """The picture and the table that a reader sees first, before the summary; its title is not shown."""

    @property
    def parts(self) -> Sequence[Section]:
        """The opening, if there is one, and the sections."""
        return [*([] if self.opening is None else [self.opening]), *self.sections]
