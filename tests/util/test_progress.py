"""Progress: a bar on a terminal, else plain lines now and then."""

from __future__ import annotations

import io
import re
import threading
import time
from pathlib import Path

import pytest

import belated
from belated._util import progress as module
from belated._util.progress import duration, progress


def told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err.splitlines()


def test_a_short_work_has_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("study", 3000, "episodes", first="compiling") as shown:
        shown.advance(3000)
    assert told(capsys) == ["study: 0 of 3,000 episodes (compiling)"]


def test_a_long_one_has_lines_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 0.02)
    with progress("study", 4, "parts") as shown:
        time.sleep(0.1)  # nothing is done yet, and still there are lines
        shown.say("table-1")
        shown.advance()
        time.sleep(0.1)
        shown.advance(3)
    lines = told(capsys)
    assert lines[0] == "study: 0 of 4 parts"
    assert re.fullmatch(r"study: 0 of 4 parts, \d+ s so far", lines[1])
    assert any(re.fullmatch(r"study: 1 of 4 parts, table-1, \d+ s so far, about \d+ s left", line) for line in lines)
    assert re.fullmatch(r"study: 4 of 4 parts, done in \d+ s", lines[-1])
    time.sleep(0.05)
    assert told(capsys) == [], "the end is the end"


def test_what_is_done_already_is_told_and_does_not_count_as_speed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVERY", 0.3)
    with progress("study", 1000, "episodes", done=990) as shown:
        shown.advance(5)
        time.sleep(0.4)
    first, second, *_ = told(capsys)
    assert first == "study: 990 of 1,000 episodes"
    found = re.fullmatch(r"study: 995 of 1,000 episodes, (\d+) s so far, about (\d+) s left", second)
    assert found
    assert found[1] == found[2], "five of ten are done"
    with progress("study", 1000, "episodes", done=1000):
        pass
    assert told(capsys) == []


def test_an_error_ends_the_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 0.02)
    with pytest.raises(ZeroDivisionError), progress("study", 2, "parts"):
        raise ZeroDivisionError
    before = threading.active_count()
    capsys.readouterr()
    time.sleep(0.1)
    assert told(capsys) == []
    assert threading.active_count() <= before


def test_nothing_is_shown_unless_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("study", 2, "parts", show=False) as shown:
        shown.advance()
        shown.say("something")
    assert told(capsys) == []


def test_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    with progress("study", 40, "parts", first="compiling") as shown:
        shown.say("table-1")
        shown.advance(40)
    assert "study: table-1" in screen.getvalue()
    assert "40/40 parts" in screen.getvalue()


def test_a_run_tells_its_progress_into_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agents = {"a": belated.RandomPolicy()}
    for seeds in (1, 3, 3):
        belated.run(belated.RiverSwim(), agents, belated.Constant(0), episodes=5, seeds=seeds, folder=tmp_path)
    first = "(the first use of an algorithm compiles it)"
    assert told(capsys) == [f"run: 0 of 5 episodes {first}", f"run: 5 of 15 episodes {first}"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.6, "1 min 0 s"), (3599, "59 min 59 s"), (3600, "1 h 0 min")]
)
def test_durations_are_as_one_reads_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_lines_that_nobody_can_read_stop_no_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    for stream in (None, Full()):  # None: it was closed before the program began
        monkeypatch.setattr("sys.stderr", stream)
        with progress("study", 3, "parts") as shown:
            shown.advance(3)
    assert capsys.readouterr().out == "", "not among the results"
