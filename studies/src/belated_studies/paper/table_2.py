"""Table 2: returns upon convergence under three delays, |A| = 20."""

from __future__ import annotations

from typing import NamedTuple

from belated.evaluation import upon_convergence
from belated.runner import Experiment
from belated_studies.cells_and_curves import name_of, settings_table
from belated_studies.pace import pace
from belated_studies.paper import published
from belated_studies.paper.agents import trio, trio_and_plain
from belated_studies.paper.comparing import Comparison
from belated_studies.paper.setting import BLOCKS, DELAY_NAMES, DELAYS, LITERAL, PaperSize, experiment, synthetic
from belated_studies.reports.document import Block, Row, Section, Table
from belated_studies.study import Artefact, Measurement, Played

#: Of each block, the experiment.
RUNS = {block: f"table-2-{block}" for block in BLOCKS}

COMPARISON = Comparison(
    id="table-2",
    title="Table 2",
    caption="Average return upon convergence: mean over the last tenth of episodes, 95 % interval over seeds.",
    runs=RUNS,
    columns={delay: (DELAY_NAMES[delay], {"delay": delay}) for delay in DELAYS},
    published=published.RETURN_BY_DELAY,
    settled={
        agent: {"poisson": published.EPISODES_BY_SIZE["psvi-0.1" if agent == "psvi" else agent][40]}
        for agent in published.RETURN_BY_DELAY
    },
    statistic=lambda values: upon_convergence(values).estimate,
    digits=2,
)


class Pace(NamedTuple):
    """How long an episode takes an agent with the printed settings."""

    agent: str
    microseconds: float


def measure_pace(size: PaperSize) -> list[Pace]:
    """Return the time of an episode of each agent of the literal block, Poisson delays."""
    return [
        Pace(name, pace(synthetic(40), agent, DELAYS["poisson"], repeats=3, least_seconds=0.05).median)
        for name, agent in trio(LITERAL).items()
    ]


PACE = Measurement[PaperSize](name="pace", kind=Pace, measure=measure_pace)


def of_block(size: PaperSize, block: Block) -> Experiment:
    """Return the runs of one block."""
    return next(one for one in experiments(size) if one.name == RUNS[block])


def experiments(size: PaperSize) -> list[Experiment]:
    """Return the runs of both blocks."""
    return [experiment(name, size, trio_and_plain(block), delays=DELAYS) for block, name in RUNS.items()]


def section(played: Played[PaperSize]) -> Section:
    """Return a table of comparison for each block, and the spreads."""
    return Section(
        id="table-2",
        title="Table 2: returns under three delays",
        paragraphs=["Synthetic linear MDP, |A| = 20, d = 10, H = 20; the optimum is 11.96."],
        tables=[
            *COMPARISON.tables(played),
            _spreads(played),
            settings_table(played, "table-2-settings", RUNS),
        ],
    )


def _spreads(played: Played[PaperSize]) -> Table:
    rows: list[Row] = []
    for block, name in RUNS.items():
        results = played.results[name]
        for agent in results.agents:
            found = [upon_convergence(results.array("value", agent=agent, delay=delay)) for delay in DELAYS]
            shown = [
                f"±{one.spread_over_seeds:.2f} seeds, ±{one.spread_over_episodes:.2f} seeds × episodes" for one in found
            ]
            rows.append([block, name_of(agent), *shown])
    return Table(
        id="table-2-spreads",
        title="Table 2, spreads",
        caption=(
            "Standard deviations: the paper does not say what its ± is, so both candidates are printed. Of those of "
            "PSVI with the printed settings, only that over seeds and episodes is near the paper's 0.74 to 0.81."
        ),
        columns=["Block", "Agent", *(DELAY_NAMES[delay] for delay in DELAYS)],
        rows=rows,
    )


def findings(played: Played[PaperSize]) -> list[str]:
    """Tell how many returns of each block were reproduced."""
    return [COMPARISON.tally(played)]


ARTEFACT = Artefact(
    id="table-2",
    order=3,
    experiments=experiments,
    measurements=[PACE],
    section=section,
    findings=findings,
    cell=COMPARISON.alone,
)
