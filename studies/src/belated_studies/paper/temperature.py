"""The temperature of a Langevin chain read as √γ, which the paper's stationary distribution exp(-L/√γ) suggests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import sqrt

from belated.agents import DelayedLPSVI, Settings
from belated.environments import RiverSwim
from belated.runner import Experiment
from belated_studies.cells_and_curves import cell, converged, regret_cell
from belated_studies.paper import details, figure_3, published
from belated_studies.paper.agents import literal_riverswim, literal_synthetic
from belated_studies.paper.details import CHAINS
from belated_studies.paper.setting import DELAY_NAMES, DELAYS, PaperSize, experiment
from belated_studies.reports.document import Row, Section, Table
from belated_studies.study import Artefact, Played

#: Where the rows with the temperature γ and with √γ are, of the synthetic MDP and of RiverSwim.
WORLDS = {"Synthetic": ("details-langevin", "temperature"), "RiverSwim": ("details-riverswim", "temperature-riverswim")}


def rooted(printed: Mapping[str, Settings]) -> dict[str, Settings]:
    """Return printed LPSVI under every reading of its chain, with the temperature √γ in place of γ."""
    lpsvi = printed["lpsvi"]
    assert isinstance(lpsvi, DelayedLPSVI)
    warm = replace(lpsvi, temperature=sqrt(lpsvi.temperature))
    return {reading.label: reading.of(warm) for reading in CHAINS}


def experiments(size: PaperSize) -> list[Experiment]:
    """Return the chains with √γ, and those with γ, which the study of open details plays as well."""
    with_gamma = [one for one in details.experiments(size) if one.name in ("details-langevin", "details-riverswim")]
    swimming = rooted(literal_riverswim())
    return [
        *with_gamma,
        experiment("temperature", size, rooted(literal_synthetic()), delays=DELAYS),
        experiment("temperature-riverswim", size, swimming, world=RiverSwim(), delays=figure_3.DELAYS),
    ]


def section(played: Played[PaperSize]) -> Section:
    """Return both temperatures side by side, and Table 2 with √γ."""
    return Section(
        id="temperature",
        title="The temperature as √γ",
        paragraphs=[
            "The update of a chain has the noise √(2ηγ), whose stationary distribution is exp(−L/γ); the text says "
            "that it is proportional to exp(−√(1/γ)·L). If the text is right, the chain that was run has the "
            "temperature √γ: 0.141 in place of 0.02 on the synthetic MDP, 0.447 in place of 0.2 on RiverSwim.",
        ],
        tables=[_both(played), _table_2(played)],
    )


def _both(played: Played[PaperSize]) -> Table:
    rows: list[Row] = []
    for reading in CHAINS:
        values = [
            cell(converged(played.results[name], agent=reading.label, delay="poisson"))
            for names in WORLDS.values()
            for name in names
        ]
        regret = [regret_cell(played.results[name], agent=reading.label) for name in WORLDS["RiverSwim"]]
        rows.append([reading.start, f"{reading.noise}", *values, *regret])
    columns = [f"{world}: {what}" for world in WORLDS for what in ("γ", "√γ")]
    return Table(
        id="temperature-table",
        title="Values with the temperature γ and √γ",
        caption=(
            "Delayed-LPSVI with the printed hyper-parameters, drawn from the exact distribution of its chains, under "
            "Poisson delays: value upon convergence (published on the synthetic MDP: 11.37), and cumulative regret on "
            "RiverSwim. Where a chain starts and its σ are those of the study of open details."
        ),
        columns=["Start", "σ", *columns, "RiverSwim: regret, γ", "RiverSwim: regret, √γ"],
        rows=rows,
    )


def _table_2(played: Played[PaperSize]) -> Table:
    results = played.results["temperature"]
    rows: list[Row] = [
        [
            reading.start,
            f"{reading.noise}",
            *(
                replace(
                    cell(converged(results, agent=reading.label, delay=delay)),
                    published=published.RETURN_BY_DELAY["lpsvi"][delay].value,
                )
                for delay in DELAYS
            ),
        ]
        for reading in CHAINS
    ]
    return Table(
        id="temperature-table-2",
        title="Table 2 with the temperature √γ",
        caption="Returns of Delayed-LPSVI upon convergence on the synthetic MDP with |A| = 20.",
        columns=["Start", "σ", *(DELAY_NAMES[delay] for delay in DELAYS)],
        rows=rows,
    )


def findings(played: Played[PaperSize]) -> list[str]:
    """Tell how near √γ brings the printed settings to the published return."""
    best = {
        name: max(converged(played.results[name], agent=one.label, delay="poisson").value for one in CHAINS)
        for name in WORLDS["Synthetic"]
    }
    before, after = best.values()
    return [
        f"The temperature as √γ: the best reading of a chain on the synthetic MDP under Poisson delays has the value "
        f"{after:.2f}, with γ {before:.2f} (paper 11.37)."
    ]


ARTEFACT = Artefact(id="temperature", order=12, experiments=experiments, section=section, findings=findings, extra=True)
