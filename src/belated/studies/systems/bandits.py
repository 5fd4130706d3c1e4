"""Linear bandits over dimensions and delays, and what meta-algorithms make of a base that knows nothing of delay."""

from __future__ import annotations

from belated.reports.document import Chart, Section, Table
from belated.runner import Experiment
from belated.studies.pieces import name_of, regret_cell, settings_table
from belated.studies.study import Artefact, Played
from belated.studies.systems.pieces import mean_regret, penalties, penalty_table
from belated.studies.systems.systems import around_pslb
from belated.studies.systems.testbeds import NOISE, SEARCHED, Size, bandit, late
from belated.studies.winners import tuned

DIMENSIONS = {d: f"d-{d}" for d in (5, 10, 20)}
DELAYS = {mean: f"mean-{mean}" for mean in (0, 100, 250, 500, 1000)}
META_DELAYS = {mean: DELAYS[mean] for mean in (0, 100, 500)}


def experiments(size: Size) -> list[Experiment]:
    """Return the bandits of all dimensions, and shorter runs of the meta-algorithms."""
    agents = tuned("linear-bandit")
    return [
        Experiment(
            name="bandits",
            environments={label: bandit(d) for d, label in DIMENSIONS.items()},
            agents=agents,
            delays={label: late(mean) for mean, label in DELAYS.items()},
            episodes=size.rounds,
            seeds=size.seeds,
            record_every=size.record_every,
        ),
        Experiment(
            name="bandits-meta",
            environments={DIMENSIONS[10]: bandit(10)},
            agents={"pslb": agents["pslb"], **around_pslb()},
            delays={label: late(mean) for mean, label in META_DELAYS.items()},
            episodes=size.rounds // 4,
            seeds=size.slow_seeds,
        ),
    ]


def section(played: Played[Size]) -> Section:
    """Return regret against the mean delay, whether it is a line, and the meta-algorithms."""
    size, meta = played.size, played.results["bandits-meta"]
    found = penalties(played.results["bandits"], DELAYS)
    charts = [
        Chart(
            id=f"bandits-d{d}",
            title=f"Linear bandit, d = {d}: regret against the mean delay",
            caption=(
                f"100 actions in the unit ball, Gaussian noise {NOISE}, geometric delays, {size.rounds} rounds; mean "
                f"and 95 % interval over {size.seeds} seeds."
            ),
            x_label="mean delay E[τ] in rounds",
            y_label="cumulative regret",
            series=[one.series for one in found if one.environment == label],
        )
        for d, label in DIMENSIONS.items()
    ]
    compared = Table(
        id="bandits-meta",
        title="Meta-algorithms around the same base, d = 10",
        caption=f"Cumulative regret after {size.rounds // 4} rounds, {size.slow_seeds} seeds, 95 % intervals.",
        columns=["Agent", *(f"E[τ] = {mean}" if mean else "no delay" for mean in META_DELAYS)],
        rows=[
            [name_of(agent), *(regret_cell(meta, agent=agent, delay=delay) for delay in META_DELAYS.values())]
            for agent in meta.agents
        ],
    )
    return Section(
        id="bandits",
        title="Linear bandits",
        paragraphs=[
            "The bounds say that delay adds a term linear in E[τ]: with the same base, the curves should be straight.",
            "QPM-D and BOLD turn a bandit that knows nothing of delay into one that can live with it. Delayed-PSLB "
            "uses what has arrived directly.",
        ],
        charts=charts,
        tables=[
            penalty_table("bandits-lines", found),
            compared,
            settings_table(played, "bandits-settings", ["bandits", "bandits-meta"], SEARCHED),
        ],
    )


def findings(played: Played[Size]) -> list[str]:
    """Return who has least regret, and whether delay costs what the bounds say."""
    results, found = played.results["bandits"], penalties(played.results["bandits"], DELAYS)
    pick = {"environment": DIMENSIONS[10], "delay": DELAYS[500]}
    regret = {agent: mean_regret(results, agent=agent, **pick) for agent in results.agents}
    told = ", ".join(f"{name_of(agent)} {regret[agent]:,.0f}" for agent in sorted(regret, key=regret.__getitem__))
    return [
        f"Linear bandit, d = 10, mean delay 500, {played.size.rounds} rounds: cumulative regret {told}.",
        f"Linear bandits: the penalty of delay is additive and linear for {sum(one.linear for one in found)} of "
        f"{len(found)} agents and dimensions; in the others, luck in exploring outweighs it.",
    ]


ARTEFACT = Artefact[Size](id="bandits", order=2, section=section, experiments=experiments, findings=findings)
