"""Trials whose patients show baseline covariates: which arm is best depends on them."""

from __future__ import annotations

from belated_studies.reports.document import Section
from belated_studies.study import Artefact, Played
from belated_studies.trials.settings import RATIOS, Case, Size, compared, experiments, findings, regret_table

CASES = [Case(trial, 4000, ratio, contexts=True) for trial in ("actg175", "rossi") for ratio in RATIOS]


def section(played: Played[Size]) -> Section:
    """Return regret against the best arm of each patient."""
    rows = compared(played, CASES)
    paragraph = (
        "A context is a random patient of the trial, with six baseline covariates. The outcome of an arm is drawn from "
        "the 50 patients of that arm with the nearest covariates, so this is a smoothed version of the trial and no "
        "longer a randomised comparison. Regret is counted against the best arm of each patient. Agents fit a linear "
        "model for each arm; the truth is not linear."
    )
    tables = [regret_table("contexts-table", "Excess events", "Trials with contexts.", rows)] if rows else []
    return Section(id="contexts", title="With contexts", paragraphs=[paragraph], tables=tables)


def told(played: Played[Size]) -> list[str]:
    """Return the findings, if the records are installed."""
    rows = compared(played, CASES)
    return findings("With contexts", rows) if rows else []


ARTEFACT = Artefact(
    id="contexts", order=3, section=section, experiments=lambda size: experiments(CASES, size), findings=told
)
