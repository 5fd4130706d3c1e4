"""Large d as a document, from canned times, and the stopwatches time everything that they name."""

from __future__ import annotations

import numpy as np
import pytest

from belated_studies.reports.document import Cell
from belated_studies.timing import Spread
from benchmarks import large
from benchmarks.large import AGENTS, UPDATES, Timing, Update, describe

TIMINGS = [
    Timing(agent, d, Spread(1e-6 * d, 0.9e-6 * d, 1.2e-6 * d))
    for agent, (_, largest) in AGENTS.items()
    for d in (10, 1024, 4096)
    if d <= largest
]
TAKEN = [
    Update(way, 64, r, seconds)
    for r in (1, 16, 256)
    for way, seconds in (("rank one", 1e-6 * r), ("block", 5e-6), ("refactorising", 7e-6 if r < 256 else 4e-6))
]


def test_rows_and_curves_are_what_was_measured() -> None:
    document = describe(TIMINGS, TAKEN)
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
    (told,) = describe(TIMINGS, TAKEN).summary
    assert told == (
        "d = 64: a block is faster than rank one for r in 16, 256; a block is faster than refactorising for r in 1, 16."
    )


@pytest.mark.slow  # compiles for ten seconds
def test_every_agent_is_timed_up_to_its_largest_dimension(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "AGENTS", {"PHE": (AGENTS["PHE, conjugate gradients"][0], 2)})
    timings = large.measure_agents(dimensions=(2, 3), repeats=1, least_seconds=1e-4)
    assert [(each.agent, each.dimension) for each in timings] == [("PHE", 2)]
    assert timings[0].seconds.low > 0


@pytest.mark.slow  # compiles for ten seconds
def test_every_way_to_update_is_timed_and_gives_the_same_factor() -> None:
    found = large.measure_updates(dimensions=(3,), counts=(1, 20), repeats=1)
    assert [(each.way, each.arrivals) for each in found] == [(way, r) for r in (1, 20) for way in UPDATES]
    assert all(each.seconds > 0 for each in found)
    x = np.random.default_rng(0).standard_normal((3, 20))
    factors = [np.eye(3) for _ in UPDATES]
    for way, factor in enumerate(factors):
        large.update(way, factor, x.copy())
    np.testing.assert_allclose(factors[0], factors[1], rtol=1e-12)
    np.testing.assert_allclose(factors[0], factors[2], rtol=1e-12, atol=1e-14)
