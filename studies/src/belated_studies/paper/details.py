"""What the paper leaves open, played: which readings bring the printed hyper-parameters closest to its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

from belated.agents import DelayedLPSVI, Settings
from belated.environments import FiniteMDP, RiverSwim, SyntheticLinearMDP
from belated.evaluation import episodes_to_best
from belated.runner import Experiment
from belated_studies.cells_and_curves import cell, converged, name_of, regret_cell
from belated_studies.paper import figure_3, published
from belated_studies.paper.agents import TRIO, literal_riverswim, literal_synthetic, trio
from belated_studies.paper.setting import DELAY_NAMES, DELAYS, LITERAL, LOMAX, TUNED, PaperSize, experiment, synthetic
from belated_studies.reports.document import Cell, Row, Section, Table
from belated_studies.study import Artefact, Played


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One detail changed, and where its rows are."""

    name: str
    pick: Mapping[str, str]
    """Of the experiment, which rows."""
    experiment: str = "details"
    delay: str = "poisson"
    """The column of the published table that it is compared with."""
    agents: Mapping[str, str] = field(default_factory=lambda: {agent: agent for agent in TRIO})
    """The labels of the three agents."""


FIRST = {agent: f"{agent}-first" for agent in TRIO}
PARETO = {"pareto": DELAYS["pareto"], "lomax": LOMAX}

READINGS = (
    Reading(name="as played above: raw features, start in state 0, random ties", pick={"environment": "base"}),
    Reading(name="ties go to the first action", pick={"environment": "base"}, agents=FIRST),
    Reading(name="features divided so that ‖φ‖ ≤ 1", pick={"environment": "normalised"}),
    Reading(name="start in state 1", pick={"environment": "from-1"}),
    *(
        Reading(
            name=f"Pareto delays, {distribution}", pick={"delay": label}, experiment="details-pareto", delay="pareto"
        )
        for label, distribution in (("pareto", "classical (least 500)"), ("lomax", "Lomax (least 0)"))
    ),
)


class ChainReading(NamedTuple):
    """Where a Langevin chain starts, and σ in its loss."""

    start: str
    noise: float

    @property
    def label(self) -> str:
        """The label of the agent that reads the paper so."""
        return f"{self.start}-{self.noise}"

    def of(self, lpsvi: Settings) -> Settings:
        """Return `lpsvi` so read; drawing its chains from their exact N-step distribution is faster and the same."""
        assert isinstance(lpsvi, DelayedLPSVI)
        return replace(lpsvi, warm_start=self.start, noise=self.noise, sampler="collapsed")


CHAINS = [ChainReading(*reading) for reading in product(("episode", "step", "cold"), (1.0, 0.1))]


def experiments(size: PaperSize) -> list[Experiment]:
    """Return the printed hyper-parameters under every reading."""
    printed = trio(LITERAL)
    firsts = {FIRST[name]: replace(agent, ties="first") for name, agent in printed.items()}  # type: ignore[call-arg]
    worlds = {
        "base": synthetic(40),
        "normalised": SyntheticLinearMDP(actions=20, normalise=True),
        "from-1": _from_state_1(synthetic(40)),
    }
    chains, swimming = (
        {reading.label: reading.of(agents["lpsvi"]) for reading in CHAINS}
        for agents in (literal_synthetic(), literal_riverswim())
    )
    return [
        experiment("details", size, {**printed, **firsts}, world=worlds),
        experiment("details-pareto", size, printed, delays=PARETO),
        experiment("details-lomax", size, trio(TUNED), delays={"lomax": LOMAX}),
        experiment("details-langevin", size, chains),
        experiment("details-riverswim", size, swimming, world=RiverSwim(), delays=figure_3.DELAYS),
    ]


def _from_state_1(world: FiniteMDP) -> FiniteMDP:
    """Return `world` started in its other state; the paper does not say where it starts."""
    return FiniteMDP(world.transitions, world.rewards, features=world.features, start=1, name=f"{world.label}-from-1")


def section(played: Played[PaperSize]) -> Section:
    """Return a table with one detail changed at a time, and one of the readings of a Langevin chain."""
    one_at_a_time = Table(
        id="details-table",
        title="One detail changed at a time, printed hyper-parameters",
        caption=(
            "Value upon convergence on the synthetic MDP with |A| = 20; the last column is that of Table 3. Verdicts "
            "are given in Tables 2 and 3 alone, on the first reading and on that of Pareto delays as classical."
        ),
        columns=["Reading", *(name_of(agent) for agent in TRIO), "UCBVI: episodes to its best"],
        rows=[_row(reading, played) for reading in READINGS],
    )
    return Section(
        id="details",
        title="What the paper leaves open",
        paragraphs=[
            "The paper does not say which previous sample warm-starts a chain, whether the Langevin loss has a σ, "
            "whether features are scaled, where the synthetic MDP starts, how ties are broken, or which Pareto "
            "distribution is meant. Each reading is played with the printed hyper-parameters.",
        ],
        tables=[one_at_a_time, _lomax(played), _chains(played)],
    )


def _row(reading: Reading, played: Played[PaperSize]) -> Row:
    results = played.results[reading.experiment]
    returns = [
        replace(
            cell(converged(results, agent=label, **reading.pick)),
            published=published.RETURN_BY_DELAY[agent][reading.delay].value,
        )
        for agent, label in reading.agents.items()
    ]
    best = episodes_to_best(results.array("value", agent=reading.agents["ucbvi"], **reading.pick))
    theirs = published.EPISODES_BY_SIZE["ucbvi"][40].value if reading.delay == "poisson" else None
    return [reading.name, *returns, Cell(value=best, digits=0, published=theirs)]


def _lomax(played: Played[PaperSize]) -> Table:
    results = played.results["details-lomax"]
    return Table(
        id="details-lomax-table",
        title="Tuned agents under the other reading of Pareto",
        caption="Values upon convergence under the Lomax distribution of the same shape and scale, whose minimum is 0.",
        columns=["Agent", DELAY_NAMES["lomax"]],
        rows=[[name_of(agent), cell(converged(results, agent=agent))] for agent in results.agents],
    )


def _chains(played: Played[PaperSize]) -> Table:
    line, river = played.results["details-langevin"], played.results["details-riverswim"]
    rows: list[Row] = [
        [
            reading.start,
            f"{reading.noise}",
            cell(converged(line, agent=reading.label)),
            cell(converged(river, agent=reading.label)),
            regret_cell(river, agent=reading.label),
        ]
        for reading in CHAINS
    ]
    return Table(
        id="details-langevin-table",
        title="Where a Langevin chain starts, and σ in its loss",
        caption=(
            "Delayed-LPSVI with the printed hyper-parameters, drawn from the exact distribution of its chains. A chain "
            "starts at the last episode's sample of the same step, at the sample of the step above, or cold at zero. "
            "Published on the synthetic MDP: 11.37; the optimum of RiverSwim is "
            f"{float(river.array('optimal', agent=CHAINS[0].label).mean()):.2f}."
        ),
        columns=["Start", "σ", "Synthetic: value", "RiverSwim: value", "RiverSwim: regret"],
        rows=rows,
    )


ARTEFACT = Artefact(id="details", order=10, experiments=experiments, section=section, extra=True)
