"""What silence means: conversions that are reported late, and zeros that never are."""

from __future__ import annotations

from belated.evaluation import difference
from belated.runner import Experiment
from belated_studies.cells_and_curves import final_regret, name_of, regret_cell, regret_series
from belated_studies.reports.document import Cell, Section
from belated_studies.study import Artefact, Played
from belated_studies.systems.comparisons import by_agent, regret_chart, searched
from belated_studies.systems.testbeds import SILENT, TOLD, WINDOW, Size, conversions, experiment
from belated_studies.winners import tuned

#: Experiments, and the headings of their numbers.
NEVER, WAITING = "conversions-never", "conversions-waiting"
HEADINGS = {NEVER: "zeros never reported", WAITING: "zeros reported after the window"}


def experiments(size: Size) -> list[Experiment]:
    """Return all agents where zeros are never reported, and those that wait where they are."""
    world, waiting = {"conversions": conversions()}, tuned("waiting")
    return [
        experiment(NEVER, size, world, {**tuned("conversions"), **waiting}, {"never": SILENT}, rounds=True),
        experiment(WAITING, size, world, waiting, {"told": TOLD}, rounds=True),
    ]


def section(played: Played[Size]) -> Section:
    """Return regret with and without zeros."""
    never, told = played.results[NEVER], played.results[WAITING]
    silent = [regret_series(never, agent) for agent in never.agents]
    dashed = [regret_series(told, a, f"{name_of(a)}, reported after the window", dashed=True) for a in told.agents]
    title = "Conversions: a zero is never reported"
    caption = (
        f"20 actions, d = 10; a conversion is reported after a geometric delay of mean {WINDOW // 2}, its absence "
        f"never, or (dashed) when the window of {WINDOW} rounds is over."
    )
    chart = regret_chart("conversions-chart", title, caption, "round", [*silent, *dashed])

    def entry(agent: str, name: str) -> Cell:
        results = played.results[name]
        return regret_cell(results, agent=agent) if agent in results.agents else Cell(value=None, note="not needed")

    caption = f"{played.size.rounds} rounds, {played.size.seeds} seeds, 95 % intervals."
    table = by_agent("conversions-table", "Cumulative regret", caption, HEADINGS, never.agents, entry)
    paragraph = (
        "Where zeros are never reported, an agent that waits for feedback sees only conversions, so every action looks "
        "equally good to it. OTFLinUCB and OTFLinTS count every round as a zero until it converts, and correct for the "
        "conversions that are still to come."
    )
    title, tables = "Conversions: what silence means", [table, searched(played, "conversions-settings", NEVER)]
    return Section(id="conversions", title=title, paragraphs=[paragraph], charts=[chart], tables=tables)


def findings(played: Played[Size]) -> list[str]:
    """Return whether counting silence as zeros pays."""
    regret = {agent: final_regret(played.results[NEVER], agent=agent) for agent in played.experiments[NEVER].agents}
    waiting = played.experiments[WAITING].agents
    best, patient = (
        min((agent for agent in regret if (agent in waiting) == waits), key=lambda agent: regret[agent].mean())
        for waits in (False, True)
    )
    gap = difference(regret[patient], regret[best])
    verdict = "reproduced" if gap.low > 0 else "refuted" if gap.high < 0 else "undecided"
    return [
        "OTF methods keep learning where waiting for zeros fails (Vernade et al.): "
        f"{verdict}. Where zeros are never reported, {name_of(best)} has regret {regret[best].mean():,.0f} and "
        f"{name_of(patient)}, which waits for feedback, {regret[patient].mean():,.0f}."
    ]


ARTEFACT = Artefact(id="conversions", order=3, section=section, experiments=experiments, findings=findings)
