from __future__ import annotations

import io
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from made import made
from rich.console import Console

import belated
from belated._cli.tables import (
    KINDS,
    catalogue,
    describe_file,
    interval_note,
    settings,
    spark,
    summary_markdown,
    summary_rows,
    summary_table,
)
from belated._util import plugins as named
from belated.errors import InvalidInputError
from belated.runner import Results


def test_an_oracle_is_not_the_best_learner() -> None:
    markdown = summary_markdown(
        made({("river", "short", "oracle"): [[4.0, 4.0]], ("river", "short", "quick"): [[2.0, 3.0]]})
    )
    assert "| oracle | 4.00 | 100.0% | 0.00 |" in markdown
    assert "| quick | 3.00 | 75.0% | **3.00** |" in markdown


def test_a_row_has_the_mean_of_the_end_its_share_and_the_regret() -> None:
    rows = summary_rows(made({("river", "short", "quick"): [[2.0] * 10, [4.0] * 10]}))
    (row,) = rows
    assert row.value.startswith("3.00 [")
    assert row.share == "75.0%"
    assert row.regret.startswith("10.00 [")
    assert row.best


def test_what_can_only_be_sampled_has_a_return_and_no_regret() -> None:
    seen = made({("car", "short", "quick"): [[2.0, 3.0]], ("car", "short", "slow"): [[1.0, 1.5]]}).frame
    unknown = [pl.lit(None, pl.Float64).alias(name) for name in ("value", "optimal", "regret")]
    sampled = Results(seen.with_columns(pl.col("value").alias("sampled_return")).with_columns(unknown))
    assert [row.best for row in summary_rows(sampled)] == [True, False]
    markdown = summary_markdown(sampled)
    assert "| quick | **3.00** | – | – |" in markdown
    assert "| slow | 1.50 | – | – |" in markdown
    assert interval_note(sampled).startswith("value (where nobody knows it, return)")


def test_an_agent_with_exact_values_is_compared_with_those_that_have_them() -> None:
    seen = made({("lake", "short", "table"): [[2.0, 3.0]], ("lake", "short", "samples"): [[1.0, 1.5]]}).frame
    mixed = seen.with_columns(pl.col("value").alias("sampled_return")).with_columns(
        pl.when(pl.col("agent") == "table").then(pl.col("value")).alias("value"),
        pl.when(pl.col("agent") == "table").then(pl.col("optimal")).alias("optimal"),
    )
    rows = summary_rows(Results(mixed))
    assert [(row.agent, row.regret, row.best) for row in rows] == [("table", "3.00", True), ("samples", "–", False)]


def printed(results: Results, *, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=colour, color_system="standard" if colour else None)
    console.print(summary_table(results))
    return out.getvalue()


TWO_DELAYS = {
    ("river", "short", "quick"): [[2.0, 4.0], [2.0, 4.0]],
    ("river", "long", "quick"): [[0.0, 3.0], [0.0, 1.0]],
    ("river", "short", "slow"): [[0.0, 4.0], [0.0, 2.0]],
    ("river", "long", "slow"): [[1.0, 3.0], [1.0, 3.0]],
}


def test_a_row_for_each_comparison_with_value_share_and_regret() -> None:
    lines = printed(made(TWO_DELAYS)).splitlines()
    rows = [line.split() for line in lines if "quick" in line or "slow" in line]
    assert rows == [
        ["short", "quick", "4.00", "[4.00,", "4.00]", "100.0%", "2.00", "[2.00,", "2.00]"],
        ["slow", "3.00", "[2.00,", "4.00]", "75.0%", "5.00", "[4.00,", "6.00]"],
        ["long", "quick", "2.00", "[1.00,", "3.00]", "50.0%", "6.00", "[5.00,", "7.00]"],
        ["slow", "3.00", "[3.00,", "3.00]", "75.0%", "4.00", "[4.00,", "4.00]"],
    ]
    assert lines[0].strip() == "river", "the only environment is the title"
    assert "95% bootstrap intervals over 2 seeds" in " ".join(printed(made(TWO_DELAYS)).split())


def test_the_least_regret_of_each_comparison_is_bold() -> None:
    bold = [line for line in printed(made(TWO_DELAYS), colour=True).splitlines() if "\x1b[1m" in line and "%" in line]
    assert ["quick" in line for line in bold] == [True, False]
    assert "2.00" in bold[0]
    assert "4.00" in bold[1]
    assert summary_markdown(made(TWO_DELAYS)).count("**") == 4


def test_one_seed_has_no_interval() -> None:
    text = printed(made({("river", "short", "quick"): [[0.0, 1.5]]}))
    assert "river, short" in text.splitlines()[0]
    assert text.splitlines()[4].split() == ["quick", "1.50", "37.5%", "6.50"]
    assert "one seed" in text
    assert "nan" not in text


