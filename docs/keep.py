"""Keep a small part of finished reports with the documentation: figures, tables, results.json and thinned rows.

python docs/keep.py report      the paper
python docs/keep.py systems     the study of systems
python docs/keep.py exploration the study of exploration
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import polars as pl

from belated.reports import regret_figure, save_figure
from belated.runner import Results, run_experiment
from belated.studies.paper import table_2
from belated.studies.paper.setting import FULL, TUNED
from belated.studies.pieces import name_of

HERE = Path(__file__).parent
FIGURES = (
    "figure-1-tuned-multinomial",
    "figure-1-tuned-poisson",
    "figure-1-tuned-pareto",
    "figure-1-literal-poisson",
    "figure-3-literal",
    "figure-3-tuned",
    "computation-chart",
    "delay-chart",
)
EVERY = 50
"""Of the rows, every 50th episode is kept."""


def keep_page(study: Path, name: str) -> None:
    """Copy the page of a study, and the pictures that it shows."""
    page = (study / f"{name}.md").read_text(encoding="utf-8")
    title, _, rest = page.partition("\n")
    note = f"`belated {name} --full` plays all of this, and writes this page with its tables and pictures.\n"
    (HERE / "explanation" / f"{name}.md").write_text(
        f"{title}\n\n{note}{rest.replace('(figures/', '(../pictures/')}", encoding="utf-8"
    )
    for picture in (study / "figures").glob("*.png"):
        shutil.copyfile(picture, HERE / "pictures" / picture.name)


def keep_paper(report: Path) -> None:
    """Copy what the documentation shows of the paper's report."""
    for name in FIGURES:
        shutil.copyfile(report / "figures" / f"{name}.png", HERE / "pictures" / f"{name}.png")
    shutil.copyfile(report / "results.json", HERE / "results" / "results.json")
    tables = sorted((report / "tables").glob("*.md"))
    listed = [f"## {path.stem}\n\n{path.read_text(encoding='utf-8').strip()}\n" for path in tables]
    heading = "# Results\n\nEvery table of the full report, as `make paper FULL=1` writes it.\n"
    (HERE / "results" / "tables.md").write_text("\n".join([heading, *listed]), encoding="utf-8")
    rows = report / "rows" / FULL.folder
    results = run_experiment(table_2.of_block(FULL, TUNED), folder=rows)
    drawn = {name: name_of(name) for name in ("psvi", "lpsvi-plain", "ucbvi")}
    delays = {"multinomial": "10 to 30 episodes late", "poisson": "50 episodes late", "pareto": "heavy-tailed, ≥ 500"}
    shown = results.frame.filter(pl.col("agent").is_in(list(drawn))).with_columns(
        pl.col("agent").replace(drawn),
        pl.col("delay_law").replace(delays),
        pl.lit("cumulative regret on the synthetic linear MDP, tuned agents, 10 seeds").alias("environment"),
    )
    save_figure(regret_figure(Results(shown)), HERE / "pictures" / "readme.png")
    frames = [
        pl.read_parquet(path)
        .gather_every(EVERY)
        .select(pl.lit(str(path.relative_to(rows).with_suffix(""))).alias("run"), pl.all())
        for path in sorted(rows.rglob("*.parquet"))
    ]
    pl.concat(frames).write_parquet(HERE / "results" / "rows.parquet", compression="zstd")


if __name__ == "__main__":
    given = Path(sys.argv[1])
    pages = [name for name in ("systems", "exploration") if (given / f"{name}.md").exists()]
    if pages:
        keep_page(given, *pages)
    else:
        keep_paper(given)
