"""Running each attack in its own process, so that one that crashes is counted, too.

This module is also that process: `python -m attacks.apart NAME TRIES SECONDS SEED FOLDER`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from attacks.listed import ATTACKS
from attacks.tally import NotBuiltError, Tally

GRACE = 60.0
"""Seconds that an attack may take beyond its limit, for its last attempt and its preparation."""


@dataclass
class Outcome:
    """The outcome of one attack."""

    held: int = 0
    broken: int = 0
    took: float = 0.0
    details: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def attack_apart(name: str, tries: int, seconds: float, seed: int, folder: Path) -> Outcome:
    """Run an attack in its own process, in its own folder within `folder`."""
    if not tries:
        return Outcome(notes=["only in the full attack"])
    own = folder / name
    own.mkdir()
    began = time.monotonic()
    command = [sys.executable, "-m", "attacks.apart", name, str(tries), str(seconds), str(seed), str(own)]
    root = Path(__file__).parents[1]
    paths = [str(root), str(root / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=seconds + GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        err = f"it did not end within {seconds + GRACE:.0f} s"
    outcome = _outcome(out.splitlines(), err)
    outcome.took = time.monotonic() - began
    return outcome


def _outcome(lines: list[str], err: str) -> Outcome:
    """Parse the output of the process; without a tally it has crashed in its last attempt."""
    if lines and lines[-1].startswith("tally "):
        told = json.loads(lines[-1].removeprefix("tally "))
        return Outcome(told["held"], told["broken"], 0.0, told["details"], told["notes"])
    tried = [line.removeprefix("try ") for line in lines if line.startswith("try ")]
    last = tried[-1] if tried else "the preparation"
    said = " ".join(err.split())[-400:]
    return Outcome(max(len(tried) - 1, 0), 1, 0.0, [f"{last}: the process ended: {said}"], ["ended early"])


def main() -> None:
    """The main function of the process of one attack."""
    name, tries, seconds, seed, folder = sys.argv[1:]
    tally = Tally(float(seconds))
    try:
        ATTACKS[name].load()(int(tries), Path(folder), np.random.default_rng([int(seed), *name.encode()]), tally)
    except NotBuiltError as error:
        tally.notes.append(f"not built: {error}")
    tally.tell()


if __name__ == "__main__":
    main()
