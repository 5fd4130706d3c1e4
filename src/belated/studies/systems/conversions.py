"""What silence means: conversions that are reported late, and zeros that never are."""

from __future__ import annotations

from belated.evaluation import difference
from belated.reports.document import Cell, Chart, Section, Table
from belated.runner import Experiment
from belated.studies.pieces import final_regret, name_of, regret_cell, regret_series, settings_table
from belated.studies.study import Artefact, Played
from belated.studies.systems.testbeds import SEARCHED, SILENT, TOLD, WINDOW, Size, conversions
from belated.studies.winners import tuned

ON_THE_FLY, WAITING = ("otf-linucb", "otf-lints"), ("pslb", "ofu")


def experiments(size: Size) -> list[Experiment]:
    """Return all agents where zeros are never reported, and those that wait where they are."""
    waiting = tuned("waiting")
    return [
        Experiment(
            name=name,
            environments={"conversions": conversions()},
            agents=agents,
            delays=delays,
            episodes=size.rounds,
            seeds=size.seeds,
            record_every=size.record_every,
        )
        for name, agents, delays in (
            ("conversions-never", {**tuned("conversions"), **waiting}, {"never": SILENT}),
            ("conversions-waiting", waiting, {"told": TOLD}),
        )
    ]


def section(played: Played[Size]) -> Section:
    """Return regret with and without zeros."""
    never, told = played.results["conversions-never"], played.results["conversions-waiting"]
    chart = Chart(
        id="conversions-chart",
        title="Conversions: a zero is never reported",
        caption=(
            f"20 actions, d = 10; a conversion is reported after a geometric delay of mean {WINDOW // 2}, the "
            f"lack of one never, or (dashed) when the window of {WINDOW} rounds is over."
        ),
        x_label="round",
        y_label="cumulative regret",
        series=[
            *(regret_series(never, agent) for agent in never.agents),
            *(
                regret_series(told, agent, name=f"{name_of(agent)}, told after the window", dashed=True)
                for agent in told.agents
            ),
        ],
    )
    needless = Cell(value=None, note="needs no telling")
    table = Table(
        id="conversions-table",
        title="Cumulative regret",
        caption=f"{played.size.rounds} rounds, {played.size.seeds} seeds, 95 % intervals.",
        columns=["Agent", "zeros never reported", "zeros told after the window"],
        rows=[
            [
                name_of(agent),
                regret_cell(never, agent=agent),
                regret_cell(told, agent=agent) if agent in told.agents else needless,
            ]
            for agent in never.agents
        ],
    )
    return Section(
        id="conversions",
        title="Conversions: what silence means",
        paragraphs=[
            "An agent that waits for feedback hears only of conversions where zeros are never reported: every action "
            "looks equally good to it. OTFLinUCB and OTFLinTS count every play as a zero until it converts, and allow "
            "for the bias of what is still to come."
        ],
        charts=[chart],
        tables=[table, settings_table(played, "conversions-settings", ["conversions-never"], SEARCHED)],
    )


def findings(played: Played[Size]) -> list[str]:
    """Return whether counting silence as zeros pays."""
    never = played.results["conversions-never"]
    regret = {agent: final_regret(never, agent=agent) for agent in never.agents}
    best, waiting = (min(agents, key=lambda agent: regret[agent].mean()) for agents in (ON_THE_FLY, WAITING))
    gap = difference(regret[waiting], regret[best])
    verdict = "reproduced" if gap.low > 0 else "refuted" if gap.high < 0 else "undecided"
    return [
        "OTF methods keep learning where waiting for zeros fails (Vernade et al.): "
        f"{verdict}. Where zeros are never reported, {name_of(best)} has regret {regret[best].mean():,.0f} and "
        f"{name_of(waiting)}, which waits for feedback, {regret[waiting].mean():,.0f}."
    ]


ARTEFACT = Artefact[Size](id="conversions", order=3, section=section, experiments=experiments, findings=findings)
