import subprocess
import sys

from commands import call

import belated
from belated._cli import COMMANDS


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
    script = "import sys; from belated._cli import app; app(['--help'], standalone_mode=False); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True).stdout.split()
    heavy = ("numba", "numpy", "polars", "scipy", "matplotlib", "plotly", "sklearn", "ray", "belated_studies.study")
    assert [name for name in heavy if name in loaded] == []
