"""Contexts: logistic rewards with random action sets, and recorded tables replayed as bandits."""

from __future__ import annotations

from dataclasses import replace

from belated.algorithms import DelayedOFU, RandomPolicy
from belated.environments import ClassificationBandit, LinearBandit
from belated.reports.document import Section, Table
from belated.runner import Experiment
from belated.studies.pieces import cell, converged, name_of, regret_cell
from belated.studies.study import Artefact, Played
from belated.studies.systems.testbeds import Size, late
from belated.studies.winners import tuned

LATE = {"mean-100": late(100)}


def experiments(size: Size) -> list[Experiment]:
    """Return the logistic bandit, and the tables that come with scikit-learn."""
    best = tuned("linear-bandit")
    pslb, ofu, random = best["pslb"], best["ofu"], RandomPolicy()
    assert isinstance(ofu, DelayedOFU)
    return [
        Experiment(
            name="contexts-logistic",
            environments={
                "logistic": LinearBandit(dimension=10, actions=20, sets="random", contexts=20, reward="logistic")
            },
            agents={"ofu-logistic": replace(ofu, link="logistic"), "ofu": ofu, "pslb": pslb, "random": random},
            delays=LATE,
            episodes=size.rounds,
            seeds=size.seeds,
            record_every=size.record_every,
        ),
        Experiment(
            name="contexts-replay",
            environments={name: ClassificationBandit(dataset=name) for name in ("digits", "wine", "breast-cancer")},
            agents={"pslb": pslb, "ofu": ofu, "random": random},
            delays=LATE,
            episodes=size.episodes,
            seeds=size.seeds,
        ),
    ]


def section(played: Played[Size]) -> Section:
    """Return regret on the logistic bandit and the share of right answers on the tables."""
    logistic, replay = played.results["contexts-logistic"], played.results["contexts-replay"]
    return Section(
        id="contexts",
        title="Contexts: logistic rewards and recorded tables",
        tables=[
            Table(
                id="contexts-logistic",
                title="Logistic rewards, 20 random action sets",
                caption="Cumulative regret, geometric delays with mean 100, 95 % intervals over seeds.",
                columns=["Agent", "Cumulative regret"],
                rows=[[name_of(agent), regret_cell(logistic, agent=agent)] for agent in logistic.agents],
            ),
            Table(
                id="contexts-replay",
                title="Classification tables replayed as bandits",
                caption=(
                    f"Share of right answers over the last tenth of {played.size.episodes} rounds; the answer to a "
                    "row becomes known after a geometric delay with mean 100."
                ),
                columns=["Agent", *replay.environments],
                rows=[
                    [
                        name_of(agent),
                        *(cell(converged(replay, agent=agent, environment=table), 3) for table in replay.environments),
                    ]
                    for agent in replay.agents
                ],
            ),
        ],
    )


ARTEFACT = Artefact[Size](id="contexts", order=4, section=section, experiments=experiments)
