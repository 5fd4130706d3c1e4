"""Table 4: returns upon convergence, for growing action spaces."""

from __future__ import annotations

from dataclasses import replace

from belated_studies.cells_and_curves import settings_table
from belated_studies.paper import published, table_2, table_3
from belated_studies.paper.setting import PaperSize
from belated_studies.reports.document import Section
from belated_studies.study import Artefact, Played

COMPARISON = replace(
    table_2.COMPARISON,
    id="table-4",
    title="Table 4",
    runs=table_3.RUNS,
    columns=table_3.COMPARISON.columns,
    published=published.RETURN_BY_SIZE,
    settled=published.EPISODES_BY_SIZE,
)


def section(played: Played[PaperSize]) -> Section:
    """Return a table of comparison for each block."""
    return Section(
        id="table-4",
        title="Table 4: returns for growing action spaces",
        paragraphs=["The same runs as Table 3."],
        tables=[*COMPARISON.tables(played), settings_table(played, "table-4-settings", table_3.RUNS)],
    )


def findings(played: Played[PaperSize]) -> list[str]:
    """Tell how many returns of each block were reproduced."""
    return [COMPARISON.tally(played)]


ARTEFACT = Artefact(
    id="table-4",
    order=5,
    experiments=table_3.experiments,
    section=section,
    findings=findings,
    cell=COMPARISON.alone,
)
