"""Keep a small part of finished reports with the documentation: figures, tables, results.json and thinned rows.

python docs/keep.py report      the paper
python docs/keep.py systems     the study of systems
python docs/keep.py exploration the study of exploration
python docs/keep.py trials      the study of trials

A report of some artefacts only (`belated paper`, `belated paper --only sequences`) replaces what was kept of those.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from belated._cli.figures import panel_figure
from belated._util.files import save_json
from belated._util.plot_style import save_figure
from belated.runner import Results, run_experiment
from belated_studies.cells_and_curves import name_of
from belated_studies.paper import STUDY, table_2
from belated_studies.paper.setting import FULL, TUNED
from belated_studies.produce import REPORT
from belated_studies.reports.document import Claim, Finding

HERE = Path(__file__).parent
FIGURES = (
    "figure-1-tuned-multinomial",
    "figure-1-tuned-poisson",
    "figure-1-tuned-pareto",
    "figure-1-literal-poisson",
    "figure-3-literal",
    "figure-3-tuned",
    "computation-chart",
    "computation-sparse-chart",
    "delay-chart",
    "sequences-chart",
)
SUMMARY, SECTION = "<!-- end of the summary -->", "\n## "
EVERY = 50
"""Every 50th row is kept."""
COLUMNS = ("episode", "start", "delay", "arrived", "value", "optimal", "sampled_return")
"""Of the rows, what is kept."""


def keep_page(study: Path, name: str) -> None:
    """Copy the page of a study, and the pictures that it shows.

    What a person has written above `SUMMARY` stays, and so do sections of parts that were not played now.
    """
    kept = HERE / "explanation" / f"{name}.md"
    before, mark, _ = kept.read_text(encoding="utf-8").partition(SUMMARY)
    title, _, page = (study / f"{name}.md").read_text(encoding="utf-8").partition("\n")
    note = f"`belated {name} --full` plays all of this, and writes this page with its tables and pictures.\n"
    head, *new = page.replace("(figures/", "(../pictures/").split(SECTION)
    played_now = {section.partition("\n")[0] for section in new}
    old = kept.read_text(encoding="utf-8").split(SECTION)[1:]
    stay = [section for section in old if section.partition("\n")[0] not in played_now]
    written = before.partition("\n\n")[2] + mark + "\n\n" if mark else ""
    kept.write_text(
        SECTION.join(part.rstrip("\n") + "\n" for part in [f"{title}\n\n{written}{note}{head}", *new, *stay]),
        encoding="utf-8",
    )
    for picture in (study / "figures").glob("*.png"):
        shutil.copyfile(picture, HERE / "pictures" / picture.name)


def keep_paper(report: Path) -> None:
    """Copy what the documentation shows of the paper's report."""
    for name in FIGURES:
        if (report / "figures" / f"{name}.png").exists():
            shutil.copyfile(report / "figures" / f"{name}.png", HERE / "pictures" / f"{name}.png")
    keep_results(report / "results.json", HERE / "results" / "results.json")
    keep_tables(report / "tables", HERE / "results" / "tables.md", played(report / "results.json"))
    rows = report / "rows" / FULL.folder
    keep_rows(rows, HERE / "results" / "rows.parquet")
    if (rows / table_2.RUNS[TUNED]).exists():
        draw_readme(rows)


def played(results: Path) -> set[str]:
    """Return the ids of the artefacts that a report has numbers of."""
    return {record["artefact"] for record in json.loads(results.read_text(encoding="utf-8"))["results"]}


def keep_results(new: Path, kept: Path) -> None:
    """Replace the records of the artefacts that the new results have."""
    report, before = (json.loads(path.read_text(encoding="utf-8")) for path in (new, kept))
    stay = [record for record in before["results"] if record["artefact"] not in played(new)]
    facts = before["facts"] if stay else report["facts"]
    told = [claim for claim in before.get("claims", []) if claim["artefact"] not in played(new)]
    claims = [*report["claims"], *told]
    content = {"title": report["title"], "facts": facts, "claims": claims, "results": [*stay, *report["results"]]}
    save_json(kept, REPORT, 1, content)
    keep_claims(claims, HERE / "explanation" / "reproduction.md")


