"""What silence means, from rows with known numbers."""

from __future__ import annotations

import invented

from belated.runner import Run
from belated_studies.systems.conversions import ARTEFACT
from belated_studies.systems.testbeds import QUICK, SILENT, TOLD

SIZE = QUICK.resized(seeds=6)


def test_who_waits_is_measured_both_ways() -> None:
    never, told = ARTEFACT.experiments(SIZE)
    assert list(never.agents) == ["otf-linucb", "otf-lints", "pslb", "ofu"]
    assert list(told.agents) == ["pslb", "ofu"]
    assert {run.delay for run in never.runs()} == {SILENT}
    assert {run.delay for run in told.runs()} == {TOLD}


def regret(run: Run) -> float:
    return {"otf-linucb": 3.0, "otf-lints": 2.0, "pslb": 9.0, "ofu": 8.0}[run.agent_label] + 20 * (run.delay == TOLD)


def test_the_table_has_both_and_says_who_needs_no_telling() -> None:
    section = ARTEFACT.section(invented.played(ARTEFACT, SIZE, regret))
    assert invented.table(section, "conversions-table") == [
        ["OTFLinUCB", 3.0, None],
        ["OTFLinTS", 2.0, None],
        ["Delayed-PSLB", 9.0, 29.0],
        ["Delayed OFU", 8.0, 28.0],
    ]
    (chart,) = section.charts
    dashed = {series.name: float(series.y[-1]) for series in chart.series if series.dashed}
    assert dashed == {"Delayed-PSLB, reported after the window": 29.0, "Delayed OFU, reported after the window": 28.0}


def test_the_finding_compares_the_best_of_each_kind() -> None:
    (told,) = ARTEFACT.findings(invented.played(ARTEFACT, SIZE, regret))
    assert ": reproduced. " in told
    assert "OTFLinTS has regret 2 and Delayed OFU, which waits for feedback, 8." in told
    (other,) = ARTEFACT.findings(invented.played(ARTEFACT, SIZE, lambda run: -regret(run)))
    assert ": refuted. " in other
    (none,) = ARTEFACT.findings(invented.played(ARTEFACT, SIZE, lambda run: 1.0))
    assert ": undecided. " in none
