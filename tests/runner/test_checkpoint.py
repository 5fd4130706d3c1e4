"""The state of a run in a file: it goes on to the same rows, after a kill too, and what is damaged is refused."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from in_python import InPython
from late_runs import AGENTS, DELAYS, WORLDS
from polars.testing import assert_frame_equal

import belated
from belated._kernels.streams import stream
from belated._util.files import load_arrays, save_arrays
from belated.runner._experiment import Run
from belated.runner._simulation import CHUNK, KIND, VERSION, Simulation

EPISODES = 2 * CHUNK + 300
RUN: dict[str, Any] = {"episodes": EPISODES, "seed": 5}


def finish(run: Simulation) -> pl.DataFrame:
    while run.played < run.episodes:
        run.advance()
    return run.rows()


def fresh(**changes: Any) -> Simulation:
    given: dict[str, Any] = {
        "environment": WORLDS["changing"],
        "algorithm": AGENTS["greedy"],
        "delay": DELAYS["by-action"],
        **RUN,
        **changes,
    }
    return Simulation(Run(**given))


@pytest.fixture(scope="module")
def whole() -> pl.DataFrame:
    return finish(fresh())


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the checkpoint of a run that was left after the first blocks."""
    path = tmp_path_factory.mktemp("checkpoint") / "run.npz"
    run = fresh()
    while run.played < CHUNK:
        run.advance()
    assert run.played == CHUNK
    run.save(path)
    return path


def test_a_restored_run_gives_the_rows_of_one_that_was_never_left(saved: Path, whole: pl.DataFrame) -> None:
    run = fresh()
    run.restore(saved)
    assert run.played == CHUNK
    assert run.array_queue.size[0] > 0  # something is in flight, and must not be lost
    assert_frame_equal(run.rows(), whole[:CHUNK], check_exact=True)
    assert_frame_equal(finish(run), whole, check_exact=True)


@pytest.mark.parametrize("distribution", DELAYS)
@pytest.mark.parametrize("algorithm", AGENTS)
def test_a_killed_run_goes_on_from_its_file(tmp_path: Path, algorithm: str, distribution: str) -> None:
    arguments = WORLDS["conversion"], AGENTS[algorithm], DELAYS[distribution]
    settings: dict[str, Any] = {**RUN, "record_every": 100}
    expected = belated.simulate(*arguments, **settings)
    file = tmp_path / "run.npz"
    heard: list[int] = []

    def die_after(episodes: int) -> Callable[[int], None]:
        def watch(played: int) -> None:
            heard.append(played)
            if sum(heard) >= episodes:
                raise KeyboardInterrupt

        return watch

    for deaths in (CHUNK + 1, 2 * CHUNK + 1):
        heard.clear()
        with pytest.raises(KeyboardInterrupt):
            belated.simulate(*arguments, **settings, checkpoint=file, checkpoint_seconds=0.0, watch=die_after(deaths))
        assert file.exists()
    heard.clear()
    rows = belated.simulate(*arguments, **settings, checkpoint=file, watch=heard.append)
    assert heard[0] == 2 * CHUNK  # it did not start from the beginning
    assert sum(heard) == EPISODES
    assert_frame_equal(rows, expected, check_exact=True)
    assert not file.exists()


IN_TIME: dict[str, belated.DelayDistribution] = {
    "bursts": belated.Bursts(belated.Constant(0), belated.Poisson(60), begin=0.002, end=0.004),
    "backlog": belated.Backlog(belated.Geometric(10), rate=10),
    "outage": belated.Outages([[CHUNK - 500, CHUNK + 500]], belated.Poisson(3)),
    "periodic": belated.Periodic(1000, belated.Bursts(belated.Constant(0), belated.Poisson(60), 0.1, 0.1)),
}


