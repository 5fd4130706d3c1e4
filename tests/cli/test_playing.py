from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from commands import SPEC, call, refused

from belated import DelayedPSVI, Experiment, Poisson, Results, RiverSwim, runner
from belated._cli import playing
from belated.runner import Rung, Search, Space

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "riverswim.toml"


def test_run_prints_the_summary_and_says_where_everything_is(spec: Path, out: Path) -> None:
    result = call("run", spec, "--out", out)
    assert result.exit_code == 0, result.output
    assert "river, short" in result.stdout
    assert "fixed-best" in result.stdout
    assert str(out / "tiny") in result.stdout
    assert {path.name for path in (out / "tiny").iterdir()} == {
        "river",
        "regret.png",
        "value.png",
        "summary.csv",
        "summary.md",
    }
    summary = pl.read_csv(out / "tiny" / "summary.csv")
    assert summary.select("agent", "seeds").rows() == [("fixed-best", 2), ("random", 2)]
    assert summary["regret"][0] == 0.0 < summary["regret"][1]
    assert "| river | short | random |" in (out / "tiny" / "summary.md").read_text(encoding="utf-8")
    assert (out / "tiny" / "regret.png").read_bytes().startswith(b"\x89PNG")


def test_run_of_an_environment_that_can_only_be_sampled(tmp_path: Path, out: Path) -> None:
    pytest.importorskip("gymnasium")
    spec = tmp_path / "car.toml"
    spec.write_text(
        """
        name = "car"
        episodes = 4
        seeds = 2
        environments.car = {environment = "gymnasium", id = "MountainCar-v0", horizon = 5}
        agents.auto = {algorithm = "auto-psvi"}
        agents.q = {algorithm = "q-learning"}
        delays.late = {distribution = "constant", value = 1}
        """
    )
    result = call("run", spec, "--out", out)
    assert result.exit_code == 0, result.output
    assert "-5.00" in result.stdout
    files = {path.name for path in (out / "car").iterdir() if path.is_file()}
    assert files == {"returns.png", "summary.csv", "summary.md"}
    assert "| car | late | auto | – | **-5.00 [-5.00, -5.00]** | – |" in (out / "car" / "summary.md").read_text("utf-8")


def test_the_same_command_resumes_without_playing(spec: Path, out: Path) -> None:
    first = call("run", spec, "--out", out)
    rows = sorted(out.rglob("*.parquet"))
    before = [(path.stat().st_mtime_ns, path.read_bytes()) for path in rows]
    assert len(rows) == 4
    rows[0].unlink()  # as if the last run had been interrupted

    again = call("run", spec, "--out", out)
    assert again.stdout == first.stdout
    after = [(path.stat().st_mtime_ns, path.read_bytes()) for path in rows]
    assert after[1:] == before[1:]
    assert after[0][1] == before[0][1], "played again, to the same bytes"
    call("run", spec, "--out", out)
    assert [(path.stat().st_mtime_ns, path.read_bytes()) for path in rows] == after


def test_seeds_and_episodes_override_the_file(spec: Path, out: Path) -> None:
    assert call("run", spec, "--out", out, "--seeds", 3, "--episodes", 7, "--jobs", 1).exit_code == 0
    rows = sorted(out.rglob("seed-*.parquet"))
    assert [path.name for path in rows] == [f"seed-0{seed}.parquet" for seed in range(3)] * 2
    assert {pl.read_parquet(path).height for path in rows} == {7}


def test_rows_of_other_settings_are_not_mixed(spec: Path, out: Path) -> None:
    call("run", spec, "--out", out)
    message = refused(call("run", spec, "--out", out, "--episodes", 7))
    assert "episodes was 40, now it is 7" in message


