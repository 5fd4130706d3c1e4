"""What the artefacts share, against numbers by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from belated import BOLD, Constant, DelayedPSVI, Experiment, Greedy, RiverSwim
from belated.runner import Results
from belated_studies.cells_and_curves import (
    against_delay,
    band_series,
    fit_line,
    name_of,
    settings_table,
    settings_text,
)
from belated_studies.reports.document import Block
from belated_studies.study import Played, Size


def test_a_line_is_found_and_its_deviation_is_a_share_of_the_range() -> None:
    # means 0, 3, 0 lie 1, 2, 1 off the level line at 1, and their range is 3
    bent = fit_line([0, 1, 2], np.array([[0.0, 3.0, 0.0], [0.0, 3.0, 0.0]]))
    assert bent.deviation == pytest.approx(2 / 3)
    assert [cell.value for cell in bent.cells()] == pytest.approx([1.0, 0.0, 200 / 3])


def test_regret_against_the_delay_is_that_of_each_distribution() -> None:
    frames = [
        pl.DataFrame(
            {
                "environment": "world",
                "agent": "psvi",
                "delay_distribution": f"mean-{mean}",
                "seed": seed,
                "episode": [0, 1],
                "value": 0.0,
                "regret": [0.0, 10.0 + 2 * mean + seed],
            }
        )
        for mean in (0, 5, 20)
        for seed in (0, 1)
    ]
    series, line = against_delay(Results(pl.concat(frames)), (0, 5, 20), "psvi")
    assert series.name == "Delayed-PSVI"
    np.testing.assert_allclose(series.y, [10.5, 20.5, 50.5])
    assert (line.at_zero.value, line.slope.value) == pytest.approx((10.5, 2.0))
    assert series.low is not None and (series.low <= series.y).all()


def test_a_band_is_thinned_but_keeps_its_ends() -> None:
    curves = np.cumsum(np.ones((3, 1000)), axis=1)
    series = band_series("x", np.arange(1.0, 1001.0), curves)
    assert series.x.size == 250
    assert (series.x[0], series.x[-1], series.y[-1]) == (1.0, 1000.0, 1000.0)


def test_settings_are_shown_by_block_and_each_agent_once() -> None:
    def experiment(name: str, scale: float) -> Experiment:
        agents = {"psvi": DelayedPSVI(scale=scale), "greedy": Greedy()}
        return Experiment(name=name, environments=RiverSwim(), agents=agents, delays=Constant(0), episodes=1, seeds=1)

    played = Played(Size(name="quick", seeds=1), {"a": experiment("a", 1.0), "b": experiment("b", 2.0)}, {})
    once = settings_table(played, "t", ["a", "b"])
    assert [row[0] for row in once.rows] == ["Delayed-PSVI", "greedy"]
    assert "scale 1," in str(once.rows[0][1])
    both = settings_table(played, "t", {Block("literal"): "a", Block("tuned"): "b"})
    assert [(row[0], row[1]) for row in both.rows] == [
        ("literal", "Delayed-PSVI"),
        ("literal", "greedy"),
        ("tuned", "Delayed-PSVI"),
        ("tuned", "greedy"),
    ]
    assert isinstance(both.rows[0][0], Block)


def test_names_and_settings_of_what_has_none() -> None:
    class Mine:
        def start(self, problem: object) -> None: ...

    assert name_of("mine") == "mine"
    assert settings_text(Mine()).endswith("Mine")  # type: ignore[arg-type]
    assert settings_text(BOLD(base=Greedy())) == "base {'algorithm': 'greedy', 'ridge': 1.0, 'shared': False}"
