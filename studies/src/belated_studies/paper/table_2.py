"""Table 2: returns upon convergence under three delays, |A| = 20."""

from __future__ import annotations

from belated.evaluation import upon_convergence
from belated.runner import Experiment
from belated_studies.cells_and_curves import cell, converged, name_of, settings_table
from belated_studies.paper import published
from belated_studies.paper.agents import trio, trio_and_plain
from belated_studies.paper.comparing import RULE, Comparison
from belated_studies.paper.setting import BLOCKS, DELAY_NAMES, DELAYS, LOMAX, TUNED, PaperSize, experiment
from belated_studies.reports.document import Block, Row, Section, Table
from belated_studies.study import Artefact, Played

#: Of each block, the experiment.
RUNS = {block: f"table-2-{block}" for block in BLOCKS}

COMPARISON = Comparison(
    id="table-2",
    title="Table 2",
    caption="Average return upon convergence: mean over the last tenth of episodes.",
    runs=RUNS,
    columns={delay: (DELAY_NAMES[delay], {"delay": delay}) for delay in DELAYS},
    published=published.RETURN_BY_DELAY,
    statistic=lambda values: upon_convergence(values).estimate,
    tolerance=0.05,
    digits=2,
    more_is_better=True,
)


def of_block(size: PaperSize, block: Block) -> Experiment:
    """Return the runs of one block."""
    return next(one for one in experiments(size) if one.name == RUNS[block])


def experiments(size: PaperSize) -> list[Experiment]:
    """Return the runs of both blocks, and of the tuned agents under the other reading of Pareto."""
    blocks = [experiment(name, size, trio_and_plain(block), delays=DELAYS) for block, name in RUNS.items()]
    return [*blocks, experiment("table-2-lomax", size, trio(TUNED), delays={"lomax": LOMAX})]


def section(played: Played[PaperSize]) -> Section:
    """Return a table of comparison for each block, the spreads, and the other reading of Pareto."""
    return Section(
        id="table-2",
        title="Table 2: returns under three delays",
        paragraphs=["Synthetic linear MDP, |A| = 20, d = 10, H = 20; the optimum is 11.96.", RULE],
        tables=[
            *COMPARISON.tables(played),
            _spreads(played),
            _lomax(played),
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
        caption="Standard deviations: the paper does not say what its ± is, so both candidates are printed.",
        columns=["Block", "Agent", *(DELAY_NAMES[delay] for delay in DELAYS)],
        rows=rows,
    )


def _lomax(played: Played[PaperSize]) -> Table:
    results = played.results["table-2-lomax"]
    return Table(
        id="table-2-lomax",
        title="Table 2, the other reading of Pareto",
        caption="Tuned agents under the Lomax distribution of the same shape and scale, whose minimum is 0, not 500.",
        columns=["Agent", DELAY_NAMES["lomax"]],
        rows=[[name_of(agent), cell(converged(results, agent=agent))] for agent in results.agents],
    )


def findings(played: Played[PaperSize]) -> list[str]:
    """Tell how many returns of each block were reproduced."""
    return [COMPARISON.tally(played, block) for block in RUNS]


ARTEFACT = Artefact(
    id="table-2", order=3, experiments=experiments, section=section, findings=findings, cell=COMPARISON.alone
)
