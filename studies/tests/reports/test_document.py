"""A document is checked when it is made."""

from dataclasses import replace

import numpy as np
import pytest
from documents import chart, document, opened, series, table

from belated.errors import InvalidInputError, UnknownNameError
from belated_studies.reports.document import Block, Cell, Series


def test_ids_rows_and_verdicts_that_no_renderer_can_use_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="'returns' 2 times"):
        document(table(), table())
    with pytest.raises(InvalidInputError, match="letters, digits"):
        document(table(name="../escape"))
    with pytest.raises(InvalidInputError, match="2 cells, got 1"):
        document(table(["short"]))
    with pytest.raises(UnknownNameError, match="did you mean 'reproduced'"):
        document(table(["a", Cell(value=1.0, verdict="reproducd")]))


def test_ragged_series_and_bars_of_one_name_are_refused() -> None:
    ragged = Series(name="a", x=np.arange(3.0), y=np.arange(2.0))
    with pytest.raises(InvalidInputError, match=r"y of 'a' in chart 'c' must have shape \(3,\)"):
        document(chart(ragged))
    half = Series(name="a", x=np.arange(2.0), y=np.arange(2.0), low=np.arange(2.0))
    with pytest.raises(InvalidInputError, match="both low and high"):
        document(chart(half))
    with pytest.raises(InvalidInputError, match="different names"):
        document(chart(series("a", 1), series("a", 2), bars=True))


def test_categories_are_those_of_bars() -> None:
    made = opened().opening
    assert made is not None
    good = made.charts[0]
    for bad, message in (
        (replace(good, categories=["only one"]), "need bars at 0, 1, 2"),
        (replace(good, bars=False), "need bars at 0, 1, 2"),
        (replace(good, categories=["same", "same"]), "must be different"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            document(bad)


def test_a_block_is_text_to_a_reader() -> None:
    assert f"figure-{Block('tuned')}" == "figure-tuned"
    assert Block("tuned") == "tuned"
