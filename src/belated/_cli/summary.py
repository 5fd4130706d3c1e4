"""The summary of an experiment, for a terminal and as Markdown, and mini curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from rich import box
from rich.table import Table
from rich.text import Text

from belated._util.validate import array, integer, real
from belated.evaluation import Estimate
from belated.runner import Results

HEADINGS = ("environment", "delay", "agent", "value", "share", "regret")

BLOCKS = "▁▂▃▄▅▆▇█"

_NO_REGRET = 1e-9  # regret below this share of the optimum is rounding: nothing had to be learned


@dataclass(frozen=True)
class SummaryRow:
    """One environment, delay and agent; every number is already written out."""

    environment: str
    delay: str
    agent: str
    value: str
    """Value upon convergence, with its 95% interval where there are several seeds; the return where nobody knows it."""
    share: str
    """That value as a share of the optimum."""
    regret: str
    """Total regret, with its interval."""
    best: bool
    """Whether no agent that learns has less regret under this environment and delay, or none a larger return."""

    @property
    def cells(self) -> tuple[str, str, str, str, str, str]:
        """The row in the order of `HEADINGS`."""
        return self.environment, self.delay, self.agent, self.value, self.share, self.regret


def summary_rows(results: Results) -> list[SummaryRow]:
    """Return a row for each environment, delay and agent, the agents of one comparison next to each other."""
    summary = results.summary()
    groups = summary.partition_by("environment", "delay_distribution", maintain_order=True)
    # Rows come agent by agent; the delays of one environment belong together.
    groups.sort(key=lambda group: results.environments.index(group["environment"][0]))
    return [row for group in groups for row in _group_rows(group)]


def _group_rows(group: pl.DataFrame) -> list[SummaryRow]:
    known = group.filter(pl.col("value").is_not_null())
    if known.is_empty():
        largest = group["return"].max()
        return [_by_return(row, row["return"] == largest) for row in group.iter_rows(named=True)]
    # An oracle has no regret by construction, so marking it as the best would say nothing about the others.
    learns = known["regret"].abs() > _NO_REGRET * known["optimal"].abs()
    least = known.filter(learns)["regret"].min()
    return [
        _by_return(row, False) if row["value"] is None else _by_regret(row, row["regret"] == least)
        for row in group.iter_rows(named=True)
    ]


def _by_regret(row: dict[str, Any], best: bool) -> SummaryRow:
    return SummaryRow(
        environment=row["environment"],
        delay=row["delay_distribution"],
        agent=row["agent"],
        value=_written(row, "value", ",.2f"),
        share=f"{row['value'] / row['optimal']:.1%}" if row["optimal"] > 0 else "–",
        regret=_written(row, "regret", ",.0f" if abs(row["regret"]) >= 100 else ",.2f"),
        best=best,
    )


def _by_return(row: dict[str, Any], best: bool) -> SummaryRow:
    """Return the row of an agent that learned from samples alone: all that is known of it is what it was paid."""
    return SummaryRow(
        environment=row["environment"],
        delay=row["delay_distribution"],
        agent=row["agent"],
        value=_written(row, "return", ",.2f"),
        share="–",
        regret="–",
        best=best,
    )


def _written(row: dict[str, Any], name: str, spec: str) -> str:
    if row["seeds"] == 1:
        return format(row[name], spec)
    estimate = Estimate(row[name], row[f"{name}_low"], row[f"{name}_high"], level=0.95, seeds=int(row["seeds"]))
    return format(estimate, spec)


def interval_note(results: Results) -> str:
    """Return the sentence that says what the numbers in a summary are.

    >>> interval_note(Results(pl.DataFrame({"environment": "e", "agent": "a", "delay_distribution": "d",
    ...                                     "seed": [0], "episode": [0], "value": [1.0]})))
    'value: mean over the last tenth of the episodes, and its share of the optimum; regret: total; one seed'
    """
    seeds = results.frame["seed"].n_unique()
    spread = "one seed" if seeds == 1 else f"95% bootstrap intervals over {seeds} seeds"
    unknown = results.frame["value"].null_count()
    value = "value (where nobody knows it, return)" if unknown else "value"
    return f"{value}: mean over the last tenth of the episodes, and its share of the optimum; regret: total; {spread}"


def summary_markdown(results: Results) -> str:
    """Return the summary as a Markdown table, the least regret of each comparison in bold, or the largest return."""
    lines: list[tuple[str, ...]] = [HEADINGS, ("---",) * 3 + ("---:",) * 3]
    for row in summary_rows(results):
        bold = -1 if row.regret != "–" else HEADINGS.index("value") - len(HEADINGS)
        cells = list(row.cells)
        cells[bold] = f"**{cells[bold]}**" if row.best else cells[bold]
        lines.append(tuple(cells))
    table = "\n".join("| " + " | ".join(map(_in_a_cell, cells)) + " |" for cells in lines)
    return f"{table}\n\n{interval_note(results)}\n"


def _in_a_cell(text: str) -> str:
    return " ".join(text.replace("|", r"\|").splitlines())


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
