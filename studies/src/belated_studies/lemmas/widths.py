"""How wide draws must be to be optimistic, against what the theorem asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from belated.agents import DelayedPSVI
from belated_studies.lemmas.watch import watch_all
from belated_studies.lemmas.worlds import DELTA, SMALL_EPISODES, WORLDS, Size, forewarned
from belated_studies.reports.document import Chart, Section, Series
from belated_studies.study import Artefact, Measurement, Played


class Widths(NamedTuple):
    """How often M draws are optimistic, for each width ν."""

    draws: int
    scales: list[float]
    runs: list[float]
    """The share of runs that are so throughout."""
    values: list[float]
    """The share of single action values."""


def measure(size: Size) -> Iterator[Widths]:
    """Yield widths up to the one that the theorem asks for, with two draws and with as many as it asks for."""
    with forewarned():
        asked = DelayedPSVI.from_theory(WORLDS[0].problem, SMALL_EPISODES, DELTA)
    scales = np.geomspace(0.1, asked.scale, 13).tolist()
    for draws in (2, asked.draws):
        watched = [watch_all(DelayedPSVI(draws=draws, scale=scale), size.part(3)) for scale in scales]
        runs = [float(np.mean([run.gap >= 0 for run in each])) for each in watched]
        yield Widths(draws, scales, runs, [float(np.mean([run.optimistic for run in each])) for each in watched])


WIDTHS = Measurement[Size](name="widths", kind=Widths, measure=measure)


def section(played: Played[Size]) -> Section:
    """Return the share that is optimistic against the width."""
    series = []
    for draws, scales, *shares in played.measured[WIDTHS.name]:
        x = np.array(scales)
        for of, share in zip(("runs", "single action values"), shares, strict=True):
            series.append(Series(name=f"M = {draws}: {of}", x=x, y=np.array(share)))
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
    for draws, scales, runs, _ in played.measured[WIDTHS.name]:
        enough = [scale for scale, share in zip(scales, runs, strict=True) if share == 1.0]
        told.append(
            f"With M = {draws} all runs are optimistic throughout from a width of {enough[0]:.2g} on; "
            f"the theorem asks for {scales[-1]:.3g}."
            if enough
            else f"With M = {draws} no width up to {scales[-1]:.3g} makes all runs optimistic throughout."
        )
    return told


ARTEFACT = Artefact(id="widths", order=2, section=section, measurements=[WIDTHS], findings=findings)
