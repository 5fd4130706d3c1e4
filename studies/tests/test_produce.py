"""The whole way from a study to its report, at a tiny size: a study made here, and the paper's."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import belated
from belated._util import files as storage
from belated._util.files import load_json, save_json
from belated.runner._store import from_parquet
from belated_studies.paper import STUDY, computation, sparse_draws
from belated_studies.produce import MEASURED, REPORT, TIMES, Report, gather, produce
from belated_studies.reports.document import VERDICTS, Section
from belated_studies.study import Artefact, Measurement, Played, Size, Study

ARTEFACT = """
from typing import NamedTuple

from belated import Constant, Experiment, RandomPolicy, RiverSwim
from belated_studies.reports.document import Block, Cell, Section, Table
from belated_studies.cells_and_curves import regret_cell
from belated_studies.study import Artefact, Measurement

class Length(NamedTuple):
    word: str
    letters: int

def experiments(size):
    named = dict(environments=RiverSwim(states=3), agents={"random": RandomPolicy()}, delays=Constant(1))
    return [Experiment(name="shared", episodes=5, seeds=size.seeds, **named)]

def section(played):
    words = [Cell(value=each.letters) for each in played.measured["words"]]
    regret = regret_cell(played.results["shared"], agent="random")
    table = Table(id="NAME-table", title="T", caption="", columns=["B", "A", "R", "W"],
                  rows=[[Block("tuned"), "random", regret, *words]])
    return Section(id="NAME", title="NAME", tables=[table])

ARTEFACT = Artefact(
    id="NAME", order=ORDER, experiments=experiments, section=section, findings=lambda played: ["NAME was played."],
    measurements=[Measurement(name="words", kind=Length, measure=lambda size: [Length("late", 4)])],
)
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Study[Size]:
    """Return a study whose package is two files in a folder."""
    package = f"study_of_{abs(hash(request.node.name))}"
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("")
    for order, name in enumerate(("second", "first")):
        text = ARTEFACT.replace("NAME", name).replace("ORDER", f"{2 - order}")
        (tmp_path / package / f"{name}.py").write_text(text)
    (tmp_path / package / "helper.py").write_text("nothing = 0")
    monkeypatch.syspath_prepend(tmp_path)
    return Study(
        name="made-here",
        title="A study",
        package=package,
        quick=Size(name="quick", seeds=2),
        full=Size(name="full", seeds=3),
        facts=lambda played: {"Seeds": f"{played.size.seeds}"},
        remarks=lambda played: ["That is all."],
    )


def _records(report: Report) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = load_json(report.results, REPORT, 1)["results"]
    return records


def test_a_file_is_an_artefact(study: Study[Size], tmp_path: Path) -> None:
    report = produce(study, study.quick, out=tmp_path / "out", progress=False)
    assert [section.id for section in report.document.sections] == ["first", "second"]
    assert report.document.summary == ["first was played.", "second was played.", "That is all."]
    assert report.document.facts["Seeds"] == "2"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "index.html",
        "made-here.md",
        "results.json",
        "rows",
        "tables",
    }
    assert {path.name for path in (tmp_path / "out" / "rows" / "quick").iterdir()} == {
        "times.json",
        "shared",
        "measured",
    }
    words = [record for record in _records(report) if record["column"] == "W"]
    assert [(record["artefact"], record["value"], record["seeds"]) for record in words] == [
        ("first", 4, 2),
        ("second", 4, 2),
    ]
    assert {record["block"] for record in words} == {"tuned"}
    assert {record["row"] for record in words} == {"random"}


def test_what_was_measured_is_read_and_without_resume_measured_again(study: Study[Size], tmp_path: Path) -> None:
    def letters(**options: Any) -> float:
        report = produce(study, study.quick, out=tmp_path / "out", only=["first"], progress=False, **options)
        return float(next(record["value"] for record in _records(report) if record["column"] == "W"))

    assert letters() == 4
    kept = tmp_path / "out" / "rows" / "quick" / "measured" / "words.json"
    save_json(kept, MEASURED, 1, {"values": [{"word": "late", "letters": 44}]})
    assert letters() == 44
    assert letters(resume=False) == 4


