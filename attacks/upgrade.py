"""An upgrade between two halves of an experiment: what the old one left is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from attacks.files import AGENT, WORLD, simulation
from attacks.kills import contents
from attacks.tally import Tally
from attacks.versions import copy_package, run_with
from belated import save_agent
from belated.runner import Experiment, run_experiment
from belated.runner._simulation import CHUNK

SPEC = """
name = "upgraded"
episodes = 20
seeds = 2
[environments.river]
environment = "riverswim"
[agents.random]
algorithm = "random"
[delays.late]
distribution = "constant"
value = 2
"""
EDITS = {
    "runner/__init__.py": ("\n", "# another program\n"),
    "_util/version.py": ('__version__ = "', '__version__ = "9.'),
    "agents/_epsilon_greedy.py": ("\n", "# another algorithm\n"),
}
"""What an upgrade changes: a file of the package, the place, and what is put there."""
LOADING = """
import pathlib, sys, belated
from attacks.files import simulation
from belated.errors import BelatedError
kind, path = sys.argv[1:]
try:
    if kind == "agent":
        belated.load_agent(path)
    else:
        simulation().restore(pathlib.Path(path))
except BelatedError as error:
    sys.exit(f"error: {error}")
"""


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Change a file of the package, and go on."""
    spec = folder / "upgraded.toml"
    spec.write_text(SPEC, encoding="utf-8")
    run_experiment(Experiment.load(spec), folder=folder / "rows", jobs=1, progress=False)
    save_agent(folder / "agent.npz", AGENT.start(WORLD.problem))
    running = simulation()
    while running.played < CHUNK:
        running.advance()
    running.save(folder / "run.checkpoint")
    for name in list(EDITS)[:tries]:
        package = copy_package(folder / name.replace("/", "-"))
        shutil.copytree(Path(__file__).parent, package.parent / "attacks")
        before, (place, put) = (package / name).read_text(encoding="utf-8"), EDITS[name]
        (package / name).write_text(put.join(before.split(place, 1)) if place != "\n" else before + put)
        _attack_rows(package, spec, folder, tally, name)
        for kind, file in (("agent", "agent.npz"), ("checkpoint", "run.checkpoint")):
            if tally.left():
                with tally.attempt(f"{name}: {kind}"):
                    told = run_with(package, "-c", LOADING, kind, str(folder / file))
                    assert told.returncode == 1 and "was made by belated" in told.stderr, told.stderr[-300:]


def _attack_rows(package: Path, spec: Path, folder: Path, tally: Tally, name: str) -> None:
    out = folder / "rows"
    before = contents(out)
    command = ("-m", "belated._cli", "run", str(spec), "--out", str(out))
    with tally.attempt(f"{name}: rows"):
        told = run_with(package, *command)
        assert told.returncode == 2 and "was made by belated" in told.stderr, f"not refused: {told.stderr[-300:]}"
        assert contents(out) == before, "rows were changed"
