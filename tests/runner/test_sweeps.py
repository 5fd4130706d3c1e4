"""Searches of a user's own: from the file to the winners, interrupted, resumed and on every backend."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_classes import write_modules
from polars.testing import assert_frame_equal

import belated
from belated.runner._tuning import Outcome, Rung, load_search, search_from_dict, tune

OWN = "own_classes_of_sweeps"
ROOT = Path(__file__).parents[2]
COIN = {"algorithm": f"{OWN}:Coin", "heads": {"from": 0.0, "to": 1.0, "count": 5}}
GREEDY = {"algorithm": "epsilon-greedy", "epsilon": {"choices": [0.0, 0.1, 0.3, 0.6, 1.0]}}
RUNGS = [{"episodes": 20, "seeds": 2, "keep": 3}, {"seeds": 3}]


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    write_modules(tmp_path, OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield tmp_path
    sys.modules.pop(OWN, None)


def specification(**changes: Any) -> dict[str, Any]:
    given = {
        "name": "my sweep",
        "episodes": 30,
        "seeds": 4,
        "environments": {"hall": {"environment": f"{OWN}:Corridor", "rooms": 3}},
        "agents": {"coin": COIN, "greedy": GREEDY},
        "delays": {"late": {"distribution": f"{OWN}:Twice", "value": 1}},
        "tune": {"rungs": RUNGS},
    }
    return {**given, **changes}


def found(folder: str = "rows", **changes: Any) -> Outcome:
    return tune(search_from_dict(specification(**changes)), folder=folder, jobs=1, progress=False)


def test_a_file_says_what_a_search_is() -> None:
    search = search_from_dict(specification())
    assert search.rungs == (Rung(20, [1000, 1001], 3), Rung(30, [1002, 1003, 1004], 1))
    assert search.report_seeds == (0, 1, 2, 3)
    assert {label: space.count for label, space in search.spaces.items()} == {"coin": 5, "greedy": 5}
    assert search.measure == "regret"
    assert search_from_dict(specification(tune={"seeds": "50:52"})).rungs == (Rung(30, [50, 51], 1),)
    assert search_from_dict(specification(tune={"seeds": [7]}, seeds=[1, 2])).report_seeds == (1, 2)


def test_the_winner_is_the_one_that_walks_to_the_reward(working_folder: Path) -> None:
    """In a corridor the coin that always says right is optimal."""
    outcome = found()
    assert outcome.specifications["coin"] == {"algorithm": f"{OWN}:Coin", "heads": 1.0}
    outcome.save("out")
    final = {name: value for name, value in specification(agents={}).items() if name != "tune"}
    final |= {"include": "winners.json"}
    with pytest.raises(belated.InvalidInputError, match=rf"neither built-in .* pass classes=\['{OWN}:Coin'\]"):
        belated.Experiment.from_dict(final, folder=working_folder / "out")
    named = {**final, "classes": [f"{OWN}:Coin"]}
    included = belated.Experiment.from_dict(named, folder=working_folder / "out")
    assert list(included.agents) == ["coin", "greedy"]
    assert belated.run_experiment(included, jobs=1, progress=False).regret(agent="coin").max() == pytest.approx(0)
    for rung, rows in outcome.table.filter(agent="coin").group_by("rung"):
        best = rows.filter("kept")["regret"].max()
        assert rows.filter(~rows["kept"])["regret"].min() >= best, rung  # type: ignore[operator]


def test_a_grid_can_grow_without_playing_anything_again() -> None:
    found()
    before = {path: path.stat().st_mtime_ns for path in Path("rows").rglob("*.parquet")}
    more = {**COIN, "heads": {"choices": [0.1, 0.0, 0.25, 0.5, 0.75, 1.0]}}
    wider = {**GREEDY, "epsilon": {"choices": [0.0, 0.05, 0.1, 0.3, 0.6, 1.0]}}
    outcome = found(agents={"coin": more, "greedy": wider})
    after = {path: path.stat().st_mtime_ns for path in Path("rows").rglob("*.parquet")}
    assert {path: after[path] for path in before} == before
    assert outcome.table.filter(rung=0).height == 12


@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_every_backend_finds_the_same(backend: str) -> None:
    serial = found("serial")
    other = tune(search_from_dict(specification()), folder="other", jobs=2, backend=backend, progress=False)
    assert_frame_equal(other.table, serial.table, check_exact=True)


SLOW = """
name = "slow"
episodes = 60
seeds = 4
environments.river = { environment = "riverswim", states = 3, horizon = 3 }
delays.late = { distribution = "constant", value = 1 }
[agents.coin]
algorithm = "own_slow:Slow"
heads = { choices = [0.1, 0.5, 0.9] }
[tune]
seeds = 6
"""
SLOW_MODULE = f"""
import time
from {OWN} import Coin

class Slow(Coin):
    def start(self, problem):
        time.sleep(0.1)
        return super().start(problem)
