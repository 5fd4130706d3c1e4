"""The stated rule by which a measured number is compared with a published one, and the tables that do so.

* **reproduced**: the measured number is within 5 % of the published one (25 % for a count of episodes).
* **ordering reproduced**: it is not, but the agent stands to every other agent of its column as it does in the paper.
  Agents whose published numbers are themselves within that tolerance of each other may come in either order.
* **not reproduced**: neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from belated.evaluation import Estimate
from belated.reports.document import Block, Cell, Table
from belated.studies.paper.published import Published
from belated.studies.paper.setting import BLOCK_NAMES
from belated.studies.pieces import name_of

RULE = (
    "A number is **reproduced** if it is within 5 % of the published one (25 % for counts of episodes). Otherwise its "
    "**ordering is reproduced** if the agent stands to every other agent of its column as in the paper, where agents "
    "whose published numbers are within the same tolerance of each other may come in either order. "
    "Otherwise it is **not reproduced**."
)


def close(left: float, right: float, tolerance: float) -> bool:
    """Return whether `left` is within `tolerance` of `right`, relative to `right`.

    >>> close(11.0, 11.5, 0.05), close(11.5, 11.0, 0.01)
    (True, False)
    """
    return abs(left - right) <= tolerance * abs(right)


def verdict(agent: str, measured: Mapping[str, float], published: Mapping[str, float], tolerance: float) -> str:
    """Return the verdict on `agent`, given the numbers of all agents of its column.

    >>> published = {"psvi": 11.5, "lpsvi": 11.4, "ucbvi": 7.2}
    >>> verdict("ucbvi", {"psvi": 11.96, "lpsvi": 11.9, "ucbvi": 9.0}, published, 0.05)
    'ordering reproduced'
    >>> verdict("ucbvi", {"psvi": 8.0, "lpsvi": 11.9, "ucbvi": 9.0}, published, 0.05)
    'not reproduced'
    """
    if close(measured[agent], published[agent], tolerance):
        return "reproduced"
    for other in published:
        theirs = published[agent] - published[other]
        ours = measured[agent] - measured[other]
        if not close(published[agent], published[other], tolerance) and theirs * ours <= 0:
            return "not reproduced"
    return "ordering reproduced"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A published table of agents by columns, and how ours are compared with it."""

    title: str
    caption: str
    columns: Mapping[Any, str]
    """What a column is, and its heading."""
    published: Mapping[str, Mapping[Any, Published]]
    tolerance: float
    digits: int
    more_is_better: bool

    def table(self, name: str, block: Block, measured: Mapping[str, Mapping[Any, Estimate]]) -> Table:
        """Return the measured numbers of `block`, each beside the published one with a verdict."""
        return Table(
            id=name,
            title=f"{self.title}, {BLOCK_NAMES[block]}",
            caption=self.caption,
            columns=["Agent", *self.columns.values()],
            rows=[[name_of(agent), *(self._cell(agent, c, measured) for c in self.columns)] for agent in measured],
            block=block,
            prominent=True,
        )

    def _cell(self, agent: str, column: Any, measured: Mapping[str, Mapping[Any, Estimate]]) -> Cell:
        found = measured[agent][column]
        if agent not in self.published:
            return Cell(value=found.value, low=found.low, high=found.high, digits=self.digits)
        theirs = self.published[agent][column]
        better = (found.value > theirs.value) == self.more_is_better
        compared = [other for other in measured if other in self.published]
        return Cell(
            value=found.value,
            low=found.low,
            high=found.high,
            published=theirs.value,
            published_spread=theirs.spread,
            verdict=verdict(
                agent,
                {other: measured[other][column].value for other in compared},
                {other: self.published[other][column].value for other in compared},
                self.tolerance,
            ),
            digits=self.digits,
            note="better than published" if better and not close(found.value, theirs.value, self.tolerance) else "",
        )
