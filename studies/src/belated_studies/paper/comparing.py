"""The stated rule by which a measured number is compared with a published one, and the tables that do so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from belated.evaluation import Estimate
from belated.runner import Results
from belated.types import Floats
from belated_studies.cells_and_curves import name_of
from belated_studies.paper.published import EPISODES_BY_SIZE, Published
from belated_studies.paper.setting import BLOCK_NAMES, LITERAL, PaperSize
from belated_studies.reports.document import OPEN, VERDICTS, Block, Cell, Table
from belated_studies.study import Played

REPRODUCED, NOT_REPRODUCED, OPTIMUM, BETTER, AS_PUBLISHED, WORSE = VERDICTS[:6]

#: The most episodes that the paper reports; it does not say how many it played.
ENOUGH = int(max(one.value for row in EPISODES_BY_SIZE.values() for one in row.values()))
#: Of a published number without ±, the part of it that takes its place: counts of episodes have none.
MARGIN = 0.25
#: A return within so much of the optimum reaches it.
NEAR = 0.01

CONVERGED, SO_FAR = "converged", "steady so far"

RULE = (
    "**The rule.** With the printed settings a number is **reproduced** if it lies within the paper's own ± of the "
    "printed mean; counts of episodes, printed without ±, within 25 %. Tuned settings are no reproduction: a return "
    "within 1 % of the optimum **reaches the optimum**, any other number is better than, as, or worse than published "
    "by the same margin. A curve that still moves at the end (the means over its last two tenths of episodes differ by "
    "more than 5 %) is judged where the paper says by which episode its own was at its highest (Table 3), since ours "
    "has had longer; elsewhere it **cannot be judged**."
)


def close(left: float, right: float, tolerance: float) -> bool:
    """Return whether `left` is within `tolerance` of `right`, relative to `right`.

    >>> close(11.0, 11.5, 0.05), close(11.5, 11.0, 0.01)
    (True, False)
    """
    return abs(left - right) <= tolerance * abs(right)


def convergence(values: Floats, optimal: float, episodes: int) -> str:
    """Return in a word or two whether `values` (seeds, rows) of a run of so many `episodes` have converged.

    Curves that rest have converged if they can be expected to stay: at the optimum, or after as many episodes as the
    paper needs.

    >>> import numpy as np
    >>> rising = np.arange(40.0)[np.newaxis]
    >>> convergence(np.ones((2, 40)), 1.0, 40), convergence(np.ones((2, 40)), 2.0, 40), convergence(rising, 99.0, 40)
    ('converged', 'steady so far', 'still rising')
    """
    window = max(1, values.shape[1] // 10)
    last, before = (float(part.mean()) for part in (values[:, -window:], values[:, -2 * window : -window]))
    if not close(last, before, 0.05):
        return "still rising" if last > before else "still falling"
    return CONVERGED if episodes >= ENOUGH or close(last, optimal, NEAR) else SO_FAR


class Measured(NamedTuple):
    """A number, and whether the curve that it is of has converged, in the words of `convergence`."""

    estimate: Estimate
    state: str
    optimal: float
    episodes: int

    @property
    def converged(self) -> bool:
        """Whether it is as it will stay."""
        return self.state == CONVERGED


def margin(theirs: Published) -> float:
    """Return how far from a published number another may be and count as the same.

    >>> margin(Published(11.48, 0.81)), margin(Published(1000))
    (0.81, 250.0)
    """
    return MARGIN * theirs.value if theirs.spread is None else theirs.spread


def verdict(
    block: Block, ours: Measured, theirs: Published, *, settled: float | None = None, count: bool = False
) -> str:
    """Return the verdict on a number of `block`, a count of episodes or a return; `RULE` says it in words.

    `settled` is the episode by which the paper's curve was at its highest, where it says so.
    """
    value, off = ours.estimate.value, ours.estimate.value - theirs.value
    if not ours.converged:
        if count and off <= margin(theirs):  # the highest is still to come: it is a lower bound
            return OPEN
        if not count and (settled is None or settled > ours.episodes):
            return OPEN
    near = abs(off) <= margin(theirs)
    if block == LITERAL:
        return REPRODUCED if near else NOT_REPRODUCED
    if not count and value >= (1 - NEAR) * ours.optimal:
        return OPTIMUM
    return AS_PUBLISHED if near else BETTER if (off < 0) == count else WORSE


@lru_cache(maxsize=256)
def _measured(
    statistic: Callable[[Floats], Estimate], results: Results, episodes: int, labels: tuple[tuple[str, str], ...]
) -> Measured:
    """Measure once what tables, tallies and claims all show: intervals of counts take a while."""
    pick = dict(labels)
    values, optimal = results.array("value", **pick), float(results.array("optimal", **pick).mean())
    return Measured(statistic(values), convergence(values, optimal, episodes), optimal, episodes)


@dataclass(frozen=True, kw_only=True, eq=False)
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
    settled: Mapping[str, Mapping[Any, Published]]
    """The episodes by which the paper's curves were at their highest, where it prints them."""
    statistic: Callable[[Floats], Estimate]
    """The number of an agent, from its values (seeds, episodes)."""
    digits: int
    count: bool = False
    """Whether it counts episodes; else it is a return."""

    def tables(self, played: Played[PaperSize]) -> list[Table]:
        """Return a table for each block: the measured numbers, each beside the published one with a verdict."""
        return [self._table(block, played) for block in self.runs]

    def cells(self, played: Played[PaperSize], block: Block) -> dict[str, list[Cell]]:
        """Return the cells of every agent, one a column."""
        results = played.results[self.runs[block]]
        return {
            agent: [
                self.cell(block, agent, column, self.measured(results, played.size.episodes, agent=agent, **pick))
                for column, (_, pick) in self.columns.items()
            ]
            for agent in results.agents
        }

    def measured(self, results: Results, episodes: int, **pick: str) -> Measured:
        """Return the number of one agent in one column."""
        return _measured(self.statistic, results, episodes, tuple(pick.items()))

    def _table(self, block: Block, played: Played[PaperSize]) -> Table:
        return Table(
            id=f"{self.id}-{block}",
            title=f"{self.title}, {BLOCK_NAMES[block]}",
            caption=self.caption,
            columns=["Agent", *(heading for heading, _ in self.columns.values())],
            rows=[[name_of(agent), *cells] for agent, cells in self.cells(played, block).items()],
            block=block,
            prominent=True,
        )

    def tally(self, played: Played[PaperSize]) -> str:
        """Return how many numbers of each block got which verdict, as a sentence."""
        told = []
        for block in self.runs:
            cells = self.cells(played, block)
            counts = Counter(cell.verdict for row in cells.values() for cell in row if cell.verdict is not None)
            words = {one: one.replace("reaches", "reach") if counts[one] > 1 else one for one in VERDICTS}
            listed = ", ".join(f"{counts[one]} {words[one]}" for one in VERDICTS if counts[one])
            told.append(f"{block}: of {counts.total()} numbers {listed}")
        return f"{self.title}, {'; '.join(told)}."

    def cell(self, block: Block, agent: str, column: Any, ours: Measured) -> Cell:
        """Return the number of `agent` beside the published one, judged."""
        found, state = ours.estimate, ours.state
        note = "" if ours.converged else f"{state}: at least" if self.count and state == "still rising" else state
        cell = Cell(value=found.value, low=found.low, high=found.high, digits=self.digits, note=note)
        if agent not in self.published:
            return replace(cell, note=", ".join(part for part in ("not in the paper", note) if part))
        theirs, settled = self.published[agent][column], self.settled.get(agent, {}).get(column)
        judged = verdict(block, ours, theirs, settled=None if settled is None else settled.value, count=self.count)
        return replace(cell, published=theirs.value, published_spread=theirs.spread, verdict=judged)

    def alone(self, experiment: str, results: Results, pick: Mapping[str, str]) -> Cell:
        """Return the number of one agent in an experiment, beside the published one if there is one."""
        ours = self.measured(results, int(results.episodes[-1]), **pick)
        column = next((name for name, (_, where) in self.columns.items() if where.items() <= pick.items()), None)
        block = next((block for block, name in self.runs.items() if name == experiment), None)
        if column is None or block is None:
            found = ours.estimate
            return Cell(value=found.value, low=found.low, high=found.high, digits=self.digits, note=ours.state)
        return self.cell(block, pick["agent"], column, ours)
