from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import Any

import pytest
import typer
from commands import call, refused
from rich.text import Text
from typer.testing import CliRunner

import belated
from belated import _cli
from belated._cli import COMMANDS, STUDIES, add_installed_commands
from belated._cli.shared import Commands


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


def test_help_shows_what_stands_in_brackets() -> None:
    def texts(command: Any) -> Iterator[str]:
        yield from [each for each in (command.help, *(getattr(one, "help", "") for one in command.params)) if each]
        for inner in getattr(command, "commands", {}).values():
            yield from texts(inner)

    found = list(texts(typer.main.get_command(_cli.app)))
    assert any("[models.NAME]" in text for text in found)
    for text in found:
        assert Text.from_markup(text).plain == text.replace("\\[", "[")


def test_help_loads_no_study_and_nothing_heavy() -> None:
    script = "import sys; from belated._cli import app; app(['--help'], standalone_mode=False); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True).stdout.split()
    heavy = ("numba", "numpy", "polars", "scipy", "matplotlib", "plotly", "sklearn", "ray", "belated_studies.study")
    assert [name for name in heavy if name in loaded] == []


GROUP = "belated.commands"


def hello(name: str = "you") -> None:
    """Say hello."""
    typer.echo(f"hello {name}")


def app_with(monkeypatch: pytest.MonkeyPatch, *points: EntryPoint) -> typer.Typer:
    monkeypatch.setattr(_cli, "entry_points", lambda group: [each for each in points if each.group == group])
    app = typer.Typer(cls=Commands)
    add_installed_commands(app)
    return app


@pytest.mark.parametrize("name", STUDIES)
def test_without_the_studies_each_command_says_how_to_get_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_with(monkeypatch)
    message = refused(CliRunner().invoke(app, [name, "--full", "--only", "figure-2"]))
    assert f"belated {name} is part of belated-studies" in message
    assert f"pip install belated-studies, or make {name} in a clone" in message
    assert name in CliRunner().invoke(app, ["--help"]).stdout


def test_an_entry_point_is_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_with(monkeypatch, EntryPoint("hello", "cli_hello:hello", GROUP))
    assert "cannot be imported" in refused(CliRunner().invoke(app, ["hello", "--name", "me"]))
    monkeypatch.setattr(EntryPoint, "load", lambda point: hello)
    app = app_with(monkeypatch, EntryPoint("hello", "cli_hello:hello", GROUP))
    assert CliRunner().invoke(app, ["hello", "--name", "me"]).stdout == "hello me\n"
    assert "Say hello." in CliRunner().invoke(app, ["--help"]).stdout


def test_a_broken_entry_point_hides_no_other_command(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("paper", "nowhere:paper", GROUP), EntryPoint("sqrt", "math:square_root", GROUP)]
    app = app_with(monkeypatch, *points)
    assert "belated paper is nowhere:paper, which cannot be imported" in refused(CliRunner().invoke(app, ["paper"]))
    assert "square_root" in refused(CliRunner().invoke(app, ["sqrt", "2"]))
    assert "belated-studies" in refused(CliRunner().invoke(app, ["systems"]))
    assert CliRunner().invoke(app, ["--help"]).exit_code == 0
