"""Adversaries, from rows with known numbers."""

from __future__ import annotations

import invented

from belated.environments import AdversarialMDP
from belated.runner import Run
from belated_studies.systems.adversarial import ARTEFACT
from belated_studies.systems.testbeds import QUICK

SIZE = QUICK.resized(seeds=2)
REGRET = {"oppo": 3.0, "dapo": 4.0, "tabular-ucbvi": 5.0, "psvi": 6.0, "random": 1.0}
ADVERSARIES = ["switching", "drifting", "trap"]


def regret(run: Run) -> float:
    assert isinstance(run.environment, AdversarialMDP)
    best = -4.0 if (run.environment_label, run.agent_label) == ("trap", "psvi") else 0.0
    return REGRET[run.agent_label] + best - (0.5 if run.environment.problem.dynamics is not None else 0.0)


def test_all_agents_meet_all_adversaries_and_some_know_the_dynamics() -> None:
    section = ARTEFACT.section(invented.played(ARTEFACT, SIZE, regret))
    assert invented.table(section, "adversarial-table") == [
        ["Delayed OPPO", 3.0, 3.0, 3.0],
        ["Delayed DAPO", 4.0, 4.0, 4.0],
        ["tabular UCBVI, active", 5.0, 5.0, 5.0],
        ["Delayed-PSVI", 6.0, 6.0, 2.0],
        ["random", 1.0, 1.0, 1.0],
        ["Delayed OPPO, dynamics known", 2.5, 2.5, 2.5],
        ["Delayed DAPO, dynamics known", 3.5, 3.5, 3.5],
    ]
    assert [chart.id for chart in section.charts] == [f"adversarial-{name}" for name in ADVERSARIES]


def test_the_finding_names_the_best_agent_that_learns() -> None:
    (told,) = ARTEFACT.findings(invented.played(ARTEFACT, SIZE, regret))
    assert told.endswith("adversary: switching: Delayed OPPO; drifting: Delayed OPPO; trap: Delayed-PSVI.")
