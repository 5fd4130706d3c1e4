"""The study as a whole: its artefacts, its size, and the way to its pages at a tiny one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import belated
from belated.errors import UnknownNameError
from belated_studies.produce import produce
from belated_studies.study import Played
from belated_studies.systems import STUDY
from belated_studies.systems.testbeds import FULL, QUICK, Size

TINY = Size(name="tiny", seeds=2, rounds=300, episodes=30, slow_seeds=2)
ARTEFACTS = ["systems", "bandits", "conversions", "contexts", "chains", "arbitrary", "switching", "adversarial"]


def test_the_artefacts_stand_in_order_and_share_no_experiment() -> None:
    artefacts = STUDY.artefacts()
    assert [artefact.id for artefact in artefacts] == ARTEFACTS
    names = [one.name for artefact in artefacts for one in artefact.experiments(QUICK)]
    assert len(set(names)) == len(names) == 14
    assert set(STUDY.experiments(QUICK, ["chains"])) == {"chains"}
    with pytest.raises(UnknownNameError, match="chains"):
        STUDY.experiments(QUICK, ["chain"])


def test_the_full_study_has_the_promised_size() -> None:
    declared = STUDY.experiments(FULL)
    for name in ("bandits", "chains", "conversions-never", "testbed-mdp", "switching"):
        assert declared[name].seeds == tuple(range(30))
    bandits = declared["bandits"].runs()
    assert {run.environment.dimension for run in bandits if isinstance(run.environment, belated.FiniteMDP)} == {
        5,
        10,
        20,
    }
    means = {run.delay.mean for run in bandits if isinstance(run.delay, belated.DelayDistribution)}
    assert {100, 1000} <= means
    worlds = [run.environment for run in declared["chains"].runs()]
    assert {(one.states, one.horizon) for one in worlds if isinstance(one, belated.FiniteMDP)} == {
        (5, 5),
        (10, 10),
        (20, 20),
    }


def test_only_the_contexts_need_scikit_learn() -> None:
    script = (
        "import sys; sys.modules['sklearn'] = sys.modules['sklearn.datasets'] = None\n"
        "from belated.errors import BelatedError\n"
        "from belated_studies.systems import STUDY\n"
        f"for name in {[name for name in ARTEFACTS if name != 'contexts']}:\n"
        "    STUDY.experiments(STUDY.quick, [name])\n"
        "try:\n"
        "    STUDY.experiments(STUDY.quick, ['contexts'])\n"
        "except BelatedError as error:\n"
        "    print(error)\n"
    )
    called = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "needs scikit-learn" in called.stdout


@pytest.mark.parametrize("name", ["conversions", "chains"])
def test_an_artefact_is_played_written_and_resumed(tmp_path: Path, name: str) -> None:
    report = produce(STUDY, TINY, out=tmp_path, only=[name], jobs=1, progress=False)
    (section,) = report.document.sections
    assert section.id == name
    page = (tmp_path / "systems.md").read_text(encoding="utf-8")
    assert all(f"figures/{chart.id}.png" in page for chart in section.charts)
    assert all((tmp_path / "figures" / f"{chart.id}.png").exists() for chart in section.charts)
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "rows").rglob("*.parquet")}
    assert files
    again = produce(STUDY, TINY, out=tmp_path, only=[name], jobs=1, progress=False)
    assert again.document.sections[0].tables == section.tables
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "rows").rglob("*.parquet")} == files


def test_a_quick_look_says_what_it_is() -> None:
    few = Played(TINY.resized(seeds=1), {}, {})
    assert STUDY.remarks(few) == ["This is a quick look with 1 seeds; `belated systems --full` plays 30."]
    assert STUDY.facts(few)["Seeds"] == "0 to 0, or to 0 where agents run in Python"
    assert STUDY.remarks(Played(FULL, {}, {})) == []


@pytest.mark.slow
def test_the_whole_study_very_small(tmp_path: Path) -> None:
    report = produce(STUDY, TINY, out=tmp_path, progress=False)
    assert [section.id for section in report.document.sections] == ARTEFACTS
