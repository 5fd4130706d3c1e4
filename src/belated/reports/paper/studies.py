"""Sections that go beyond the paper's plots: its claims on cost and on delay, its summary table, its open details."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from belated.evaluation import Estimate, episodes_to_best, growth_exponent, mean_interval
from belated.experiments.paper import MEAN_DELAYS
from belated.experiments.timing import HORIZON, VARIANTS, exponent
from belated.reports.document import Cell, Chart, Section, Series, Table
from belated.reports.paper.material import NAMES, Material
from belated.reports.paper.sections import estimate_cell, returns
from belated.studies.paper import published
from belated.types import Floats

#: Of each system of Table 1 that the library has: the experiment and the agent that measure it.
MEASURED = {
    "Howson et al. (2023b)": ("systems", "tabular-ucbvi"),
    "Yang et al. (2023)": ("systems", "multi-batch"),
    "Delayed-PSVI": ("table-2-tuned", "psvi"),
    "Delayed-LPSVI": ("table-2-tuned", "lpsvi"),
    "Delayed-PSLB": ("bandit", "pslb"),
}


def table_1(material: Material) -> Section:
    """The summary of bounds, with measured regret where the system exists."""
    rows: list[list[str | Cell]] = []
    for system in published.SYSTEMS:
        measured = Cell(value=None, note="on testbeds of its own: see `belated systems`")
        if system.name in MEASURED:
            experiment, agent = MEASURED[system.name]
            regret = material.results[experiment].regret(agent=agent, delay="poisson")[:, -1]
            measured = estimate_cell(mean_interval(regret), digits=0)
        rows.append([system.name, system.setting, system.exploration, system.bound, system.computation, measured])
    table = Table(
        id="table-1-systems",
        title="Table 1",
        caption=(
            "Bounds up to constants and logarithms, as the paper prints them. Measured: cumulative regret under "
            "Poisson delays with mean 50; MDPs on the synthetic MDP with |A| = 20, the bandit on a random linear "
            "bandit with 50 actions and d = 10. Delayed-PSVI and -LPSVI are tuned, -PSLB has the settings of tuned "
            "Delayed-PSVI; tabular UCBVI (Bernstein bonus times 0.002) and the multi-batch reduction around tuned "
            "UCBVI were not searched for their best settings."
        ),
        columns=["System", "Setting", "Exploration", "Regret bound", "Computation", "Measured regret"],
        rows=rows,
    )
    return Section(id="table-1", title="Table 1: systems and bounds", tables=[table])


def computation(material: Material) -> Section:
    """Time per episode against d, with fitted exponents."""
    timings = material.timings
    series = []
    for variant in VARIANTS:
        chosen = [timing for timing in timings if timing.variant == variant]
        d, seconds, low, high = (
            np.array([getattr(timing, name) for timing in chosen], dtype=np.float64)
            for name in ("dimension", "seconds", "low", "high")
        )
        series.append(Series(name=variant, x=d, y=1e6 * seconds, low=1e6 * low, high=1e6 * high))
    chart = Chart(
        id="computation-chart",
        title="Time to plan one episode and take in one trajectory",
        caption=f"H = {HORIZON}, M = 2, N = 40; median and range of the repeats, one core, measured in one go.",
        x_label="feature dimension d",
        y_label="microseconds per episode",
        series=series,
        log_x=True,
        log_y=True,
    )
    largest = max(timing.dimension for timing in timings)
    at_largest = {timing.variant: timing.seconds for timing in timings if timing.dimension == largest}
    rank_one = at_largest["PSVI, rank one"]
    rows: list[list[str | Cell]] = [
        [
            variant,
            claim,
            Cell(value=exponent(timings, variant), digits=2),
            Cell(value=1e3 * at_largest[variant], digits=2),
            Cell(value=at_largest[variant] / rank_one, digits=1),
        ]
        for variant, (_, claim) in VARIANTS.items()
    ]
    table = Table(
        id="computation-table",
        title="Growth with d",
        caption="The exponent is the slope of log time against log d over d ≥ 100.",
        columns=[
            "Variant",
            "Cost the paper states, in d",
            "Measured exponent",
            f"Milliseconds at d = {largest}",
            "Times PSVI, rank one",
        ],
        rows=rows,
    )
    return Section(
        id="computation",
        title="The computational claim",
        paragraphs=[
            "The paper counts O(d³) for an exact draw and O(N + d) for a Langevin draw, and so recommends Langevin for "
            "large d. A gradient step is a product with Ω, which is O(d²), and a late trajectory changes Ω by rank "
            "one, so the factor of an exact draw can be updated in O(d²) too. Measured side by side:",
        ],
        charts=[chart],
        tables=[table],
    )


def _slope(means: Floats, regret: Floats) -> tuple[Estimate, Estimate, float]:
    """Fit regret = a + b·E[τ] per seed; return a, b and the worst deviation of the mean curve from its line."""
    fits = np.array([np.polyfit(means, row, 1) for row in regret])
    curve = regret.mean(axis=0)
    line = np.polyval(np.polyfit(means, curve, 1), means)
    deviation = float(np.abs(curve - line).max() / max(np.ptp(curve), 1e-12))
    return mean_interval(fits[:, 1]), mean_interval(fits[:, 0]), deviation


def delay(material: Material) -> Section:
    """Regret against E[τ], and its growth with the number of episodes."""
    results = material.results["delay"]
    means = np.array(MEAN_DELAYS, dtype=np.float64)
    series: list[Series] = []
    rows: list[list[str | Cell]] = []
    for agent in results.agents:
        regret = np.stack([results.regret(agent=agent, delay=f"mean-{m}")[:, -1] for m in MEAN_DELAYS], axis=1)
        bands = [mean_interval(column) for column in regret.T]
        series.append(
            Series(
                name=NAMES[agent],
                x=means,
                y=np.array([band.value for band in bands]),
                low=np.array([band.low for band in bands]),
                high=np.array([band.high for band in bands]),
            )
        )
        at_zero, slope, deviation = _slope(means, regret)
        growth = growth_exponent(results.regret(agent=agent, delay="mean-50"))
        rows.append(
            [
                NAMES[agent],
                estimate_cell(at_zero, digits=0),
                estimate_cell(slope),
                Cell(value=100 * deviation, digits=0),
                estimate_cell(growth),
            ]
        )
    chart = Chart(
        id="delay-chart",
        title="Regret against the mean delay",
        caption="Cumulative regret at the last episode under Poisson delays, mean and 95 % interval over seeds.",
        x_label="mean delay E[τ] in episodes",
        y_label="cumulative regret",
        series=series,
    )
    table = Table(
        id="delay-table",
        title="Is the penalty additive and linear in E[τ]?",
        caption=(
            "Regret = a + b·E[τ], fitted per seed. The deviation is the largest distance of a mean from the line, as a "
            "share of the range. The growth exponent is the slope of log regret against log episode at E[τ] = 50 over "
            "the last 90 % of episodes; the theorems allow 1/2 in the long run, and a delay still being paid off shows "
            "as less."
        ),
        columns=[
            "Agent",
            "a: regret without delay",
            "b: regret per episode of mean delay",
            "Deviation from the line, per cent",
            "Growth exponent (theory ≤ 0.5)",
        ],
        rows=rows,
    )
    return Section(
        id="delay",
        title="The dependence on the delay",
        paragraphs=[
            "Theorems 1 and 2 say that delay adds a term linear in E[τ]. Tuned agents, synthetic MDP, |A| = 20."
        ],
        charts=[chart],
        tables=[table],
    )


#: Which rows a reading comes from: its experiment, how it picks them, and what follows the agent's label.
READINGS: dict[str, tuple[str, dict[str, str], str]] = {
    "as played above: raw features, start in state 0, random ties": ("details", {"environment": "base"}, ""),
    "ties go to the first action": ("details", {"environment": "base"}, "-first"),
    "features divided so that ‖φ‖ ≤ 1": ("details", {"environment": "normalised"}, ""),
    "start in state 1": ("details", {"environment": "from-1"}, ""),
    "Pareto delays, classical (least 500)": ("details-pareto", {"delay": "pareto"}, ""),
    "Pareto delays, Lomax (least 0)": ("details-pareto", {"delay": "lomax"}, ""),
}


def details(material: Material) -> Section:
    """Which readings of what the paper leaves open bring the printed hyper-parameters closest to its numbers."""
    rows: list[list[str | Cell]] = []
    for reading, (experiment, pick, suffix) in READINGS.items():
        theirs = published.RETURN_BY_DELAY
        column = "pareto" if experiment == "details-pareto" else "poisson"
        cells: list[str | Cell] = [reading]
        for agent in ("psvi", "lpsvi", "ucbvi"):
            found = estimate_cell(returns(material, experiment, agent=agent + suffix, **pick))
            cells.append(replace(found, published=theirs[agent][column].value))
        curves = material.results[experiment].array("value", agent="ucbvi" + suffix, **pick)
        best = published.EPISODES_BY_SIZE["ucbvi"][40].value if column == "poisson" else None
        cells.append(Cell(value=episodes_to_best(curves), digits=0, published=best))
        rows.append(cells)
    one_at_a_time = Table(
        id="details-table",
        title="One detail changed at a time, printed hyper-parameters",
        caption="Value upon convergence on the synthetic MDP with |A| = 20; the last column is that of Table 3.",
        columns=["Reading", *(NAMES[agent] for agent in ("psvi", "lpsvi", "ucbvi")), "UCBVI: episodes to its best"],
        rows=rows,
    )
    river = material.results["details-riverswim"]
    chains: list[list[str | Cell]] = [
        [
            reading.rpartition("-")[0],
            reading.rpartition("-")[2],
            estimate_cell(returns(material, "details-langevin", agent=reading)),
            estimate_cell(returns(material, "details-riverswim", agent=reading)),
            estimate_cell(mean_interval(river.regret(agent=reading)[:, -1]), digits=0),
        ]
        for reading in river.agents
    ]
    langevin = Table(
        id="details-langevin-table",
        title="Where a Langevin chain starts, and σ in its loss",
        caption=(
            "Delayed-LPSVI with the printed hyper-parameters, drawn from the exact law of its chains. A chain starts "
            "at the last episode's sample of the same step, at the sample of the step above, or cold at zero. "
            "Published on the synthetic MDP: 11.37; the optimum of RiverSwim is "
            f"{float(river.array('optimal', agent=river.agents[0]).mean()):.2f}."
        ),
        columns=["Start", "σ", "Synthetic: value", "RiverSwim: value", "RiverSwim: regret"],
        rows=chains,
    )
    return Section(
        id="details",
        title="What the paper leaves open",
        paragraphs=[
            "The paper does not say which previous sample warm-starts a chain, whether the Langevin loss has a σ, "
            "whether features are scaled, where the synthetic MDP starts, how ties are broken, or which Pareto law is "
            "meant. Each reading is played with the printed hyper-parameters.",
        ],
        tables=[one_at_a_time, langevin],
    )
