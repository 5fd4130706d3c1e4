"""Randomised trials with the event times of their patients."""

from __future__ import annotations

from belated.environments.trials import RECORDED
from belated_studies.cells_and_curves import regret_series
from belated_studies.reports.document import Chart, Section
from belated_studies.study import Artefact, Played
from belated_studies.trials.settings import (
    AGE,
    MATURE,
    NAMES,
    OTF,
    RATIOS,
    WAITING,
    Case,
    Size,
    beside_otf,
    compared,
    experiments,
    findings,
    regret_table,
)

CASES = [Case(trial, 2000 if trial == "actg175" else 1500, ratio) for trial in RECORDED for ratio in RATIOS]
SHOWN = CASES[0]


def section(played: Played[Size]) -> Section:
    """Return regret on every record that is installed, and its course on the first."""
    rows = compared(played, CASES)
    sources = "; ".join(f"{name}: {s.event} within {s.window:g} days ({s.package})" for name, s in RECORDED.items())
    paragraphs = [
        "Patients enter evenly, and the arm that is chosen is given to a patient drawn from those randomised to it. "
        "The event is reported when it happened in the record; that nothing happens is never reported. The truth is "
        f"the Kaplan–Meier estimate of each arm. {sources}.",
        "In prothr the arm that is better in the end is worse for most of the window: what is learned early misleads, "
        "and one window cannot be misled. In such a trial learning by age has nothing to gain, and may lose.",
        'An agent of your own plays the first row with run(RecordedTrial("actg175", rounds=1429), {"mine": Mine()}, '
        "Constant(0), episodes=2000, seeds=range(300, 340)); the column of regret, at its end, is the figure of the "
        "table. Patients depend on the seed alone.",
    ]
    tables = [regret_table("recorded-table", "Events too many", "Randomised trials.", rows)] if rows else []
    charts = []
    if SHOWN.name in played.results:
        silent, told = played.results[SHOWN.name], played.results[f"{SHOWN.name}-told"]
        series = [regret_series(silent, agent, NAMES[agent]) for agent in (AGE, MATURE, OTF)]
        series.append(regret_series(told, WAITING, NAMES[WAITING], dashed=True))
        chart = Chart(
            id="trials-chart",
            title="ACTG 175, 1.4 windows",
            caption=f"Events too many so far. {round(SHOWN.decisions / SHOWN.ratio)} patients enter in the window.",
            x_label="patients",
            y_label="events too many",
            series=series,
        )
        charts.append(chart)
    return Section(id="recorded", title="Recorded trials", paragraphs=paragraphs, tables=tables, charts=charts)


def told(played: Played[Size]) -> list[str]:
    """Return the findings, if any record is installed."""
    rows = compared(played, CASES)
    return [*findings("Recorded trials", rows), beside_otf(rows)] if rows else []


ARTEFACT = Artefact(
    id="recorded", order=1, section=section, experiments=lambda size: experiments(CASES, size), findings=told
)
