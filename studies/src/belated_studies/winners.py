"""Settings that a search of equal size for every agent has found best, kept with the library."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import cast

import polars as pl

from belated.agents import Settings
from belated.runner import load_winners


def search_rows(search: str) -> pl.DataFrame:
    """Return what the committed search `search` has measured: a row for every agent, candidate and rung."""
    with resources.as_file(resources.files("belated_studies") / "tuned" / search / "search.csv") as path:
        return pl.read_csv(path)


def tuned(search: str) -> dict[str, Settings]:
    """Return the winners of the committed search `search`.

    >>> sorted(tuned("chain"))
    ['psvi', 'tabular-ucbvi']
    """
    with resources.as_file(resources.files("belated_studies") / "tuned" / search / "winners.json") as path:
        return cast("dict[str, Settings]", load_winners(Path(path)))
