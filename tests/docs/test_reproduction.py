"""The page on the reproduction quotes the kept results, digit for digit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from belated.runner import Run, simulate
from belated_studies.paper import STUDY

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "explanation" / "reproduction.md").read_text(encoding="utf-8")
KEPT = pl.read_parquet(DOCS / "results" / "rows.parquet")
RESULTS = json.loads((DOCS / "results" / "results.json").read_text(encoding="utf-8"))
RECORDS: list[dict[str, Any]] = RESULTS["results"]
CLAIMS: list[dict[str, Any]] = RESULTS["claims"]


COLUMNS = ("episode", "start", "delay", "arrived", "value", "optimal", "sampled_return")

#: The sequence that fits best on the seeds that choose: the first row of its table.
BEST = next((record["row"] for record in RECORDS if record["where"] == "sequences-fit"), "")


def found(where: str, row: str) -> list[dict[str, Any]]:
    return [record for record in RECORDS if record["where"] == where and record["row"] == row]


@pytest.mark.parametrize("block", ["literal", "tuned"])
@pytest.mark.parametrize("agent", ["Delayed-PSVI", "Delayed-LPSVI", "Delayed-UCBVI"])
def test_returns_by_delay(block: str, agent: str) -> None:
    cells = found(f"table-2-{block}", agent)
    assert len(cells) == 3
    numbers = [rf"{cell['value']:.2f} \((?:paper )?{cell['published']:.2f}\)" for cell in cells]
    assert re.search(r"\| " + agent + r"[^|]*\| " + r" \| ".join(numbers) + r" \|", PAGE)


@pytest.mark.parametrize("agent", ["Delayed-PSVI (σ = 0.1)", "Delayed-LPSVI", "Delayed-UCBVI"])
def test_episodes_by_size(agent: str) -> None:
    cells = found("table-3-tuned", agent)
    ours = " / ".join(f"{cell['value']:.0f}" for cell in cells)
    theirs = " / ".join(f"{cell['published']:.0f}" for cell in cells)
    assert f"| {ours} | {theirs} |" in PAGE


def test_regret_on_riverswim() -> None:
    for block in ("literal", "tuned"):
        for agent in ("Delayed-PSVI", "Delayed-LPSVI", "Delayed-UCBVI"):
            (cell,) = [
                record
                for record in found("figure-3-ends", agent)
                if record["block"] == block and record["column"] == "Cumulative regret"
            ]
            assert f"{cell['value']:,.0f}".replace(",", " ") in PAGE


def test_open_details() -> None:
    columns = ["Delayed-PSVI", "Delayed-LPSVI", "Delayed-UCBVI"]
    for reading in ("ties go to the first action", "features divided so that ‖φ‖ ≤ 1", "start in state 1"):
        cells = [record for record in found("details-table", reading) if record["column"] in columns]
        assert f"| {reading} | " + " | ".join(f"{cell['value']:.2f}" for cell in cells) + " |" in PAGE
    for start, named in (
        ("episode", "last episode's sample"),
        ("step", "sample of the step above"),
        ("cold", "zero"),
    ):
        for sigma, shown in (("1.0", "1"), ("0.1", "0.1")):
            values = [f"{cell['value']:.2f}" for cell in found("details-langevin-table", f"{start} · {sigma}")[:2]]
            assert f"| {named} | {shown} | " + " | ".join(values) + " |" in PAGE


def test_the_temperature_as_a_root() -> None:
    for start, named in (("episode", "last episode's sample"), ("step", "sample of the step above"), ("cold", "zero")):
        for sigma, shown in (("1.0", "1"), ("0.1", "0.1")):
            values = [f"{cell['value']:.2f}" for cell in found("temperature-table", f"{start} · {sigma}")[:4]]
            assert f"| {named} | {shown} | " + " | ".join(values) + " |" in PAGE


def test_sequences() -> None:
    for agent, named in (
        ("Delayed-PSVI (σ = 0.1)", "PSVI"),
        ("Delayed-LPSVI", "LPSVI"),
        ("Delayed-LPSVI, σ = 0.1 in the loss", "LPSVI, σ = 0.1 in the loss"),
        ("Delayed-UCBVI", "UCBVI"),
    ):
        values = [f"{cell['value']:.2f}" for cell in found("sequences-spread", f"{agent} · poisson")]
        assert f"| {named} | " + " | ".join(values) + " |" in PAGE
    own, best = (
        [record for record in RECORDS if record["where"] == "sequences-fit" and wanted(record["row"])][1]
        for wanted in (lambda row: "library's own" in row, BEST.__eq__)
    )
    assert f"off by {best['value']:.0f} %" in PAGE
    assert f"the library's own by {own['value']:.0f} %" in PAGE


def test_every_kept_claim_is_told_with_its_evidence() -> None:
    assert len(CLAIMS) >= 14
    for claim in CLAIMS:
        assert f"“{claim['claim']}”" in PAGE
        for found in (claim, claim["tuned"]):
            assert found is None or found["verdict"] is None or f"**{found['verdict']}**" in PAGE
            assert found is None or found["evidence"] is None or f"({found['evidence']})" in PAGE


def test_the_kept_rows_are_those_of_the_report() -> None:
    last = KEPT.filter(
        pl.col("run").str.starts_with("table-2-tuned/synthetic-a20/psvi/poisson/"), pl.col("episode") >= 4500
    )
    assert last["run"].n_unique() == 10
    (cell,) = [record for record in found("table-2-tuned", "Delayed-PSVI") if "Poisson" in record["column"]]
    mean = last["value"].mean()
    assert isinstance(mean, float)
    assert abs(mean - cell["value"]) < 0.05  # every 50th episode of the last tenth


def first_seeds() -> list[Any]:
    """Return the runs of seed 0 that were kept, all but two of them as slow tests."""
    kept = set(KEPT["run"])
    quick = ("table-2-tuned/synthetic-a20/psvi/poisson/seed-00", "figure-3-tuned/riverswim-5/psvi/poisson/seed-00")
    runs = [
        run
        for each in STUDY.experiments(STUDY.full).values()
        for run in each.runs()
        if run.seed == 0 and run.id in kept
    ]
    return [pytest.param(run, id=run.id, marks=() if run.id in quick else pytest.mark.slow) for run in runs]


@pytest.mark.parametrize("run", first_seeds())
def test_the_kept_rows_are_those_that_the_library_plays(run: Run) -> None:
    kept = KEPT.filter(pl.col("run") == run.id)
    rows = simulate(run.environment, run.algorithm, run.delay, episodes=run.episodes, seed=run.seed)
    assert rows[kept["episode"].to_list()].select(*COLUMNS).equals(kept.select(*COLUMNS)), "equal to the last bit"
