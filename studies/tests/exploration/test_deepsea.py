"""DeepSea, from rows with known numbers."""

from __future__ import annotations

import invented

from belated.runner import Run
from belated_studies.exploration.deepsea import ARTEFACT, SIZES, problems
from belated_studies.exploration.problems import QUICK

SIZE = QUICK.resized(seeds=2)


def test_the_sizes_are_those_of_bsuite_and_one_more() -> None:
    assert tuple(range(10, 51, 2)) == SIZES
    assert len(SIZES) == 21
    made = {each.name: each for each in problems()}
    assert [each.episodes for each in problems()] == [*(30 * size for size in SIZES), 2000]
    assert [each.bars["poisson-10"].within for each in problems()] == [*(30 * size for size in SIZES), 5000]
    assert made["DeepSea 10"].world.to_dict()["kwargs"] == {"size": 10, "randomised": True}


def test_when_each_size_was_solved_is_drawn() -> None:
    def value(run: Run) -> float:
        return 0.0 if run.environment_label == "deepsea-20" else 0.95

    section = ARTEFACT.section(invented.played(ARTEFACT, SIZE, lambda run: 1.0, value=value, rows=150))
    assert [row[4] for row in invented.table(section, "deepsea-bars")] == ["reached", "not reached"]
    (chart,) = section.charts
    ours, limit = chart.series
    assert (ours.x.tolist(), ours.y.tolist(), limit.y.tolist()) == ([10.0], [100.0], [300.0])


def test_nothing_solved_is_nothing_drawn() -> None:
    assert not ARTEFACT.section(invented.played(ARTEFACT, SIZE, lambda run: 1.0, value=lambda run: 0.0)).charts
