"""The artefact of recorded trials, with generated ones in their place: no record is installed here."""

from __future__ import annotations

import invented
import pytest

from belated_studies.trials import recorded
from belated_studies.trials.recorded import ARTEFACT, CASES
from belated_studies.trials.settings import AGE, QUICK, Case

SIZE = QUICK.resized(seeds=3)


def test_lengths_and_decisions_are_those_of_the_page() -> None:
    assert len(CASES) == 21
    assert {case.decisions for case in CASES if case.trial == "actg175"} == {2000}


def test_the_first_trial_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [Case("speeds", 100, 1.4, recorded=False)]
    monkeypatch.setattr(recorded, "CASES", cases)
    monkeypatch.setattr(recorded, "SHOWN", cases[0])
    played = invented.played(ARTEFACT, SIZE, lambda run: (30.0 if run.agent_label == AGE else 90.0) + run.seed % 7)
    section = ARTEFACT.section(played)
    assert [len(chart.series) for chart in section.charts] == [4]
    assert len(invented.table(section, "recorded-table")) == 1
    assert "from run to run" in ARTEFACT.findings(played)[-1]
