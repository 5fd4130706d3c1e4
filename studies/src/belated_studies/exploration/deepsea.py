"""DeepSea with randomised actions: bsuite's 21 sizes, and one of 100."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

import numpy as np

from belated.environments import GymEnvironment
from belated_studies.exploration.problems import AUTO, Bar, Problem, Size, searched
from belated_studies.exploration.published import BEFORE
from belated_studies.exploration.rows import Line
from belated_studies.exploration.section import artefact
from belated_studies.reports.document import Chart, Series, Table
from belated_studies.study import Played

SIZES = tuple(range(10, 51, 2))
#: The size of each sea, by its label.
LABELS = {f"deepsea-{size}": size for size in SIZES}
LARGEST, LIMIT, PLAYED = 100, 5000, 2000
"""The largest size, the episode by which it must be solved, and the number of episodes played."""
SOURCE = "30 episodes for each row of cells, set before it was played; the regret: the earlier rule of AutoPSVI"
OTHERS = 10
"""The maximum size for agents that need a table, whose cost grows with the fourth power of the size."""


@cache
def problems() -> tuple[Problem, ...]:
    """Return the problems; the larger ones are simulators, since their tables would have 2·N⁴ numbers."""
    return (*(_sea(size, 30 * size, 30 * size) for size in SIZES), _sea(LARGEST, PLAYED, LIMIT))


def _sea(size: int, episodes: int, within: int) -> Problem:
    return Problem(
        name=f"DeepSea {size}",
        label=f"deepsea-{size}",
        make=partial(GymEnvironment, "belated/DeepSea-v0", size=size, randomised=True),
        episodes=episodes,
        bars={"poisson-10": Bar(within=within, before=BEFORE.get((f"deepsea-{size}", "poisson-10")), source=SOURCE)},
        target=0.9,
        optimum=1.0,
        published="bsuite: within 10,000 episodes" if size != LARGEST else "",
        small=size in (10, 20),
        **searched("deepsea", without=[] if size <= OTHERS else ["psvi", "phe", "ucbvi", "psrl", "epsilon-greedy"]),
    )


def by_size(played: Played[Size], found: Sequence[Line]) -> tuple[list[Table], list[Chart]]:
    """Return when each size was solved."""
    solved = {line.environment: line.solved_at for line in found if line.agent == AUTO}
    ends = [(size, solved.get(label)) for label, size in LABELS.items()]
    points = np.array([(size, at) for size, at in ends if at is not None], dtype=np.float64)
    if not len(points):
        return [], []
    x = points[:, 0]
    chart = Chart(
        id="deepsea-solved",
        title="DeepSea: the episode by which every seed had solved it",
        caption=f"Randomised actions, Poisson 10, {played.size.seeds} seeds; sizes that were not solved are missing.",
        x_label="size N",
        y_label="episode",
        series=[
            Series(name="AutoPSVI", x=x, y=points[:, 1]),
            Series(name="30·N", x=x, y=30 * x, dashed=True),
        ],
    )
    return [], [chart]


ARTEFACT = artefact(
    "deepsea",
    2,
    "DeepSea",
    [
        "Only one sequence of N moves reaches the treasure, and which action means right is drawn at random for every "
        "cell. Solved: a mean return of 0.9 over 100 episodes. Agents that need a table of all states play only the "
        "smallest size, since the table grows too large."
    ],
    problems,
    more=by_size,
    curves=False,
)