def test_quiet_prints_nothing(spec: Path, out: Path) -> None:
    result = call("run", spec, "--out", out, "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    assert (out / "tiny" / "summary.md").exists()


def test_processes_give_the_same_rows_as_threads(spec: Path, tmp_path: Path) -> None:
    for backend in ("threads", "processes"):
        assert call("run", spec, "--out", tmp_path / backend, "--backend", backend, "--jobs", 2).exit_code == 0
    for path in (tmp_path / "threads").rglob("*.parquet"):
        other = tmp_path / "processes" / path.relative_to(tmp_path / "threads")
        assert path.read_bytes() == other.read_bytes()


def test_without_matplotlib_there_are_no_figures_but_everything_else(
    spec: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = call("run", spec, "--out", out)
    assert result.exit_code == 0
    assert "no figures: this needs matplotlib, which is not installed: pip install 'belated[plots]'" in result.stdout
    assert {path.name for path in (out / "tiny").iterdir()} == {"river", "summary.csv", "summary.md"}


def test_interruption_says_that_the_same_command_resumes(
    spec: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any, **named: Any) -> Results:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_experiment", interrupted)
    result = call("run", spec, "--out", out)
    assert result.exit_code == 130
    assert "finished runs are kept" in result.stderr
    assert "resumes" in result.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('algorithm = "random"', 'algorithm = "randon"', "did you mean 'random'?"),
        ('distribution = "constant"', 'distribution = "konstant"', "did you mean 'constant'?"),
        ('environment = "riverswim"', 'environment = "riverswin"', "did you mean 'riverswim'?"),
        ("episodes = 40", "episodes = 0", "episodes must be an integer >= 1"),
        ("seeds = 2", "", "an experiment needs the field 'seeds'"),
        ("seeds = 2", "seeds = ", "is not a TOML file"),
        ("seeds = 2", f"seeds = {'9' * 5000}", "is not a TOML file"),
        ("seeds = 2", f"seeds = {'[' * 20_000}{']' * 20_000}", "is not a TOML file"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(spec: Path, out: Path, old: str, new: str, message: str) -> None:
    spec.write_text(SPEC.replace(old, new), encoding="utf-8")
    assert message in refused(call("run", spec, "--out", out))
    assert not out.exists()


def test_a_missing_file_and_a_bad_backend_are_refused(spec: Path, out: Path, tmp_path: Path) -> None:
    assert "there is no experiment file" in refused(call("run", tmp_path / "absent.toml"))
    assert "did you mean 'threads'?" in refused(call("run", spec, "--out", out, "--backend", "thread"))


def test_a_place_that_cannot_be_written_is_refused(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    assert str(tmp_path / "file") in refused(call("run", spec, "--out", tmp_path / "file"))


def test_the_example_of_the_documentation_is_an_experiment() -> None:
    experiment = Experiment.load(EXAMPLE)
    assert len(experiment.runs()) == 40
    assert list(experiment.agents) == ["psvi", "lpsvi", "epsilon-greedy", "optimal", "random"]


FILE = """
name = "mine"
episodes = 30
seeds = 1
environments.river = {environment = "riverswim", states = 3}
delays.late = {distribution = "poisson", mean = 5}
agents.psvi = {algorithm = "psvi", scale = {choices = [0.5, 2.0]}}
tune.seeds = 2
"""
WRITTEN = {"winners.json", "search.csv", "search.png"}


def small() -> Search:
    spaces = {"psvi": Space(DelayedPSVI(), {"scale": [0.5, 2.0]})}
    return Search("chain", RiverSwim(), Poisson(5), spaces, [Rung(30, [50, 51], keep=1)], report_seeds=[0])


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("chain", "nowhere:chain", "belated.searches")]
    monkeypatch.setattr(playing, "entry_points", lambda group: points)
    monkeypatch.setattr(EntryPoint, "load", lambda point: small)


@pytest.mark.usefixtures("installed")
def test_a_search_of_an_installed_package_is_found_by_its_name(tmp_path: Path) -> None:
    result = call("tune", "chain", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "chain").iterdir()} == WRITTEN
    assert 'psvi: {"algorithm": "psvi"' in result.output
    assert "is at the edge of the search: try " in result.output


@pytest.mark.usefixtures("installed")
def test_an_unknown_search_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    message = refused(call("tune", "chian", "--out", tmp_path))
    assert "'chain'" in message
    assert ".toml" in message
    assert not list(tmp_path.iterdir())


def test_without_the_studies_there_are_no_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "entry_points", lambda group: [])
    assert "pip install belated-studies" in refused(call("tune", "chain", "--out", tmp_path))


def test_a_search_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(FILE, encoding="utf-8")
    result = call("tune", tmp_path / "mine.toml", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "mine").iterdir()} == WRITTEN
