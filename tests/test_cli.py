import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import belated
import belated.theory
from belated import DelayedPSVI, Experiment, RandomPolicy, Results, RiverSwim, save_agent
from belated.cli import app
from belated.experiments.searches import SEARCHES
from belated.runner.tuning import Rung, Search, Space

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "riverswim.toml"

SPEC = """
name = "tiny"
episodes = 40
seeds = 2
[environments.river]
environment = "riverswim"
states = 3
[agents.fixed-best]
algorithm = "optimal"
[agents.random]
algorithm = "random"
[delays.short]
law = "constant"
value = 2
"""


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(SPEC, encoding="utf-8")
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def refused(result: Any) -> str:
    """Return the message of a command that failed as it should: one line on stderr, exit code 2, no traceback."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return str(result.stderr)


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


def test_the_same_command_resumes_without_playing(spec: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = call("run", spec, "--out", out)
    rows = sorted(out.rglob("*.parquet"))
    before = [(path.stat().st_mtime_ns, path.read_bytes()) for path in rows]
    assert len(rows) == 4
    rows[0].unlink()  # as if the last run had been interrupted

    played = []

    def counted(*arguments: Any, **named: Any) -> pl.DataFrame:
        played.append(named["seed"])
        return belated.simulate(*arguments, **named)

    monkeypatch.setattr("belated.runner.playing.simulate", counted)
    again = call("run", spec, "--out", out)
    assert again.stdout == first.stdout
    assert len(played) == 1
    after = [(path.stat().st_mtime_ns, path.read_bytes()) for path in rows]
    assert after[1:] == before[1:]
    assert after[0][1] == before[0][1], "played again, to the same bytes"
    call("run", spec, "--out", out)
    assert len(played) == 1


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
    assert "no figures: figures need Matplotlib: pip install 'belated[plots]'" in result.stdout
    assert {path.name for path in (out / "tiny").iterdir()} == {"river", "summary.csv", "summary.md"}


def test_interruption_says_that_the_same_command_resumes(
    spec: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any, **named: Any) -> Results:
        raise KeyboardInterrupt

    monkeypatch.setattr(belated.cli, "run_experiment", interrupted)
    result = call("run", spec, "--out", out)
    assert result.exit_code == 130
    assert "finished runs are kept" in result.stderr
    assert "resumes" in result.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('algorithm = "random"', 'algorithm = "randon"', "did you mean 'random'?"),
        ('law = "constant"', 'law = "konstant"', "did you mean 'constant'?"),
        ('environment = "riverswim"', 'environment = "riverswin"', "did you mean 'riverswim'?"),
        ("episodes = 40", "episodes = 0", "episodes must be a whole number >= 1, got 0"),
        ("seeds = 2", "", "an experiment needs the field 'seeds'"),
        ("seeds = 2", "seeds = ", "is not a TOML file"),
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


def test_an_error_is_red_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    result = CliRunner().invoke(app, ["show", "absent.npz"], color=True)
    assert result.exit_code == 2
    assert "\x1b[31merror: there is no file absent.npz\x1b[0m" in result.stderr


@pytest.mark.parametrize(
    ("kind", "name", "settings"),
    [
        ("agents", "epsilon-greedy", "epsilon=0.1, ridge=1.0"),
        ("delays", "pareto", "shape, scale, kind='classical'"),
        ("delays", "lossy", "of, missing"),
        ("environments", "riverswim", "states=5, horizon=20, forward=0.35, backward=0.05"),
    ],
)
def test_list_shows_names_and_settings(kind: str, name: str, settings: str) -> None:
    result = call("list", kind)
    assert result.exit_code == 0
    assert name in result.stdout
    assert settings in result.stdout


def test_list_says_in_one_line_what_each_is() -> None:
    assert "Takes every action with the same probability" in call("list", "agents").stdout
    assert "The delay `categories[i]` with probability" in call("list", "delays").stdout


def test_list_without_a_kind_shows_everything() -> None:
    everything = call("list").stdout
    names = [*belated.algorithms.ALGORITHMS, *belated.delays.LAWS, *belated.environments.ENVIRONMENTS]
    assert [name for name in names if f"  {name}  " not in everything] == []
    assert call("list", "delays").stdout in everything
    assert "riverswim" not in call("list", "delays").stdout


def test_list_suggests_the_nearest_kind() -> None:
    assert "did you mean 'agents'?" in refused(call("list", "agent"))


def test_show_the_rows_of_a_run(spec: Path, out: Path) -> None:
    call("run", spec, "--out", out)
    text = call("show", out / "tiny" / "river" / "fixed-best" / "short" / "seed-01.parquet").stdout
    assert "law = constant, value = 2" in text
    assert "█" * 40 in text, "the best policy is at the top of the scale all the time"
    assert "37 of 40 trajectories" in text


def test_show_saved_results(tmp_path: Path) -> None:
    results = belated.run(
        RiverSwim(states=3), {"random": RandomPolicy()}, belated.Constant(2), episodes=10, seeds=2, progress=False
    )
    results.save(tmp_path / "results.parquet")
    text = call("show", tmp_path / "results.parquet").stdout
    assert "riverswim-3, constant-2" in text
    assert "over 2 seeds" in text


def test_show_a_saved_agent(tmp_path: Path) -> None:
    agent = DelayedPSVI(scale=2.5).start(RiverSwim(states=3, horizon=4).problem)
    save_agent(tmp_path / "agent.npz", agent, np.random.default_rng(0))
    words = call("show", tmp_path / "agent.npz").stdout.split("\n")
    facts = {line.split()[0]: " ".join(line.split()[1:]) for line in words if line.strip()}
    assert facts["algorithm"] == "psvi"
    assert facts["scale"] == "2.5"
    assert facts["problem"] == "3 states, 2 actions, 6 features, 4 steps"
    assert facts["random"] == "stream saved with it"
    assert facts["factor"] == "4 × 6 × 6 float64 0 1"
    assert set(agent.memory()) <= set(facts)


def test_show_refuses_a_truncated_file_of_rows(spec: Path, out: Path) -> None:
    call("run", spec, "--out", out)
    file = next(out.rglob("*.parquet"))
    assert call("show", file).exit_code == 0
    file.write_bytes(file.read_bytes()[:-100])
    assert f"{file} is not a whole" in refused(call("show", file))


def test_show_refuses_an_agent_with_a_wrong_byte(tmp_path: Path) -> None:
    file = tmp_path / "agent.npz"
    save_agent(file, RandomPolicy().start(RiverSwim().problem))
    assert call("show", file).exit_code == 0
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    assert f"{file} is not a whole" in refused(call("show", file))


def test_show_refuses_foreign_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "foreign.npz", numbers=np.zeros(3))
    assert "is not a whole belated-agent file" in refused(call("show", tmp_path / "foreign.npz"))
    belated.storage.save_arrays(tmp_path / "empty.npz", "belated-agent", 1, {}, {})
    assert "does not hold the settings" in refused(call("show", tmp_path / "empty.npz"))
    assert "must be a .parquet file" in refused(call("show", tmp_path / "notes.txt"))


def test_version() -> None:
    result = call("--version")
    assert (result.exit_code, result.stdout) == (0, f"belated {belated.__version__}\n")


def test_an_unknown_command_is_refused_with_a_suggestion() -> None:
    result = call("rnu")
    assert result.exit_code == 2
    assert "run" in result.stderr


def test_every_command_has_help() -> None:
    assert "Reinforcement learning for rewards that arrive late." in call("--help").stdout
    for command in ("run", "list", "show", "demo"):
        result = call(command, "--help")
        assert result.exit_code == 0
        assert len(result.stdout.splitlines()) > 5


def test_the_example_of_the_documentation_is_an_experiment() -> None:
    experiment = Experiment.load(EXAMPLE)
    assert len(experiment.runs()) == 40
    assert list(experiment.agents) == ["psvi", "lpsvi", "epsilon-greedy", "optimal", "random"]


def test_paper_writes_the_report_and_says_where(tmp_path: Path) -> None:
    result = call(
        "paper", "--only", "figure-2", "--only", "figure-3", "--seeds", 2, "--episodes", 30, "--out", tmp_path
    )
    assert result.exit_code == 0, result.output
    assert f"the report is {tmp_path / 'index.html'}" in result.output
    assert "wall time" in result.output
    assert (tmp_path / "index.html").is_file()
    assert (tmp_path / "results.json").is_file()


def test_paper_and_tune_suggest_the_nearest_name(tmp_path: Path) -> None:
    assert "did you mean 'table-2'?" in refused(call("paper", "--only", "tabel-2", "--out", tmp_path))
    assert "did you mean 'synthetic'?" in refused(call("tune", "synthetik", "--out", tmp_path))
    assert not list(tmp_path.iterdir())


def test_tune_writes_winners_table_and_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spaces = {"psvi": Space(DelayedPSVI(), {"scale": [0.5, 2.0]})}
    small = Search("small", RiverSwim(), belated.Poisson(5), spaces, [Rung(30, [50, 51], keep=1)], report_seeds=[0])
    monkeypatch.setitem(SEARCHES, "small", small)
    result = call("tune", "small", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "small").iterdir()} == {"winners.json", "search.csv", "search.png"}
    assert "psvi: DelayedPSVI(" in result.output


def test_bounds_prints_constants_and_what_a_run_measured(spec: Path, out: Path) -> None:
    sizes = ("-d", 10, "-H", 20, "-K", 5000, "--delay", "poisson:mean=50")
    result = call("bounds", *sizes)
    assert result.exit_code == 0, result.output
    rounds = belated.theory.rounds(0.05, 20, 5000)
    assert f"{rounds:,}" in result.output
    call("run", spec, "--out", out, "--quiet")
    (rows, *_) = sorted(out.rglob("*.parquet"))
    beside = call("bounds", *sizes, "--run", rows)
    frame = pl.read_parquet(rows)
    assert "Measured" in beside.output
    assert f"{(frame['optimal'] - frame['value']).sum():,.4g}" in beside.output


@pytest.mark.parametrize(
    ("delay", "message"),
    [
        ("poison:mean=50", "did you mean 'poisson'?"),
        ("poisson:50", "the delay must be a law and its settings, such as poisson:mean=50, got 'poisson:50'"),
        ("poisson:mean=late", "the delay's mean must be a number, got 'late'"),
        ("pareto:shape=1,scale=500", "sub-exponential"),
    ],
)
def test_bounds_refuses_delays_it_cannot_use(delay: str, message: str) -> None:
    assert message in refused(call("bounds", "-d", 5, "-H", 5, "-K", 100, "--delay", delay))
