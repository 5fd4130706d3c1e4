"""The stopwatches for large dimensions and for many arrivals time everything that they name."""

from __future__ import annotations

import numpy as np
import pytest

from belated.experiments import timing


def test_every_agent_is_timed_up_to_its_largest_dimension(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "LARGE", {"PHE": (timing.LARGE["PHE, conjugate gradients"][0], 2)})
    timings = timing.measure_large(dimensions=(2, 3), repeats=1, least_seconds=1e-4)
    assert [(each.variant, each.dimension) for each in timings] == [("PHE", 2)]


def test_every_way_to_update_is_timed_and_gives_the_same_factor() -> None:
    found = timing.arrivals(dimensions=(3,), counts=(1, 20), repeats=1)
    assert [(each.way, each.arrivals) for each in found] == [(way, r) for r in (1, 20) for way in timing.UPDATES]
    assert all(each.seconds > 0 for each in found)
    x = np.random.default_rng(0).standard_normal((3, 20))
    factors = [np.eye(3) for _ in timing.UPDATES]
    for way, factor in enumerate(factors):
        timing._update(way, factor, x.copy())
    np.testing.assert_allclose(factors[0], factors[1], rtol=1e-12)
    np.testing.assert_allclose(factors[0], factors[2], rtol=1e-12, atol=1e-14)