"""


def command(*arguments: str) -> list[str]:
    script = "import sys; sys.path[:] = [entry for entry in sys.path if entry]; from belated._cli import main; main()"
    return [sys.executable, "-c", script, *arguments]


@pytest.mark.slow
def test_a_killed_search_goes_on_to_the_same_winners(working_folder: Path) -> None:
    (working_folder / "own_slow.py").write_text(SLOW_MODULE, encoding="utf-8")
    (working_folder / "slow.toml").write_text(SLOW, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    tuning = command("tune", "slow.toml", "--jobs", "1", "--out")
    whole = subprocess.run([*tuning, "whole"], env=environment, capture_output=True, text=True, check=False)
    assert whole.returncode == 0, whole.stderr
    assert "0 of 1,080 episodes" in whole.stderr  # progress, though it goes through a pipe
    killed = subprocess.Popen(
        [*tuning, "killed"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while len(kept := list(Path("killed").rglob("*.parquet"))) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    kept = list(Path("killed").rglob("*.parquet"))
    assert 3 <= len(kept) < 18
    stamps = {path: path.stat().st_mtime_ns for path in kept}
    resumed = subprocess.run([*tuning, "killed"], env=environment, capture_output=True, text=True, check=False)
    assert resumed.returncode == 0, resumed.stderr
    assert {path: path.stat().st_mtime_ns for path in kept} == stamps
    for name in ("winners.json", "search.csv", "search.png"):
        assert Path("killed/slow", name).read_bytes() == Path("whole/slow", name).read_bytes()


def test_where_nobody_knows_the_optimum_returns_are_compared() -> None:
    search = search_from_dict(
        specification(
            environments={"pole": {"environment": "gymnasium", "id": "CartPole-v1", "horizon": 20}},
            agents={"greedy": {"algorithm": "epsilon-greedy", "epsilon": {"choices": [0.1, 0.9]}}},
            delays={"late": {"distribution": "constant", "value": 1}},
            tune={"seeds": 2},
            episodes=4,
        )
    )
    assert search.measure == "return"
    outcome = tune(search, folder="rows", jobs=1, progress=False)
    best = outcome.table.filter("kept")["return"].to_list()
    assert best == [max(outcome.table["return"])]
    assert np.isfinite(outcome.table["return"].to_numpy()).all()


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_optuna_proposes_and_the_search_resumes(sampler: str) -> None:
    pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'belated[tune]'")
    changes: dict[str, Any] = {
        "agents": {"coin": {"algorithm": f"{OWN}:Coin", "heads": {"from": 0.0, "to": 1.0}}},
        "tune": {"seeds": 2, "sampler": sampler, "candidates": 8},
    }
    first = found("first", **changes)
    assert first.table["candidate"].to_list() == list(range(8))
    lost = sorted(Path("first").rglob("*.parquet"))
    for path in lost[::3]:
        path.unlink()
    assert_frame_equal(found("first", **changes).table, first.table, check_exact=True)
    assert sorted(Path("first").rglob("*.parquet")) == lost
    kept = first.table.filter("kept")
    assert json.loads(kept["settings"][0])["heads"] == first.specifications["coin"]["heads"]
    assert kept["regret"][0] == first.table["regret"].min()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tune": {}}, "needs either the field 'seeds' or the field 'rungs'"),
        ({"tune": {"seeds": 2, "rungs": RUNGS}}, "needs either the field 'seeds' or the field 'rungs'"),
        ({"tune": {"seeds": 2, "budget": 3}}, "has the fields seeds, rungs, sampler, candidates, got 'budget'"),
        ({"tune": {"rungs": 3}}, "rungs must be a list of tables, got 3"),
        ({"tune": {"rungs": [{"keep": 1}]}}, "a rung needs the field 'seeds'"),
        ({"tune": {"seeds": 0}}, "seeds must be an integer >= 1 and <= 1000000, got 0"),
        ({"tune": {"seeds": "0:3"}}, r"tuning seeds must not be report seeds, got \[0, 1, 2\] in both"),
        ({"tune": {"seeds": 2, "candidates": 3}}, "candidates must be left out for a grid"),
        ({"tune": {"seeds": 2, "sampler": "tpe"}}, "the sampler 'tpe' needs the field 'candidates'"),
        ({"tune": {"seeds": 2, "sampler": "tpx"}}, "sampler must be one of 'grid', 'random', 'qmc', 'tpe', got 'tpx'"),
        ({"agents": {"x": {"algorithm": "greedy"}}}, "the agent 'x' has no range to search, such as"),
        ({"agents": {"x": {"heads": {"choices": [1]}}}}, "the agent 'x' must be a table with the field 'algorithm'"),
        (
            {"agents": {"coin": COIN, "x": {**COIN, "heads": {"choices": [1]}}}},
            "for an equal budget, got coin: 5, x: 1",
        ),
        (
            {"agents": {"x": {**COIN, "haeds": {"choices": [1]}}}},
            "has no setting 'haeds'; its settings are: heads, note",
        ),
        ({"agents": {}}, "spaces must not be empty"),
        ({"delays": {}}, "a search must have one delay distribution, got 0"),
        ({"environments": {"a": {"environment": "chain"}, "b": {"environment": "chain"}}}, "one environment, got 2"),
        ({"episodes": 0}, "episodes must be an integer >= 1, got 0"),
        ({"name": ""}, "name must be a non-empty text"),
        ({"x": 1}, "a search has the fields name, episodes, seeds, environments, agents, delays, tune, got 'x'"),
    ],
)
def test_what_is_no_search_is_refused(changes: dict[str, Any], message: str) -> None:
    tune_only = {} if "tune" in changes or "rungs" in changes else {"tune": {"seeds": 2}}
    with pytest.raises(belated.BelatedError, match=message):
        search_from_dict(specification(**{**tune_only, **changes}))


def test_a_missing_file_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no search file none\.toml"):
        load_search("none.toml")
