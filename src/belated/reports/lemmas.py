"""The study of the lemmas as a report: one table of claims, and the figures behind it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.progress import track
from threadpoolctl import threadpool_limits

import belated
from belated.delays import law_from_dict
from belated.environments import FiniteMDP, environment_from_dict
from belated.errors import BelatedError
from belated.experiments.lemmas import (
    BANDIT,
    DELTA,
    EPISODES,
    MEDIUM,
    PARTS,
    SEEDS,
    SMALL_EPISODES,
    WORLDS,
    Check,
    Curve,
    Part,
)
from belated.reports.document import Chart, Document, Section, Series, Table
from belated.reports.report import write_report
from belated.theory import Bounds


def produce(out: str | Path) -> Document:
    """Run the study and write its page, figures and tables into the folder `out`."""
    began = time.perf_counter()
    console = Console(stderr=True)
    with threadpool_limits(1):  # the matrices are tiny
        found = {
            name: part()
            for name, part in track(
                PARTS.items(), "checking the lemmas", console=console, disable=not console.is_terminal, transient=True
            )
        }
    document = lemmas_document(found, time.perf_counter() - began)
    write_report(document, out)
    return document


def lemmas_document(found: Mapping[str, Part], seconds: float) -> Document:
    """Return the report of a finished study."""
    checks = [check for part in found.values() for check in part.checks]
    return Document(
        title="The lemmas, measured",
        summary=summary(checks, found),
        facts={
            "Small worlds": f"{len(WORLDS)} of {_sizes(WORLDS[0])}, {len(SEEDS)} seeds each, K = {SMALL_EPISODES}",
            "Larger world": f"{_sizes(MEDIUM)}, K = {EPISODES}",
            "Bandit": f"{_sizes(BANDIT)}, K = {EPISODES}",
            "δ": f"{DELTA:g}",
            "Wall time": f"{seconds:.0f} s",
            "belated": belated.__version__,
        },
        sections=[Section(id="claims", title="Claims", tables=[lemmas_table(checks)], charts=charts(found))],
    )


def mismatches(found: Bounds, rows: pl.DataFrame, about: Mapping[str, Any]) -> list[str]:
    """Return in what the run that `about` describes differs from the problem that `found` bounds."""
    asked = {"d": found.dimension, "H": found.horizon, "K": found.episodes, "delay": found.delay.label}
    played: dict[str, object] = {"K": int(rows["episode"][-1]) + 1}
    with suppress(BelatedError):  # an environment or a law that has no specification, or not one of this version
        played["delay"] = law_from_dict(about.get("delay")).label
    with suppress(BelatedError):
        world = environment_from_dict(about.get("environment"))  # type: ignore[arg-type]
        played |= {"d": world.dimension, "H": world.horizon}
    return [
        f"{name} is {played[name]}, not {asked[name]}" for name in asked if played.get(name) not in (None, asked[name])
    ]


def _sizes(world: FiniteMDP) -> str:
    return f"S = {world.states}, A = {world.actions}, d = {world.dimension}, H = {world.horizon}"


def summary(checks: Sequence[Check], found: Mapping[str, Part]) -> list[str]:
    """Return what a reader should take away."""
    proved = [check for check in checks if check.applies]
    false = [check for check in checks if not check.holds]
    sentences = [
        f"Of {len(proved)} claims with the settings they are proved for, "
        f"{sum(check.holds for check in proved)} hold as often as promised."
    ]
    for check in false:
        promise = "Promised" if check.applies else "Not promised"
        sentences.append(f"{promise}, and not so: {check.lemma.lower()} with {check.case}.")
    if "widths" in found:
        sentences += [
            _enough(curve) for curve in found["widths"].curves if curve.name.endswith("runs") and not curve.dashed
        ]
    if "regret" in found:
        ends = {curve.name: float(curve.y[-1]) for curve in found["regret"].curves}
        listed = "; ".join(f"{name}: {end:,.4g}" for name, end in ends.items())
        sentences.append(f"After {EPISODES} episodes: {listed}.")
        worst = MEDIUM.horizon * EPISODES
        if all(check.bound > worst for check in found["regret"].checks):
            sentences.append("Each bound on regret exceeds the largest there can be, so that none of them could fail.")
    return sentences


def _enough(curve: Curve) -> str:
    """Return from which width on all runs are optimistic."""
    named, enough = curve.name.partition(":")[0], curve.x[curve.y == 1.0]
    if not enough.size:
        return f"With {named} no width up to {curve.x[-1]:.3g} makes all runs optimistic throughout."
    return (
        f"With {named} all runs are optimistic throughout from a width of {enough[0]:.2g} on; "
        f"the theorem asks for {curve.x[-1]:.3g}."
    )


def lemmas_table(checks: Sequence[Check]) -> Table:
    """Return one row a claim."""
    return Table(
        id="lemmas",
        title="What the lemmas claim, and what was measured",
        caption=(
            "Measured is the worst of all runs. A claim holds if it held in as large a share of the runs as promised. "
            "Rows marked * have settings for which nothing is proved."
        ),
        columns=["Lemma", "Claim", "Case", "Bound", "Measured", "Share of runs", "Promised", "Holds"],
        rows=[
            [
                check.lemma + ("" if check.applies else " *"),
                check.claim,
                check.case,
                _number(check.bound),
                _number(check.measured),
                f"{check.share:.1%}",
                f"{check.promised:.1%}",
                "yes" if check.holds else "no",
            ]
            for check in checks
        ],
    )


def _number(value: float) -> str:
    return f"{value:,.4g}".replace("-", "−")


def charts(found: Mapping[str, Part]) -> list[Chart]:
    """Return the figures of the parts that were run."""
    series = {name: [_series(curve) for curve in part.curves] for name, part in found.items()}
    drawn = []
    if "widths" in found:
        drawn.append(
            Chart(
                id="lemmas-widths",
                title="How wide must draws be to be optimistic?",
                caption=(
                    "The share with Q ≥ Q*: of runs, throughout, and of single action values. The theorem asks for "
                    "the largest width shown."
                ),
                x_label="width of the draws, ν",
                y_label="share with Q ≥ Q*",
                series=series["widths"],
                log_x=True,
            )
        )
    if "covariance" in found:
        drawn.append(
            Chart(
                id="lemmas-covariance",
                title="Covariance Θ of a chain of N steps",
                caption="Eigenvalues of Ω^½ΘΩ^½/γ for the worst conditioned Ω of the study.",
                x_label="steps of the chain, N",
                y_label="eigenvalue of Ω^½ΘΩ^½/γ",
                series=series["covariance"],
                level=("upper bound", 1.0),
                log_x=True,
            )
        )
    if "regret" in found:
        drawn.append(
            Chart(
                id="lemmas-regret",
                title="Regret and its bounds",
                caption=f"Mean over seeds on the larger world. The settings of Theorem 1 are those for K = {EPISODES}.",
                x_label="episodes",
                y_label="cumulative regret",
                series=series["regret"],
                log_x=True,
                log_y=True,
            )
        )
    return drawn


def _series(curve: Curve) -> Series:
    return Series(name=curve.name, x=curve.x, y=curve.y, dashed=curve.dashed)
