"""Large d as a document, from canned times."""

from __future__ import annotations

from belated.bench.large import describe
from belated.experiments.timing import LARGE, Timing, Update
from belated.reports.document import Cell
from belated.reports.wellformed import check_document

TIMINGS = [
    Timing(variant, d, 1e-6 * d, 0.9e-6 * d, 1.2e-6 * d)
    for variant, (_, largest) in LARGE.items()
    for d in (10, 1024, 4096)
    if d <= largest
]
UPDATES = [
    Update(way, 64, r, seconds)
    for r in (1, 16, 256)
    for way, seconds in (("rank one", 1e-6 * r), ("block", 5e-6), ("refactorising", 7e-6 if r < 256 else 4e-6))
]


def test_rows_and_curves_are_what_was_measured() -> None:
    document = describe(TIMINGS, UPDATES)
    check_document(document)
    growth, arrivals = document.sections
    row = next(row for row in growth.tables[0].rows if row[0] == "PSVI, rank one")
    cells = [entry for entry in row if isinstance(entry, Cell)]
    assert [cell.value for cell in cells] == [10.0, None, None, 1024.0, 4096.0]
    slow = next(row for row in growth.tables[0].rows if row[0] == "PSVI, refactorising")
    assert isinstance(slow[-1], Cell)
    assert slow[-1].note == "too slow"
    assert [series.name for series in arrivals.charts[0].series] == ["rank one", "block", "refactorising"]
    assert arrivals.charts[0].series[0].y.tolist() == [1.0, 16.0, 256.0]


def test_the_crossing_is_told() -> None:
    (told,) = describe(TIMINGS, UPDATES).summary
    assert told == (
        "d = 64: a block is faster than rank one for r in 16, 256; a block is faster than refactorising for r in 1, 16."
    )
