"""The study from end to end, very small, and its statistics against numbers by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from belated.errors import DamagedFileError, UnknownNameError
from belated.experiments.systems import Size
from belated.reports.document import Cell
from belated.reports.systems.build import produce
from belated.reports.systems.sections import BUILDERS, line

TINY = Size("tiny", seeds=2, rounds=300, episodes=30, slow_seeds=2)


def test_a_line_is_found_and_its_deviation_is_a_share_of_the_range() -> None:
    regret = np.array([[10.0, 30.0, 50.0], [12.0, 32.0, 52.0]])
    intercept, slope, deviation = line([0.0, 10.0, 20.0], regret)
    assert intercept.value == pytest.approx(11.0)
    assert slope.value == pytest.approx(2.0)
    assert deviation == pytest.approx(0.0, abs=1e-12)
    # means 0, 3, 0 lie 1, 2, 1 off the level line at 1, and their range is 3
    bent = line([0.0, 1.0, 2.0], np.array([[0.0, 3.0, 0.0], [0.0, 3.0, 0.0]]))
    assert bent[2] == pytest.approx(2 / 3)


@pytest.mark.parametrize("name", ["conversions", "chains"])
def test_a_section_is_played_written_and_resumed(tmp_path: Path, name: str) -> None:
    report = produce(TINY, out=tmp_path, names=[name], jobs=1, progress=False)
    (section,) = report.document.sections
    assert section.id == name
    assert report.index.exists()
    page = (tmp_path / "systems.md").read_text(encoding="utf-8")
    assert all(f"figures/{chart.id}.png" in page for chart in section.charts)
    assert all((tmp_path / "figures" / f"{chart.id}.png").exists() for chart in section.charts)
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "rows").rglob("*.parquet")}
    again = produce(TINY, out=tmp_path, names=[name], jobs=1, progress=False)
    assert again.document.sections[0].tables == section.tables
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "rows").rglob("*.parquet")} == files


def test_lazy_updating_is_compared_with_active_updating_seed_by_seed(tmp_path: Path) -> None:
    report = produce(TINY, out=tmp_path, names=["chains"], jobs=1, progress=False)
    lazy = next(table for table in report.document.sections[0].tables if table.id == "chains-lazy")
    assert [row[0] for row in lazy.rows] == ["chain-5", "chain-10", "chain-20"]
    for row in lazy.rows:
        cells = [entry for entry in row if isinstance(entry, Cell)]
        refuted = any(cell.high < 0 for cell in cells)
        assert row[-1] == ("refuted" if refuted else "reproduced")


def test_unknown_sections_and_damaged_times_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="bandits"):
        produce(TINY, out=tmp_path, names=["bandit"], progress=False)
    (tmp_path / "rows" / "tiny").mkdir(parents=True)
    (tmp_path / "rows" / "tiny" / "pace.json").write_text(json.dumps([1, 2]), encoding="utf-8")
    with pytest.raises(DamagedFileError, match=r"pace\.json"):
        produce(TINY, out=tmp_path, names=["chains"], jobs=1, progress=False)


def test_every_section_has_a_builder() -> None:
    from belated.experiments.systems import ARTEFACTS

    assert list(BUILDERS) == list(ARTEFACTS)


@pytest.mark.slow
def test_the_whole_study_very_small(tmp_path: Path) -> None:
    report = produce(TINY, out=tmp_path, progress=False)
    assert [section.id for section in report.document.sections] == list(BUILDERS)
