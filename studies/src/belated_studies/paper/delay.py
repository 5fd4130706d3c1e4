"""The dependence on the delay: regret against E[τ], and its growth with the number of episodes."""

from __future__ import annotations

from belated.delays import Constant, Poisson
from belated.evaluation import growth_exponent
from belated.runner import Experiment
from belated_studies.cells_and_curves import against_delay, cell, name_of
from belated_studies.paper.agents import trio
from belated_studies.paper.setting import TUNED, PaperSize, experiment
from belated_studies.reports.document import Chart, Row, Section, Series, Table
from belated_studies.study import Artefact, Played

MEANS = (0, 10, 50, 100, 200, 500)


def experiments(size: PaperSize) -> list[Experiment]:
    """Return the tuned agents under Poisson delays of every mean."""
    delays = {f"mean-{mean}": Poisson(mean) if mean else Constant(0) for mean in MEANS}
    return [experiment("delay", size, trio(TUNED), delays=delays)]


def section(played: Played[PaperSize]) -> Section:
    """Return the curves of regret against E[τ], and the line through each."""
    results = played.results["delay"]
    series: list[Series] = []
    rows: list[Row] = []
    for agent in results.agents:
        curve, line = against_delay(results, MEANS, agent)
        growth = growth_exponent(results.regret(agent=agent, delay="mean-50"))
        series.append(curve)
        rows.append([name_of(agent), *line.cells(digits=2), cell(growth)])
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


ARTEFACT = Artefact(id="delay", order=9, experiments=experiments, section=section, extra=True)
