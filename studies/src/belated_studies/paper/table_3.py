"""Table 3: episodes to the highest expected return, for growing action spaces."""

from __future__ import annotations

import numpy as np

from belated.evaluation import Estimate, episodes_to_best, statistic_interval
from belated.runner import Experiment
from belated.types import Floats
from belated_studies.paper import published
from belated_studies.paper.agents import five
from belated_studies.paper.comparing import Comparison
from belated_studies.paper.setting import BLOCKS, PaperSize, experiment, synthetic
from belated_studies.reports.document import Section
from belated_studies.study import Artefact, Played

#: |S||A| of Tables 3 and 4, and the label of the world of each.
SIZES = {pairs: f"size-{pairs}" for pairs in published.SIZES}
#: Of each block, the experiment; Table 4 shows the same runs.
RUNS = {block: f"sizes-{block}" for block in BLOCKS}


def _to_best(values: Floats) -> Estimate:
    return statistic_interval(values, lambda curve: float(episodes_to_best(curve[np.newaxis])))


COMPARISON = Comparison(
    id="table-3",
    title="Table 3",
    caption=(
        "First episode at which the 50-episode moving average reaches 99 % of its own maximum, 95 % interval over "
        "seeds. A curve that still rises has its highest return later than counted."
    ),
    runs=RUNS,
    columns={pairs: (f"|S||A| = {pairs}", {"environment": world}) for pairs, world in SIZES.items()},
    published=published.EPISODES_BY_SIZE,
    settled=published.EPISODES_BY_SIZE,
    statistic=_to_best,
    digits=0,
    count=True,
)


def experiments(size: PaperSize) -> list[Experiment]:
    """Return the runs of both blocks."""
    worlds = {label: synthetic(pairs) for pairs, label in SIZES.items()}
    return [experiment(name, size, five(block), world=worlds) for block, name in RUNS.items()]


def section(played: Played[PaperSize]) -> Section:
    """Return a table of comparison for each block."""
    return Section(
        id="table-3",
        title="Table 3: episodes to the highest expected return",
        paragraphs=[
            "Synthetic linear MDP under Poisson delays, E[τ] = 50. An agent that never learns reaches its own low "
            "maximum early, so read this table together with Table 4.",
        ],
        tables=COMPARISON.tables(played),
    )


def findings(played: Played[PaperSize]) -> list[str]:
    """Tell how many counts of each block were reproduced."""
    return [COMPARISON.tally(played)]


ARTEFACT = Artefact(
    id="table-3", order=4, experiments=experiments, section=section, findings=findings, cell=COMPARISON.alone
)
