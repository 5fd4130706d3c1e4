"""From a study to its finished report: play and measure what is missing, build the document, write everything."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

import belated
from belated._util.files import check_maker, load_json, save_json, write_atomically
from belated._util.progress import Progress, duration
from belated._util.progress import progress as telling
from belated.errors import DamagedFileError
from belated.runner import Callback, Experiment, Results, Run, Store, run_experiment
from belated_studies.reports.document import Document
from belated_studies.reports.json_results import claim_record, section_records
from belated_studies.reports.markdown import document_markdown
from belated_studies.reports.report import write_report
from belated_studies.study import Artefact, Measurement, Played, S, Study, declared

REPORT, MEASURED, TIMES = "belated-report", "belated-measured", "belated-times"
"""The kinds of files, all of version 1."""


@dataclass(frozen=True)
class Report:
    """What was written, and the document it was written from."""

    index: Path
    results: Path
    """`results.json`: every measured number of a table and every end of a curve, for other programs to read."""
    lines: Sequence[Mapping[str, Any]]
    """The numbers of the artefacts that list them."""
    document: Document
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

    Rows are kept in `out/rows`, and with `resume` what is there is not played again; what another version has left
    there is refused. `seeds` and `episodes` replace those of `size`.
    """
    began = time.perf_counter()
    size = size.resized(seeds=seeds, episodes=episodes)
    artefacts, rows = study.artefacts(only), Path(out) / "rows" / size.folder
    played = gather(
        artefacts, size, rows, name=study.name, cost=study.cost, jobs=jobs, resume=resume, progress=progress
    )
    sections = [*(artefact.section(played) for artefact in artefacts), *study.appendix()]
    document = Document(
        title=study.title,
        summary=[*(told for artefact in artefacts for told in artefact.findings(played)), *study.remarks(played)],
        facts={**study.facts(played), **_facts(played, time.perf_counter() - began)},
        sections=sections,
        # runs that two artefacts share can judge claims of one that was not asked for
        claims=[claim for claim in study.claims(played) if claim.where in {section.id for section in sections}],
        opening=study.opening(played),
    )
    write_atomically(Path(out) / f"{study.name}.md", document_markdown(document, pictures="figures").encode())
    index, results = write_report(document, out), Path(out) / "results.json"
    save_json(results, REPORT, 1, _results(document, artefacts, played))
    lines = [line for artefact in artefacts for line in artefact.lines(played)]
    return Report(index, results, lines, document, time.perf_counter() - began)


def gather(
    artefacts: Sequence[Artefact[S]],
    size: S,
    rows: Path,
    *,
    name: str = "report",
    cost: Callable[[Run], float] | None = None,
    jobs: int | None = None,
    resume: bool = True,
    progress: bool = True,
) -> Played[S]:
    """Play and measure, or read from the folder `rows`, everything that `artefacts` need; progress is that of `name`.

    What several experiments have in common is played once: runs of equal descriptions have equal rows. Progress is
    counted in the seconds that `cost` says, or else in episodes.
    """
    experiments = declared(artefacts, size)
    gathering = _Gathering(rows, list(experiments.values()), resume, progress)
    return Played(
        size,
        experiments,
        gathering.play_all(name, cost, jobs),
        {one.name: gathering.measure(one, size) for artefact in artefacts for one in artefact.measurements},
        gathering.seconds,
    )


def forget(experiment: Experiment, rows: Path) -> None:
    """Delete the rows and the checkpoints of an experiment, so that all of it is played again."""
    store = Store(rows)
    for run in experiment.runs():
        for path in (store.path(run), store.checkpoint(run)):
            if path is not None:
                path.unlink(missing_ok=True)


