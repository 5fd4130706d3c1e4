"""Rewards that an adversary changes, against the best fixed policy in hindsight."""

from __future__ import annotations

from belated.agents import RandomPolicy
from belated.runner import Experiment
from belated_studies.cells_and_curves import name_of, regret_cell, regret_series
from belated_studies.reports.document import Row, Section, Table
from belated_studies.study import Artefact, Played
from belated_studies.systems.comparisons import mean_regret, regret_chart, searched
from belated_studies.systems.testbeds import Size, adversaries, experiment
from belated_studies.winners import tuned

#: Experiments, and what is said of their agents.
SAID = {"adversarial": "", "adversarial-known": ", dynamics known"}


def experiments(size: Size) -> list[Experiment]:
    """Return all agents against all adversaries, and those made for adversaries where the dynamics are known."""
    agents = tuned("adversarial")
    online = {name: agents[name] for name in ("oppo", "dapo")}
    every = {**online, **agents, "random": RandomPolicy()}
    return [
        experiment("adversarial", size, adversaries(), every, slow=True),
        experiment("adversarial-known", size, adversaries(known_dynamics=True), online, slow=True),
    ]


def section(played: Played[Size]) -> Section:
    """Return regret against every adversary."""
    results, size = played.results["adversarial"], played.size
    against, worlds, charts = "regret against the best fixed policy in hindsight", results.environments, []
    caption = (
        f"S = 5, A = 3, H = 5, Poisson delays with mean 50; mean and 95 % band over {size.slow_seeds} seeds. The "
        "comparator is exact for the last episode of the curve."
    )
    for world in worlds:
        curves = [regret_series(results, agent, environment=world) for agent in results.agents]
        title = f"Adversarial MDP, {world}: {against}"
        charts.append(regret_chart(f"adversarial-{world}", title, caption, "episode", curves))
    rows: list[Row] = [
        [f"{name_of(agent)}{said}", *(regret_cell(source, agent=agent, environment=world) for world in worlds)]
        for name, said in SAID.items()
        for source in [played.results[name]]
        for agent in source.agents
    ]
    table = Table(
        id="adversarial-table",
        title=f"Cumulative {against}",
        caption=f"{size.episodes} episodes, {size.slow_seeds} seeds, 95 % intervals.",
        columns=["Agent", *worlds],
        rows=rows,
    )
    tables = [table, searched(played, "adversarial-settings", "adversarial")]
    return Section(id="adversarial", title="Adversarial costs", charts=charts, tables=tables)


def findings(played: Played[Size]) -> list[str]:
    """Return who has least regret against each adversary."""
    results, told = played.results["adversarial"], []
    for world in results.environments:
        regret = {agent: mean_regret(results, agent=agent, environment=world) for agent in results.agents}
        regret.pop("random")
        told.append(f"{world}: {name_of(min(regret, key=regret.__getitem__))}")
    return [f"Lowest regret against an adversary: {'; '.join(told)}."]


ARTEFACT = Artefact(id="adversarial", order=8, section=section, experiments=experiments, findings=findings)
