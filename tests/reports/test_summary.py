from made import made

from belated.reports.summary import summary_markdown, summary_rows


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
