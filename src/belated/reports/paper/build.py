"""From declared experiments to the finished report: play what is missing, build the document, write everything."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

import belated
import belated.experiments.paper as declared
from belated.errors import DamagedFileError
from belated.experiments import timing
from belated.experiments.timing import Timing
from belated.reports.document import Cell, Chart, Document, Section, Table
from belated.reports.gathering import Clock, gather
from belated.reports.paper import sections, studies
from belated.reports.paper.findings import findings
from belated.reports.paper.material import Material
from belated.reports.report import write_report
from belated.storage import write_atomically
from belated.studies.paper.departures import departures
from belated.validate import choice

#: Sections in the order of the report, and the function that builds each.
BUILDERS = {
    "figure-1": sections.figure_1,
    "figure-2": sections.figure_2,
    "table-2": sections.table_2,
    "table-3": sections.table_3,
    "table-4": sections.table_4,
    "figure-3": sections.figure_3,
    "table-1": studies.table_1,
    "computation": studies.computation,
    "delay": studies.delay,
    "details": studies.details,
}


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
    names: Iterable[str] = tuple(BUILDERS),
    seeds: int | None = None,
    episodes: int | None = None,
    jobs: int | None = None,
    resume: bool = True,
    progress: bool = True,
) -> Report:
    """Play the experiments behind the artefacts called `names` and write the report into the folder `out`.

    Rows are kept in `out/rows`, and with `resume` what is there is not played again. `seeds` and `episodes` replace
    those of `size`.
    """
    began = time.perf_counter()
    wanted = [choice("the artefact", name, BUILDERS) for name in names]
    chosen = replace(
        size,
        episodes=size.episodes if episodes is None else episodes,
        seeds=size.seeds if seeds is None else seeds,
        riverswim_seeds=size.riverswim_seeds if seeds is None else seeds,
    )
    rows = Path(out) / "rows" / f"{chosen.episodes}-episodes"
    material = _gather(chosen, wanted, rows, jobs, resume, progress)
    parts = [BUILDERS[name](material) for name in BUILDERS if name in wanted]
    document = _document(material, [*parts, departures()], time.perf_counter() - began)
    index = write_report(document, out)
    write_atomically(Path(out) / "results.json", _results_json(document, material).encode())
    return Report(index, document, time.perf_counter() - began)


def _gather(
    size: declared.Size, wanted: list[str], rows: Path, jobs: int | None, resume: bool, progress: bool
) -> Material:
    """Play, or read, everything that the wanted artefacts need."""
    clock = Clock(rows / "seconds.json")
    played = gather(declared.experiments(size, wanted), rows, clock, jobs=jobs, resume=resume, progress=progress)
    timings: list[Timing] = []
    if "computation" in wanted:
        path = rows / "computation.json"
        with clock.timing("computation", counts=not path.exists(), afresh=not resume):
            timings = _timings(path, resume, progress)
    return Material(size, played.results, clock.seconds, played.settings, timings)


def _timings(path: Path, resume: bool, progress: bool) -> list[Timing]:
    """Measure the computational claim, or read what an earlier run measured."""
    if resume and path.exists():
        try:
            return [Timing(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
        except (ValueError, TypeError) as error:
            raise DamagedFileError(f"{path} is not a whole file of timings: {error}; delete it") from None
    with Console(stderr=True, quiet=not progress).status("computation: timing every variant at every d"):
        timings = timing.measure()
    write_atomically(path, json.dumps([entry._asdict() for entry in timings], indent=1).encode())
    return timings


def _document(material: Material, parts: list[Section], seconds: float) -> Document:
    size = material.size
    summary = [
        *findings(material),
        "Each result is shown twice: with the paper's printed hyper-parameters (literal), and with the best of one "
        "search of equal size for every agent, on seeds that this report does not use (tuned).",
    ]
    if size.name != declared.FULL.name or size.episodes < declared.FULL.episodes:
        summary.append(
            f"This is a quick look: {size.seeds} seeds and {size.episodes} episodes instead of {declared.FULL.seeds} "
            f"and {declared.FULL.episodes}. Heavy-tailed delays need the full number: `make paper FULL=1`."
        )
    facts = {
        "Seeds": f"0 to {size.seeds - 1} (RiverSwim: 0 to {size.riverswim_seeds - 1})",
        "Episodes": f"{size.episodes}",
        "Intervals": "95 %, expanded percentile bootstrap over seeds",
        "Wall time": f"playing {sum(material.seconds.values()):.0f} s in all; this call {seconds:.0f} s",
        "belated": belated.__version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba", "polars", "scipy")},
    }
    return Document(
        title="Posterior sampling with delayed feedback: the paper, reproduced",
        summary=summary,
        facts=facts,
        sections=parts,
    )


def _results_json(document: Document, material: Material) -> str:
    """Return every measured table cell and every end of a curve, for other programs to read."""
    records: list[dict[str, Any]] = []
    for part in document.sections:
        played = declared.ARTEFACTS.get(part.id, ())
        seconds = sum(material.seconds.get(name, 0.0) for name in (*played, part.id))
        about = {"artefact": part.id, "seeds": material.size.seeds, "wall_seconds": round(seconds, 3)}
        if part.id == "figure-3":
            about["seeds"] = material.size.riverswim_seeds
        for table in part.tables:
            records += [{**about, **record} for record in _table_records(table)]
        for chart in part.charts:
            records += [{**about, **record} for record in _chart_records(chart)]
    content = {"title": document.title, "facts": dict(document.facts), "results": records}
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _block(name: str, texts: Iterable[str]) -> str | None:
    """Return whether something shows the literal or the tuned agents, from its id or the text of its row."""
    return next((block for block in declared.BLOCKS if f"-{block}" in name or block in texts), None)


def _number(value: float | None) -> float | None:
    """Return `value`, or None for what JSON cannot say."""
    return None if value is None or value != value else value


def _table_records(table: Table) -> Iterable[dict[str, Any]]:
    for row in table.rows:
        texts = [entry for entry in row if isinstance(entry, str)]
        for column, entry in zip(table.columns, row, strict=True):
            if isinstance(entry, Cell) and entry.value is not None:
                yield {
                    "where": table.id,
                    "row": " · ".join(text for text in texts if text not in declared.BLOCKS),
                    "column": column,
                    "block": _block(table.id, texts),
                    "value": entry.value,
                    "low": _number(entry.low),
                    "high": _number(entry.high),
                    "published": entry.published,
                    "published_spread": entry.published_spread,
                    "verdict": entry.verdict,
                }


def _chart_records(chart: Chart) -> Iterable[dict[str, Any]]:
    if chart.bars:
        return
    for series in chart.series:
        yield {
            "where": chart.id,
            "row": series.name,
            "column": f"end of curve, {chart.x_label} {series.x[-1]:g}",
            "block": _block(chart.id, ()),
            "value": float(series.y[-1]),
            "low": None if series.low is None else _number(float(series.low[-1])),
            "high": None if series.high is None else _number(float(series.high[-1])),
            "published": None,
            "published_spread": None,
            "verdict": None,
        }
