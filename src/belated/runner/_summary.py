"""Summaries of results: a frame that prints its main numbers, and tables for terminal, Markdown and LaTeX."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from belated._util import escaped
from belated._util.validate import choice
from belated.errors import InvalidInputError, MissingExtraError
from belated.evaluation import Estimate

if TYPE_CHECKING:
    import pandas

HEADINGS = ("environment", "delay", "agent", "regret", "value", "share")
MEASURES = {
    "regret": "total regret",
    "value": "value, mean over the last tenth of the episodes",
    "return": "return, mean over the last tenth of the episodes",
    "return_iqm": "return over the last tenth of the episodes, interquartile mean",
}
"""The measures that a table can compare, with their descriptions; each has an interval."""

_WIDTH = 100  # characters of a printed summary, as of a Polars table
_NO_REGRET = 1e-9  # regret below this fraction of the optimum is rounding error
_NOTHING = "–"


def to_pandas(frame: pl.DataFrame) -> pandas.DataFrame:
    """Convert a Polars frame without nested columns to pandas; Polars' own conversion needs pyarrow."""
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("to_pandas needs pandas, which is not installed: pip install pandas") from None
    return pandas.DataFrame({column.name: column.to_numpy() for column in frame})


class Summary(pl.DataFrame):
    """A Polars frame with one row per environment, delay and agent, which prints its main columns.

    The columns are the labels, then total regret, the value over the last tenth of the episodes, the optimum, the
    return, its interquartile mean, and the number of seeds. `regret_low` and `regret_high` are the bounds of the 95 %
    interval over seeds, and likewise for the others. Unknown values, such as the regret in a simulator, are null.
    """

    def __str__(self) -> str:
        if not {"environment", "delay_distribution", "agent", "regret", "value", "optimal", "seeds"} <= {*self.columns}:
            return super().__str__()
        out = io.StringIO()
        Console(file=out, width=_WIDTH, color_system=None, legacy_windows=False).print(summary_table(self))
        return "\n".join(line.rstrip() for line in out.getvalue().strip("\n").splitlines())

    def to_pandas(self, *args: Any, **options: Any) -> pandas.DataFrame:
        """Return a pandas frame without pyarrow, which Polars' own method needs; with the same arguments."""
        return super().to_pandas(*args, **options) if args or options else to_pandas(self)


@dataclass(frozen=True)
class SummaryRow:
    """One environment, delay and agent, with formatted numbers."""

    environment: str
    delay: str
    agent: str
    regret: str
    """Total regret, with its 95 % interval if there are several seeds."""
    value: str
    """Value upon convergence, with its interval; the return if the value is unknown."""
    share: str
    """That value as a fraction of the optimum."""
    best: bool
    """Whether it has the lowest regret of all learning agents in this comparison, or the highest return."""

    @property
    def cells(self) -> tuple[str, str, str, str, str, str]:
        """The row in the order of `HEADINGS`."""
        return self.environment, self.delay, self.agent, self.regret, self.value, self.share


def summary_rows(summary: pl.DataFrame) -> list[SummaryRow]:
    """Return the formatted rows, grouped by comparison."""
    groups = summary.partition_by("environment", "delay_distribution", maintain_order=True)
    return [row for group in groups for row in _group_rows(group)]


def _group_rows(group: pl.DataFrame) -> list[SummaryRow]:
    measure = "return" if group["value"].null_count() == group.height else "regret"
    best = _best(group, measure)
    return [_row(row, best is not None and row[measure] == best) for row in group.iter_rows(named=True)]


def _best(group: pl.DataFrame, measure: str) -> Any:
    """Return the best mean of one comparison: the minimum regret of agents that learn, or the maximum of a measure."""
    if measure != "regret":
        return group[measure].max()
    # An oracle has no regret by construction, so marking it as the best would be uninformative.
    known = group.filter(pl.col("regret").is_not_null())
    return known.filter(known["regret"].abs() > _NO_REGRET * known["optimal"].abs())["regret"].min()


def _row(row: dict[str, Any], best: bool) -> SummaryRow:
    if row["value"] is None:  # in a simulator only the return is known
        value, share, regret = _written(row, "return", ",.2f"), _NOTHING, _NOTHING
    else:
        value = _written(row, "value", ",.2f")
        share = f"{row['value'] / row['optimal']:.1%}" if row["optimal"] > 0 else _NOTHING
        regret = _written(row, "regret", ",.0f" if abs(row["regret"]) >= 100 else ",.2f")
    return SummaryRow(row["environment"], row["delay_distribution"], row["agent"], regret, value, share, best)


def _written(row: dict[str, Any], name: str, spec: str) -> str:
    if row["seeds"] == 1:
        return format(row[name], spec)
    estimate = Estimate(row[name], row[f"{name}_low"], row[f"{name}_high"], level=0.95, seeds=int(row["seeds"]))
    return format(estimate, spec)


def _over_seeds(summary: pl.DataFrame) -> str:
    """Return a description of the number of seeds.

    >>> _over_seeds(pl.DataFrame({"seeds": [3, 5]})), _over_seeds(pl.DataFrame({"seeds": [1]}))
    ('3 to 5 seeds', 'one seed')
    """
    least, most = min(summary["seeds"], default=0), max(summary["seeds"], default=0)
    return "one seed" if most == 1 else f"{most} seeds" if least == most else f"{least} to {most} seeds"


