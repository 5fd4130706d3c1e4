"""The entry points that studies/pyproject.toml declares, installed or not."""

from __future__ import annotations

import tomllib
from pathlib import Path

_PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]

COMMANDS: dict[str, str] = _PROJECT["entry-points"]["belated.commands"]
SEARCHES: dict[str, str] = _PROJECT["entry-points"]["belated.searches"]
