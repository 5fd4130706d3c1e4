"""From a study to its finished report: play and measure what is missing, build the document, write everything."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

import belated
from belated.errors import DamagedFileError
from belated.reports.document import Document
from belated.reports.markdown import document_markdown
from belated.reports.records import section_records
from belated.reports.report import write_report
from belated.runner import Experiment, Results, Store, run_experiment
from belated.storage import write_atomically
from belated.studies.study import Artefact, Measurement, Played, S, Study, declared


@dataclass(frozen=True)
class Report:
    """What was written, and the document it was written from."""

    index: Path
    document: Document
    results: str
    """What `results.json` holds."""
    seconds: float


def produce(
    study: Study[S],
    size: S,
    *,
    out: str | Path,
    only: Sequence[str] = (),
    seeds: int | None = None,
    episodes: int | None = None,
    jobs: int | None = None,
    resume: bool = True,
    progress: bool = True,
) -> Report:
    """Play and measure what the artefacts called `only`, or all, need, and write the report into the folder `out`.

    Rows are kept in `out/rows`, and with `resume` what is there is not played again. `seeds` and `episodes` replace
    those of `size`.
    """
    began = time.perf_counter()
    size = size.resized(seeds=seeds, episodes=episodes)
    artefacts = study.artefacts(only)
    rows = Path(out) / "rows" / size.folder
    played = gather(artefacts, size, rows, jobs=jobs, resume=resume, progress=progress)
    sections = [artefact.section(played) for artefact in artefacts]
    document = Document(
        title=study.title,
        summary=[*(told for artefact in artefacts for told in artefact.findings(played)), *study.remarks(played)],
        facts={**study.facts(played), **_facts(played, time.perf_counter() - began)},
        sections=[*sections, *study.appendix()],
    )
    write_atomically(Path(out) / f"{study.name}.md", document_markdown(document, pictures="figures").encode())
    index = write_report(document, out)
    results = _results_json(document, artefacts, played)
    write_atomically(Path(out) / "results.json", results.encode())
    return Report(index, document, results, time.perf_counter() - began)


def gather(
    artefacts: Sequence[Artefact[S]],
    size: S,
    rows: Path,
    *,
    jobs: int | None = None,
    resume: bool = True,
    progress: bool = True,
) -> Played[S]:
    """Play and measure, or read from the folder `rows`, everything that `artefacts` need."""
    gathering, experiments = _Gathering(rows, resume=resume, progress=progress), declared(artefacts, size)
    return Played(
        size,
        experiments,
        {name: gathering.play(experiment, jobs) for name, experiment in experiments.items()},
        {one.name: gathering.measure(one, size) for artefact in artefacts for one in artefact.measurements},
        gathering.seconds,
    )


class _Gathering:
    """Play and measure what the folder `rows` does not have yet, and remember how long it took."""

    def __init__(self, rows: Path, *, resume: bool, progress: bool) -> None:
        self.rows, self.resume, self.progress = rows, resume, progress
        self.console = Console(stderr=True, quiet=not progress)
        self._clock = rows / "seconds.json"
        self.seconds: dict[str, float] = _read(self._clock, dict) if self._clock.exists() else {}

    def play(self, experiment: Experiment, jobs: int | None) -> Results:
        """Return the rows of `experiment`; without `resume` all of them are played again."""
        runs, store = experiment.runs(), Store(self.rows)
        paths = [store.path(run) for run in runs]
        if not self.resume:
            for path in [*paths, *map(store.checkpoint, runs)]:
                if path is not None:
                    path.unlink(missing_ok=True)
        with self._timing(experiment.name, counts=not all(path.exists() for path in paths)):
            results = run_experiment(experiment, folder=self.rows, jobs=jobs, progress=self.progress)
        taken = self.seconds.get(experiment.name, 0.0)
        self.console.print(f"{experiment.name}: {len(runs)} runs, {taken:.0f} s", highlight=False)
        return results

    def measure(self, measurement: Measurement[S], size: S) -> list[Any]:
        """Return the values of `measurement`: those of an earlier call if it was asked for, and the call may resume."""
        path = self.rows / f"{measurement.name}.json"
        if not (self.resume and path.exists()):
            with self._timing(measurement.name, counts=True), self.console.status(f"measuring {measurement.name}"):
                values = [value._asdict() for value in measurement.measure(size)]
            write_atomically(path, json.dumps(values, indent=1).encode())
        try:  # what was measured now is read as well, so that it is the same as what a later call will read
            return [measurement.kind(**value) for value in _read(path, list)]
        except TypeError as error:
            raise _damaged(path, error) from None

    @contextmanager
    def _timing(self, name: str, *, counts: bool) -> Iterator[None]:
        """Add the time of the block to `name`, or start again; a block that only reads does not count."""
        began = time.perf_counter()
        yield
        if counts or not self.resume:
            before = self.seconds.get(name, 0.0) if self.resume else 0.0
            self.seconds[name] = before + time.perf_counter() - began
            write_atomically(self._clock, json.dumps(self.seconds, indent=1).encode())


def _read(path: Path, kind: type[Any]) -> Any:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _damaged(path, error) from None
    if not isinstance(content, kind):
        raise _damaged(path, f"it holds a {type(content).__name__}, not a {kind.__name__}")
    return content


def _damaged(path: Path, why: object) -> DamagedFileError:
    return DamagedFileError(f"{path} is not a whole file of this study: {why}; delete it")


def _facts(played: Played[S], seconds: float) -> Mapping[str, str]:
    """Return what every study says of itself."""
    intervals = {"Intervals": "95 %, expanded percentile bootstrap over seeds"} if played.results else {}
    return {
        **intervals,
        "Wall time": f"playing {sum(played.seconds.values()):.0f} s in all; this call {seconds:.0f} s",
        "belated": belated.__version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba", "polars", "scipy")},
    }


def _results_json(document: Document, artefacts: Sequence[Artefact[S]], played: Played[S]) -> str:
    """Return every measured table cell and every end of a curve, for other programs to read."""
    about = {artefact.id: _about(artefact, played) for artefact in artefacts}
    records = [
        {"artefact": section.id, **about.get(section.id, {}), **record}
        for section in document.sections
        for record in section_records(section)
    ]
    content = {"title": document.title, "facts": dict(document.facts), "results": records}
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _about(artefact: Artefact[S], played: Played[S]) -> dict[str, Any]:
    """Return how many seeds an artefact had, the most of its experiments, and how long all of it took."""
    experiments = artefact.experiments(played.size)
    runs = [len({run.seed for run in one.runs()}) for one in experiments]
    names = [*(one.name for one in experiments), *(one.name for one in artefact.measurements)]
    seconds = sum(played.seconds.get(name, 0.0) for name in names)
    return {"seeds": max(runs, default=played.size.seeds), "wall_seconds": round(seconds, 3)}
