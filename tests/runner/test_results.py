"""Results: arrays, regret and summaries against the frame they come from."""

from __future__ import annotations

import importlib
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import belated
from belated import Results
from belated.errors import DamagedFileError, MissingExtraError
from belated.evaluation import interquartile_mean, probability_of_improvement
from belated.runner._store import from_parquet, to_parquet


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
    row = summary.filter(agent="psvi", delay_distribution="poisson-5", environment="riverswim-4").row(0, named=True)
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
    with pytest.raises(belated.DamagedFileError, match="has the rows of a single run"):
        Results.load(path)


def test_episodes_are_whole_numbers(results: Results) -> None:
    assert results.episodes.dtype == np.int64
    assert results.episodes.tolist() == list(range(1, 61))


def test_scores_are_shares_of_the_optimum_by_task(results: Results) -> None:
    scores = results.to_rliable()
    assert list(scores) == ["psvi", "random"]
    tasks = [(e, d) for e in results.environments for d in results.delays]
    for agent, found in scores.items():
        assert found.shape == (3, 4)
        for task, (environment, delay) in enumerate(tasks):
            pick = {"agent": agent, "delay": delay, "environment": environment}
            last = results.array("value", **pick)[:, -6:].mean(axis=1)
            np.testing.assert_allclose(found[:, task], last / results.array("optimal", **pick)[:, -6:].mean(axis=1))
    returns = results.to_rliable("sampled_return")["psvi"]
    np.testing.assert_allclose(returns[:, 3], results.returns(**PICK)[:, -6:].mean(axis=1))


def test_regret_becomes_a_score_of_which_more_is_better(results: Results) -> None:
    scores = results.to_rliable("regret")
    for agent, found in scores.items():
        pick = {"agent": agent, "delay": "poisson-5", "environment": "riverswim-4"}
        earned = results.array("value", **pick).sum(axis=1) / results.array("optimal", **pick).sum(axis=1)
        np.testing.assert_allclose(found[:, 3], earned, rtol=1e-9)
    regret = {agent: results.regret(agent=agent, delay="poisson-5", environment="riverswim-4") for agent in scores}
    assert (regret["psvi"][:, -1] < regret["random"][:, -1]).tolist() == (
        scores["psvi"][:, 3] > scores["random"][:, 3]
    ).tolist()


def test_a_share_of_an_optimum_that_is_not_positive_is_refused(results: Results) -> None:
    lost = Results(results.frame.with_columns(optimal=pl.lit(-3.0)))
    for column in ("value", "regret"):
        with pytest.raises(belated.InvalidInputError, match=r"must be known and positive, got -3; col"):
            lost.to_rliable(column)


@pytest.mark.parametrize("column", ["value", "regret", "sampled_return"])
def test_rliable_takes_the_scores(results: Results, column: str) -> None:
    pytest.importorskip("rliable", reason="needs rliable, which the extra `dev` brings")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of what it imports
        metrics = importlib.import_module("rliable.metrics")
    scores = results.to_rliable(column)
    for each in scores.values():
        assert abs(metrics.aggregate_iqm(each) - interquartile_mean(each).value) <= 1e-12
    better = metrics.probability_of_improvement(scores["psvi"], scores["random"])
    assert abs(better - probability_of_improvement(scores["psvi"], scores["random"]).value) <= 1e-12


def test_scores_need_every_agent_on_every_task(results: Results) -> None:
    partial = results.frame.filter((pl.col("agent") == "psvi") | (pl.col("delay_distribution") == "constant-0"))
    with pytest.raises(belated.InvalidInputError, match="there are no rows of the combination random"):
        Results(partial).to_rliable()
    fewer = results.frame.filter((pl.col("agent") == "psvi") | (pl.col("seed") != 4))
    with pytest.raises(belated.InvalidInputError, match=r"the same number of seeds on every task, got \[2, 3\]"):
        Results(fewer).to_rliable()
    unknown = Results(results.frame.with_columns(optimal=pl.lit(None, pl.Float64)))
    with pytest.raises(belated.InvalidInputError, match="sampled_return"):
        unknown.to_rliable()


def test_pandas_has_the_same_rows(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = results.to_pandas()
    assert list(frame.columns) == results.frame.columns
    np.testing.assert_array_equal(frame["regret"].to_numpy(), results.frame["regret"].to_numpy())
    assert frame["agent"].tolist() == results.frame["agent"].to_list()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="pip install pandas"):
        results.to_pandas()


