"""Linear bandits over dimensions and delays, and what meta-algorithms make of a base that knows nothing of delay."""

from __future__ import annotations

from belated.runner import Experiment
from belated_studies.cells_and_curves import name_of, regret_cell
from belated_studies.reports.document import Section
from belated_studies.study import Artefact, Played
from belated_studies.systems.comparisons import by_agent, mean_regret, penalties, penalty_table, regret_chart, searched
from belated_studies.systems.systems import around_pslb
from belated_studies.systems.testbeds import NOISE, Size, bandit, experiment, late
from belated_studies.winners import tuned

DIMENSIONS = {d: f"d-{d}" for d in (5, 10, 20)}
DELAYS = {mean: f"mean-{mean}" for mean in (0, 100, 250, 500, 1000)}
META_DELAYS = {mean: DELAYS[mean] for mean in (0, 100, 500)}


def experiments(size: Size) -> list[Experiment]:
    """Return the bandits of all dimensions, and shorter runs of the meta-algorithms."""
    agents = tuned("linear-bandit")
    worlds = {label: bandit(d) for d, label in DIMENSIONS.items()}
    delays = {label: late(mean) for mean, label in DELAYS.items()}
    return [
        experiment("bandits", size, worlds, agents, delays, rounds=True),
        Experiment(
            name="bandits-meta",
            environments={DIMENSIONS[10]: bandit(10)},
            agents={"pslb": agents["pslb"], **around_pslb()},
            delays={label: delays[label] for label in META_DELAYS.values()},
            episodes=size.rounds // 4,
            seeds=size.slow_seeds,
        ),
    ]


def section(played: Played[Size]) -> Section:
    """Return regret against the mean delay, whether it is a line, and the meta-algorithms."""
    size, meta = played.size, played.results["bandits-meta"]
    found = penalties(played.results["bandits"], DELAYS)
    caption = (
        f"100 actions in the unit ball, Gaussian noise {NOISE}, geometric delays, {size.rounds} rounds; mean and 95 % "
        f"interval over {size.seeds} seeds."
    )
    charts = []
    for d, label in DIMENSIONS.items():
        title = f"Linear bandit, d = {d}: regret against the mean delay"
        curves = [one.series for one in found if one.environment == label]
        charts.append(regret_chart(f"bandits-d{d}", title, caption, "mean delay E[τ] in rounds", curves))
    compared = by_agent(
        "bandits-meta",
        "Meta-algorithms around the same base, d = 10",
        f"Cumulative regret after {size.rounds // 4} rounds, {size.slow_seeds} seeds, 95 % intervals.",
        {label: f"E[τ] = {mean}" if mean else "no delay" for mean, label in META_DELAYS.items()},
        meta.agents,
        lambda agent, delay: regret_cell(meta, agent=agent, delay=delay),
    )
    settings = searched(played, "bandits-settings", "bandits", "bandits-meta")
    return Section(
        id="bandits",
        title="Linear bandits",
        paragraphs=[
            "The bounds say that delay adds a term that is linear in E[τ], so each curve of regret against the mean "
            "delay should be a straight line.",
            "QPM-D and BOLD are wrappers that make any undelayed bandit work under delay. Delayed-PSLB needs no "
            "wrapper: it learns from whatever has arrived.",
        ],
        charts=charts,
        tables=[penalty_table("bandits-lines", found), compared, settings],
    )


def findings(played: Played[Size]) -> list[str]:
    """Return who has least regret, and whether delay costs what the bounds say."""
    results, found = played.results["bandits"], penalties(played.results["bandits"], DELAYS)
    pick = {"environment": DIMENSIONS[10], "delay": DELAYS[500]}
    regret = {agent: mean_regret(results, agent=agent, **pick) for agent in results.agents}
    told = ", ".join(f"{name_of(agent)} {regret[agent]:,.0f}" for agent in sorted(regret, key=regret.__getitem__))
    return [
        f"Linear bandit, d = 10, mean delay 500, {played.size.rounds} rounds: cumulative regret {told}.",
        f"Linear bandits: regret grows with the mean delay, with an interval of the slope above zero, for "
        f"{sum(one.grows for one in found)} of {len(found)} pairs of agent and dimension, and does so within 10 % of a "
        f"straight line for {sum(one.linear for one in found)}.",
    ]


ARTEFACT = Artefact(id="bandits", order=2, section=section, experiments=experiments, findings=findings)
