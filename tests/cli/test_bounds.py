"""A run beside the bounds, by hand and through the command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from commands import call

from belated import (
    Constant,
    DelayedPSVI,
    Fixed,
    Geometric,
    Lossy,
    Poisson,
    RandomLinearMDP,
    Results,
    RiverSwim,
    simulate,
)
from belated._cli.bounds import measured_bounds
from belated.runner._store import to_parquet

WORLD = RandomLinearMDP(states=3, actions=2, dimension=2, horizon=3, seed=4)


def test_measured_bounds_by_hand() -> None:
    rows = simulate(WORLD, DelayedPSVI(), Fixed([2, 0, 5, 1, 0, 0]), episodes=6, seed=0)
    found = measured_bounds(rows, horizon=3)
    regret = float((rows["optimal"] - rows["value"]).sum())
    # in flight at the end of each episode: 1, 1, 1 (2 has gone, 2 itself stays), 2, 1, 1
    assert found == {"R₁": pytest.approx(regret), "R₂": found["R₁"], "E[τ]": 8 / 6, "max τ": 5.0, "max U": 2.0}
    assert measured_bounds(rows, horizon=1)["R_b"] == found["R₁"]
    lossy = simulate(WORLD, DelayedPSVI(), Lossy(Constant(0), 1.0), episodes=6, seed=0)
    never = measured_bounds(lossy, horizon=3)
    assert (never["E[τ]"], never["max τ"], never["max U"]) == (np.inf, np.inf, 6.0)


def test_of_thinned_rows_only_the_regret_is_measured() -> None:
    every = simulate(WORLD, DelayedPSVI(), Poisson(2), episodes=20, seed=0)
    thinned = simulate(WORLD, DelayedPSVI(), Poisson(2), episodes=20, seed=0, record_every=5)
    found = measured_bounds(thinned, horizon=3)
    assert set(found) == {"R₁", "R₂"}
    assert found["R₁"] == measured_bounds(every, horizon=3)["R₁"]


def test_bounds_says_when_the_run_is_another_problem(tmp_path: Path) -> None:
    world, distribution, rows = RiverSwim(states=3), Poisson(2), tmp_path / "rows.parquet"
    frame = simulate(world, DelayedPSVI(), distribution, episodes=40, seed=0, record_every=4)
    about = {"environment": world.describe(), "delay": distribution.to_dict(), "episodes": 40, "record_every": 4}
    rows.write_bytes(to_parquet(frame, about))
    same = call("bounds", "-d", 6, "-H", 20, "-K", 40, "--delay", "poisson:mean=2", "--run", rows)
    assert same.exit_code == 0, same.output
    assert "Measured" in same.output
    assert f"{frame['regret'][-1]:,.4g}" in same.output
    assert "note:" not in same.output
    other = call("bounds", "-d", 5, "-H", 10, "-K", 50, "--delay", "geometric:mean=2", "--run", rows)
    assert other.exit_code == 0, other.output
    labels = f"delay is {distribution.label}, not {Geometric(2).label}"
    note = f"whose d is 6, not 5; H is 20, not 10; K is 40, not 50; {labels}"
    assert note in other.output
    about["environment"] = {"tables": "0" * 64}  # built from arrays: nothing is known of its sizes
    rows.write_bytes(to_parquet(frame, about))
    marker = tmp_path / "marker"
    about["delay"] = {"distribution": "subprocess:getoutput", "cmd": f"touch {marker}"}  # rows import nothing
    rows.write_bytes(to_parquet(frame, about))
    unnamed = call("bounds", "-d", 5, "-H", 10, "-K", 40, "--delay", "poisson:mean=2", "--run", rows)
    assert "note:" not in unnamed.output
    assert not marker.exists()


def test_bounds_refuses_the_results_of_many_runs(tmp_path: Path) -> None:
    labels = {"environment": "world", "agent": "psvi", "delay_distribution": "at once", "seed": 0}
    rows = simulate(WORLD, DelayedPSVI(), Constant(0), episodes=3, seed=0)
    Results(rows.with_columns(**{name: pl.lit(label) for name, label in labels.items()})).save(
        tmp_path / "results.parquet"
    )
    refused = call("bounds", "-d", 2, "-H", 3, "-K", 3, "--run", tmp_path / "results.parquet")
    assert refused.exit_code == 2
    assert "--run must be the rows of one run, got" in refused.stderr
