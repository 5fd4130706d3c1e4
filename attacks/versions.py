"""Copies of the package that can be changed, as an upgrade does, and programs that run with one of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import belated

PACKAGE = Path(belated.__file__).parent


def copy_package(folder: Path) -> Path:
    """Return a copy of the package, without anything compiled, in `folder`."""
    return Path(shutil.copytree(PACKAGE, folder / "belated", ignore=shutil.ignore_patterns("__pycache__")))


def run_with(package: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python with `package` in the place of the installed one."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "BELATED_", "XDG_"))}
    known |= {"PYTHONPATH": str(package.parent), **environment}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=known, timeout=300, cwd=package.parent
    )
