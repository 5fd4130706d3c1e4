"""The widths that were measured, as curves and as sentences."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from belated import DelayedPSVI
from belated_studies.lemmas import widths
from belated_studies.lemmas.widths import ARTEFACT, WIDTHS, Widths
from belated_studies.lemmas.worlds import DELTA, QUICK, SMALL_EPISODES, WORLDS, forewarned
from belated_studies.study import Played

FOUND = [
    Widths(2, [1.0, 20.0], [0.0, 0.5], [0.5, 0.75]),
    Widths(9, [1.5, 20.0], [0.75, 1.0], [1.0, 1.0]),
]
PLAYED = Played(QUICK, {}, {}, {WIDTHS.name: FOUND})


def test_every_number_of_draws_has_its_curves() -> None:
    (chart,) = ARTEFACT.section(PLAYED).charts
    curves = {series.name: (series.x.tolist(), series.y.tolist(), series.dashed) for series in chart.series}
    assert curves == {
        "M = 2: runs": ([1.0, 20.0], [0.0, 0.5], False),
        "M = 2: single action values": ([1.0, 20.0], [0.5, 0.75], False),
        "M = 9: runs": ([1.5, 20.0], [0.75, 1.0], False),
        "M = 9: single action values": ([1.5, 20.0], [1.0, 1.0], False),
        "promised: runs": ([1.5, 20.0], [0.95, 0.95], True),
    }


def test_the_finding_is_the_least_width_that_is_enough() -> None:
    assert ARTEFACT.findings(PLAYED) == [
        "With M = 2 no width up to 20 makes all runs optimistic throughout.",
        "With M = 9 all runs are optimistic throughout from a width of 20 on; the theorem asks for 20.",
    ]


def test_two_draws_and_those_of_the_theorem_are_watched_up_to_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    with forewarned():
        asked = DelayedPSVI.from_theory(WORLDS[0].problem, SMALL_EPISODES, DELTA)
    seen = []

    def watch_all(settings: DelayedPSVI, seeds: range) -> list[SimpleNamespace]:
        seen.append((settings, len(seeds)))
        return [SimpleNamespace(gap=gap, optimistic=share) for gap, share in ((0.0, 1.0), (-0.1, 0.5), (3.0, 0.75))]

    monkeypatch.setattr(widths, "watch_all", watch_all)
    found = list(widths.measure(QUICK))
    scales = np.geomspace(0.1, asked.scale, 13).tolist()
    wanted = [DelayedPSVI(draws=draws, scale=scale) for draws in (2, asked.draws) for scale in scales]
    assert seen == [(settings, 3) for settings in wanted]
    assert found == [Widths(draws, scales, [2 / 3] * 13, [0.75] * 13) for draws in (2, asked.draws)]
