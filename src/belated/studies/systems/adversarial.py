"""Rewards that an adversary changes, against the best fixed policy in hindsight."""

from __future__ import annotations

from belated.algorithms import RandomPolicy
from belated.reports.document import Chart, Section, Table
from belated.runner import Experiment
from belated.studies.pieces import name_of, regret_cell, regret_series, settings_table
from belated.studies.study import Artefact, Played
from belated.studies.systems.pieces import mean_regret
from belated.studies.systems.testbeds import POISSON, SEARCHED, Size, adversaries
from belated.studies.winners import tuned

ONLINE = ("oppo", "dapo")


def experiments(size: Size) -> list[Experiment]:
    """Return all agents against all adversaries, and those made for adversaries where the dynamics are known."""
    agents = tuned("adversarial")
    online = {name: agents[name] for name in ONLINE}
    return [
        Experiment(
            name=name, environments=worlds, agents=chosen, delays=POISSON, episodes=size.episodes, seeds=size.slow_seeds
        )
        for name, worlds, chosen in (
            ("adversarial", adversaries(), {**online, **agents, "random": RandomPolicy()}),
            ("adversarial-known", adversaries(known_dynamics=True), online),
        )
    ]


def section(played: Played[Size]) -> Section:
    """Return regret against every adversary."""
    results, known, size = played.results["adversarial"], played.results["adversarial-known"], played.size
    charts = [
        Chart(
            id=f"adversarial-{environment}",
            title=f"Adversarial MDP, {environment}: regret against the best fixed policy in hindsight",
            caption=(
                f"S = 5, A = 3, H = 5, Poisson delays with mean 50; mean and 95 % band over {size.slow_seeds} "
                "seeds. The comparator is exact for the last episode of the curve."
            ),
            x_label="episode",
            y_label="cumulative regret",
            series=[regret_series(results, agent, environment=environment) for agent in results.agents],
        )
        for environment in results.environments
    ]
    table = Table(
        id="adversarial-table",
        title="Cumulative regret against the best fixed policy in hindsight",
        caption=f"{size.episodes} episodes, {size.slow_seeds} seeds, 95 % intervals.",
        columns=["Agent", *results.environments],
        rows=[
            [
                f"{name_of(agent)}{', dynamics known' if source is known else ''}",
                *(regret_cell(source, agent=agent, environment=environment) for environment in results.environments),
            ]
            for source in (results, known)
            for agent in source.agents
        ],
    )
    return Section(
        id="adversarial",
        title="Adversarial costs",
        charts=charts,
        tables=[table, settings_table(played, "adversarial-settings", ["adversarial"], SEARCHED)],
    )


def findings(played: Played[Size]) -> list[str]:
    """Return who has least regret against each adversary."""
    results = played.results["adversarial"]
    told = []
    for environment in results.environments:
        regret = {
            agent: mean_regret(results, agent=agent, environment=environment)
            for agent in results.agents
            if agent != "random"
        }
        told.append(f"{environment}: {name_of(min(regret, key=regret.__getitem__))}")
    return [f"Least regret against an adversary: {'; '.join(told)}."]


ARTEFACT = Artefact[Size](id="adversarial", order=8, section=section, experiments=experiments, findings=findings)
