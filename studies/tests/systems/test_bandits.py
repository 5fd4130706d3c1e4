"""The bandits of all dimensions and delays, from rows with known numbers."""

from __future__ import annotations

import invented
import pytest

from belated.environments import FiniteMDP
from belated.runner import Run
from belated_studies.systems.bandits import ARTEFACT
from belated_studies.systems.testbeds import QUICK

SIZE = QUICK.resized(seeds=2)
SLOPES = {"pslb": 2.0, "pslb-langevin": 3.0, "ofu": 0.0}


def by_delay(run: Run) -> float:
    """Regret d + slope·E[τ], but for OFU, which is off a line in the middle."""
    mean = run.delay.mean  # type: ignore[union-attr]
    bump = 7.0 if run.agent_label == "ofu" and mean == 250 else 0.0
    assert isinstance(run.environment, FiniteMDP)
    return float(run.environment.dimension) + SLOPES.get(run.agent_label, 1.0) * mean + bump


def test_every_dimension_has_its_curve_and_its_line() -> None:
    section = ARTEFACT.section(invented.played(ARTEFACT, SIZE, by_delay))
    assert [chart.id for chart in section.charts] == ["bandits-d5", "bandits-d10", "bandits-d20"]
    for chart, d in zip(section.charts, (5, 10, 20), strict=True):
        curve = next(series for series in chart.series if series.name == "Delayed-PSLB")
        assert curve.x.tolist() == [0, 100, 250, 500, 1000]
        assert curve.y == pytest.approx([d + 2 * mean for mean in (0, 100, 250, 500, 1000)])
    lines = {tuple(row[:2]): row[2:] for row in invented.table(section, "bandits-lines")}
    assert lines["d-20", "Delayed-PSLB, Langevin"] == pytest.approx([20.0, 3.0, 0.0], abs=1e-6)
    # means d, d, d + 7, d, d: a line would miss the middle one by less than its whole height, but by most of it
    assert 50 < lines["d-5", "Delayed OFU"][2] < 100  # type: ignore[operator]


def test_the_meta_algorithms_stand_under_their_delays() -> None:
    section = ARTEFACT.section(invented.played(ARTEFACT, SIZE, by_delay))
    (table,) = [each for each in section.tables if each.id == "bandits-meta"]
    assert table.columns == ["Agent", "no delay", "E[τ] = 100", "E[τ] = 500"]
    assert invented.table(section, "bandits-meta") == [
        ["Delayed-PSLB", 10.0, 210.0, 1010.0],
        ["QPM-D around PSLB", 10.0, 110.0, 510.0],
        ["BOLD around PSLB", 10.0, 110.0, 510.0],
    ]


def test_the_finding_orders_the_agents_and_counts_the_lines() -> None:
    first, second = ARTEFACT.findings(invented.played(ARTEFACT, SIZE, by_delay))
    assert first.endswith("regret Delayed OFU 10, Delayed-PSLB 1,010, Delayed-PSLB, Langevin 1,510.")
    assert "for 6 of 9 pairs of agent and dimension" in second
    assert second.endswith("straight line for 6.")
