"""The artefact of recorded trials, with generated ones in their place: no record is installed here."""

from __future__ import annotations

import invented
import numpy as np
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


def test_who_hears_only_of_what_is_late_is_not_misled(monkeypatch: pytest.MonkeyPatch) -> None:
    """slow-and-good has two arms, too; of the fast one nearly nothing is late."""
    case = Case("slow-and-good", 140, 1.4, recorded=False)
    monkeypatch.setattr(recorded, "MISLEADING", case)
    monkeypatch.setattr(recorded, "CASES", [case])
    monkeypatch.setattr(recorded, "CROSSED", 0.25)
    late, whole = recorded._late_only(), case.make(told=False)
    ages = whole.courses.ages
    assert np.isfinite(late.courses.ages).sum() == np.isfinite(ages[ages > 0.25]).sum()
    assert late.rewards[0, 0, 1] < 1e-6 < late.rewards[0, 0, 0] < whole.rewards[0, 0, 0]
    assert late.window == whole.window
    played = invented.played(ARTEFACT, SIZE, lambda run: (30.0 if run.agent_label == AGE else 90.0) + run.seed % 3)
    text = " ".join(ARTEFACT.section(played).paragraphs)
    ratio = np.ptp(whole.rewards) / np.ptp(late.rewards)
    assert f"it has {31.0 * ratio:.1f} [" in text
    assert f"{100 * (1 - 31.0 * ratio / 91.0):.0f} % less than one window: few" in text
