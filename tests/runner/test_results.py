"""Results: arrays, regret and summaries against the frame they come from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import belated
from belated import Results


@pytest.fixture(scope="module")
def results() -> Results:
    return belated.run(
        [belated.RiverSwim(states=3), belated.RiverSwim(states=4)],
        {"psvi": belated.DelayedPSVI(), "random": belated.RandomPolicy()},
        [belated.Constant(0), belated.Poisson(5)],
        episodes=60,
        seeds=[4, 2, 9],
        progress=False,
    )


PICK = {"agent": "psvi", "delay": "poisson-5", "environment": "riverswim-4"}


def test_labels_come_in_the_order_they_were_given(results: Results) -> None:
    assert results.agents == ["psvi", "random"]
    assert results.delays == ["constant-0", "poisson-5"]
    assert results.environments == ["riverswim-3", "riverswim-4"]
    assert "rows=1440" in repr(results)


def test_an_array_has_a_row_for_each_seed_in_order(results: Results) -> None:
    values = results.array("value", **PICK)
    assert values.shape == (3, 60)
    for row, seed in zip(values, (2, 4, 9), strict=True):
        alone = belated.simulate(
            belated.RiverSwim(states=4), belated.DelayedPSVI(), belated.Poisson(5), episodes=60, seed=seed
        )
        np.testing.assert_array_equal(row, alone["value"].to_numpy())


def test_regret_is_the_running_sum_of_gaps(results: Results) -> None:
    gaps = results.array("optimal", **PICK) - results.array("value", **PICK)
    np.testing.assert_allclose(results.regret(**PICK), np.cumsum(gaps, axis=1), atol=1e-12)
    band = results.regret_band(**PICK)
    np.testing.assert_allclose(band.value, results.regret(**PICK).mean(axis=0))


def test_the_summary_has_a_row_for_each_comparison(results: Results) -> None:
    summary = results.summary()
    assert summary.height == 2 * 2 * 2
    row = summary.filter(agent="psvi", delay_law="poisson-5", environment="riverswim-4").row(0, named=True)
    assert row["regret"] == pytest.approx(results.regret(**PICK)[:, -1].mean())
    assert row["value"] == pytest.approx(results.array("value", **PICK)[:, -6:].mean())
    assert row["regret_low"] <= row["regret"] <= row["regret_high"]
    assert row["seeds"] == 3


def test_save_and_load(results: Results, tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    results.save(path)
    assert_frame_equal(Results.load(path).frame, results.frame, check_exact=True)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(belated.DamagedFileError):
        Results.load(path)


def test_rows_of_one_run_are_not_results(tmp_path: Path) -> None:
    belated.run(
        belated.RiverSwim(), {"r": belated.RandomPolicy()}, belated.Constant(0), episodes=3, seeds=1, folder=tmp_path
    )
    (path,) = tmp_path.rglob("*.parquet")
    with pytest.raises(belated.DamagedFileError, match="holds the rows of one run"):
        Results.load(path)


def test_what_cannot_be_picked_is_refused(results: Results) -> None:
    with pytest.raises(belated.InvalidInputError, match="delay_law must be named, since there are several"):
        results.array("value", agent="psvi", environment="riverswim-4")
    with pytest.raises(belated.UnknownNameError, match="did you mean 'psvi'"):
        results.array("value", agent="pvsi", delay="poisson-5", environment="riverswim-4")
    with pytest.raises(belated.UnknownNameError, match="did you mean 'value'"):
        results.array("vlaue", **PICK)
    with pytest.raises(belated.InvalidInputError, match="results need the column 'environment'"):
        Results(pl.DataFrame({"a": [1]}))
