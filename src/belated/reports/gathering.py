"""Rows for a report: play what is missing, read what is there, and remember how long it took."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from belated.errors import DamagedFileError
from belated.runner import Experiment, Results, run_experiment
from belated.storage import write_atomically


class Clock:
    """Seconds that playing took, kept beside the rows so that a resumed report still knows them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.seconds: dict[str, float] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        except ValueError as error:
            raise DamagedFileError(f"{path} is not a whole file of times: {error}; delete it") from None

    @contextmanager
    def timing(self, name: str, *, counts: bool, afresh: bool) -> Iterator[None]:
        """Add the time of the block to `name`, or start again; a block that only reads does not count."""
        began = time.perf_counter()
        yield
        if counts or afresh:
            before = 0.0 if afresh else self.seconds.get(name, 0.0)
            self.seconds[name] = before + time.perf_counter() - began
            write_atomically(self.path, json.dumps(self.seconds, indent=1).encode())


class Gathered(NamedTuple):
    """What was played, by the name of the experiment."""

    results: dict[str, Results]
    settings: dict[str, dict[str, dict[str, Any]]]
    """Of each experiment, the settings of each agent."""


def gather(
    experiments: Mapping[str, Experiment],
    rows: Path,
    clock: Clock,
    *,
    jobs: int | None,
    resume: bool,
    progress: bool,
) -> Gathered:
    """Play, or read from the folder `rows`, all `experiments`; without `resume` everything is played again."""
    console = Console(stderr=True, quiet=not progress)
    gathered = Gathered({}, {})
    for name, experiment in experiments.items():
        paths = [rows / f"{run.id}.parquet" for run in experiment.runs()]
        if not resume:
            for path in paths:
                path.unlink(missing_ok=True)
        with clock.timing(name, counts=not all(path.exists() for path in paths), afresh=not resume):
            gathered.results[name] = run_experiment(experiment, folder=rows, jobs=jobs, progress=progress)
        console.print(f"{name}: {len(paths)} runs, {clock.seconds.get(name, 0.0):.0f} s", highlight=False)
        gathered.settings[name] = {
            label: agent.to_dict()  # type: ignore[attr-defined]
            for label, agent in experiment.agents.items()
        }
    return gathered
