"""The stated rule by which a measured number is compared with a published one, and the tables that do so.

* **reproduced**: the measured number is within 5 % of the published one (25 % for a count of episodes).
* **ordering reproduced**: it is not, but the agent stands to every other agent of its column as it does in the paper.
  Agents whose published numbers are themselves within that tolerance of each other may come in either order.
* **not reproduced**: neither.
* **not enough episodes**: no verdict. A number is judged if its curve is steady: the mean over the last tenth of
  episodes is within 5 % of that over the tenth before. An order needs steady curves on both sides. And with fewer
  episodes than the 3694 that the paper's Table 3 needs, nothing but "reproduced" is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from belated.evaluation import Estimate
from belated.reports.document import VERDICTS, Block, Cell, Table
from belated.runner import Results
from belated.studies.paper.published import EPISODES_BY_SIZE, Published
from belated.studies.paper.setting import BLOCK_NAMES, PaperSize
from belated.studies.pieces import name_of
from belated.studies.study import Played
from belated.types import Floats

REPRODUCED, ORDERED, NOT_REPRODUCED, TOO_FEW = VERDICTS

#: The most episodes that the paper reports; it does not say how many it played.
ENOUGH = int(max(one.value for row in EPISODES_BY_SIZE.values() for one in row.values()))

RULE = (
    "A number is **reproduced** if it is within 5 % of the published one (25 % for counts of episodes). Otherwise its "
    "**ordering is reproduced** if the agent stands to every other agent of its column as in the paper, where agents "
    "whose published numbers are within the same tolerance of each other may come in either order. Otherwise it is "
    "**not reproduced**. There is no verdict, but **not enough episodes**, on a curve that is not steady (its means "
    "over the last two tenths of episodes differ by more than 5 %), on an order with such a curve, and, unless a "
    f"number is reproduced, on fewer episodes than the {ENOUGH} that the paper's Table 3 needs."
)


def close(left: float, right: float, tolerance: float) -> bool:
    """Return whether `left` is within `tolerance` of `right`, relative to `right`.

    >>> close(11.0, 11.5, 0.05), close(11.5, 11.0, 0.01)
    (True, False)
    """
    return abs(left - right) <= tolerance * abs(right)


def steady(values: Floats) -> bool:
    """Return whether the mean over the last tenth of episodes of `values` (seeds, episodes) is that of the one before.

    >>> import numpy as np
    >>> steady(np.ones((2, 40))), steady(np.arange(40.0)[np.newaxis])
    (True, False)
    """
    window = max(1, values.shape[1] // 10)
    return close(float(values[:, -window:].mean()), float(values[:, -2 * window : -window].mean()), 0.05)


class Measured(NamedTuple):
    """A number, and whether the curve that it is of is steady."""

    estimate: Estimate
    steady: bool


def verdict(
    agent: str,
    measured: Mapping[str, Measured],
    published: Mapping[str, float],
    *,
    tolerance: float,
    episodes: int,
) -> str:
    """Return the verdict on `agent` after so many `episodes`, given the numbers of all agents of its column."""
    ours, theirs = measured[agent], published[agent]
    if ours.steady and close(ours.estimate.value, theirs, tolerance):
        return REPRODUCED
    if not ours.steady or episodes < ENOUGH:
        return TOO_FEW
    others = [other for other in published if not close(theirs, published[other], tolerance)]
    for other in others:
        order = (theirs - published[other]) * (ours.estimate.value - measured[other].estimate.value)
        if measured[other].steady and order <= 0:
            return NOT_REPRODUCED
    return ORDERED if all(measured[other].steady for other in others) else TOO_FEW


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A published table of agents by columns, and how ours are compared with it."""

    id: str
    title: str
    caption: str
    runs: Mapping[Block, str]
    """Of each block, the experiment."""
    columns: Mapping[Any, tuple[str, dict[str, str]]]
    """What a column is: its heading, and which rows of the experiment."""
    published: Mapping[str, Mapping[Any, Published]]
    statistic: Callable[[Floats], Estimate]
    """The number of an agent, from its values (seeds, episodes)."""
    tolerance: float
    digits: int
    more_is_better: bool

    def tables(self, played: Played[PaperSize]) -> list[Table]:
        """Return a table for each block: the measured numbers, each beside the published one with a verdict."""
        return [self._table(block, played.results[name], played.size) for block, name in self.runs.items()]

    def _table(self, block: Block, results: Results, size: PaperSize) -> Table:
        found: dict[str, list[Cell]] = {agent: [] for agent in results.agents}
        for column, (_, pick) in self.columns.items():
            curves = {agent: results.array("value", agent=agent, **pick) for agent in found}
            measured = {agent: Measured(self.statistic(each), steady(each)) for agent, each in curves.items()}
            for agent, cells in found.items():
                cells.append(self.cell(agent, column, measured, size.episodes))
        return Table(
            id=f"{self.id}-{block}",
            title=f"{self.title}, {BLOCK_NAMES[block]}",
            caption=self.caption,
            columns=["Agent", *(heading for heading, _ in self.columns.values())],
            rows=[[name_of(agent), *cells] for agent, cells in found.items()],
            block=block,
            prominent=True,
        )

    def cell(self, agent: str, column: Any, measured: Mapping[str, Measured], episodes: int) -> Cell:
        """Return the number of `agent`, judged by those of all agents of its column."""
        found = measured[agent].estimate
        cell = Cell(value=found.value, low=found.low, high=found.high, digits=self.digits)
        if agent not in self.published:
            return cell
        theirs = self.published[agent][column]
        published = {other: self.published[other][column].value for other in measured if other in self.published}
        better = (found.value > theirs.value) == self.more_is_better
        better &= not close(found.value, theirs.value, self.tolerance)
        return replace(
            cell,
            published=theirs.value,
            published_spread=theirs.spread,
            verdict=verdict(agent, measured, published, tolerance=self.tolerance, episodes=episodes),
            note="better than published" if better else "",
        )

    def alone(self, pick: Mapping[str, str], values: Floats) -> Cell:
        """Return the number of one agent beside the published one; its order among the others is not judged."""
        found = self.statistic(values)
        cell = Cell(value=found.value, low=found.low, high=found.high, digits=self.digits)
        column = next((name for name, (_, where) in self.columns.items() if where.items() <= pick.items()), None)
        if column is None or pick["agent"] not in self.published:
            return cell
        theirs = self.published[pick["agent"]][column]
        judged = None if values.shape[1] >= ENOUGH and steady(values) else TOO_FEW
        if steady(values) and close(found.value, theirs.value, self.tolerance):
            judged = REPRODUCED
        return replace(cell, published=theirs.value, published_spread=theirs.spread, verdict=judged)