def keep_claims(claims: Sequence[Mapping[str, Any]], page: Path) -> None:
    """Write the sentence of each claim between the marks that the page has for them."""
    before, begin, rest = page.read_text(encoding="utf-8").partition("<!-- claims -->\n")
    _, end, after = rest.partition("<!-- end of claims -->\n")
    listed = "\n".join(f"{number}. {sentence(claim)}" for number, claim in enumerate(claims, 1))
    page.write_text(f"{before}{begin}\n{listed}\n\n{end}{after}", encoding="utf-8")


def sentence(record: Mapping[str, Any]) -> str:
    """Return a kept claim as the report says it."""
    printed = None if record["verdict"] is None else Finding(record["verdict"], record["evidence"])
    tuned = None if record["tuned"] is None else Finding(**record["tuned"])
    because = record["because"] or ""
    return Claim(
        claim=record["claim"], where=record["artefact"], printed=printed, tuned=tuned, because=because
    ).sentence


def keep_tables(new: Path, kept: Path, artefacts: Iterable[str]) -> None:
    """Replace the tables of the artefacts that were played, on the page that has all of them."""
    parts, theirs = kept.read_text(encoding="utf-8").split("\n## ")[1:], tuple(f"{name}-" for name in artefacts)
    found = {
        name: text.strip() for name, _, text in (part.partition("\n") for part in parts) if not name.startswith(theirs)
    }
    found |= {path.stem: path.read_text(encoding="utf-8").strip() for path in new.glob("*.md")}
    heading = "# Results\n\nEvery table of the full report, as `make paper FULL=1` writes it.\n"
    listed = [f"## {name}\n\n{text}\n" for name, text in sorted(found.items())]
    kept.write_text("\n".join([heading, *listed]), encoding="utf-8")


def keep_rows(new: Path, kept: Path) -> None:
    """Replace the rows of the runs that were played, thinned, and drop those that no experiment has any more."""
    frames = [
        pl.read_parquet(path)
        .gather_every(EVERY)
        .select(pl.lit(str(path.relative_to(new).with_suffix(""))).alias("run"), *COLUMNS)
        for path in sorted(new.rglob("*.parquet"))
    ]
    declared = {run.id for experiment in STUDY.experiments(FULL).values() for run in experiment.runs()}
    rows = pl.concat(frames)
    stay = declared - set(rows["run"].unique())
    pl.concat([pl.read_parquet(kept).filter(pl.col("run").is_in(list(stay))), rows]).write_parquet(
        kept, compression="zstd"
    )


def draw_readme(rows: Path) -> None:
    """Draw the picture of the README from the tuned runs of Table 2."""
    results = run_experiment(table_2.of_block(FULL, TUNED), folder=rows)
    drawn = {name: name_of(name) for name in ("psvi", "lpsvi-plain", "ucbvi")}
    delays = {"multinomial": "10 to 30 episodes late", "poisson": "50 episodes late", "pareto": "heavy-tailed, ≥ 500"}
    shown = results.frame.filter(pl.col("agent").is_in(list(drawn))).with_columns(
        pl.col("agent").replace(drawn),
        pl.col("delay_distribution").replace(delays),
        pl.lit("synthetic linear MDP, tuned agents, 10 seeds").alias("environment"),
    )
    save_figure(panel_figure(Results(shown), "regret"), HERE / "pictures" / "readme.png")


if __name__ == "__main__":
    given = Path(sys.argv[1])
    pages = [name for name in ("systems", "exploration", "trials") if (given / f"{name}.md").exists()]
    if pages:
        keep_page(given, *pages)
    else:
        keep_paper(given)
