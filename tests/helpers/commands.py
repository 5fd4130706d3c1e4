"""The command line, called as a user calls it."""

from __future__ import annotations

from typing import Any

from typer.testing import CliRunner

from belated._cli import app

SPEC = """
name = "tiny"
episodes = 40
seeds = 2
[environments.river]
environment = "riverswim"
states = 3
[agents.fixed-best]
algorithm = "optimal"
[agents.random]
algorithm = "random"
[delays.short]
distribution = "constant"
value = 2
"""


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def refused(result: Any) -> str:
    """Return the message of a command that failed as it should: one line on stderr, exit code 2, no traceback."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return str(result.stderr)
