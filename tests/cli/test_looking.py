from pathlib import Path

import numpy as np
import polars as pl
import pytest
from commands import call, refused

import belated
import belated.theory
from belated import DelayedPSVI, RandomPolicy, RiverSwim, save_agent
from belated._util.files import save_arrays


@pytest.mark.parametrize(
    ("kind", "name", "settings"),
    [
        ("agents", "epsilon-greedy", "ridge=1.0, shared=False, epsilon=0.1"),
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
    names = [*belated.agents.AGENTS, *belated.delays.DELAYS, *belated.environments.ENVIRONMENTS]
    assert [name for name in names if f"  {name}  " not in everything] == []
    assert call("list", "delays").stdout in everything
    assert "riverswim" not in call("list", "delays").stdout


def test_list_suggests_the_nearest_kind() -> None:
    assert "did you mean 'agents'?" in refused(call("list", "agent"))


def test_show_the_rows_of_a_run(spec: Path, out: Path) -> None:
    call("run", spec, "--out", out)
    text = call("show", out / "tiny" / "river" / "fixed-best" / "short" / "seed-01.parquet").stdout
    assert "distribution = constant, value = 2" in text
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
    assert f"{file} is not an intact" in refused(call("show", file))


def test_show_refuses_an_agent_with_a_wrong_byte(tmp_path: Path) -> None:
    file = tmp_path / "agent.npz"
    save_agent(file, RandomPolicy().start(RiverSwim().problem))
    assert call("show", file).exit_code == 0
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    assert f"{file} is not an intact" in refused(call("show", file))


def test_show_refuses_foreign_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "foreign.npz", numbers=np.zeros(3))
    assert "is not an intact belated-agent file" in refused(call("show", tmp_path / "foreign.npz"))
    save_arrays(tmp_path / "empty.npz", "belated-agent", 1, {}, {})
    assert "does not have the settings" in refused(call("show", tmp_path / "empty.npz"))
    assert "must be a .parquet file" in refused(call("show", tmp_path / "notes.txt"))


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
        ("poisson:50", "the delay must be a distribution and its settings, such as poisson:mean=50, got 'poisson:50'"),
        ("poisson:mean=late", "the delay's mean must be a number, got 'late'"),
        ("pareto:shape=1,scale=500", "sub-exponential"),
    ],
)
def test_bounds_refuses_delays_it_cannot_use(delay: str, message: str) -> None:
    assert message in refused(call("bounds", "-d", 5, "-H", 5, "-K", 100, "--delay", delay))


@pytest.mark.parametrize("kind", ["regret", "value", "returns", "delays"])
def test_plot_draws_a_folder_and_says_where(kind: str, spec: Path, out: Path) -> None:
    call("run", spec, "--out", out)
    result = call("plot", out / "tiny", "--kind", kind)
    picture = out / "tiny" / f"{kind}.png"
    assert result.stdout.strip() == f"the plot is {picture}"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_plot_writes_where_it_is_told(spec: Path, out: Path, tmp_path: Path) -> None:
    call("run", spec, "--out", out)
    picture = tmp_path / "new" / "curve.svg"
    assert str(picture) in call("plot", out, "--log", "xy", "--out", picture).stdout
    assert picture.read_text(encoding="utf-8").startswith("<?xml")


def test_plot_draws_saved_results(tmp_path: Path) -> None:
    results = belated.run(
        RiverSwim(states=3), {"random": RandomPolicy()}, belated.Constant(2), episodes=10, seeds=2, progress=False
    )
    results.save(tmp_path / "kept.parquet")
    assert str(tmp_path / "kept-value.png") in call("plot", tmp_path / "kept.parquet", "--kind", "value").stdout


def test_plot_refuses_what_it_cannot_draw(spec: Path, out: Path, tmp_path: Path) -> None:
    assert "there is no folder" in refused(call("plot", out))
    call("run", spec, "--out", out)
    assert "did you mean 'regret'?" in refused(call("plot", out, "--kind", "regrets"))
    assert "log must be one of" in refused(call("plot", out, "--log", "yx"))
    assert "the ending of the figure's name" in refused(call("plot", out, "--out", tmp_path / "x.gif"))
    assert not (tmp_path / "x.gif").exists()
