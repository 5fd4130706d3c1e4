import polars as pl
from made import made

from belated.runner import Results
from belated_studies.reports.summary import interval_note, summary_markdown, summary_rows


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
