"""Randomised trials with the event times of their patients."""

from __future__ import annotations

import numpy as np

from belated.agents import LearnByAge
from belated.environments.trials import RECORDED, Trial
from belated.evaluation import mean_interval
from belated.runner import Experiment
from belated_studies.cells_and_curves import final_regret, regret_series
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
    experiment,
    experiments,
    findings,
    regret_table,
)

CASES = [Case(trial, 2000 if trial == "actg175" else 1500, ratio) for trial in RECORDED for ratio in RATIOS]
SHOWN = CASES[0]
MISLEADING = Case("prothr", 1500, min(RATIOS))
CROSSED = 0.77
"""Up to which part of its window the better arm is the worse one there."""
LATE = "prothr-late"


def section(played: Played[Size]) -> Section:
    """Return regret on every record that is installed, and its course on the first."""
    rows = compared(played, CASES)
    sources = "; ".join(f"{name}: {s.event} within {s.window:g} days ({s.package})" for name, s in RECORDED.items())
    paragraphs = [
        "Patients enter at a constant rate. Each choice of an arm is played on a patient drawn from those who were "
        "randomised to it. An event is reported at the time it has in the record; the absence of an event is never "
        f"reported. The truth is the Kaplan–Meier estimate of each arm. {sources}.",
        *_misleading(played),
        'To play your own agent in the first row: run(RecordedTrial("actg175", rounds=1429), {"mine": Mine()}, '
        "Constant(0), episodes=2000, seeds=range(2000, 2040)). The last value of its regret is the figure in the "
        "table. Patients depend on the seed alone.",
    ]
    tables = [regret_table("recorded-table", "Excess events", "Randomised trials.", rows)] if rows else []
    charts = []
    if SHOWN.name in played.results:
        silent, told = played.results[SHOWN.name], played.results[f"{SHOWN.name}-told"]
        series = [regret_series(silent, agent, NAMES[agent]) for agent in (AGE, MATURE, OTF)]
        series.append(regret_series(told, WAITING, NAMES[WAITING], dashed=True))
        chart = Chart(
            id="trials-chart",
            title="ACTG 175, 1.4 windows",
            caption=f"Excess events so far. {round(SHOWN.decisions / SHOWN.ratio)} patients enter within a window.",
            x_label="patients",
            y_label="excess events",
            series=series,
        )
        charts.append(chart)
    return Section(id="recorded", title="Recorded trials", paragraphs=paragraphs, tables=tables, charts=charts)


def _late_only() -> Trial:
    """Return prothr as one would hear of it who leaves out of account what comes before the curves cross."""
    courses = MISLEADING.make(told=False).courses
    ages = np.where(courses.ages > CROSSED, courses.ages, np.inf)
    chances = np.diff(courses.chances, prepend=0.0)
    rounds = round(MISLEADING.decisions / MISLEADING.ratio)
    return Trial(courses.patients, chances, ages, courses.amounts, rounds=rounds, name=LATE)


def _experiments(size: Size) -> list[Experiment]:
    found = experiments(CASES, size)
    if MISLEADING.playable:
        trial = _late_only()
        found.append(experiment(MISLEADING, size, LATE, trial, {AGE: LearnByAge(window=trial.window)}))
    return found


def _misleading(played: Played[Size]) -> list[str]:
    """Return why prothr is hard, and what could be hoped for at best, if its record is installed."""
    if LATE not in played.results:
        return []
    trial, late = MISLEADING.make(told=False), _late_only()
    courses = trial.courses
    chances = np.diff(courses.chances[0], prepend=0.0)
    ages = courses.ages[courses.patients[0], 0]
    ends = {age: -100 * (chances * (ages <= age)).sum(axis=1) for age in (0.25, 0.5, CROSSED, 1.0)}
    best = int(np.argmax(ends[1.0]))
    leads = {age: float(values[best] - values[1 - best]) for age, values in ends.items()}
    early = ", ".join(f"{-lead:.1f} after {100 * age:.0f} %" for age, lead in leads.items() if age < 1.0)
    # both have two arms, so that regret is the gap times the plays of the worse one
    regret = final_regret(played.results[LATE], agent=AGE) * (np.ptp(trial.rewards) / np.ptp(late.rewards))
    mature = float(final_regret(played.results[MISLEADING.name], agent=MATURE).mean())
    found = mean_interval(regret)
    return [
        f"In prothr the arm that is better in the end, by {leads[1.0]:.1f} points of mortality, is worse for most of "
        f"the window: by {early} of it. All of its advantage comes in the last quarter, so earlier outcomes mislead "
        "and cannot reveal it. Waiting for one window cannot be misled; in such a trial learning by age has nothing "
        "to gain and may lose. An agent that knows when the curves cross shows the best one could hope for: it "
        f"ignores the first {100 * CROSSED:.0f} % of a window, cannot be misled, and sees a difference that is larger "
        f"than the true one by what was lost before. With {MISLEADING.ratio:g} windows, learning the rest by age, it "
        f"has {found.value:.1f} [{found.low:.1f}, {found.high:.1f}] excess events, "
        f"{100 * (1 - found.value / mature):.0f} % less than one window: few decisions have reached the last quarter "
        "when most of the choices have been made."
    ]


def told(played: Played[Size]) -> list[str]:
    """Return the findings, if any record is installed."""
    rows = compared(played, CASES)
    return [*findings("Recorded trials", rows), beside_otf(rows)] if rows else []


ARTEFACT = Artefact(id="recorded", order=1, section=section, experiments=_experiments, findings=told)
