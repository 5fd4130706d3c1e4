import io
import os
import subprocess
import sys

import pytest
from rich.console import Console
from typer.testing import CliRunner

from belated._cli import app
from belated._cli.shared import resumable, say


def test_an_error_is_red_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    result = CliRunner().invoke(app, ["show", "absent.npz"], color=True)
    assert result.exit_code == 2
    assert "\x1b[31merror: there is no file absent.npz\x1b[0m" in result.stderr


def test_a_path_is_not_broken_over_lines() -> None:
    out = io.StringIO()
    say(Console(file=out, width=20), "the report is " + "/long" * 10)
    assert out.getvalue() == "the report is " + "/long" * 10 + "\n"


def test_an_interruption_says_that_work_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), resumable():
        raise KeyboardInterrupt
    assert "finished runs are kept" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_encoding_without_some_letters_shows_the_others(encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "belated._cli", "list", "agents"]
    listed = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert b"?-greedy" in listed.stdout
    assert "ε-greedy".encode() not in listed.stdout
