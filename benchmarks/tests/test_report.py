"""Tables, files and the picture, from figures that are given."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from belated._util.plot_style import save_figure
from belated.errors import UnknownNameError
from benchmarks import engines, groups, peers
from benchmarks.__main__ import app
from benchmarks.measure import Measure, at_least, at_most, unmeasured
from benchmarks.problems import Effort
from benchmarks.profile import Profile
from benchmarks.report import Report, describe_machine, markdown, picture, terminal, write

#: Groups that start processes of their own.
PROCESSES = ("start", "long", "service", "sessions", "session-cartpole", "sparse-neighbour")
#: Groups whose figures are no times, and may be 0 or less.
LEARNED = (
    "silence",
    "probabilities",
    "coverage",
    "learning",
    "likelihoods",
    "sparse",
    "sparse-learning",
    "sparse-exactness",
)
TINY = Effort(
    repeats=2,
    small_episodes=40,
    medium_episodes=2,
    flat_episodes=4 * 256,
    long_episodes=3000,
    core_episodes=50,
    peer_episodes=2,
    rounds=4,
    dimension=16,
    least_seconds=1e-4,
    patient=False,
)

MEASURES = [
    Measure("against naive", (60.0, 55.0, 70.0), target=at_least(50), note="K=4000", group="naive"),
    Measure("over the floor", (2.0, 1.9, 2.5), target=at_most(1.6), group="floor"),
    Measure("bandwidth", (71.25,), unit="GB/s", group="machine"),
    unmeasured("river", "ERROR: no matching distribution", target=at_least(2)),
]
PROFILES = [Profile("psvi", "small", 4e-5, {"update": 1e-5, "draw": 2e-5})]
MACHINE = {
    "processor": "a processor",
    "cores": 2,
    "load": 0.5,
    "system": "Linux x86_64",
    "versions": {"python": "3.11.7", "numpy": "2.0.0"},
}
REPORT = Report(MEASURES, PROFILES, MACHINE, quick=True)


def shown(report: Report) -> str:
    console = Console(width=140, record=True, file=Path("/dev/null").open("w"))  # noqa: SIM115
    console.print(terminal(report))
    console.file.close()
    return console.export_text()


def test_the_table_has_every_measure_with_spread_target_and_verdict() -> None:
    text = shown(REPORT)
    lines = {line.split("  ")[1]: line for line in text.splitlines() if "  " in line}
    assert "60 ×" in lines["against naive"]
    assert "55 – 70 (3)" in lines["against naive"]
    assert "yes" in lines["against naive"]
    assert "NO" in lines["over the floor"]
    assert "not measured" in lines["river"]
    assert "ERROR: no matching distribution" in text
    assert "50.0 %" in text  # the share of the draw
    assert "25.0 %" in text  # and of the remainder


def test_the_markdown_has_the_same_and_says_where_it_was_measured() -> None:
    text = markdown(REPORT)
    assert "| against naive | 60 × | 55 – 70 (3) | ≥ 50 | yes | K=4000 |" in text
    assert "| over the floor | 2 × | 1.9 – 2.5 (3) | ≤ 1.6 | NO |  |" in text
    assert "| river | not measured | – | ≥ 2 | – | not measured: ERROR: no matching distribution |" in text
    assert "a processor, 2 cores, Linux x86_64, load 0.50 before the run; python 3.11.7, numpy 2.0.0." in text
    assert "A quick run" in text
    assert "| psvi | small | 40 µs | 25.0 % | 50.0 % | 25.0 % |" in text
    assert "goes" not in markdown(Report(MEASURES, [], MACHINE, quick=False))


def test_the_json_has_every_figure_and_reads_back(tmp_path: Path) -> None:
    written = write(REPORT, tmp_path / "out", tmp_path / "copy.json")
    assert [path.name for path in written] == ["speed.md", "speed.json", "copy.json"]
    content = json.loads((tmp_path / "copy.json").read_text(encoding="utf-8"))
    assert json.loads((tmp_path / "out" / "speed.json").read_text(encoding="utf-8")) == content
    assert set(content) == {"quick", "machine", "measures", "profiles"}
    assert content["measures"][0] == {
        "group": "naive",
        "name": "against naive",
        "median": 60.0,
        "low": 55.0,
        "high": 70.0,
        "unit": "×",
        "repeats": 3,
        "target": "≥ 50",
        "met": True,
        "note": "K=4000",
    }
    missing = content["measures"][3]
    assert (missing["median"], missing["low"], missing["met"], missing["repeats"]) == (None, None, None, 0)
    assert content["profiles"][0]["remainder"] == pytest.approx(1e-5)


def test_the_picture_has_a_bar_for_each_ratio_and_a_mark_for_each_target(tmp_path: Path) -> None:
    others = [Measure("against a peer", (3.0,)), Measure("over a stricter floor", (2.5,), less_is_better=True)]
    figure = picture(replace(REPORT, measures=[*MEASURES, *others]))
    assert figure is not None
    large, small = figure.axes
    assert [label.get_text() for label in large.get_yticklabels()] == ["against naive", "against a peer"]
    assert [label.get_text() for label in small.get_yticklabels()] == ["over the floor", "over a stricter floor"]
    assert large.patches[0].get_x() + large.patches[0].get_width() == 60.0  # type: ignore[attr-defined]
    marks = [float(np.asarray(line.get_xdata())[0]) for line in large.lines if line.get_linewidth() == 2.2]
    assert marks == [50.0]
    save_figure(figure, tmp_path / "speed.png")
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")
    assert picture(Report([MEASURES[2], MEASURES[3]], [], MACHINE, quick=False)) is None


def test_the_machine_is_described() -> None:
    about = describe_machine()
    assert about["cores"] >= 1
    assert {"python", "belated", "numpy", "numba"} <= set(about["versions"])


def test_groups_are_measured_by_name_and_an_unknown_one_is_refused_before_anything_runs() -> None:
    ran: list[str] = []

    def group(name: str) -> groups.MeasureGroup:
        def measure(effort: Effort, tell: groups.Tell) -> list[Measure]:
            ran.append(name)
            return [Measure(name, (float(effort.repeats),))]

        return measure

    known = {name: group(name) for name in ("naive", "floor", "machine")}
    told: list[str] = []
    report = groups.bench(only=["floor", "naive", "floor"], known=known, effort=TINY, tell=told.append)
    assert ran == ["floor", "naive"]
    assert told == ["measuring floor", "measuring naive"]
    assert [(each.group, each.name, each.spread and each.spread.median) for each in report.measures] == [
        ("floor", "floor", 2.0),
        ("naive", "naive", 2.0),
    ]
    ran.clear()
    with pytest.raises(UnknownNameError, match="did you mean 'naive'"):
        groups.bench(only=["floor", "naiv"], known=known, effort=TINY)
    assert ran == []
    groups.bench(known=known, effort=TINY)
    assert ran == ["naive", "floor", "machine"]


def test_the_engines_are_measures_with_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {("processes", 1): 3.6, ("processes", 2): 2.0, ("ray", 2): 2.8}
    asked: list[tuple[str, int]] = []

    def timed(sweep: object, backend: str, jobs: int) -> float:
        asked.append((backend, jobs))
        return taken[backend, jobs]

    monkeypatch.setattr(engines, "_ray", lambda: nullcontext(True))
    monkeypatch.setattr(engines, "_episodes", lambda: 1000)
    monkeypatch.setattr(engines, "_timed", timed)
    gain, cost = engines.engines(replace(TINY, patient=True, repeats=5))
    assert asked[3:] == [*taken, *reversed(taken), *taken]  # three repeats, after the workers have started
    assert (gain.values, str(gain.target), gain.met, gain.note) == ((1.8, 1.8, 1.8), "≥ 1.8", True, "throughput")
    assert (cost.values, str(cost.target), cost.met) == ((1.4, 1.4, 1.4), "≤ 1.3", False)
    (missing,) = engines.engines(TINY)
    assert missing.note == "not measured: it takes minutes; run without --quick"


def test_the_command_suggests_the_nearest_name(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--only", "rivr", "--out", str(tmp_path / "bench")])
    assert result.exit_code == 2
    assert "did you mean 'river'" in result.stderr
    assert not (tmp_path / "bench").exists()


def test_the_command_prints_and_writes_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}

    def bench(**arguments: object) -> Report:
        asked.update(arguments)
        return REPORT

    monkeypatch.setattr("benchmarks.__main__.bench", bench)
    out, copy = tmp_path / "bench", tmp_path / "figures.json"
    options = ["--quick", "--profile", "--only", "naive", "--only", "floor", "--out", str(out), "--json", str(copy)]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    assert (asked["quick"], asked["profile"], asked["only"]) == (True, True, ["naive", "floor"])
    assert {path.name for path in out.iterdir()} == {"speed.md", "speed.json", "speed.png"}
    assert copy.is_file()
    assert "against naive" in result.stdout


@pytest.mark.slow
def test_a_quick_run_of_everything_measures_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With tiny sizes, and an empty cache, so that no peer is there."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    known = {name: group for name, group in groups.groups().items() if name not in PROCESSES}
    report = groups.bench(quick=True, effort=TINY, known=known)
    assert [measure.group for measure in report.measures] == [
        name for name in known for measure in report.measures if measure.group == name
    ]
    assert {measure.group for measure in report.measures} == set(known)
    for measure in report.measures:
        if measure.values and measure.group in LEARNED:
            assert np.isfinite(measure.values).all()
        elif measure.values:
            assert min(measure.values) > 0
            assert len(measure.values) == TINY.repeats * (4 if measure.group == "floor" else 1)
        else:
            assert measure.note.startswith("not measured: it ")
            assert measure.note.endswith("; run without --quick")
    missing = {measure.group for measure in report.measures if not measure.values}
    assert missing == {*peers.peers(), "learning", "engines", "sparse", "sparse-learning"}
