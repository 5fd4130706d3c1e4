"""From declared experiments to the finished study: play what is missing, build the document, write everything."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

import belated
import belated.experiments.systems as declared
from belated.errors import DamagedFileError
from belated.reports.document import Document
from belated.reports.gathering import Clock, gather
from belated.reports.markdown import document_markdown
from belated.reports.report import write_report
from belated.reports.systems.findings import findings
from belated.reports.systems.material import Material
from belated.reports.systems.sections import BUILDERS
from belated.runner import Experiment
from belated.storage import write_atomically
from belated.studies.pace import Pace, pace
from belated.validate import choice

#: Experiments whose agents are timed, too.
TIMED = ("testbed-mdp", "testbed-bandit", "testbed-adversarial", "switching")


@dataclass(frozen=True)
class Report:
    """What was written, and the document it was written from."""

    index: Path
    document: Document
    seconds: float


def produce(
    size: declared.Size,
    *,
    out: str | Path,
    names: Iterable[str] = tuple(declared.ARTEFACTS),
    seeds: int | None = None,
    jobs: int | None = None,
    resume: bool = True,
    progress: bool = True,
) -> Report:
    """Play the experiments behind the sections called `names` and write the study into the folder `out`.

    Rows are kept in `out/rows`, and with `resume` what is there is not played again. `seeds` replaces that of `size`.
    """
    began = time.perf_counter()
    wanted = [choice("the section", name, BUILDERS) for name in names]
    chosen = size if seeds is None else replace(size, seeds=seeds, slow_seeds=seeds)
    rows = Path(out) / "rows" / f"{chosen.name}"
    experiments = declared.experiments(chosen, wanted)
    clock = Clock(rows / "seconds.json")
    played = gather(experiments, rows, clock, jobs=jobs, resume=resume, progress=progress)
    paces = _paces(experiments, rows / "pace.json", resume, progress)
    material = Material(chosen, played.results, clock.seconds, played.settings, paces)
    parts = [BUILDERS[name](material) for name in BUILDERS if name in wanted]
    document = Document(
        title="Learning from late feedback: every system on common ground",
        summary=findings(material),
        facts={
            "Seeds": f"0 to {chosen.seeds - 1}, or to {chosen.slow_seeds - 1} where agents are asked in Python",
            "Rounds and episodes": f"{chosen.rounds} rounds of a bandit, {chosen.episodes} episodes of an MDP",
            "Intervals": "95 %, expanded percentile bootstrap over seeds",
            "Wall time": f"playing {sum(clock.seconds.values()):.0f} s in all",
            "belated": belated.__version__,
            "Python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "numba", "polars", "scipy")},
        },
        sections=parts,
    )
    page = document_markdown(document, pictures="figures")
    write_atomically(Path(out) / "systems.md", page.encode())
    index = write_report(document, out)
    return Report(index, document, time.perf_counter() - began)


def _paces(experiments: dict[str, Experiment], path: Path, resume: bool, progress: bool) -> dict[str, Pace]:
    """Time an episode of every agent of the timed experiments, or read what an earlier call measured."""
    found: dict[str, Pace] = {}
    if resume and path.exists():
        try:
            found = {name: Pace(*values) for name, values in json.loads(path.read_text(encoding="utf-8")).items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise DamagedFileError(f"{path} is not a whole file of times: {error}; delete it") from None
    console = Console(stderr=True, quiet=not progress)
    for name in TIMED:
        if name not in experiments:
            continue
        first = experiments[name].runs()[0]
        for label, agent in experiments[name].agents.items():
            key = f"{name}/{label}"
            if key not in found:
                with console.status(f"timing {key}"):
                    found[key] = pace(first.environment, agent, first.delay)
                write_atomically(path, json.dumps(found, indent=1).encode())
    return found
