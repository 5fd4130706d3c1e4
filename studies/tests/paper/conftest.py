"""Rows made by hand for any artefact of the paper, and a short way to the cells of its tables."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from made import made

from belated_studies.paper.setting import FULL, PaperSize
from belated_studies.reports.document import Cell, Section
from belated_studies.study import Artefact, Played

#: A curve of 20 episodes that ends at 8, and one that still rises.
STEADY, RISING = [0.0] * 10 + [8.0] * 10, [float(i) for i in range(20)]


@pytest.fixture
def played() -> Callable[[Artefact[PaperSize]], Played[PaperSize]]:
    """Return what makes rows in which UCBVI still rises and all others end at 8; the optimum is 20."""

    def play(artefact: Artefact[PaperSize]) -> Played[PaperSize]:
        experiments = {one.name: one for one in artefact.experiments(FULL)}
        results = {
            name: made(
                {
                    (run.environment_label, run.delay_label, run.agent_label): [
                        RISING if run.agent_label == "ucbvi" else STEADY
                    ]
                    for run in experiment.runs()
                },
                optimal=20.0,
            )
            for name, experiment in experiments.items()
        }
        return Played(FULL, experiments, results)

    return play


@pytest.fixture
def cells() -> Callable[[Section, str], dict[str, list[Cell]]]:
    """Return what finds the cells of each row of a table, by what the row begins with."""

    def find(section: Section, table: str) -> dict[str, list[Cell]]:
        (found,) = (each for each in section.tables if each.id == table)
        return {str(row[0]): [entry for entry in row if isinstance(entry, Cell)] for row in found.rows}

    return find
