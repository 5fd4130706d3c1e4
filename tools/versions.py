"""Print a constraints file for pip, with a version of every direct dependency.

python tools/versions.py oldest                      # the oldest that both pyproject.toml allow
python tools/versions.py present > constraints.txt   # those installed here
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECTS = (ROOT / "pyproject.toml", ROOT / "studies" / "pyproject.toml")
NEED = re.compile(r"(?P<name>[\w-]+)(?P<extras>\[.*?\])?(>=(?P<oldest>[\d.]+))?")


def needs() -> dict[str, str | None]:
    """Return the direct dependencies, including those of extras, and their oldest versions."""
    projects = [tomllib.loads(path.read_text(encoding="utf-8"))["project"] for path in PROJECTS]
    listed = [
        need
        for project in projects
        for needs in (project["dependencies"], *project.get("optional-dependencies", {}).values())
        for need in needs
    ]
    found: dict[str, str | None] = {}
    for each in listed:
        match = NEED.match(each)
        assert match is not None, each
        if match["name"] != "belated":
            found[match["name"]] = match["oldest"]
    return dict(sorted(found.items()))


def oldest() -> list[str]:
    """Return a line for each dependency that has an oldest version."""
    return [f"{name}=={least}" for name, least in needs().items() if least is not None]


def present() -> list[str]:
    """Return a line for each dependency that is installed here."""
    lines = ["# The versions of one environment that CI keeps to: python tools/versions.py present > constraints.txt"]
    for name in needs():
        try:
            lines.append(f"{name}=={version(name)}")
        except PackageNotFoundError:
            print(f"{name} is not installed, so it is not constrained", file=sys.stderr)
    return lines


if __name__ == "__main__":
    print("\n".join({"oldest": oldest, "present": present}[sys.argv[1]]()))
