"""Rows that nobody played: an artefact made of them must show the numbers that were put in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from belated.runner import Experiment, Results, Run
from belated_studies.reports.document import Cell, Section
from belated_studies.study import Artefact, Played, S

OPTIMAL = 5.0


def played(
    artefact: Artefact[S],
    size: S,
    regret: Callable[[Run], float],
    *,
    value: Callable[[Run], float] = lambda run: 1.0,
    measured: Mapping[str, Sequence[Any]] | None = None,
    rows: int = 10,
) -> Played[S]:
    """Return what `artefact` is made from if every run of it ends with `regret` of it and has `value` throughout."""
    experiments = {one.name: one for one in artefact.experiments(size)}
    results = {name: _results(one, rows, regret, value) for name, one in experiments.items()}
    return Played(size, experiments, results, measured or {})


def _results(
    experiment: Experiment, rows: int, regret: Callable[[Run], float], value: Callable[[Run], float]
) -> Results:
    episodes = np.arange(rows)
    return Results(
        pl.concat(
            pl.DataFrame(
                {
                    "environment": run.environment_label,
                    "agent": run.agent_label,
                    "delay_distribution": run.delay_label,
                    "seed": run.seed,
                    "episode": episodes,
                    "value": np.full(rows, value(run)),
                    "optimal": OPTIMAL,
                    "regret": regret(run) * (episodes + 1) / rows,
                    "sampled_return": np.full(rows, value(run)),
                }
            )
            for run in experiment.runs()
        )
    )


def table(section: Section, name: str) -> list[list[str | float | None]]:
    """Return the rows of the table called `name`, of each cell its number."""
    (found,) = [each for each in section.tables if each.id == name]
    return [[entry.value if isinstance(entry, Cell) else entry for entry in row] for row in found.rows]
