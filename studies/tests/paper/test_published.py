"""The printed numbers among themselves."""

from __future__ import annotations

from belated_studies.paper import published


def test_published_tables_agree_where_they_show_the_same_runs() -> None:
    """Table 2's Poisson column and Table 4's |S||A| = 40 are the same setting; the paper prints them alike."""
    for by_delay, by_size in (("psvi", "psvi-0.1"), ("lpsvi", "lpsvi"), ("ucbvi", "ucbvi")):
        assert published.RETURN_BY_DELAY[by_delay]["poisson"] == published.RETURN_BY_SIZE[by_size][40]
    assert len(published.SYSTEMS) == 7
