"""Other packages that a user might pick, each installed into an environment of its own and used by a script there.

What a peer needs cannot conflict with what the library needs, or with another peer. A script is given a file, and the
last line that it prints is its answer, in JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from belated._kernels.cache import user_folder
from belated.errors import BelatedError

TIMEOUT = 1800
"""Seconds after which an installation or a script is given up."""

#: One core for everybody.
ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1")


class PeerError(BelatedError):
    """A peer that could not be installed or run."""


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A package, what it needs, and the script that uses it."""

    name: str
    script: Path
    requirements: tuple[str, ...]
    imports: Path | None = None
    """The folder of what its script may import beside the packages of its environment."""

    def folder(self, home: Path) -> Path:
        """Return where its environment lives: another one for other versions of it or of Python."""
        wanted = "\n".join([sys.version, *self.requirements])
        return home / f"{self.name}-{hashlib.sha256(wanted.encode()).hexdigest()[:12]}"

    def python(self, home: Path) -> Path:
        """Return the interpreter of its environment."""
        return self.folder(home) / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def ready(self, home: Path) -> bool:
        """Say whether it is installed, as a whole."""
        return (self.folder(home) / "ready").is_file()


def cache_folder() -> Path:
    """Return the folder of the environments, in the user's cache."""
    return user_folder() / "peers"


def install(peer: Peer, home: Path) -> None:
    """Make the environment of `peer`; half a one is removed."""
    folder = peer.folder(home)
    try:
        call([sys.executable, "-m", "venv", "--clear", str(folder)])
        python = str(peer.python(home))
        call([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.requirements])
        (folder / "ready").touch()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def run_script(peer: Peer, home: Path, data: Path, *, timeout: float = TIMEOUT) -> Any:
    """Run the script of `peer` on the file `data` and return its answer."""
    command = [str(peer.python(home)), "-W", "ignore", str(peer.script), str(data)]
    printed = call(command, imports=peer.imports, timeout=timeout)
    try:
        return json.loads(printed.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise PeerError(f"{peer.script.name} printed no figures") from None


def call(command: list[str], *, imports: Path | None = None, timeout: float = TIMEOUT) -> str:
    """Run `command` and return what it printed; what went wrong is told in its own last words."""
    environment = {**os.environ, **ONE_CORE, "PYTHONPATH": "" if imports is None else str(imports)}
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=timeout, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerError(str(error)) from None
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in said if line.startswith("ERROR")]
        raise PeerError((errors or said or [f"exit code {done.returncode}"])[-1])
    return done.stdout
