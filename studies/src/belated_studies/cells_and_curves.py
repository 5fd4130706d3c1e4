"""Shared by the artefacts of all studies: names, cells, curves, and the line fitted to regret against the delay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from belated._util.plot_style import thin
from belated.agents._wrapper import describe
from belated.evaluation import Estimate, bootstrap, mean_interval, upon_convergence
from belated.runner import Results
from belated.types import Algorithm, Floats, Ints
from belated_studies.reports.document import Block, Cell, Series, Table
from belated_studies.study import Played, S

#: Names of agents in the reports.
NAMES = {
    "psvi": "Delayed-PSVI",
    **{f"psvi-{sigma}": f"Delayed-PSVI (σ = {sigma})" for sigma in (0.3, 0.2, 0.1)},
    "lpsvi": "Delayed-LPSVI",
    "lpsvi-plain": "Delayed-LPSVI (plain chain)",
    "phe": "LSVI-PHE, perturb and solve",
    "ucbvi": "Delayed-UCBVI",
    "weighted-psvi": "Delayed-PSVI with variance weights",
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
    **{f"lazy-{alpha}": f"lazy, α = {alpha}" for alpha in (1, 4, 16)},
}


def name_of(agent: str) -> str:
    """Return the display name of the agent with the label `agent`, by default the label."""
    return NAMES.get(agent, agent)


def cell(estimate: Estimate, digits: int = 2, *, verdict: str | None = None) -> Cell:
    """Return an estimate as a cell."""
    return Cell(value=estimate.value, low=estimate.low, high=estimate.high, digits=digits, verdict=verdict)


def converged(results: Results, **pick: str) -> Estimate:
    """Return the value upon convergence of one agent."""
    return upon_convergence(results.array("value", **pick)).estimate


def final_regret(results: Results, **pick: str) -> Floats:
    """Return the cumulative regret of each seed at the end."""
    return results.regret(**pick)[:, -1]


def regret_cell(results: Results, **pick: str) -> Cell:
    """Return mean cumulative regret at the end with its interval over seeds."""
    return cell(mean_interval(final_regret(results, **pick)), 0)


def band_series(name: str, episodes: Ints | Floats, curves: Floats, *, dashed: bool = False) -> Series:
    """Return the mean over seeds of `curves` (seeds, rows) with its bootstrap band, thinned for drawing."""
    chosen = thin(curves.shape[1])
    band = bootstrap(curves[:, chosen])
    return Series(
        name=name, x=episodes[chosen].astype(np.float64), y=band.value, low=band.low, high=band.high, dashed=dashed
    )


def regret_series(results: Results, agent: str, name: str = "", *, dashed: bool = False, **pick: str) -> Series:
    """Return the curve of cumulative regret of one agent, under its own name or another."""
    return band_series(name or name_of(agent), results.episodes, results.regret(agent=agent, **pick), dashed=dashed)


class Line(NamedTuple):
    """Regret = a + b·E[τ], fitted per seed."""

    at_zero: Estimate
    """a: regret without delay."""
    slope: Estimate
    """b: regret per unit of mean delay."""
    deviation: float
    """The maximum distance of a mean from the line through the means, relative to their range."""

    def cells(self, digits: int = 3) -> list[Cell]:
        """Return the line as cells of a table; `digits` are those of the slope."""
        return [cell(self.at_zero, 0), cell(self.slope, digits), Cell(value=100 * self.deviation, digits=0)]


def fit_line(means: Sequence[float], regret: Floats) -> Line:
    """Fit a line to each row of `regret`, shape (seeds, means).

    >>> line = fit_line([0, 10, 20], np.array([[10.0, 30.0, 50.0], [12.0, 32.0, 52.0]]))
    >>> line.at_zero.value, line.slope.value, line.deviation
    (11.0, 2.0, 0.0)
    """
    x = np.array(means, dtype=np.float64)
    fits = np.array([np.polyfit(x, row, 1) for row in regret])
    curve = regret.mean(axis=0)
    fitted = np.polyval(np.polyfit(x, curve, 1), x)
    deviation = float(np.abs(curve - fitted).max() / max(np.ptp(curve), 1e-12))
    return Line(mean_interval(fits[:, 1]), mean_interval(fits[:, 0]), deviation)


def against_delay(results: Results, means: Sequence[int], agent: str, **pick: str) -> tuple[Series, Line]:
    """Return final regret against the mean delay, with intervals over seeds, and the line through it.

    The distribution of mean m has the label `mean-m`.
    """
    columns = [final_regret(results, agent=agent, delay=f"mean-{mean}", **pick) for mean in means]
    found = [mean_interval(column) for column in columns]
    y, low, high = (np.array([getattr(one, part) for one in found]) for part in ("value", "low", "high"))
    series = Series(name=name_of(agent), x=np.array(means, dtype=np.float64), y=y, low=low, high=high)
    return series, fit_line(means, np.stack(columns, axis=1))


def settings_text(agent: Algorithm) -> str:
    """Return the settings of an agent as one line.

    >>> from belated import EpsilonGreedy
    >>> settings_text(EpsilonGreedy(epsilon=0.123456))
    'ridge 1, shared False, epsilon 0.1235'
    """
    values = describe(agent)
    if not isinstance(values, Mapping):  # a third-party algorithm is shown by its repr
        return str(values)
    return ", ".join(
        f"{name} {_written(value)}" for name, value in values.items() if name != "algorithm" and value is not None
    )


def _written(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else f"{value}"


def settings_table(
    played: Played[S],
    name: str,
    experiments: Sequence[str] | Mapping[Block, str],
    caption: str = "As played.",
) -> Table:
    """Return the settings of every agent of `experiments`, each once, or once per block."""
    blocks = experiments.items() if isinstance(experiments, Mapping) else [(None, one) for one in experiments]
    rows: dict[tuple[str, ...], str] = {}
    for block, experiment in blocks:
        for label, agent in played.experiments[experiment].agents.items():
            key = (name_of(label),) if block is None else (block, name_of(label))
            rows.setdefault(key, settings_text(agent))
    columns = ["Agent", "Settings"]
    if isinstance(experiments, Mapping):
        columns = ["Block", *columns]
    return Table(
        id=name, title="Settings", caption=caption, columns=columns, rows=[[*key, text] for key, text in rows.items()]
    )
