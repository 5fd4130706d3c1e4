"""The same seeds on two kinds of CPU, with strict arithmetic: the same rows to the last bit."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from attacks.tally import NotBuiltError, Tally
from attacks.versions import PACKAGE, run_with
from belated._kernels import jit as compiled

PROGRAM = """
import hashlib, sys
import belated
world = belated.RiverSwim(states=5, horizon=6)
agent = {"psvi": belated.DelayedPSVI(), "ucbvi": belated.DelayedUCBVI()}[sys.argv[1]]
rows = belated.simulate(world, agent, belated.Poisson(5), episodes=300, seed=1)
print(hashlib.sha256(rows.write_csv().encode()).hexdigest())
"""
TARGETS: list[dict[str, str]] = [{}, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}]
"""This CPU, and what every CPU of its family can do."""


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Compile for both targets and compare; each has to compile everything, which takes most of a minute."""
    if not hasattr(compiled, "STRICT"):
        raise NotBuiltError("there is no BELATED_STRICT")
    home = os.environ.get("HOME", str(folder))
    for agent in ("psvi", "ucbvi")[:tries]:
        if not tally.left():
            return
        with tally.attempt(f"{agent} on two targets"):
            told = [
                run_with(PACKAGE, "-c", PROGRAM, agent, BELATED_STRICT="1", HOME=home, **target) for target in TARGETS
            ]
            assert all(each.returncode == 0 for each in told), told[-1].stderr[-300:]
            assert told[0].stdout == told[1].stdout, "other bits"
