"""The how-tos on own classes and on searches, followed to the letter in a working folder of their own."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from belated.delays import NEVER, Fixed, delay_from_dict

pytestmark = pytest.mark.slow  # the programs of the gallery do the same in the ordinary tests, in less time
ROOT = Path(__file__).parents[2]
HOWTO = ROOT / "docs" / "howto"
SCRIPT = "import sys; sys.path[:] = [entry for entry in sys.path if entry]; from belated._cli import main; main()"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}


def write_files(page: str, folder: Path) -> list[str]:
    """Write the files that a page shows into `folder`; return the commands that it gives, in order."""
    text = (HOWTO / page).read_text(encoding="utf-8")
    for name, content in re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```', text, flags=re.DOTALL | re.MULTILINE):
        (folder / name).write_text(content, encoding="utf-8")
    return re.findall(r"^\$ belated (.+)$", text, flags=re.MULTILINE)


def words(command: str, *more: str) -> list[str]:
    return [sys.executable, "-c", SCRIPT, *shlex.split(command), *more]


def follow(command: str, folder: Path, *more: str) -> str:
    done = subprocess.run(
        words(command, *more),
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def rows(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("seed-*.parquet")}


def test_an_agent_of_ones_own_is_interrupted_and_resumed(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        (command,) = write_files("use-your-own-classes.md", folder)
    follow(command, whole)
    # One process, so that killing it leaves no worker behind that goes on; the options change no row.
    alone = words(command, "--backend", "threads", "--jobs", "1", "--quiet")
    process = subprocess.Popen(alone, cwd=killed, env=ENVIRONMENT)
    deadline = time.monotonic() + 120
    while len(rows(killed)) < 2:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = rows(killed)
    assert 2 <= len(before) < 12
    follow(command, killed)
    after = rows(killed)
    assert len(after) == 12
    assert {name: after[name] for name in before} == before
    for name in after:
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    (summary,) = whole.glob("results/mine/summary.csv")
    found = pl.read_csv(summary)
    regret = dict(zip(found["agent"], found["regret"], strict=True))
    assert regret["PSRL, of my own"] < 0.5 * regret["random"]
    assert found["delay_distribution"].unique().to_list() == ["at once / some days"]


def test_a_distribution_of_ones_own_and_bursts_from_a_file(tmp_path: Path) -> None:
    (command,) = write_files("bring-your-own-delays.md", tmp_path)
    follow(command, tmp_path)
    delays = {
        distribution: [pl.read_parquet(path)["delay"].to_numpy() for path in sorted(folder.rglob("seed-*.parquet"))]
        for distribution in ("a-walk*", "bursts", "the-same*")
        for folder in (tmp_path / "results" / "in-time").rglob(distribution)
        if folder.is_dir()
    }
    walks, bursts, shuffled = delays.values()
    assert all(abs(np.diff(walk)).max() == 1 for walk in walks)
    assert walks[0][0] in (19, 21)

    def turns(runs: list[Any]) -> int:
        return sum(int((np.diff((each > 0).astype(int)) != 0).sum()) for each in runs)

    assert turns(bursts) < turns(shuffled) / 3  # late feedback comes together


def test_a_log_with_time_stamps_is_a_distribution_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text("out,back\n0,12\n10,11\n20,\n30,31\n", encoding="utf-8")
    distribution = {
        "distribution": "belated.delays:Fixed.from_file",
        "path": "log.csv",
        "sent": "out",
        "arrived": "back",
    }
    assert delay_from_dict(distribution) == Fixed([1, 0, NEVER, 0])


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which everything of the how-to but its last command was done."""
    folder = tmp_path_factory.mktemp("sweeps")
    write_files("use-your-own-classes.md", folder)
    commands = write_files("tune.md", folder)
    assert [command.split()[0] for command in commands] == ["tune", "tune", "run", "paper"]
    for command in commands[:3]:
        follow(command, folder)
    return folder


def test_a_sweep_of_three_settings_by_twenty_seeds(swept: Path) -> None:
    assert {path.name for path in (swept / "tuning" / "sweep").iterdir()} == {
        "winners.json",
        "search.csv",
        "search.png",
    }
    table = pl.read_csv(swept / "tuning" / "sweep" / "search.csv")
    assert table["seeds"].to_list() == [20] * 3
    assert len(list((swept / "tuning" / "rows" / "sweep-rung-0").rglob("seed-1*.parquet"))) == 60
    best = min(table.iter_rows(named=True), key=lambda row: row["regret"])
    winners = json.loads((swept / "tuning" / "sweep" / "winners.json").read_text(encoding="utf-8"))["winners"]
    assert winners == {"mine": json.loads(best["settings"])}


def test_halving_has_winners_that_an_experiment_includes(swept: Path) -> None:
    table = pl.read_csv(swept / "tuning" / "halving" / "search.csv")
    assert table.group_by("agent", "rung").len().sort("agent", "rung")["len"].to_list() == [8, 3, 8, 3]
    summary = pl.read_csv(swept / "results" / "final" / "summary.csv")
    assert summary["agent"].to_list() == ["random", "mine", "psrl"]
    assert summary["seeds"].to_list() == [10] * 3


def test_a_cell_of_the_paper_with_other_seeds(tmp_path: Path) -> None:
    command = write_files("tune.md", tmp_path)[-1]
    told = " ".join(follow(command, tmp_path, "--episodes", "20").split())
    assert "Cells of table-2, 20 episodes, synthetic-a20, Delayed-PSVI, poisson, seeds 100 to 109" in told
    assert {path.stem for path in (tmp_path / "report").rglob("*.parquet")} == {f"seed-{n}" for n in range(100, 110)}