def test_the_rows_of_a_folder_are_read_with_their_labels(results: Results, tmp_path: Path) -> None:
    kept = belated.run(
        [belated.RiverSwim(states=3), belated.RiverSwim(states=4)],
        {"psvi": belated.DelayedPSVI(), "by chance / ½": belated.RandomPolicy()},
        {"at once": belated.Constant(0), "late": belated.Poisson(5)},
        episodes=60,
        seeds=[4, 2, 9],
        progress=False,
        folder=tmp_path,
    )
    order = ["environment", "delay_distribution", "agent", "seed", "episode"]
    for folder in (tmp_path, tmp_path / "run"):
        assert_frame_equal(Results.read(folder).frame.sort(order), kept.frame.sort(order))
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        Results.read(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(belated.InvalidInputError, match="must be a folder with finished runs"):
        Results.read(tmp_path / "empty")
    shutil.copytree(tmp_path / "run", tmp_path / "other")
    with pytest.raises(belated.InvalidInputError, match="several experiments, choose one of them: other, run"):
        Results.read(tmp_path)


def test_runs_of_other_lengths_are_not_read_together(tmp_path: Path) -> None:
    for episodes, agent in ((3, "a"), (4, "b")):
        belated.run(
            belated.RiverSwim(),
            {agent: belated.RandomPolicy()},
            belated.Constant(0),
            episodes=episodes,
            seeds=1,
            folder=tmp_path,
            progress=False,
        )
    with pytest.raises(belated.InvalidInputError, match=r"must have the same number of rows, got \[3, 4\]"):
        Results.read(tmp_path)


def kept_runs(folder: Path, seeds: int = 2) -> list[Path]:
    agents = {"a": belated.RandomPolicy()}
    where = folder / "rows"
    belated.run(belated.RiverSwim(), agents, belated.Constant(0), episodes=9, seeds=seeds, folder=where, progress=False)
    return sorted(where.rglob("*.parquet"))


def test_rows_of_two_versions_are_not_read_together(tmp_path: Path) -> None:
    first, second = kept_runs(tmp_path)
    rows, about = from_parquet(second)
    second.write_bytes(to_parquet(rows, {**about, "made_by": {"belated": "0.0.1", "code": "0"}}))
    with pytest.raises(belated.InvalidInputError, match=r"seed-01.* and .*seed-00.* different versions of belated"):
        Results.read(tmp_path)
    first.unlink()
    assert Results.read(tmp_path).frame.height == 9, "what is all of one version can be read by any"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"agent": {"algorithm": "psvi"}}, "has rows of other settings: agent was"),
        ({"episodes": 10}, "has rows of other settings: episodes was"),
        ({"strict": True}, "has rows of other settings: strict was"),
        ({"seed": 0}, "has the rows of seed 0, but its name says 1"),
        ({"labels": {"agent": "b"}}, "does not have the rows of the labels in its name"),
        ({"labels": {"agent": 7}}, "does not have the rows of the labels in its name"),
        ({"labels": ["a"]}, "does not have the rows of the labels in its name"),
    ],
    ids=["agent", "episodes", "strict", "seed", "label", "number", "list"],
)
def test_rows_that_do_not_belong_together_are_not_read_together(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    _, second = kept_runs(tmp_path)
    rows, about = from_parquet(second)
    second.write_bytes(to_parquet(rows, {**about, **change}))
    with pytest.raises((belated.InvalidInputError, DamagedFileError), match=message):
        Results.read(tmp_path)


@pytest.mark.parametrize(
    "kept",
    [(pl.col("seed") != 2) | (pl.col("episode") < 30), (pl.col("seed") != 2) | (pl.col("episode") % 2 == 0)],
    ids=["shorter", "thinner"],
)
def test_seeds_of_other_episodes_are_not_laid_side_by_side(results: Results, kept: pl.Expr) -> None:
    one = results.frame.filter(pl.col("seed").is_in([2, 4]))
    with pytest.raises(belated.InvalidInputError, match=r"every seed of psvi, .*must have exactly one row"):
        Results(one.filter(kept)).array("value", **PICK)
    with pytest.raises(belated.InvalidInputError, match=r"every seed of psvi, .*must have exactly one row"):
        Results(pl.concat([one, one])).array("value", **PICK)


def test_what_cannot_be_picked_is_refused(results: Results) -> None:
    with pytest.raises(belated.InvalidInputError, match="delay_distribution must be given, since there are several"):
        results.array("value", agent="psvi", environment="riverswim-4")
    with pytest.raises(belated.UnknownNameError, match="did you mean 'psvi'"):
        results.array("value", agent="pvsi", delay="poisson-5", environment="riverswim-4")
    with pytest.raises(belated.UnknownNameError, match="did you mean 'value'"):
        results.array("vlaue", **PICK)
    with pytest.raises(belated.InvalidInputError, match="results need the column 'environment'"):
        Results(pl.DataFrame({"a": [1]}))


def test_labels_of_a_folder_come_by_their_numbers(tmp_path: Path) -> None:
    means = ["200", "0.1", "10", "100", "50"]
    given = belated.run(
        belated.RiverSwim(states=3, horizon=2),
        {f"scale {scale}": belated.RandomPolicy() for scale in ("10", "2")},
        {mean: belated.Poisson(float(mean)) for mean in means},
        episodes=2,
        seeds=1,
        folder=tmp_path,
        progress=False,
    )
    assert given.delays == means, "the order in which they were given"
    read = Results.read(tmp_path)
    assert read.delays == ["0.1", "10", "50", "100", "200"]
    assert read.agents == ["scale 2", "scale 10"]
    assert list(dict.fromkeys(read.summary()["delay_distribution"])) == read.delays
    assert [line.get_label() for line in read.plot_delays().lines] == read.delays
    assert read.to_markdown().startswith("| agent | 0.1 | 10 | 50 | 100 | 200 |")
