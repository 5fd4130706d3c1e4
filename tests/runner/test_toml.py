"""Experiments with classes of a user's own, and with included winners, from TOML files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from own_classes import TOML, write_modules
from polars.testing import assert_frame_equal

import belated
from belated._util.files import BLANK_SEAL, seal
from belated.runner._tuning import search_from_dict, tune

OWN = "own_classes_of_specs"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    write_modules(tmp_path, OWN)
    (tmp_path / "own.toml").write_text(TOML.replace("NAME", OWN), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield tmp_path
    sys.modules.pop(OWN, None)


@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_every_backend_plays_classes_of_ones_own(working_folder: Path, backend: str) -> None:
    experiment = belated.Experiment.load("own.toml")
    serial = belated.run_experiment(experiment, jobs=1, progress=False)
    played = belated.run_experiment(experiment, folder="rows", jobs=2, backend=backend, progress=False)
    assert_frame_equal(played.frame, serial.frame, check_exact=True)
    assert played.array("delay", agent="best")[0, 0] == 4


def test_a_worker_that_was_started_elsewhere_finds_the_working_folder(working_folder: Path) -> None:
    """Workers are kept for the next experiment; they began before this folder was known."""
    plain = belated.Experiment(
        name="before",
        environments=belated.RiverSwim(states=3, horizon=2),
        agents={"random": belated.RandomPolicy()},
        delays=belated.Constant(0),
        episodes=2,
        seeds=2,
    )
    belated.run_experiment(plain, jobs=2, backend="processes", progress=False)
    played = belated.run_experiment(
        belated.Experiment.load("own.toml"), folder="rows", jobs=2, backend="processes", progress=False
    )
    assert played.frame.height == 2 * 2 * 30


def test_rows_are_recognised_and_those_of_other_settings_refused(working_folder: Path) -> None:
    first = belated.run_experiment(belated.Experiment.load("own.toml"), folder="rows", jobs=1, progress=False)
    files = {path: path.stat().st_mtime_ns for path in Path("rows").rglob("*.parquet")}
    lost = next(iter(files))
    lost.unlink()
    again = belated.run_experiment(belated.Experiment.load("own.toml"), folder="rows", jobs=1, progress=False)
    assert_frame_equal(again.frame, first.frame, check_exact=True)
    assert {path for path, time in files.items() if path.stat().st_mtime_ns != time} == {lost}
    text = Path("own.toml").read_text(encoding="utf-8")
    for old, new, part in (("heads = 0.9", "heads = 0.8", "agent"), ("value = 2", "value = 3", "delay")):
        Path("other.toml").write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(belated.InvalidInputError, match=f"has rows of other settings: {part} was"):
            belated.run_experiment(belated.Experiment.load("other.toml"), folder="rows", jobs=1, progress=False)


def test_the_command_plays_them_too(working_folder: Path) -> None:
    """As it is installed: the working folder is not on the path of a script."""
    script = "import sys; sys.path[:] = [entry for entry in sys.path if entry]; from belated._cli import main; main()"
    command = [sys.executable, "-c", script, "run", "own.toml", "--out", "out", "--seeds", "5:7"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    (folder,) = Path("out").iterdir()
    assert {"summary.md", "summary.csv", "regret.png", "value.png"} < {path.name for path in folder.iterdir()}
    assert len(list(folder.rglob("seed-05.parquet"))) == len(list(folder.rglob("seed-06.parquet"))) == 2
    summary = pl.read_csv(folder / "summary.csv")
    assert summary["agent"].to_list() == ["coin | $1 σ", "best"]
    assert r"coin \| \$1 σ" in (folder / "summary.md").read_text(encoding="utf-8")


def specification(**changes: Any) -> dict[str, Any]:
    given = {
        "name": "demo",
        "episodes": 5,
        "seeds": 2,
        "environments": {"river": {"environment": "riverswim", "states": 3, "horizon": 3}},
        "agents": {"best": {"algorithm": "optimal"}},
        "delays": {"late": {"distribution": "constant", "value": 1}},
    }
    return {**given, **changes}


@pytest.fixture(scope="module")
def winners(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("winners")
    agents = {"greedy": {"algorithm": "greedy", "ridge": {"choices": [0.5, 2.0]}}}
    search = search_from_dict(specification(agents=agents, tune={"seeds": 2}))
    tune(search, folder=folder / "rows", progress=False).save(folder)
    return folder / "winners.json"


def test_winners_are_included(winners: Path, tmp_path: Path) -> None:
    expected = json.loads(winners.read_text())["winners"]["greedy"]
    for include in ("winners.json", ["winners.json"], str(winners)):
        loaded = belated.Experiment.from_dict(specification(include=include), folder=winners.parent)
        assert list(loaded.agents) == ["best", "greedy"]
        assert loaded.agents["greedy"] == belated.Greedy(ridge=expected["ridge"])
    alone = {name: value for name, value in specification(include=str(winners)).items() if name != "agents"}
    assert list(belated.Experiment.from_dict(alone).agents) == ["greedy"]
    file = tmp_path / "final.toml"
    (tmp_path / "found.json").write_bytes(winners.read_bytes())
    file.write_text(
        'name = "f"\nepisodes = 5\nseeds = 2\ninclude = "found.json"\n'
        'environments.river = { environment = "riverswim" }\ndelays.late = { distribution = "constant", value = 1 }\n'
    )
    assert list(belated.Experiment.load(file).agents) == ["greedy"]  # beside the file, wherever one works


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"include": 3}, "include must be the path of a file of winners, or a list of them, got 3"),
        ({"include": [3]}, "include must be the path of a file of winners"),
        ({"classes": "my_agents:Mine"}, "classes must be a list of classes and functions, or of their names"),
        (
            {"environments": {"x": {"environment": "gymnasium", "factory": "subprocess:getoutput"}}},
            r"factory 'subprocess:getoutput' must be a gymnasium.Env: its class, or a function annotated with",
        ),
        ({"agents": {"greedy": {"algorithm": "random"}}}, "the agent 'greedy' of .* must not be in the experiment as"),
        ({"seeds": "1001:1003"}, r"seeds must not be those of the search that gave .*winners\.json, got \[1001\] in"),
        ({"seeds": "3:3"}, "seeds must be a range with at least one seed"),
        ({"seeds": "a:b"}, "seeds must be a number of seeds, or a range such as '100:110', got 'a:b'"),
        ({"tune": {}}, "a file with the table 'tune' is for `belated tune`; an experiment includes its winners"),
        (
            {"agents": {"x": {"algorithm": "greedy", "ridge": {"from": 1, "to": 2}}}},
            "ridge of the agent 'x' must be a single value, got the range .* search it with `belated tune`",
        ),
    ],
)
def test_what_cannot_be_included_or_played_is_refused(winners: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(belated.InvalidInputError, match=message):
        belated.Experiment.from_dict(specification(**{"include": str(winners), **changes}))


def test_winners_that_were_changed_are_refused(winners: Path, tmp_path: Path) -> None:
    changed = winners.read_bytes().replace(b'"greedy"', b'"random"', 1)
    (tmp_path / "winners.json").write_bytes(changed)
    with pytest.raises(belated.DamagedFileError, match="its content does not match its digest"):
        belated.Experiment.from_dict(specification(include="winners.json"), folder=tmp_path)
    content = {**json.loads(winners.read_text()), "winners": {"x": "psvi"}, "digest": BLANK_SEAL}
    (tmp_path / "winners.json").write_bytes(seal(json.dumps(content).encode()))
    with pytest.raises(belated.InvalidInputError, match="a mapping with the field 'algorithm'"):
        belated.Experiment.from_dict(specification(include="winners.json"), folder=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is no file .*gone\.json"):
        belated.Experiment.from_dict(specification(include="gone.json"), folder=tmp_path)