class _Gathering:
    """Play and measure what the folder `rows` does not have yet, and remember how long it took."""

    def __init__(self, rows: Path, experiments: Sequence[Experiment], resume: bool, progress: bool) -> None:
        self.rows, self.experiments, self.resume, self.progress = rows, experiments, resume, progress
        self._store = Store(rows)
        self._same: dict[str, list[Run]] = {}  # by what their rows depend on
        for run in (run for experiment in experiments for run in experiment.runs()):
            self._same.setdefault(_key(run), []).append(run)
        self._times = rows / "times.json"
        kept = load_json(self._times, TIMES, 1) if self._times.exists() else {}
        self.seconds: dict[str, float] = kept.get("seconds", {})

    def play_all(self, name: str, cost: Callable[[Run], float] | None, jobs: int | None) -> dict[str, Results]:
        """Return the rows of every experiment; without `resume` all of them are played again."""
        for experiment in () if self.resume else self.experiments:
            forget(experiment, self.rows)
        work = cost or (lambda run: run.episodes)
        every = [work(runs[0]) for runs in self._same.values()]
        done = [work(runs[0]) for runs in self._same.values() if any(self._store.path(run).exists() for run in runs)]
        first, left, at_once = (
            "the first use of an algorithm compiles it",
            sum(every) - sum(done),
            jobs or os.cpu_count() or 1,
        )
        if cost is not None:
            first = f"about {duration(left / at_once)} on {at_once} quiet cores; {first}"
        told = telling(
            name,
            round(sum(every)),
            "episodes" if cost is None else "seconds of CPU time",
            done=round(sum(done)),
            first=first,
            show=self.progress and bool(every),
        )
        with told as shown:
            count = _Count(shown, work)
            return {experiment.name: self._play(experiment, jobs, count) for experiment in self.experiments}

    def _play(self, experiment: Experiment, jobs: int | None, count: _Count) -> Results:
        runs = experiment.runs()
        count.shown.say(experiment.name)
        counts = not all(self._store.path(run).exists() for run in runs)
        with self._timing(experiment.name, counts=counts):
            for run in runs:
                self._share(run)
            return run_experiment(experiment, folder=self.rows, jobs=jobs, progress=False, callbacks=[count])

    def _share(self, run: Run) -> None:
        """Keep the rows of a run that was played under another name, unless its own are there."""
        there = [other for other in self._same[_key(run)] if self._store.path(other).exists()]
        if there and not self._store.path(run).exists():
            rows = self._store.read(there[0])
            assert rows is not None
            self._store.write(run, rows)

    def measure(self, measurement: Measurement[S], size: S) -> list[Any]:
        """Return the values of `measurement`: with `resume` those of an earlier call, if there are any."""
        path = self.rows / "measured" / f"{measurement.name}.json"
        if self.resume and path.exists() and measurement.lasting(kept := self._read(measurement, path)):
            return kept
        with (
            self._timing(measurement.name, counts=True),
            telling(measurement.name, 1, "measurement", show=self.progress) as told,
        ):
            values = [value._asdict() for value in measurement.measure(size)]
            told.advance()
        save_json(path, MEASURED, 1, {"values": values})
        return _of_kind(measurement, json.loads(json.dumps(values)), path)  # as a later call will read them

    def _read(self, measurement: Measurement[S], path: Path) -> list[Any]:
        kept = load_json(path, MEASURED, 1)
        check_maker(str(path), kept.get("made_by"))
        return _of_kind(measurement, kept.get("values"), path)

    @contextmanager
    def _timing(self, name: str, *, counts: bool) -> Iterator[None]:
        """Add the time of the block to `name`, or start again; a block that only reads does not count."""
        began = time.perf_counter()
        yield
        if counts or not self.resume:
            before = self.seconds.get(name, 0.0) if self.resume else 0.0
            self.seconds[name] = before + time.perf_counter() - began
            save_json(self._times, TIMES, 1, {"seconds": self.seconds})


class _Count(Callback):
    """Tell progress of the part of each run that was played, in whole units of its work."""

    def __init__(self, shown: Progress, work: Callable[[Run], float]) -> None:
        self.shown, self._work = shown, work
        self._played: dict[str, float] = {}
        self._told = 0

    def after_block(self, run: Run, rows: pl.DataFrame) -> None:
        """Count up to the last row of the block; of a thinned run there are fewer rows than episodes."""
        self._played[run.id] = self._work(run) * (int(rows["episode"][-1]) + 1) / run.episodes
        whole = round(sum(self._played.values()))
        self.shown.advance(whole - self._told)
        self._told = whole


def _key(run: Run) -> str:
    return json.dumps(run.describe(), sort_keys=True)


def _of_kind(measurement: Measurement[S], values: Any, path: Path) -> list[Any]:
    try:
        return [measurement.kind(**value) for value in values]
    except TypeError as error:
        raise DamagedFileError(f"{path} does not hold values of this study: {error}; delete it") from None


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


def _results(document: Document, artefacts: Sequence[Artefact[S]], played: Played[S]) -> dict[str, Any]:
    about = {artefact.id: _about(artefact, played) for artefact in artefacts}
    records = [
        {"artefact": section.id, **about.get(section.id, {}), **record}
        for section in document.sections
        for record in section_records(section)
    ]
    claims = [claim_record(claim) for claim in document.claims]
    return {"title": document.title, "facts": dict(document.facts), "claims": claims, "results": records}


def _about(artefact: Artefact[S], played: Played[S]) -> dict[str, Any]:
    """Return how many seeds an artefact had, the most of its experiments, and how long all of it took."""
    experiments = artefact.experiments(played.size)
    seeds = [len({run.seed for run in one.runs()}) for one in experiments]
    names = [*(one.name for one in experiments), *(one.name for one in artefact.measurements)]
    seconds = sum(played.seconds.get(name, 0.0) for name in names)
    return {"seeds": max(seeds, default=played.size.seeds), "wall_seconds": round(seconds, 3)}
