"""Contexts: logistic rewards with random action sets, and recorded tables replayed as bandits."""

from __future__ import annotations

from dataclasses import replace

from belated.agents import DelayedOFU, RandomPolicy
from belated.environments import ClassificationBandit, LinearBandit
from belated.runner import Experiment
from belated_studies.cells_and_curves import cell, converged, regret_cell
from belated_studies.reports.document import Section
from belated_studies.study import Artefact, Played
from belated_studies.systems.comparisons import by_agent
from belated_studies.systems.testbeds import Size, experiment, late
from belated_studies.winners import tuned

LATE = {"mean-100": late(100)}
TABLES = ("digits", "wine", "breast-cancer")


def experiments(size: Size) -> list[Experiment]:
    """Return the logistic bandit, and the tables that come with scikit-learn."""
    best = tuned("linear-bandit")
    pslb, ofu, random = best["pslb"], best["ofu"], RandomPolicy()
    assert isinstance(ofu, DelayedOFU)
    logistic = LinearBandit(dimension=10, actions=20, sets="random", contexts=20, reward="logistic")
    agents = {"ofu-logistic": replace(ofu, link="logistic"), "ofu": ofu, "pslb": pslb, "random": random}
    tables = {name: ClassificationBandit(dataset=name) for name in TABLES}
    return [
        experiment("contexts-logistic", size, {"logistic": logistic}, agents, LATE, rounds=True),
        experiment("contexts-replay", size, tables, {"pslb": pslb, "ofu": ofu, "random": random}, LATE),
    ]


def section(played: Played[Size]) -> Section:
    """Return regret on the logistic bandit and the share of right answers on the tables."""
    logistic, replay = played.results["contexts-logistic"], played.results["contexts-replay"]
    tables = [
        by_agent(
            "contexts-logistic",
            "Logistic rewards, 20 random action sets",
            "Cumulative regret, geometric delays with mean 100, 95 % intervals over seeds.",
            {"logistic": "Cumulative regret"},
            logistic.agents,
            lambda agent, world: regret_cell(logistic, agent=agent, environment=world),
        ),
        by_agent(
            "contexts-replay",
            "Classification tables replayed as bandits",
            f"Share of right answers over the last tenth of {played.size.episodes} rounds; the answer to a row becomes "
            "known after a geometric delay with mean 100.",
            {name: name for name in TABLES},
            replay.agents,
            lambda agent, table: cell(converged(replay, agent=agent, environment=table), 3),
        ),
    ]
    return Section(id="contexts", title="Contexts: logistic rewards and recorded tables", tables=tables)


ARTEFACT = Artefact(id="contexts", order=4, section=section, experiments=experiments)