def interval_note(summary: pl.DataFrame) -> str:
    """Return the note that explains the numbers of a summary."""
    seeds = _over_seeds(summary)
    spread = seeds if seeds == "one seed" else f"95% bootstrap intervals over {seeds}"
    value = "value (or return, if unknown)" if summary["value"].null_count() else "value"
    return f"regret: total; {value}: mean over the last tenth of the episodes, and as a share of the optimum; {spread}"


def summary_markdown(summary: pl.DataFrame) -> str:
    """Return the summary as a Markdown table, with the lowest regret or highest return of each comparison in bold."""
    lines: list[tuple[str, ...]] = [HEADINGS, ("---",) * 3 + ("---:",) * 3]
    for row in summary_rows(summary):
        bold = HEADINGS.index("regret" if row.regret != _NOTHING else "value")
        cells = [*map(escaped.markdown, row.cells[:3]), *row.cells[3:]]
        cells[bold] = f"**{cells[bold]}**" if row.best else cells[bold]
        lines.append(tuple(cells))
    return f"{_markdown_lines(lines)}\n\n{interval_note(summary)}\n"


def summary_table(summary: pl.DataFrame) -> Table:
    """Return a table with one row per environment, delay and agent, the lowest regret of each comparison in bold.

    If there is only one environment or delay, it is in the title instead of a column.
    """
    rows = summary_rows(summary)
    columns = [i for i, name in enumerate(HEADINGS) if i > 1 or len({row.cells[i] for row in rows}) > 1]
    title = ", ".join(rows[0].cells[i] for i in (0, 1) if i not in columns) if rows else ""
    table = Table(
        title=Text(title) if title else None,
        title_justify="left",
        title_style="bold",
        caption=interval_note(summary),
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


@dataclass(frozen=True)
class Cell:
    """Formatted mean and error of one agent on one task; the error is empty for a single seed."""

    mean: str
    error: str
    best: bool


@dataclass(frozen=True)
class Comparison:
    """One measure of all agents (rows) on all tasks (columns); None for combinations that were not played."""

    note: str
    tasks: list[str]
    rows: dict[str, list[Cell | None]]


def compare(summary: pl.DataFrame, measure: str) -> Comparison:
    """Return the comparison of a measure; tasks are named by what distinguishes them."""
    choice("measure", measure, MEASURES)
    if measure not in summary.columns or summary[measure].null_count() == summary.height:
        raise InvalidInputError(f"the {measure} is unknown here, as in a simulator; choose another measure")
    groups = summary.partition_by("environment", "delay_distribution", as_dict=True, maintain_order=True)
    several = [len({labels[i] for labels in groups}) > 1 for i in (0, 1)]
    tasks = [", ".join(str(label) for label, named in zip(labels, several, strict=True) if named) for labels in groups]
    columns = [_column(group, measure) for group in groups.values()]
    best = "the least of each column, oracles aside," if measure == "regret" else "the maximum of each column"
    seeds = _over_seeds(summary)
    error = "" if seeds == "one seed" else " ± half of its 95 % bootstrap interval"
    return Comparison(
        f"{MEASURES[measure]}{error}, {seeds}; {best} is bold",
        tasks if any(several) else [measure],
        {agent: [column.get(agent) for column in columns] for agent in dict.fromkeys(summary["agent"])},
    )


def _column(group: pl.DataFrame, measure: str) -> dict[str, Cell]:
    """Return the cells of one task; the largest mean has three digits, and all have the same number of decimals."""
    known = group.filter(pl.col(measure).is_not_null())
    best = _best(known, measure)
    largest = max((abs(mean) for mean in known[measure]), default=0.0)
    spec = f",.{max(0, 2 - math.floor(math.log10(largest))) if largest > 0 else 2}f"
    return {
        row["agent"]: Cell(
            format(row[measure], spec),
            "" if row["seeds"] == 1 else format((row[f"{measure}_high"] - row[f"{measure}_low"]) / 2, spec),
            row[measure] == best,
        )
        for row in known.iter_rows(named=True)
    }


def comparison_markdown(found: Comparison) -> str:
    """Return a comparison as a Markdown table with an explanatory note."""
    lines: list[tuple[str, ...]] = [
        ("agent", *map(escaped.markdown, found.tasks)),
        ("---", *["---:"] * len(found.tasks)),
    ]
    for agent, cells in found.rows.items():
        written = [_NOTHING if cell is None else " ± ".join(filter(None, (cell.mean, cell.error))) for cell in cells]
        marked = [f"**{text}**" if cell and cell.best else text for text, cell in zip(written, cells, strict=True)]
        lines.append((escaped.markdown(agent), *marked))
    return f"{_markdown_lines(lines)}\n\n{found.note}\n"


def _markdown_lines(lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def comparison_latex(found: Comparison) -> str:
    """Return a comparison as a LaTeX `tabular`, which needs `booktabs`; a comment explains the numbers."""
    rows = [("agent", *map(escaped.latex, found.tasks))]
    for agent, cells in found.rows.items():
        rows.append((escaped.latex(agent), *map(_latex_cell, cells)))
    head, *body = (f"  {' & '.join(cells)} \\\\" for cells in rows)
    return "\n".join(
        [
            f"% {found.note}; needs booktabs",
            rf"\begin{{tabular}}{{@{{}}l{'r' * len(found.tasks)}@{{}}}}",
            *(r"  \toprule", head, r"  \midrule", *body, r"  \bottomrule"),
            r"\end{tabular}",
            "",
        ]
    )


def _latex_cell(cell: Cell | None) -> str:
    if cell is None:
        return "--"
    formula = r" \pm ".join(filter(None, (cell.mean, cell.error))).replace(",", "{,}")
    return rf"$\mathbf{{{formula}}}$" if cell.best else f"${formula}$"
