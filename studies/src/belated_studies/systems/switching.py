"""Rare switching: what planning rarely costs in regret, and what it saves in time."""

from __future__ import annotations

from typing import NamedTuple

from belated.agents import RareSwitching
from belated.runner import Experiment
from belated_studies.cells_and_curves import name_of, regret_cell
from belated_studies.reports.document import Cell, Section, Table
from belated_studies.study import Artefact, Measurement, Played
from belated_studies.systems.comparisons import Timed, time_agents
from belated_studies.systems.testbeds import Size, experiment, mdp_agents, synthetic


class Rule(NamedTuple):
    """When there is a new policy; neither `growth` nor `every`: in every episode."""

    said: str
    ending: str
    """Of the agent's label, after its base."""
    growth: float | None = None
    every: int | None = None


RULES = (
    Rule("every episode", ""),
    *(Rule(f"det Ω grows by {growth}", f"-det-{growth}", growth=growth) for growth in (1.1, 1.5, 2.0)),
    *(Rule(f"every {n}", f"-every-{n}", every=n) for n in (10, 50)),
)
#: The base and the rule of each label.
AGENTS = {
    f"{base}{rule.ending}": (base, rule) for base in ("psvi", "lpsvi", "ucbvi", "tabular-ucbvi") for rule in RULES
}


def experiments(size: Size) -> list[Experiment]:
    """Return every base with every rule."""
    best = mdp_agents(size)
    agents = {
        label: RareSwitching(base=best[base], growth=rule.growth, every=rule.every) if rule.ending else best[base]
        for label, (base, rule) in AGENTS.items()
    }
    return [experiment("switching", size, synthetic(), agents)]


TIMES = Measurement[Size](name="switching-times", kind=Timed, measure=lambda size: time_agents(experiments(size)))


def section(played: Played[Size]) -> Section:
    """Return regret and time under every rule."""
    results, times = played.results["switching"], {timed.agent: timed for timed in played.measured[TIMES.name]}
    table = Table(
        id="switching-table",
        title="Rare planning",
        caption=(
            "Synthetic MDP, Poisson delays with mean 50; regret with 95 % intervals over seeds; time of a whole "
            "episode on one core, including learning, playing and evaluation. At this size planning is cheap; "
            "planning rarely saves more where d and S are larger."
        ),
        columns=["Agent", "A new policy", "Cumulative regret", "µs per episode", "Times faster"],
        rows=[
            [
                name_of(base),
                rule.said,
                regret_cell(results, agent=label),
                times[label].cell,
                Cell(value=times[base].median / times[label].median, digits=1),
            ]
            for label, (base, rule) in AGENTS.items()
        ],
    )
    return Section(id="switching", title="Rare switching", tables=[table])


ARTEFACT = Artefact(id="switching", order=7, section=section, experiments=experiments, measurements=[TIMES])
