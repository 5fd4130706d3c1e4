"""What the paper's report is made from: the rows of its experiments, and small pieces that several sections share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from belated.evaluation import Estimate, bootstrap
from belated.experiments.paper import Size
from belated.experiments.timing import Timing
from belated.reports.document import Cell, Series, Table, thin
from belated.reports.paper.verdicts import close, verdict
from belated.runner import Results
from belated.studies.paper.published import Published
from belated.types import Floats

#: How agents are called in the report.
NAMES = {
    "psvi": "Delayed-PSVI",
    "psvi-0.3": "Delayed-PSVI (σ = 0.3)",
    "psvi-0.2": "Delayed-PSVI (σ = 0.2)",
    "psvi-0.1": "Delayed-PSVI (σ = 0.1)",
    "lpsvi": "Delayed-LPSVI",
    "lpsvi-plain": "Delayed-LPSVI (plain chain)",
    "ucbvi": "Delayed-UCBVI",
    "pslb": "Delayed-PSLB",
}
DELAY_NAMES = {
    "multinomial": "Multinomial {10, 20, 30}",
    "poisson": "Poisson, E[τ] = 50",
    "pareto": "Pareto, shape 1, scale 500",
    "lomax": "Lomax, shape 1, scale 500",
}
BLOCK_NAMES = {
    "literal": "literal: the paper's printed hyper-parameters",
    "tuned": "tuned: the best of one search of equal size for each agent",
}
#: Episodes averaged in a curve of values.
WINDOW = 50


@dataclass(frozen=True)
class Material:
    """Rows of the experiments that were played, and how long each took."""

    size: Size
    results: Mapping[str, Results]
    seconds: Mapping[str, float]
    settings: Mapping[str, Mapping[str, dict[str, Any]]]
    """Of each experiment, the settings of each agent."""
    timings: list[Timing] = field(default_factory=list)


def moving_average(curves: Floats, window: int = WINDOW) -> Floats:
    """Return the trailing mean over at most `window` episodes along the last axis.

    >>> moving_average(np.array([[0.0, 2.0, 4.0]]), window=2).tolist()
    [[0.0, 1.0, 3.0]]
    """
    sums = np.cumsum(curves, axis=-1)
    sums[..., window:] -= np.cumsum(curves, axis=-1)[..., :-window]
    return sums / np.minimum(np.arange(1, curves.shape[-1] + 1), window)


def band_series(name: str, curves: Floats) -> Series:
    """Return the mean over seeds of `curves` (seeds, episodes) with its bootstrap band, thinned for drawing."""
    chosen = thin(curves.shape[1])
    band = bootstrap(curves[:, chosen])
    return Series(name=name, x=(chosen + 1).astype(np.float64), y=band.value, low=band.low, high=band.high)


def comparison(
    *,
    name: str,
    title: str,
    caption: str,
    columns: Mapping[Any, str],
    measured: Mapping[str, Mapping[Any, Estimate]],
    published: Mapping[str, Mapping[Any, Published]],
    tolerance: float,
    digits: int,
    more_is_better: bool,
) -> Table:
    """Return a table of agents by columns in which every number stands beside the published one, with a verdict."""
    compared = [agent for agent in measured if agent in published]

    def cell(agent: str, column: Any) -> Cell:
        estimate = measured[agent][column]
        theirs = published[agent].get(column) if agent in published else None
        judged, note = None, ""
        if theirs is not None:
            better = (estimate.value > theirs.value) == more_is_better
            note = "better than published" if better and not close(estimate.value, theirs.value, tolerance) else ""
            judged = verdict(
                agent,
                {other: measured[other][column].value for other in compared},
                {other: published[other][column].value for other in compared},
                tolerance,
            )
        return Cell(
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            published=None if theirs is None else theirs.value,
            published_spread=None if theirs is None else theirs.spread,
            verdict=judged,
            digits=digits,
            note=note,
        )

    rows: list[list[str | Cell]] = [
        [NAMES.get(agent, agent), *(cell(agent, column) for column in columns)] for agent in measured
    ]
    return Table(id=name, title=title, caption=caption, columns=["Agent", *columns.values()], rows=rows)


def settings_text(values: Mapping[str, Any]) -> str:
    """Return settings as one line.

    >>> settings_text({"algorithm": "psvi", "scale": 63.245553, "noise": 0.1})
    'scale 63.25, noise 0.1'
    """
    parts = [
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in values.items()
        if name != "algorithm" and value is not None
    ]
    return ", ".join(parts)
