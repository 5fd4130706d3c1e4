"""How wide draws must be to be optimistic, against what the theorem asks for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

import numpy as np

from belated.algorithms import DelayedPSVI
from belated.reports.document import Chart, Section, Series
from belated.studies.lemmas.watch import watch_all
from belated.studies.lemmas.worlds import DELTA, SMALL_EPISODES, WORLDS, Size, forewarned
from belated.studies.study import Artefact, Measurement, Played


class Width(NamedTuple):
    """How often M draws of width ν are optimistic."""

    draws: int
    scale: float
    runs: float
    """The share of runs that are so throughout."""
    values: float
    """The share of single action values."""


def measure(size: Size) -> Iterator[Width]:
    """Yield widths up to the one that the theorem asks for, with two draws and with as many as it asks for."""
    with forewarned():
        asked = DelayedPSVI.from_theory(WORLDS[0].problem, SMALL_EPISODES, DELTA)
    for draws in (2, asked.draws):
        for scale in np.geomspace(0.1, asked.scale, 13).tolist():
            runs = watch_all(DelayedPSVI(draws=draws, scale=scale), size.part(3))
            whole, single = np.mean([run.gap >= 0 for run in runs]), np.mean([run.optimistic for run in runs])
            yield Width(draws, scale, float(whole), float(single))


WIDTHS = Measurement[Size](name="widths", kind=Width, measure=measure)


def by_draws(played: Played[Size]) -> dict[int, list[Width]]:
    """Return the widths that were measured for each number of draws."""
    return {draws: list(each) for draws, each in groupby(played.measured[WIDTHS.name], lambda width: width.draws)}


def section(played: Played[Size]) -> Section:
    """Return the share that is optimistic against the width."""
    series = []
    for draws, widths in by_draws(played).items():
        _, x, runs, values = np.array(widths).T
        series.append(Series(name=f"M = {draws}: runs", x=x, y=runs))
        series.append(Series(name=f"M = {draws}: single action values", x=x, y=values))
    series.append(Series(name="promised: runs", x=x, y=np.full(x.size, 1 - DELTA / 2), dashed=True))
    chart = Chart(
        id="lemmas-widths",
        title="How wide must draws be to be optimistic?",
        caption=(
            "The share with Q ≥ Q*: of runs, throughout, and of single action values. The theorem asks for the largest "
            "width shown."
        ),
        x_label="width of the draws, ν",
        y_label="share with Q ≥ Q*",
        series=series,
        log_x=True,
    )
    return Section(id="widths", title="Width", charts=[chart])


def findings(played: Played[Size]) -> list[str]:
    """Return from which width on all runs are optimistic."""
    told = []
    for draws, widths in by_draws(played).items():
        enough, asked = [width.scale for width in widths if width.runs == 1.0], widths[-1].scale
        told.append(
            f"With M = {draws} all runs are optimistic throughout from a width of {enough[0]:.2g} on; "
            f"the theorem asks for {asked:.3g}."
            if enough
            else f"With M = {draws} no width up to {asked:.3g} makes all runs optimistic throughout."
        )
    return told


ARTEFACT = Artefact(id="widths", order=2, section=section, measurements=[WIDTHS], findings=findings)
