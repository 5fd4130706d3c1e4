"""What each how-to claims, tested on more than its example."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import belated
from belated.agents import CompiledSettings
from belated.delays import NEVER

ROOT = Path(__file__).parents[2]
HOWTO = ROOT / "docs" / "howto"


def log_of(world: belated.FiniteMDP, episodes: int) -> list[belated.Feedback]:
    choices, dynamics = np.random.default_rng(1), np.random.default_rng(2)
    tables = (choices.integers(world.actions, size=(world.horizon, world.states)) for _ in range(episodes))
    return [belated.Feedback(k, world.rollout(belated.TablePolicy(table), dynamics)) for k, table in enumerate(tables)]


@pytest.mark.parametrize("algorithm", [belated.DelayedPSVI(), belated.DelayedLPSVI(), belated.DelayedUCBVI()])
@pytest.mark.parametrize("size", [1, 7, 60])
def test_late_shuffled_and_batched_feedback_give_one_posterior(algorithm: CompiledSettings, size: int) -> None:
    world = belated.RandomLinearMDP(states=4, actions=3, dimension=4, horizon=3, seed=2)
    log = log_of(world, 60)
    reference, agent = algorithm.start(world.problem), algorithm.start(world.problem)
    for one in log:
        reference.learn([one])
    shuffled = [log[i] for i in np.random.default_rng(size).permutation(len(log))]
    for first in range(0, len(shuffled), size):
        agent.learn(shuffled[first : first + size])
    for name, values in reference.memory().items():
        np.testing.assert_allclose(agent.memory()[name], values, rtol=1e-9, atol=1e-9)


def small(folder: Path, **changes: object) -> belated.Results:
    settings: dict[str, object] = {
        "environment": belated.RiverSwim(states=3, horizon=5),
        "agents": {"psvi": belated.DelayedPSVI(), "greedy": belated.Greedy()},
        "delay": [belated.Poisson(4), belated.Lossy(belated.Geometric(2), missing=0.2)],
        "episodes": 40,
        "seeds": 3,
        "progress": False,
        "folder": folder,
    }
    return belated.run(**{**settings, **changes})  # type: ignore[arg-type]


def test_a_resumed_folder_gives_identical_rows(tmp_path: Path) -> None:
    whole = small(tmp_path / "whole")
    resumed_folder = tmp_path / "resumed"
    small(resumed_folder, seeds=1)
    for path in sorted(resumed_folder.rglob("*.parquet"))[::2]:
        path.unlink()
    assert small(resumed_folder).frame.equals(whole.frame)
    for path in (tmp_path / "whole").rglob("*.parquet"):
        other = resumed_folder / path.relative_to(tmp_path / "whole")
        assert pl.read_parquet(other).equals(pl.read_parquet(path))


def test_what_is_there_is_not_played_again(tmp_path: Path) -> None:
    small(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    small(tmp_path, seeds=4)
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    assert len(after) > len(before)
    assert all(after[path] == stamp for path, stamp in before.items())


@pytest.mark.parametrize("jobs", [1, 3])
def test_the_number_of_jobs_never_changes_a_row(tmp_path: Path, jobs: int) -> None:
    assert small(tmp_path / "one", jobs=jobs).frame.equals(small(tmp_path / "two", jobs=2).frame)


def test_agents_share_delays(tmp_path: Path) -> None:
    results = small(tmp_path)
    for delay in results.delays:
        psvi, greedy = (results.array("delay", agent=agent, delay=delay) for agent in results.agents)
        np.testing.assert_array_equal(psvi, greedy)


def test_the_toml_of_the_page_is_an_experiment(tmp_path: Path) -> None:
    page = (HOWTO / "run-experiments.md").read_text(encoding="utf-8")
    match = re.search(r"```toml[^\n]*\n(.*?)```", page, flags=re.DOTALL)
    assert match
    path = tmp_path / "river.toml"
    path.write_text(match[1], encoding="utf-8")
    experiment = belated.Experiment.load(path)
    assert len(experiment.runs()) == 12
    results = belated.run_experiment(experiment, progress=False)
    assert results.regret(agent="oracle", delay="late").max() == pytest.approx(0, abs=1e-9)


def test_empirical_matches_the_data(tmp_path: Path) -> None:
    observed = np.random.default_rng(0).geometric(0.1, size=500)
    for name in ("delays.csv", "delays.parquet"):
        path = tmp_path / name
        frame = pl.DataFrame({"other": np.zeros(500), "days": observed})
        frame.write_csv(path) if name.endswith("csv") else frame.write_parquet(path)
        distribution = belated.Empirical.from_file(path, "days")
        assert distribution.mean == pytest.approx(observed.mean())
        for q in (0.1, 0.5, 0.9, 1.0):
            assert distribution.quantile(q) == np.quantile(observed, q, method="inverted_cdf")
        drawn = distribution.sample(np.random.default_rng(1), 50_000)
        for n in (1, 5, 20):
            assert (drawn <= n).mean() == pytest.approx((observed <= n).mean(), abs=0.01)


def test_a_lossy_distribution_loses_its_share() -> None:
    drawn = belated.Lossy(belated.Poisson(3), missing=0.25).sample(np.random.default_rng(0), 40_000)
    assert (drawn == NEVER).mean() == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize(
    "algorithm",
    [kind() for kind in belated.AGENTS.values() if all(each.default is not MISSING for each in fields(kind))],
)
def test_a_saved_agent_goes_on_as_if_nothing_had_happened(algorithm: Any, tmp_path: Path) -> None:
    size = 1 if algorithm.one_step else 3
    world = belated.RandomLinearMDP(states=size, actions=2, dimension=3, horizon=size)
    log = log_of(world, 20)
    agent, rng = algorithm.start(world.problem), np.random.default_rng(0)
    agent.learn(log[:10])
    agent.plan(rng)
    belated.save_agent(tmp_path / "agent.npz", agent, rng)
    copy, copied = belated.load_agent(tmp_path / "agent.npz")
    assert copied is not None
    for one in log[10:]:
        agent.learn([one])
        copy.learn([one])
        np.testing.assert_array_equal(agent.plan(rng).actions, copy.plan(copied).actions)


def test_rescaled_rewards_keep_the_order_of_policies() -> None:
    rng = np.random.default_rng(3)
    transitions = rng.dirichlet(np.ones(4), size=(4, 3))
    raw = rng.normal(size=(4, 3))
    low, high = raw.min(), raw.max()
    world = belated.FiniteMDP(transitions, (raw - low) / (high - low), horizon=6)
    tables = [rng.integers(3, size=(6, 4)) for _ in range(20)]
    scaled = [world.value(belated.TablePolicy(table)) for table in tables]
    values = []
    for table in tables:
        value = np.zeros(4)
        for step in reversed(table):
            value = raw[np.arange(4), step] + transitions[np.arange(4), step] @ value
        values.append(value[0])
    np.testing.assert_allclose(scaled, (np.array(values) - 6 * low) / (high - low))
    assert np.argsort(scaled).tolist() == np.argsort(values).tolist()


def test_the_compiled_algorithm_of_the_page_passes_the_checks(tmp_path: Path) -> None:
    """In a process and a cache of its own: compiled code of a file that is about to vanish must not stay."""
    page = (HOWTO / "bring-your-own-agent.md").read_text(encoding="utf-8")
    match = re.search(r'```python title="diagonal_sampling.py"\n(.*?)```', page, flags=re.DOTALL)
    assert match
    assert match[1] == (ROOT / "docs" / "skeletons" / "diagonal_sampling.py").read_text(encoding="utf-8")
    (tmp_path / "diagonal_sampling.py").write_text(match[1], encoding="utf-8")
    script = (
        "import belated, belated.testing._agents, diagonal_sampling\n"
        "belated.testing._agents.check_agent(diagonal_sampling.DiagonalSampling())\n"
        "agents = {'mine': diagonal_sampling.DiagonalSampling(scale=0.0)}\n"
        "world = belated.RiverSwim(states=3, horizon=4)\n"
        "results = belated.run(world, agents, belated.Poisson(2), episodes=30, seeds=2, jobs=1, progress=False)\n"
        "assert results.frame.height == 60\n"
    )
    paths = [str(tmp_path), str(ROOT / "src")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
