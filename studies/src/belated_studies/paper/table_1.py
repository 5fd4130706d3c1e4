"""Table 1: the summary of bounds, with measured regret where this study has the system."""

from __future__ import annotations

from belated.agents import MultiBatch, Settings, TabularUCBVI
from belated.environments import RandomLinearMDP
from belated.runner import Experiment
from belated_studies.cells_and_curves import regret_cell
from belated_studies.paper import published, table_2
from belated_studies.paper.agents import five
from belated_studies.paper.setting import TUNED, PaperSize, experiment
from belated_studies.reports.document import Cell, Row, Section, Table
from belated_studies.study import Artefact, Played

#: Of each system that is measured here: the experiment and the agent.
MEASURED = {
    "Howson et al. (2023b)": ("systems", "tabular-ucbvi"),
    "Yang et al. (2023)": ("systems", "multi-batch"),
    "Delayed-PSVI": (table_2.RUNS[TUNED], "psvi"),
    "Delayed-LPSVI": (table_2.RUNS[TUNED], "lpsvi"),
    "Delayed-PSLB": ("bandit", "pslb"),
}


def experiments(size: PaperSize) -> list[Experiment]:
    """Return the tuned runs of Table 2, those of systems that had no search, and those of a linear bandit."""
    best = five(TUNED)
    systems: dict[str, Settings] = {  # plausible settings, not tuned ones
        "tabular-ucbvi": TabularUCBVI(bonus_form="bernstein", bonus_scale=0.002, episodes=size.episodes),
        "multi-batch": MultiBatch(base=best["ucbvi"]),
    }
    # A linear bandit is an MDP with one state and one step; Delayed-PSLB is Delayed-PSVI there.
    bandit = RandomLinearMDP(states=1, actions=50, dimension=10, horizon=1, bernoulli=True)
    return [
        table_2.of_block(size, TUNED),
        experiment("systems", size, systems),
        experiment("bandit", size, {"pslb": best["psvi-0.1"]}, world=bandit),
    ]


def section(played: Played[PaperSize]) -> Section:
    """Return the paper's table with a column of what was measured."""
    rows: list[Row] = []
    for system in published.SYSTEMS:
        measured = Cell(value=None, note="on testbeds of its own: see `belated systems`")
        if system.name in MEASURED:
            name, agent = MEASURED[system.name]
            measured = regret_cell(played.results[name], agent=agent, delay="poisson")
        rows.append([*system, measured])
    unmeasured = Cell(value=None, note="a bound on the worst problem: nothing to measure")
    rows += [[*bound, unmeasured] for bound in published.LOWER_BOUNDS]
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


ARTEFACT = Artefact(id="table-1", order=7, experiments=experiments, section=section)
