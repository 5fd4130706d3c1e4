"""Table 4: returns upon convergence, for growing action spaces."""

from __future__ import annotations

from dataclasses import replace

from belated.reports.document import Section
from belated.studies.paper import published, table_2, table_3
from belated.studies.paper.comparing import Measured
from belated.studies.paper.setting import PaperSize
from belated.studies.paper.table_3 import RUNS, SIZES
from belated.studies.pieces import settings_table
from belated.studies.study import Artefact, Played

COMPARISON = replace(
    table_2.COMPARISON, title="Table 4", columns=table_3.COMPARISON.columns, published=published.RETURN_BY_SIZE
)


def section(played: Played[PaperSize]) -> Section:
    """Return a table of comparison for each block."""
    tables = []
    for block, name in RUNS.items():
        results = played.results[name]
        measured = {
            agent: {
                pairs: Measured.of(results, table_2.mean_at_end, agent=agent, environment=world)
                for pairs, world in SIZES.items()
            }
            for agent in results.agents
        }
        tables.append(COMPARISON.table(f"table-4-{block}", block, measured, episodes=played.size.episodes))
    return Section(
        id="table-4",
        title="Table 4: returns for growing action spaces",
        paragraphs=["The same runs as Table 3."],
        tables=[*tables, settings_table(played, "table-4-settings", RUNS)],
    )


ARTEFACT = Artefact(id="table-4", order=5, experiments=table_3.experiments, section=section)
