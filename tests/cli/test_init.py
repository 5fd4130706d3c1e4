import subprocess
import sys

import pytest
from commands import call
from typer.testing import CliRunner

import belated
from belated.cli import COMMANDS, app


def test_an_error_is_red_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    result = CliRunner().invoke(app, ["show", "absent.npz"], color=True)
    assert result.exit_code == 2
    assert "\x1b[31merror: there is no file absent.npz\x1b[0m" in result.stderr


def test_version() -> None:
    result = call("--version")
    assert (result.exit_code, result.stdout) == (0, f"belated {belated.__version__}\n")


def test_an_unknown_command_is_refused_with_a_suggestion() -> None:
    result = call("rnu")
    assert result.exit_code == 2
    assert "run" in result.stderr


def test_every_command_has_help() -> None:
    assert "Reinforcement learning for rewards that arrive late." in call("--help").stdout
    for command in (name for commands in COMMANDS.values() for name in commands):
        result = call(command, "--help")
        assert result.exit_code == 0
        assert len(result.stdout.splitlines()) > 5


def test_help_loads_no_study_and_nothing_heavy() -> None:
    script = "import sys; from belated.cli import app; app(['--help'], standalone_mode=False); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True).stdout.split()
    heavy = ("numba", "numpy", "polars", "scipy", "matplotlib", "plotly", "sklearn", "ray", "belated.studies.study")
    assert [name for name in heavy if name in loaded] == []
