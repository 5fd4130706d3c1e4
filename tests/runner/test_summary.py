"""Results in brief: what is printed, and tables for a paper."""

from __future__ import annotations

import io
import sys

import numpy as np
import polars as pl
import pytest
from made import made
from rich.console import Console

from belated.errors import InvalidInputError, MissingExtraError, UnknownNameError
from belated.runner import Results
from belated.runner._summary import interval_note, summary_markdown, summary_rows, summary_table


def test_an_oracle_is_not_the_best_learner() -> None:
    results = made({("river", "short", "oracle"): [[4.0, 4.0]], ("river", "short", "quick"): [[2.0, 3.0]]})
    markdown = summary_markdown(results.summary())
    assert "| oracle | 0.00 | 4.00 | 100.0% |" in markdown
    assert "| quick | **3.00** | 3.00 | 75.0% |" in markdown


def test_a_row_has_the_mean_of_the_end_its_share_and_the_regret() -> None:
    rows = summary_rows(made({("river", "short", "quick"): [[2.0] * 10, [4.0] * 10]}).summary())
    (row,) = rows
    assert row.value.startswith("3.00 [")
    assert row.share == "75.0%"
    assert row.regret.startswith("10.00 [")
    assert row.best


def test_what_can_only_be_sampled_has_a_return_and_no_regret() -> None:
    seen = made({("car", "short", "quick"): [[2.0, 3.0]], ("car", "short", "slow"): [[1.0, 1.5]]}).frame
    unknown = [pl.lit(None, pl.Float64).alias(name) for name in ("value", "optimal", "regret")]
    sampled = Results(seen.with_columns(pl.col("value").alias("sampled_return")).with_columns(unknown))
    assert [row.best for row in summary_rows(sampled.summary())] == [True, False]
    markdown = summary_markdown(sampled.summary())
    assert "| quick | – | **3.00** | – |" in markdown
    assert "| slow | – | 1.50 | – |" in markdown
    assert "; value (or return, if unknown): mean" in interval_note(sampled.summary())


def test_an_agent_with_exact_values_is_compared_with_those_that_have_them() -> None:
    seen = made({("lake", "short", "table"): [[2.0, 3.0]], ("lake", "short", "samples"): [[1.0, 1.5]]}).frame
    mixed = seen.with_columns(pl.col("value").alias("sampled_return")).with_columns(
        pl.when(pl.col("agent") == "table").then(pl.col("value")).alias("value"),
        pl.when(pl.col("agent") == "table").then(pl.col("optimal")).alias("optimal"),
    )
    rows = summary_rows(Results(mixed).summary())
    assert [(row.agent, row.regret, row.best) for row in rows] == [("table", "3.00", True), ("samples", "–", False)]


def printed(results: Results, *, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=colour, color_system="standard" if colour else None)
    console.print(summary_table(results.summary()))
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
        ["short", "quick", "2.00", "[2.00,", "2.00]", "4.00", "[4.00,", "4.00]", "100.0%"],
        ["slow", "5.00", "[4.00,", "6.00]", "3.00", "[2.00,", "4.00]", "75.0%"],
        ["long", "quick", "6.00", "[5.00,", "7.00]", "2.00", "[1.00,", "3.00]", "50.0%"],
        ["slow", "4.00", "[4.00,", "4.00]", "3.00", "[3.00,", "3.00]", "75.0%"],
    ]
    assert lines[0].strip() == "river", "the only environment is the title"
    assert "95% bootstrap intervals over 2 seeds" in " ".join(printed(made(TWO_DELAYS)).split())


def test_the_least_regret_of_each_comparison_is_bold() -> None:
    bold = [line for line in printed(made(TWO_DELAYS), colour=True).splitlines() if "\x1b[1m" in line and "%" in line]
    assert ["quick" in line for line in bold] == [True, False]
    assert "2.00" in bold[0]
    assert "4.00" in bold[1]
    assert summary_markdown(made(TWO_DELAYS).summary()).count("**") == 4


def test_one_seed_has_no_interval() -> None:
    text = printed(made({("river", "short", "quick"): [[0.0, 1.5]]}))
    assert "river, short" in text.splitlines()[0]
    assert text.splitlines()[4].split() == ["quick", "6.50", "1.50", "37.5%"]
    assert "one seed" in text
    assert "nan" not in text


def test_large_regret_is_rounded_and_grouped() -> None:
    text = printed(made({("river", "short", "quick"): [[0.0] * 1000]}, optimal=12.3456))
    assert "12,346 " in text


def test_labels_are_not_markup_and_an_optimum_of_zero_has_no_share() -> None:
    text = printed(made({("[red]", "[/]", "[bold]"): [[0.0]]}, optimal=0.0))
    assert "[red], [/]" in text
    assert text.splitlines()[4].split() == ["[bold]", "0.00", "0.00", "–"]


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