def test_large_regret_is_rounded_and_grouped() -> None:
    text = printed(made({("river", "short", "quick"): [[0.0] * 1000]}, optimal=12.3456))
    assert "12,346 " in text


def test_labels_are_not_markup_and_an_optimum_of_zero_has_no_share() -> None:
    text = printed(made({("[red]", "[/]", "[bold]"): [[0.0]]}, optimal=0.0))
    assert "[red], [/]" in text
    assert text.splitlines()[4].split() == ["[bold]", "0.00", "–", "0.00"]


def test_wide_comparisons_fit_eighty_columns() -> None:
    results = made(
        {
            (environment, delay, "epsilon-greedy"): [[0.0] * 2000, [0.1] * 2000]
            for environment in ("random-linear-s10-a4-d5-h8-0", "synthetic-a20-appendix")
            for delay in ("multinomial-10-20-30", "poisson-5")
        },
        optimal=19.8,
    )
    text = printed(results)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "[39,400, 39,600]" in text, "numbers are never cut; labels are folded"


def test_a_mini_curve_shows_the_means_of_equal_parts() -> None:
    assert spark([0.0, 0.0, 8.0, 8.0, 4.0, 4.0], 3) == "▁█▅"
    assert spark(np.linspace(0, 1, 1000), 8) == "▁▂▃▄▅▆▇█"
    assert len(spark(np.linspace(0, 1, 1001), 40)) == 40


def test_a_mini_curve_is_not_stretched() -> None:
    assert spark([1.0, 2.0], 10) == "▁█"
    assert spark([], 10) == ""


def test_a_mini_curve_on_a_given_scale() -> None:
    assert spark([0.5, 2.0, -1.0], 3, low=0.0, high=1.0) == "▅█▁"
    assert spark([3.0, 3.0], 2) == "▁▁"


@pytest.mark.parametrize(
    ("values", "width", "message"),
    [([float("nan")], 4, "values must be finite"), ([1.0], 0, "width must be an integer >= 1")],
)
def test_a_mini_curve_refuses(values: list[float], width: int, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        spark(values, width)


def shown(path: Path) -> str:
    out = io.StringIO()
    Console(file=out, width=120).print(describe_file(path))
    return out.getvalue()


def test_rows_are_told_with_what_they_depend_on(tmp_path: Path) -> None:
    agents = {"random": belated.RandomPolicy()}
    world = belated.RiverSwim(states=3)
    belated.run(world, agents, belated.Constant(2), episodes=10, seeds=1, folder=tmp_path, progress=False)
    text = shown(next(tmp_path.rglob("*.parquet")))
    assert "rows of one run" in text
    assert "distribution = constant, value = 2" in text
    assert "7 of 10 trajectories" in text


def test_an_agent_is_told_with_its_memory(tmp_path: Path) -> None:
    belated.save_agent(tmp_path / "a.npz", belated.DelayedPSVI().start(belated.RiverSwim(states=3, horizon=4).problem))
    text = shown(tmp_path / "a.npz")
    assert "3 states, 2 actions, 6 features, 4 steps" in text
    assert "not saved" in text
    assert "4 × 6 × 6" in text


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(belated.InvalidInputError, match=r"must be a \.parquet file"):
        describe_file(tmp_path / "notes.txt")


@pytest.mark.parametrize("kind", KINDS)
def test_every_name_is_listed_with_its_settings(kind: str) -> None:
    out = io.StringIO()
    Console(file=out, width=200).print(catalogue(kind))
    assert [name for name in KINDS[kind] if f" {name} " not in out.getvalue()] == []


def test_what_installed_packages_bring_is_listed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("weekly", "belated.delays:Constant", "belated.delays")
    monkeypatch.setattr(named, "entry_points", lambda group: [point] if group == point.group else [])
    out = io.StringIO()
    Console(file=out, width=200).print(catalogue("delays"))
    assert out.getvalue().count("value") > 1
    assert " weekly " in out.getvalue()


def test_a_package_that_cannot_be_imported_hides_no_other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("broken", "nowhere:Nobody", "belated.delays")
    monkeypatch.setattr(named, "entry_points", lambda group: [point] if group == point.group else [])
    out = io.StringIO()
    Console(file=out, width=200).print(catalogue("delays"))
    assert "distribution 'broken' cannot be imported: No module named 'nowhere'" in out.getvalue()
    assert " poisson " in out.getvalue()


def test_settings_have_their_defaults() -> None:
    assert settings(belated.EpsilonGreedy) == ["ridge=1.0", "shared=False", "epsilon=0.1"]
    assert settings(belated.Poisson) == ["mean"]


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(belated.UnknownNameError, match="did you mean 'delays'"):
        catalogue("delay")
