"""A few attempts of each attack, and proof that an attack can fail: that it sees a broken promise, and an abort."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from attacks import apart, files, flips, full_disk, fuzz, records
from attacks.apart import attack_apart
from attacks.listed import ATTACKS, SIZES
from attacks.tally import SHOWN, Tally
from belated._util import files as storage
from belated.runner._store import from_parquet

TEST = SIZES["test"]
#: Attacks whose promise is tested elsewhere at length, or that have to compile everything twice.
ELSEWHERE = {"headers", "kills", "memories", "processors", "stalls", "starts", "upgrade"}


@pytest.mark.parametrize("name", sorted(set(ATTACKS) - ELSEWHERE))
def test_the_promise_holds(name: str, tmp_path: Path) -> None:
    outcome = attack_apart(name, TEST.tries[name], TEST.seconds, 0, tmp_path)
    assert outcome.broken == 0, outcome.details
    assert outcome.held > 0 or outcome.notes[0].startswith("not built")


def test_a_file_that_nobody_checks_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = files._json(tmp_path)
    monkeypatch.setattr(flips, "save_all", lambda _: kept)
    monkeypatch.setattr(storage, "check_seal", lambda *_, **__: None)
    tally = Tally(60)
    flips.attack(200, tmp_path, np.random.default_rng(0), tally)
    assert tally.broken > 0
    assert len(tally.details) <= SHOWN


def test_a_crafted_value_that_is_taken_is_seen(tmp_path: Path) -> None:
    kept = files._rows(tmp_path)["rows"]
    frame, _ = from_parquet(kept.path)
    records._check_possible(frame)
    with pytest.raises(AssertionError):
        records._check_possible(frame.with_columns(regret=frame["regret"] + 1))


def test_a_write_that_is_not_atomic_is_seen(tmp_path: Path) -> None:
    def careless() -> None:
        with (tmp_path / ".rows").open("wb") as file:
            file.write(b"all of the rows")

    assert full_disk.fill(1, careless)
    assert (tmp_path / ".rows").read_bytes() == b"all of "
    with pytest.raises(AssertionError, match="left behind"):
        full_disk.nothing_half_written(tmp_path)


def test_an_error_that_is_swallowed_is_seen(tmp_path: Path) -> None:
    def silent() -> None:
        with contextlib.suppress(OSError), (tmp_path / "rows").open("wb") as file:
            file.write(b"rows")

    with pytest.raises(AssertionError, match="nobody said so"):
        full_disk.fill(1, silent)


def test_a_foreign_error_is_seen_and_made_small() -> None:
    def target(given: list[int]) -> None:
        if len(given) > 2:
            raise KeyError("three")

    tally = Tally(60)
    fuzz._invent("lists", st.lists(st.integers()), target, 200, 0, tally)
    assert tally.broken == 1
    assert "KeyError: 'three'" in tally.details[0]
    assert "given=[0, 0, 0]" in tally.details[0]


def test_an_abort_is_counted_and_named() -> None:
    outcome = apart._outcome(["try one", "try two"], "Fatal Python error: Aborted")
    assert (outcome.held, outcome.broken) == (1, 1)
    assert outcome.details == ["two: the process ended: Fatal Python error: Aborted"]


def test_whatever_is_raised_is_counted() -> None:
    class Panic(BaseException):
        pass

    def parse() -> None:
        raise Panic("no")

    tally = Tally(60)
    with tally.attempt("a panic"):
        parse()
    with tally.attempt("nothing"):
        pass
    assert (tally.held, tally.broken, tally.details) == (1, 1, ["a panic: Panic: no"])


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[2]
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": f"{root / 'src'}"}
    return subprocess.run(
        [sys.executable, "-m", "attacks", *arguments], capture_output=True, text=True, cwd=root, env=environment
    )


def test_an_unknown_attack_is_refused() -> None:
    done = command("--only", "flip")
    assert done.returncode == 2
    assert "there is no attack 'flip'" in done.stderr