def test_a_printed_summary_shows_regret_and_every_row() -> None:
    results = made(
        {
            ("river", f"poisson-{mean}", agent): [[0.0, 1.5], [0.5, 2.0]]
            for mean in (5, 10, 50, 100)
            for agent in ("psvi", "ucbvi", "random")
        }
    )
    summary = results.summary()
    text = str(summary)
    assert repr(summary) == text
    lines = text.splitlines()
    assert lines[0] == "river"
    assert lines[2].split() == ["delay", "agent", "regret", "value", "share"]
    rows = [line.split() for line in lines if "random" in line]
    assert [row[-7:-4] for row in rows] == [["6.00", "[5.50,", "6.50]"]] * 4
    assert text.count("poisson-") == 4, "every delay once"
    assert "…" not in text
    assert "95% bootstrap intervals over 2 seeds" in " ".join(text.split())


def test_a_part_of_a_summary_is_still_a_polars_table() -> None:
    summary = made(TWO_DELAYS).summary()
    assert summary.columns[:4] == ["environment", "delay_distribution", "agent", "regret"], "what Polars prints first"
    assert "shape: (4, 2)" in str(summary.select("agent", "regret"))
    assert "shape: (4, 1)" in str(summary[["agent"]])
    assert "quick" in str(summary.head(1))
    assert summary.sort("regret")["regret"].to_list() == sorted(summary["regret"])


def test_the_agents_of_a_comparison_stand_together() -> None:
    summary = made(TWO_DELAYS).summary()
    assert summary.select("delay_distribution", "agent").rows() == [
        ("short", "quick"),
        ("short", "slow"),
        ("long", "quick"),
        ("long", "slow"),
    ]


def test_a_summary_becomes_a_pandas_table_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    summary = made(TWO_DELAYS).summary()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    frame = summary.to_pandas()
    assert list(frame.columns) == summary.columns
    assert frame["agent"].tolist() == ["quick", "slow"] * 2
    np.testing.assert_array_equal(frame["regret_high"], summary["regret_high"])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="pip install pandas"):
        summary.to_pandas()


def test_a_table_in_markdown_has_means_errors_and_the_best_in_bold() -> None:
    assert made(TWO_DELAYS).to_markdown().splitlines() == [
        "| agent | short | long |",
        "| --- | ---: | ---: |",
        "| quick | **2.00 ± 0.00** | 6.00 ± 1.00 |",
        "| slow | 5.00 ± 1.00 | **4.00 ± 0.00** |",
        "",
        "total regret ± half of its 95 % bootstrap interval, 2 seeds; the least of each column, oracles aside, is bold",
    ]
    assert "| slow | 3.00 ± 1.00 | **3.00 ± 0.00** |" in made(TWO_DELAYS).to_markdown("value")


def test_a_table_in_latex_is_a_tabular() -> None:
    lines = made(TWO_DELAYS).to_latex().splitlines()
    assert lines[0].startswith("% total regret")
    assert lines[1:] == [
        r"\begin{tabular}{@{}lrr@{}}",
        r"  \toprule",
        r"  agent & short & long \\",
        r"  \midrule",
        r"  quick & $\mathbf{2.00 \pm 0.00}$ & $6.00 \pm 1.00$ \\",
        r"  slow & $5.00 \pm 1.00$ & $\mathbf{4.00 \pm 0.00}$ \\",
        r"  \bottomrule",
        r"\end{tabular}",
    ]


def test_labels_are_escaped() -> None:
    odd = made({("e|1", "d", "a_b & 5%"): [[0.0]], ("e 2", "d", "a_b & 5%"): [[1.0]], ("e 2", "d", "<ε>*"): [[1.0]]})
    assert odd.to_markdown().splitlines()[0] == r"| agent | e\|1 | e 2 |"
    assert odd.to_markdown().splitlines()[2:4] == [
        r"| a\_b &amp; 5% | **4.00** | **3.00** |",
        r"| &lt;ε>\* | – | **3.00** |",
    ]
    latex = odd.to_latex()
    assert r"  a\_b \& 5\% & $\mathbf{4.00}$ & $\mathbf{3.00}$ \\" in latex
    assert r"  $<$$\varepsilon$$>$* & -- &" in latex


def test_a_column_has_three_digits_of_its_largest_mean() -> None:
    large = made({("e", "d", "a"): [[0.0] * 1000], ("e", "d", "b"): [[3.9] * 1000]})
    assert "| a | 4,000 |" in large.to_markdown()
    assert "| b | **100** |" in large.to_markdown()
    assert "$4{,}000$" in large.to_latex()
    small = made({("e", "d", "a"): [[0.0]]}, optimal=0.01234)
    assert "| a | **0.0123** |" in small.to_markdown()


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(
        UnknownNameError, match="measure must be one of 'regret', 'value', 'return', 'return_iqm', got 'best'"
    ):
        made(TWO_DELAYS).to_latex("best")
    with pytest.raises(InvalidInputError, match="the return is unknown here"):
        made(TWO_DELAYS).to_markdown("return")
