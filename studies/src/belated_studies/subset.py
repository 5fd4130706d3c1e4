"""Some cells of a study's artefacts: one agent, one delay distribution or one environment, also with other seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from belated._util.validate import choice
from belated.errors import InvalidInputError
from belated.evaluation import mean_interval, upon_convergence
from belated.runner import Experiment, Results, run_experiment
from belated_studies.cells_and_curves import cell, final_regret, name_of
from belated_studies.produce import forget
from belated_studies.reports.document import Cell, Document, Row, Section, Table
from belated_studies.study import Artefact, S, Study

COLUMNS = ("Runs", "Environment", "Agent", "Delay", "Seeds", "Measured", "Regret")
LABELS = 5
"""So many of them tell which cell it is."""


def play_cells(
    study: Study[S],
    size: S,
    pick: Mapping[str, str | None],
    *,
    out: str | Path,
    only: Sequence[str],
    seeds: int | Sequence[int] | None = None,
    episodes: int | None = None,
    jobs: int | None = None,
    resume: bool = True,
    progress: bool = True,
) -> tuple[Document, list[dict[str, Any]]]:
    """Play the runs of the artefacts called `only` that have the labels in `pick`; return a table of their numbers.

    `pick` has the fields agent, delay and environment; None stands for all. The rows are kept with those of the study,
    which does not look at other seeds than its own.
    """
    size = size.resized(episodes=episodes)
    if not only:
        raise InvalidInputError(
            f"cells are those of an artefact, named with --only: {', '.join(with_cells(study, size))}"
        )
    sections, lines = [], []
    for artefact in study.artefacts(only):
        chosen = _chosen(study, artefact, size, pick, seeds)
        rows: list[Row] = []
        for experiment in chosen:
            folder = Path(out) / "rows" / size.folder
            if not resume:
                forget(experiment, folder)
            results = run_experiment(experiment, folder=folder, jobs=jobs, progress=progress)
            for row, line in _rows(artefact, experiment, results):
                rows.append(row)
                lines.append({"artefact": artefact.id, **line})
        sections.append(Section(id=artefact.id, title=artefact.id, tables=[_table(artefact, chosen[0].episodes, rows)]))
    return Document(title=f"Cells of {study.title}", summary=[], facts={}, sections=sections), lines


def with_cells(study: Study[S], size: S) -> list[str]:
    """Return the ids of the artefacts that have cells: those that play runs."""
    return [artefact.id for artefact in study.artefacts() if artefact.experiments(size)]


def _chosen(
    study: Study[S], artefact: Artefact[S], size: S, pick: Mapping[str, str | None], seeds: Any
) -> list[Experiment]:
    """Return the part of each experiment of an artefact that has the labels in `pick`, with other seeds if given."""
    experiments = artefact.experiments(size)
    if not experiments:
        known = ", ".join(with_cells(study, size))
        raise InvalidInputError(f"{artefact.id} plays no runs, so it has no cells; those that have are {known}")
    fields = {"agent": "agents", "delay": "delays", "environment": "environments"}
    for name, field in fields.items():
        if pick.get(name) is not None:
            labels = dict.fromkeys(label for one in experiments for label in getattr(one, field))
            choice(f"the {name} of {artefact.id}", pick[name], labels)
    parts = []
    for one in experiments:
        kept: dict[str, Any] = {
            field: {label: thing for label, thing in getattr(one, field).items() if pick.get(name) in (None, label)}
            for name, field in fields.items()
        }
        if all(kept.values()):
            parts.append(replace(one, **kept, seeds=one.seeds if seeds is None else seeds))
    if not parts:
        asked = ", ".join(f"{name} {label}" for name, label in pick.items() if label is not None)
        raise InvalidInputError(f"{artefact.id} has no cell with {asked} together")
    return parts


def _rows(artefact: Artefact[S], experiment: Experiment, results: Results) -> list[tuple[Row, dict[str, Any]]]:
    """Return a row of the table for each cell, and the same as plain values."""
    found = []
    for environment, delay, agent in (
        results.frame.select("environment", "delay_distribution", "agent").unique(maintain_order=True).iter_rows()
    ):
        pick = {"agent": agent, "delay": delay, "environment": environment}
        known = not np.isnan(results.array("value", **pick)).any()
        number, regret = Cell(value=None, note="unknown"), Cell(value=None, note="unknown")
        if artefact.cell is not None:
            number = artefact.cell(experiment.name, results, pick)
        elif known:
            number = cell(upon_convergence(results.array("value", **pick)).estimate)
        if known:
            regret = cell(mean_interval(final_regret(results, **pick)), 0)
        seeds = sorted({run.seed for run in experiment.runs()})
        row: Row = [experiment.name, environment, name_of(agent), delay, _listed(seeds), number, regret]
        told = {"value": number.value, "low": number.low, "high": number.high, "published": number.published}
        line = {"runs": experiment.name, **pick, "seeds": seeds, "episodes": experiment.episodes}
        whole = {**line, **told, "verdict": number.verdict, "regret": regret.value}
        found.append((row, {**whole, **artefact.line(results, pick)}))
    return found


def _listed(seeds: Sequence[int]) -> str:
    """Return seeds as one reads them.

    >>> _listed([100, 101, 102]), _listed([1, 5])
    ('100 to 102', '1, 5')
    """
    if len(seeds) > 1 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def _table(artefact: Artefact[S], episodes: int, rows: list[Row]) -> Table:
    """Return the table; what is the same in all rows is named in its title instead of in a column."""
    told = [i for i in range(LABELS) if len({str(row[i]) for row in rows}) == 1]
    same = [f"seeds {rows[0][i]}" if COLUMNS[i] == "Seeds" else str(rows[0][i]) for i in told]
    what = "as in the report" if artefact.cell else "mean over the last tenth of episodes"
    return Table(
        id=f"{artefact.id}-cells",
        title=", ".join([f"Cells of {artefact.id}, {episodes} episodes", *same]),
        caption=f"Measured: {what}; regret: cumulative, at the end; 95 % intervals over seeds.",
        columns=[name for i, name in enumerate(COLUMNS) if i not in told],
        rows=[[each for i, each in enumerate(row) if i not in told] for row in rows],
        prominent=True,
    )