@pytest.mark.parametrize("distribution", IN_TIME.values(), ids=IN_TIME.keys())
def test_a_distribution_goes_on_from_its_state(tmp_path: Path, distribution: belated.DelayDistribution) -> None:
    expected = finish(fresh(delay=distribution))
    assert expected["delay"].to_list() == distribution.sample(stream(5, "delay"), EPISODES).tolist()
    run = fresh(delay=distribution)
    while run.played < CHUNK:
        run.advance()
    run.save(tmp_path / "run.npz")
    resumed = fresh(delay=distribution)
    resumed.restore(tmp_path / "run.npz")
    assert_frame_equal(finish(resumed), expected, check_exact=True)


@pytest.mark.parametrize(
    ("distribution", "state"), [("bursts", 7), ("bursts", None), ("backlog", -1), ("periodic", "calm")]
)
def test_a_state_that_the_distribution_cannot_go_on_from_is_refused(
    tmp_path: Path, distribution: str, state: object
) -> None:
    run = fresh(delay=IN_TIME[distribution])
    while run.played < CHUNK:
        run.advance()
    run.save(tmp_path / "run.npz")
    fresh(delay=IN_TIME[distribution]).restore(tmp_path / "run.npz")
    path = edited(tmp_path / "run.npz", tmp_path / "spoilt.npz", "distribution", lambda _: state)
    with pytest.raises(belated.DamagedFileError, match="does not contain a valid checkpoint: state must be"):
        fresh(delay=IN_TIME[distribution]).restore(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 6},
        {"episodes": EPISODES + 1},
        {"record_every": 2},
        {"algorithm": belated.EpsilonGreedy(epsilon=0.3)},
        {"algorithm": InPython(AGENTS["greedy"])},
        {"delay": belated.Poisson(6)},
        {"environment": belated.LinearBandit(dimension=3, actions=3, sets="changing", contexts=5, noise=0.3)},
        {"environment": WORLDS["random"]},
    ],
)
def test_the_checkpoint_of_another_run_is_refused_and_changes_nothing(saved: Path, changes: dict[str, Any]) -> None:
    run = fresh(**changes)
    with pytest.raises(belated.InvalidInputError, match=r"rows of other settings|agents of this kind cannot"):
        run.restore(saved)
    assert (run.played, run.recorded) == (0, 0)


def test_a_damaged_checkpoint_is_refused(saved: Path, tmp_path: Path) -> None:
    content = saved.read_bytes()
    middle = len(content) // 2
    flipped = bytes([content[middle] ^ 0xFF])
    damaged = {
        "cut": content[:middle],
        "flipped": content[:middle] + flipped + content[middle + 1 :],
        "empty": b"",
    }
    for name, part in damaged.items():
        path = tmp_path / name
        path.write_bytes(part)
        with pytest.raises(belated.DamagedFileError, match="is not an intact belated-checkpoint file"):
            fresh().restore(path)
        arguments = WORLDS["changing"], AGENTS["greedy"], DELAYS["by-action"]
        with pytest.raises(belated.DamagedFileError):
            belated.simulate(*arguments, **RUN, checkpoint=path)
        assert path.read_bytes() == part


@pytest.mark.parametrize("missing", ["memory.reward_moment", "queue.heap", "rows.value"])
def test_a_checkpoint_without_all_its_arrays_is_refused(saved: Path, tmp_path: Path, missing: str) -> None:
    header, arrays = load_arrays(saved, KIND, VERSION)
    del arrays[missing]
    path = tmp_path / "partial.npz"
    save_arrays(path, KIND, VERSION, header, arrays)
    with pytest.raises(belated.DamagedFileError, match="does not contain a valid checkpoint"):
        fresh().restore(path)


def edited(saved: Path, path: Path, name: str, spoil: Callable[[Any], Any]) -> Path:
    """Write the checkpoint with one array or one field of its header changed, and a digest that agrees."""
    header, arrays = load_arrays(saved, KIND, VERSION)
    if name in header:
        header[name] = spoil(header[name])
    else:
        arrays[name] = spoil(arrays[name])
    save_arrays(path, KIND, VERSION, header, arrays)
    return path


