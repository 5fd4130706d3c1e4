"""The stated rule by which a measured number is compared with a published one, and the tables that do so.

* **reproduced**: the measured number is within 5 % of the published one (25 % for a count of episodes).
* **ordering reproduced**: it is not, but the agent stands to every other agent of its column as it does in the paper.
  Agents whose published numbers are themselves within that tolerance of each other may come in either order.
* **not reproduced**: neither.
* **not enough episodes**: no verdict. Only a number that has converged is compared with a published one, which has, and
  an order needs both sides converged. A curve has *converged* if the mean over its last tenth of episodes is within 5 %
  of that over the tenth before, and if it can be expected to stay: it is within 1 % of the optimum, or has as many
  episodes as the 3694 that the paper's Table 3 needs. With fewer it is *steady so far*; else it is *still rising* or
  *still falling*. Every cell says which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from belated.evaluation import Estimate
from belated.runner import Results
from belated.types import Floats
from belated_studies.cells_and_curves import name_of
from belated_studies.paper.published import EPISODES_BY_SIZE, Published
from belated_studies.paper.setting import BLOCK_NAMES, PaperSize
from belated_studies.reports.document import VERDICTS, Block, Cell, Table
from belated_studies.study import Played

REPRODUCED, ORDERED, NOT_REPRODUCED, TOO_FEW = VERDICTS

#: The most episodes that the paper reports; it does not say how many it played.
ENOUGH = int(max(one.value for row in EPISODES_BY_SIZE.values() for one in row.values()))

CONVERGED, SO_FAR = "converged", "steady so far"

RULE = (
    "A number is **reproduced** if it is within 5 % of the published one (25 % for counts of episodes). Otherwise its "
    "**ordering is reproduced** if the agent stands to every other agent of its column as in the paper, where agents "
    "whose published numbers are within the same tolerance of each other may come in either order. Otherwise it is "
    "**not reproduced**. Only what has **converged** is compared with the paper's converged numbers, else there are "
    "**not enough episodes**. Every cell says which: converged means that the means over the last two tenths of "
    "episodes differ by at most 5 %, and that the curve is within 1 % of the optimum or has the "
    f"{ENOUGH} episodes that the paper's Table 3 needs; with fewer it is steady so far."
)


def close(left: float, right: float, tolerance: float) -> bool:
    """Return whether `left` is within `tolerance` of `right`, relative to `right`.

    >>> close(11.0, 11.5, 0.05), close(11.5, 11.0, 0.01)
    (True, False)
    """
    return abs(left - right) <= tolerance * abs(right)


def convergence(values: Floats, optimal: float, episodes: int) -> str:
    """Return in a word or two whether `values` (seeds, rows) of a run of so many `episodes` have converged.

    >>> import numpy as np
    >>> rising = np.arange(40.0)[np.newaxis]
    >>> convergence(np.ones((2, 40)), 1.0, 40), convergence(np.ones((2, 40)), 2.0, 40), convergence(rising, 99.0, 40)
    ('converged', 'steady so far', 'still rising')
    """
    window = max(1, values.shape[1] // 10)
    last, before = (float(part.mean()) for part in (values[:, -window:], values[:, -2 * window : -window]))
    if not close(last, before, 0.05):
        return "still rising" if last > before else "still falling"
    return CONVERGED if episodes >= ENOUGH or last >= optimal - 0.01 * abs(optimal) else SO_FAR


class Measured(NamedTuple):
    """A number, and whether the curve that it is of has converged, in the words of `convergence`."""

    estimate: Estimate
    state: str

    @property
    def converged(self) -> bool:
        """Whether it can be compared with a published number."""
        return self.state == CONVERGED


def verdict(agent: str, measured: Mapping[str, Measured], published: Mapping[str, float], *, tolerance: float) -> str:
    """Return the verdict on `agent`, given the numbers of all agents of its column."""
    ours, theirs = measured[agent], published[agent]
    if not ours.converged:
        return TOO_FEW
    if close(ours.estimate.value, theirs, tolerance):
        return REPRODUCED
    others = [other for other in published if not close(theirs, published[other], tolerance)]
    for other in others:
        order = (theirs - published[other]) * (ours.estimate.value - measured[other].estimate.value)
        if measured[other].converged and order <= 0:
            return NOT_REPRODUCED
    return ORDERED if all(measured[other].converged for other in others) else TOO_FEW


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

    def cells(self, results: Results, episodes: int) -> dict[str, list[Cell]]:
        """Return the cells of every agent, one a column."""
        found: dict[str, list[Cell]] = {agent: [] for agent in results.agents}
        for column, (_, pick) in self.columns.items():
            measured = {agent: self._measured(results, episodes, agent=agent, **pick) for agent in found}
            for agent, cells in found.items():
                cells.append(self.cell(agent, column, measured))
        return found

    def _measured(self, results: Results, episodes: int, **pick: str) -> Measured:
        values, optimal = results.array("value", **pick), float(results.array("optimal", **pick).mean())
        return Measured(self.statistic(values), convergence(values, optimal, episodes))

    def _table(self, block: Block, results: Results, size: PaperSize) -> Table:
        found = self.cells(results, size.episodes)
        return Table(
            id=f"{self.id}-{block}",
            title=f"{self.title}, {BLOCK_NAMES[block]}",
            caption=self.caption,
            columns=["Agent", *(heading for heading, _ in self.columns.values())],
            rows=[[name_of(agent), *cells] for agent, cells in found.items()],
            block=block,
            prominent=True,
        )

    def tally(self, played: Played[PaperSize], block: Block) -> str:
        """Return how many numbers of a block got which verdict, as a sentence."""
        cells = self.cells(played.results[self.runs[block]], played.size.episodes)
        counts = Counter(cell.verdict for row in cells.values() for cell in row if cell.verdict is not None)
        listed = ", ".join(f"{counts[one]} {one}" for one in VERDICTS if counts[one])
        return f"{self.title}, {block}, {counts.total()} published numbers: {listed}."

    def cell(self, agent: str, column: Any, measured: Mapping[str, Measured]) -> Cell:
        """Return the number of `agent`, judged by those of all agents of its column."""
        found, state = measured[agent]
        cell = Cell(value=found.value, low=found.low, high=found.high, digits=self.digits, note=state)
        if agent not in self.published:
            return cell
        theirs = self.published[agent][column]
        published = {other: self.published[other][column].value for other in measured if other in self.published}
        judged = verdict(agent, measured, published, tolerance=self.tolerance)
        said = [state]
        if state == CONVERGED and judged == TOO_FEW:
            said.append("but not what its rank depends on")
        better = (found.value > theirs.value) == self.more_is_better
        if better and state == CONVERGED and not close(found.value, theirs.value, self.tolerance):
            said.append("better than published")
        return replace(
            cell, published=theirs.value, published_spread=theirs.spread, verdict=judged, note=", ".join(said)
        )

    def alone(self, results: Results, pick: Mapping[str, str]) -> Cell:
        """Return the number of one agent beside the published one; its order among the others is not judged."""
        found, state = self._measured(results, int(results.episodes[-1]), **pick)
        cell = Cell(value=found.value, low=found.low, high=found.high, digits=self.digits, note=state)
        column = next((name for name, (_, where) in self.columns.items() if where.items() <= pick.items()), None)
        if column is None or pick["agent"] not in self.published:
            return cell
        theirs = self.published[pick["agent"]][column]
        judged = None if state == CONVERGED else TOO_FEW
        if state == CONVERGED and close(found.value, theirs.value, self.tolerance):
            judged = REPRODUCED
        return replace(cell, published=theirs.value, published_spread=theirs.spread, verdict=judged)
