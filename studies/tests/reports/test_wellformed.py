from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from documents import chart, document, opened, series, table

from belated.errors import InvalidInputError, UnknownNameError
from belated_studies.reports.document import Cell, Series
from belated_studies.reports.static import write_figures
from belated_studies.reports.tables import write_tables


def test_a_malformed_document_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="'returns' 2 times"):
        write_tables(document(table(), table()), tmp_path)
    with pytest.raises(InvalidInputError, match="letters, digits"):
        write_tables(document(table(name="../escape")), tmp_path)
    with pytest.raises(InvalidInputError, match="2 cells, got 1"):
        write_tables(document(table(["short"])), tmp_path)
    with pytest.raises(UnknownNameError, match="did you mean 'reproduced'"):
        write_tables(document(table(["a", Cell(value=1.0, verdict="reproducd")])), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_ragged_series_and_bars_of_one_name_are_refused(tmp_path: Path) -> None:
    ragged = Series(name="a", x=np.arange(3.0), y=np.arange(2.0))
    with pytest.raises(InvalidInputError, match=r"y of 'a' in chart 'c' must have shape \(3,\)"):
        write_figures(document(chart(ragged)), tmp_path)
    half = Series(name="a", x=np.arange(2.0), y=np.arange(2.0), low=np.arange(2.0))
    with pytest.raises(InvalidInputError, match="both low and high"):
        write_figures(document(chart(half)), tmp_path)
    with pytest.raises(InvalidInputError, match="different names"):
        write_figures(document(chart(series("a", 1), series("a", 2), bars=True)), tmp_path)


def test_categories_are_those_of_bars(tmp_path: Path) -> None:
    made = opened().opening
    assert made is not None
    good = made.charts[0]
    for bad, message in (
        (replace(good, categories=["only one"]), "need bars at 0, 1, 2"),
        (replace(good, bars=False), "need bars at 0, 1, 2"),
        (replace(good, categories=["same", "same"]), "must be different"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            write_figures(document(bad), tmp_path)
    write_figures(opened(), tmp_path)
    assert (tmp_path / "glance.png").exists()
