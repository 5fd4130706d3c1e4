"""The artefact of trials with contexts, with generated ones in their place: no record is installed here."""

from __future__ import annotations

import invented
import pytest

from belated_studies.trials import contexts
from belated_studies.trials.contexts import ARTEFACT, CASES
from belated_studies.trials.settings import QUICK, Case

SIZE = QUICK.resized(seeds=3)


def test_contexts_are_shown_in_two_trials() -> None:
    assert {case.trial for case in CASES if case.contexts} == {"actg175", "rossi"}


def test_every_case_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "CASES", [Case("speeds", 100, ratio, recorded=False) for ratio in (1.4, 5.0)])
    played = invented.played(ARTEFACT, SIZE, lambda run: 30.0 + run.seed % 7)
    assert len(invented.table(ARTEFACT.section(played), "contexts-table")) == 2
    assert len(ARTEFACT.findings(played)) == 2
