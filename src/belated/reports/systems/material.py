"""What the study of systems is made from, and small pieces that its sections share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from belated.evaluation import Estimate, bootstrap, mean_interval
from belated.experiments.systems import Size
from belated.reports.document import Cell, Series, Table
from belated.reports.paper.material import settings_text
from belated.runner import Results
from belated.studies.pace import Pace
from belated.types import Floats

#: How agents are called in the report.
NAMES = {
    "psvi": "Delayed-PSVI",
    "lpsvi": "Delayed-LPSVI",
    "phe": "LSVI-PHE, perturb and solve",
    "ucbvi": "Delayed-UCBVI",
    "tabular-ucbvi": "tabular UCBVI, active",
    "multi-batch": "multi-batch around UCBVI",
    "pslb": "Delayed-PSLB",
    "pslb-langevin": "Delayed-PSLB, Langevin",
    "ofu": "Delayed OFU",
    "ofu-logistic": "Delayed OFU, logistic",
    "otf-linucb": "OTFLinUCB",
    "otf-lints": "OTFLinTS",
    "qpm-d": "QPM-D around PSLB",
    "bold": "BOLD around PSLB",
    "oppo": "Delayed OPPO",
    "dapo": "Delayed DAPO",
    "random": "random",
    "active": "active",
    **{f"lazy-{alpha}": f"lazy, α = {alpha}" for alpha in (1, 4, 16)},
}


def name_of(agent: str) -> str:
    """Return how `agent` is called in the report."""
    return NAMES.get(agent, agent)


@dataclass(frozen=True)
class Material:
    """Rows of the experiments that were played, how long each took, and how long an episode takes."""

    size: Size
    results: Mapping[str, Results]
    seconds: Mapping[str, float]
    settings: Mapping[str, Mapping[str, dict[str, Any]]]
    paces: Mapping[str, Pace] = field(default_factory=dict)


def cell(estimate: Estimate, digits: int = 0) -> Cell:
    """Return an estimate as a cell."""
    return Cell(value=estimate.value, low=estimate.low, high=estimate.high, digits=digits)


def final_regret(results: Results, **pick: str) -> Floats:
    """Return the cumulative regret of each seed at the end."""
    return results.regret(**pick)[:, -1]


def regret_cell(results: Results, **pick: str) -> Cell:
    """Return mean cumulative regret at the end with its interval over seeds."""
    return cell(mean_interval(final_regret(results, **pick)))


def curve(name: str, episodes: Floats, curves: Floats, points: int = 200) -> Series:
    """Return the mean over seeds of `curves` (seeds, rows) with its bootstrap band, thinned for drawing."""
    chosen = np.unique(np.linspace(0, episodes.size - 1, points).round().astype(np.int64))
    band = bootstrap(curves[:, chosen])
    return Series(name=name, x=episodes[chosen], y=band.value, low=band.low, high=band.high)


def regret_curve(results: Results, agent: str, **pick: str) -> Series:
    """Return the curve of cumulative regret of one agent."""
    return curve(name_of(agent), results.episodes, results.regret(agent=agent, **pick))


def against(name: str, x: Sequence[float], columns: Sequence[Floats]) -> Series:
    """Return the means of `columns`, each of all seeds, against `x`, with their intervals."""
    found = [mean_interval(column) for column in columns]
    y, low, high = (np.array([getattr(one, part) for one in found]) for part in ("value", "low", "high"))
    return Series(name=name, x=np.array(x, dtype=np.float64), y=y, low=low, high=high)


def settings_table(material: Material, name: str, experiments: Sequence[str]) -> Table:
    """Return the settings of every agent of `experiments`."""
    rows: dict[str, str] = {}
    for experiment in experiments:
        for agent, values in material.settings[experiment].items():
            rows.setdefault(name_of(agent), settings_text(values))
    return Table(
        id=name,
        title="Settings",
        caption="Everything that is not a default was searched for on other seeds, or follows from what was.",
        columns=["Agent", "Settings"],
        rows=[list(row) for row in rows.items()],
    )