def with_entry(at: Any, value: Any) -> Callable[[Any], Any]:
    """Return a function that copies an array and sets one entry."""

    def spoil(values: Any) -> Any:
        changed = np.array(values)
        changed[at] = value
        return changed

    return spoil


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("queue.states", lambda values: values + 10**6),
        ("queue.heap", lambda values: np.zeros_like(values)),
        ("queue.heap", with_entry((0, 0), 10**12)),
        ("queue.heap", with_entry((0, 0), 3)),
        ("queue.heap", with_entry((0, 1), CHUNK + 7)),
        ("queue.heap", lambda values: np.concatenate([values[1::-1], values[2:]])),
        ("queue.size", lambda values: values + 10**6),
        ("queue.size", lambda values: values - 1),
        ("queue.rewards", lambda values: values[:-1]),
        ("queue.rewards", lambda values: values * np.nan),
        ("delays", lambda values: values[:-1]),
        ("delays", lambda values: values[:, :1]),
        ("delays", lambda values: values - 10**6),
        ("played", lambda played: 5000),
        ("played", lambda played: 2 * CHUNK),
        ("played", lambda played: 0),
        ("played", lambda played: "many"),
        ("regret", lambda regret: "nan"),
        ("regret", lambda regret: "inf"),
        ("regret", lambda regret: (float.fromhex(regret) + 0.25).hex()),
        ("regret", lambda regret: "much"),
        ("rngs", lambda rngs: {**rngs, "agent": {}}),
        ("rngs", lambda rngs: {}),
        ("rows.value", lambda values: values[:-1]),
        ("rows.value", with_entry(7, np.nan)),
        ("rows.value", with_entry(7, 0.125)),
        ("rows.value", with_entry(7, 1e9)),
        ("rows.optimal", with_entry(7, 0.125)),
        ("rows.regret", with_entry(-1, 0.125)),
        ("rows.sampled_return", with_entry(7, np.inf)),
        ("rows.episode", with_entry(7, 8)),
        ("rows.start", with_entry(7, 10**6)),
        ("rows.delay", with_entry(7, -1)),
        ("rows.delay", with_entry(7, 77)),
        ("rows.arrived", with_entry(7, 6)),
        ("rows.arrived", lambda values: values.astype(np.float64)),
    ],
)
def test_a_checkpoint_of_what_no_run_could_be_is_refused(saved: Path, tmp_path: Path, name: str, spoil: Any) -> None:
    run = fresh()
    with pytest.raises(belated.DamagedFileError, match="does not contain a valid checkpoint"):
        run.restore(edited(saved, tmp_path / "spoilt.npz", name, spoil))
    assert (run.played, run.recorded, run.regret, int(run.array_queue.size[0])) == (0, 0, 0.0, 0)


def test_a_checkpoint_of_few_rows_is_checked_too(tmp_path: Path) -> None:
    few = fresh(record_every=1000)
    while few.played < CHUNK:
        few.advance()
    few.save(tmp_path / "few.npz")
    fresh(record_every=1000).restore(tmp_path / "few.npz")
    for name, spoil in (
        ("regret", lambda regret: (float.fromhex(regret) + 1000.0).hex()),
        ("rows.regret", with_entry(2, -1e6)),
        ("rows.optimal", lambda values: values * 0.9),
        ("rows.episode", lambda values: values[::-1]),
        ("queue.heap", with_entry((0, 0), 3)),
    ):
        path = edited(tmp_path / "few.npz", tmp_path / "spoilt.npz", name, spoil)
        with pytest.raises(belated.DamagedFileError, match="does not contain a valid checkpoint"):
            fresh(record_every=1000).restore(path)


