"""The whole way from declarations to the report, at a tiny size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from belated.experiments.paper import QUICK
from belated.experiments.timing import VARIANTS, Timing
from belated.reports.paper.build import BUILDERS, Report, produce

import belated
from belated.experiments import timing
from belated.reports.document import VERDICTS
from belated.runner import engine
from belated.runner.store import from_parquet


def _tiny(out: Path, **options: object) -> Report:
    return produce(QUICK, out=out, seeds=2, episodes=40, progress=False, **options)  # type: ignore[arg-type]


def _stopwatch() -> list[Timing]:
    return [Timing(name, d, 1e-6 * d, 1e-6 * d, 2e-6 * d) for d in (10, 100, 1000) for name in VARIANTS]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "measure", _stopwatch)
        return folder, _tiny(folder)


def test_every_artefact_has_its_section_and_files(everything: tuple[Path, Report]) -> None:
    folder, report = everything
    assert [section.id for section in report.document.sections] == [*BUILDERS, "departures"]
    page = report.index.read_text(encoding="utf-8")
    for section in report.document.sections:
        for table in section.tables:
            assert f'id="{table.id}"' in page
            assert all((folder / "tables" / f"{table.id}.{kind}").is_file() for kind in ("md", "csv", "tex"))
        for chart in section.charts:
            assert f'id="{chart.id}"' in page
            assert all((folder / "figures" / f"{chart.id}.{kind}").is_file() for kind in ("png", "pdf"))


def test_results_json_has_every_compared_number(everything: tuple[Path, Report]) -> None:
    folder, _ = everything
    records = json.loads((folder / "results.json").read_text(encoding="utf-8"))["results"]
    compared = [record for record in records if record["published"] is not None and record["verdict"] is not None]
    # two blocks of: Table 2 with 3 agents and 3 delays, Tables 3 and 4 with 5 agents and 4 sizes
    assert len(compared) == 2 * (3 * 3 + 2 * 5 * 4)
    assert {record["block"] for record in compared} == {"literal", "tuned"}
    assert all(record["verdict"] in VERDICTS for record in compared)
    (cell,) = [
        record
        for record in compared
        if record["where"] == "table-2-literal" and "UCBVI" in record["row"] and "Pareto" in record["column"]
    ]
    assert (cell["published"], cell["published_spread"], cell["seeds"]) == (7.20, 0.38, 2)
    assert cell["low"] <= cell["value"] <= cell["high"]
    ends = [record for record in records if record["column"].startswith("end of curve")]
    assert {record["where"] for record in ends} >= {"figure-1-tuned-pareto", "figure-3-literal", "delay-chart"}


def test_the_numbers_are_those_of_the_rows(everything: tuple[Path, Report]) -> None:
    folder, _ = everything
    records = json.loads((folder / "results.json").read_text(encoding="utf-8"))["results"]
    (cell,) = [
        record
        for record in records
        if record["where"] == "table-4-literal"
        and record["row"].startswith("Delayed-LPSVI")
        and "100" in record["column"]
    ]
    files = sorted((folder / "rows" / "40-episodes" / "sizes-literal" / "size-100" / "lpsvi").rglob("*.parquet"))
    assert len(files) == 2
    last = [from_parquet(path)[0]["value"][-4:].mean() for path in files]
    assert cell["value"] == pytest.approx(sum(last) / 2)  # type: ignore[arg-type]


def test_a_second_call_plays_nothing_and_writes_the_same_tables(
    everything: tuple[Path, Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = everything
    before = {path.name: path.read_bytes() for path in (folder / "tables").iterdir()}

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a finished run was played again")

    monkeypatch.setattr(engine, "simulate", refuse)
    monkeypatch.setattr(timing, "measure", refuse)
    _tiny(folder)
    assert {path.name: path.read_bytes() for path in (folder / "tables").iterdir()} == before


def test_without_resume_everything_is_played_again_to_the_same_rows(tmp_path: Path) -> None:
    _tiny(tmp_path, names=["figure-3"])
    rows = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    for path in rows:
        path.write_bytes(b"damaged")
    with pytest.raises(belated.DamagedFileError):
        _tiny(tmp_path, names=["figure-3"])
    _tiny(tmp_path, names=["figure-3"], resume=False)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == rows


def test_only_what_was_asked_for_is_played(tmp_path: Path) -> None:
    report = _tiny(tmp_path, names=["figure-2", "figure-3"])
    assert [section.id for section in report.document.sections] == ["figure-2", "figure-3", "departures"]
    played = {path.name for path in (tmp_path / "rows" / "40-episodes").iterdir()}
    assert played == {"figure-3-literal", "figure-3-tuned", "seconds.json"}


def test_a_wrong_name_gets_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(belated.UnknownNameError, match="did you mean 'table-2'"):
        _tiny(tmp_path, names=["table2"])
    assert not list(tmp_path.iterdir())


def test_damaged_timings_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows" / "40-episodes" / "computation.json"
    path.parent.mkdir(parents=True)
    path.write_text("[{", encoding="utf-8")
    with pytest.raises(belated.DamagedFileError, match=r"computation\.json is not a whole file"):
        _tiny(tmp_path, names=["computation"])