@pytest.mark.parametrize(
    "content", [{}, {"values": [{"word": "late"}]}, {"values": [{"word": "late", "letters": 4, "more": 1}]}]
)
def test_measurements_of_another_kind_are_refused(study: Study[Size], tmp_path: Path, content: dict[str, Any]) -> None:
    path = tmp_path / "out" / "rows" / "quick" / "measured" / "words.json"
    save_json(path, MEASURED, 1, content)
    with pytest.raises(belated.DamagedFileError, match=r"words\.json does not hold values of this study.*; delete it"):
        produce(study, study.quick, out=tmp_path / "out", progress=False)


def test_damaged_files_and_those_of_another_version_are_refused(
    study: Study[Size], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(study, study.quick, out=tmp_path, progress=False)
    with monkeypatch.context() as patch:
        patch.setattr(storage, "stamp", lambda: {"belated": "99.0", "code": "other"})
        with pytest.raises(belated.InvalidInputError, match=r"was made by belated .* use another folder"):
            produce(study, study.quick, out=tmp_path, progress=False)
    for name in ("measured/words.json", "times.json"):
        path = tmp_path / "rows" / "quick" / name
        whole = path.read_bytes()
        path.write_bytes(whole.replace(b"4", b"5", 1))
        with pytest.raises(belated.DamagedFileError, match="is not an intact"):
            produce(study, study.quick, out=tmp_path, progress=False)
        path.write_bytes(whole)


def test_the_seconds_of_playing_are_added_up_over_calls(study: Study[Size], tmp_path: Path) -> None:
    def seconds() -> dict[str, float]:
        found: dict[str, float] = load_json(tmp_path / "rows" / "quick" / "times.json", TIMES, 1)["seconds"]
        return found

    produce(study, study.quick, out=tmp_path, progress=False)
    first = seconds()
    assert set(first) == {"shared", "words"}
    produce(study, study.quick, out=tmp_path, progress=False)
    assert seconds() == first, "a call that only reads adds nothing"
    produce(study, study.quick, out=tmp_path, seeds=4, progress=False)
    assert seconds()["shared"] > first["shared"]
    assert seconds()["words"] == first["words"]


def test_only_known_artefacts_are_played(study: Study[Size], tmp_path: Path) -> None:
    with pytest.raises(belated.UnknownNameError, match="did you mean 'first'"):
        produce(study, study.quick, out=tmp_path / "out", only=["frist"], progress=False)
    assert not (tmp_path / "out").exists()
    with pytest.raises(belated.InvalidInputError, match="no one number of episodes to change, got 5"):
        produce(study, study.quick, out=tmp_path / "out", episodes=5, progress=False)
    assert not (tmp_path / "out").exists()


# The paper.


def _tiny(out: Path, **options: Any) -> Report:
    return produce(STUDY, STUDY.quick, out=out, seeds=2, episodes=40, progress=False, **options)


def _stopwatch() -> list[computation.Timing]:
    return [
        computation.Timing(name, d, 1e-6 * d, 1e-6 * d, 2e-6 * d)
        for d in (10, 100, 1000)
        for name in computation.VARIANTS
    ]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(computation, "measure", _stopwatch)
        patch.setattr(sparse_draws, "measure", lambda **given: [])
        return folder, _tiny(folder)


def test_every_artefact_has_its_section_and_files(everything: tuple[Path, Report]) -> None:
    folder, report = everything
    assert [section.id for section in report.document.sections] == [
        *("figure-1", "figure-2", "table-2", "table-3", "table-4", "figure-3", "table-1"),
        *("computation", "delay", "details", "sequences", "temperature", "variance", "withheld", "departures"),
    ]
    page = report.index.read_text(encoding="utf-8")
    for section in report.document.sections:
        for table in section.tables:
            assert f'id="{table.id}"' in page
            assert all((folder / "tables" / f"{table.id}.{kind}").is_file() for kind in ("md", "csv", "tex"))
        for chart in section.charts:
            assert f'id="{chart.id}"' in page
            assert all((folder / "figures" / f"{chart.id}.{kind}").is_file() for kind in ("png", "pdf"))


def test_results_json_has_every_compared_number(everything: tuple[Path, Report]) -> None:
    records = _records(everything[1])
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
    assert {record["block"] for record in ends if record["where"].startswith("figure-1-tuned")} == {"tuned"}


def test_the_numbers_are_those_of_the_rows(everything: tuple[Path, Report]) -> None:
    folder, report = everything
    (cell,) = [
        record
        for record in _records(report)
        if record["where"] == "table-4-literal"
        and record["row"].startswith("Delayed-LPSVI")
        and "100" in record["column"]
    ]
    files = sorted((folder / "rows" / "40-episodes" / "sizes-literal" / "size-100" / "lpsvi").rglob("*.parquet"))
    assert len(files) == 2
    last = [from_parquet(path)[0]["value"][-4:].mean() for path in files]
    assert cell["value"] == pytest.approx(sum(last) / 2)  # type: ignore[arg-type]


def test_a_second_call_plays_nothing_and_writes_the_same_tables(
    everything: tuple[Path, Report], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(everything[0] / "rows", tmp_path / "rows").parent

    rows = {path: path.stat().st_mtime_ns for path in (folder / "rows").rglob("*.parquet")}

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("what was measured is measured again")

    monkeypatch.setattr(computation, "measure", refuse)
    _tiny(folder, only=["figure-3", "table-2", "computation"])
    assert {path: path.stat().st_mtime_ns for path in (folder / "rows").rglob("*.parquet")} == rows
    tables = list((folder / "tables").iterdir())
    assert len(tables) > 4
    assert [
        path.name for path in tables if path.read_bytes() != (everything[0] / "tables" / path.name).read_bytes()
    ] == []


def test_without_resume_everything_is_played_again_to_the_same_rows(tmp_path: Path) -> None:
    _tiny(tmp_path, only=["figure-3"])
    rows = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    for path in rows:
        path.write_bytes(b"damaged")
    with pytest.raises(belated.DamagedFileError):
        _tiny(tmp_path, only=["figure-3"])
    _tiny(tmp_path, only=["figure-3"], resume=False)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == rows


def test_what_two_experiments_share_is_played_once(
    everything: tuple[Path, Report], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Table 2 under Poisson delays is the column |S||A| = 40 of Tables 3 and 4, and Figure 1 that of 100."""
    rows = everything[0] / "rows" / "40-episodes"
    for block, agent in (("literal", "lpsvi"), ("tuned", "ucbvi")):
        for size, other in ((40, "table-2"), (100, "figure-1")):
            (world,) = (rows / f"{other}-{block}").iterdir()
            one, same = (
                folder / "poisson" / "seed-01.parquet"
                for folder in (world / agent, rows / f"sizes-{block}" / f"size-{size}" / agent)
            )
            assert from_parquet(one)[0].equals(from_parquet(same)[0])
    alone = _tiny(tmp_path, only=["table-4"])
    numbers = [
        [record["value"] for record in _records(report) if record["where"].startswith("table-4")]
        for report in (alone, everything[1])
    ]
    assert numbers[0] == numbers[1], "to the last digit"
    capsys.readouterr()
    tiny, both = STUDY.full.resized(seeds=2, episodes=40), STUDY.artefacts(["table-2", "table-4"])
    gather(both, tiny, tmp_path / "new", name="paper", cost=lambda run: 1.0, jobs=2)
    # 2 seeds of 2 blocks: Table 2 has 3 agents and 3 delays, Table 4 5 agents and 4 sizes, 3 of which are the same
    # runs; and of the tuned ones a plain chain under 3 delays
    runs = 2 * (2 * (3 * 3 + 5 * 4 - 3) + 3)
    told = capsys.readouterr().err
    assert f"paper: 0 of {runs} seconds of CPU time (about {runs // 2} s on 2 quiet cores; " in told


def test_only_what_was_asked_for_is_played(tmp_path: Path) -> None:
    report = _tiny(tmp_path, only=["figure-2", "figure-3"])
    assert [section.id for section in report.document.sections] == ["figure-2", "figure-3", "departures"]
    played = {path.name for path in (tmp_path / "rows" / "40-episodes").iterdir()}
    assert played == {"figure-3-literal", "figure-3-tuned", "times.json"}


class Guess(NamedTuple):
    """What was measured."""

    number: int


def test_what_does_not_last_is_measured_again(tmp_path: Path) -> None:
    guesses = iter(range(10))

    def section(played: Played[Size]) -> Section:
        return Section(id="a", title=f"{played.measured['guess']}")

    measurement = Measurement[Size](
        name="guess",
        kind=Guess,
        measure=lambda size: [Guess(next(guesses))],
        lasting=lambda values: values[0].number >= 2,
    )
    artefact = Artefact[Size](id="a", order=1, section=section, measurements=[measurement])
    found = [gather([artefact], Size(name="x", seeds=1), tmp_path, progress=False).measured["guess"] for _ in range(5)]
    assert found == [[Guess(0)], [Guess(1)], [Guess(2)], [Guess(2)], [Guess(2)]]