def test_the_checkpoint_of_another_belated_is_refused(saved: Path, tmp_path: Path) -> None:
    made_by = {"belated": "0.0.9", "code": "0123456789abcdef"}
    path = edited(saved, tmp_path / "old.npz", "about", lambda about: {**about, "made_by": made_by})
    with pytest.raises(belated.InvalidInputError, match=r"old\.npz was made by belated 0\.0\.9 .*delete the file"):
        fresh().restore(path)


def test_the_checkpoint_goes_only_after_the_rows_are_kept(tmp_path: Path) -> None:
    def fail(rows: pl.DataFrame) -> None:
        raise OSError("no space left on device")

    arguments = WORLDS["changing"], AGENTS["greedy"], DELAYS["by-action"]
    file = tmp_path / "run.npz"
    with pytest.raises(OSError, match="no space left"):
        belated.simulate(*arguments, **RUN, checkpoint=file, checkpoint_seconds=0.0, commit=fail)
    assert file.exists()
    heard: list[int] = []
    kept: list[pl.DataFrame] = []
    rows = belated.simulate(*arguments, **RUN, checkpoint=file, watch=heard.append, commit=kept.append)
    assert heard == [EPISODES]  # nothing was played again
    assert kept[0] is rows
    assert not file.exists()


def test_a_checkpoint_that_another_process_has_just_used_up_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.npz"
    monkeypatch.setattr(Path, "exists", lambda path: path == file)  # it was there a moment ago
    assert belated.simulate(WORLDS["changing"], AGENTS["greedy"], DELAYS["by-action"], **RUN, checkpoint=file).equals(
        belated.simulate(WORLDS["changing"], AGENTS["greedy"], DELAYS["by-action"], **RUN)
    )


def test_regret_is_summed_over_the_blocks(whole: pl.DataFrame) -> None:
    np.testing.assert_array_equal(whole["regret"], np.cumsum((whole["optimal"] - whole["value"]).to_numpy()))


@pytest.mark.parametrize("every", [2, 7, 1000, EPISODES, EPISODES + 5])
def test_sparse_rows_are_rows_of_the_full_run(every: int, whole: pl.DataFrame) -> None:
    rows = finish(fresh(record_every=every))
    wanted = [k for k in range(EPISODES) if (k + 1) % every == 0 or k == EPISODES - 1]
    assert rows["episode"].to_list() == wanted
    assert_frame_equal(rows, whole[wanted], check_exact=True)  # cumulative regret included


LONG = 12 * CHUNK
LONG_RUN: dict[str, Any] = {"episodes": LONG, "seed": 3, "record_every": 100}
PROGRAM = f"""
import sys, time
import belated
belated.simulate(
    belated.RiverSwim(states=3, horizon=4), belated.DelayedPSVI(), belated.Pareto(1.0, 20.0),
    **{LONG_RUN}, checkpoint=sys.argv[1], checkpoint_seconds=0.0, watch=lambda played: time.sleep(0.002),
)
"""


def test_a_killed_run_goes_on_to_the_same_rows(tmp_path: Path) -> None:
    world, distribution = belated.RiverSwim(states=3, horizon=4), belated.Pareto(1.0, 20.0)
    whole = belated.simulate(world, belated.DelayedPSVI(), distribution, **LONG_RUN)
    file = tmp_path / "run.checkpoint"
    child = subprocess.Popen([sys.executable, "-c", PROGRAM, str(file)])
    try:
        deadline = time.monotonic() + 120
        while not file.exists() and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
    finally:
        assert child.wait() == -signal.SIGKILL
    assert file.exists()
    kept = load_arrays(file, KIND, VERSION)[0]["played"]
    assert kept > 0
    played: list[int] = []
    rows = belated.simulate(
        world, belated.DelayedPSVI(), distribution, **LONG_RUN, checkpoint=file, watch=played.append
    )
    assert_frame_equal(rows, whole, check_exact=True)
    assert played[0] == kept  # what the killed run had played was not played again
    assert sum(played) == LONG
    assert not file.exists()
