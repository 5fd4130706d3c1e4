"""A learner saved to a file and loaded again; files that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from decision_learners import TWO, decide_many, learner_of, wait

from belated._util.files import load_arrays, save_arrays
from belated.decisions import (
    DecisionLearner,
    DecisionState,
    DefaultAfter,
    ForgottenError,
    Mature,
    Unknown,
)
from belated.decisions._saving import KIND, VERSION
from belated.errors import DamagedFileError


@pytest.mark.parametrize("draws", [1, 32])
@pytest.mark.parametrize("silence", [Unknown(), DefaultAfter(15.0, 0.5), Mature(15.0, 0.5)])
def test_going_on_after_a_load_equals_never_having_stopped(silence: Any, draws: int, tmp_path: Path) -> None:
    def first_half(learner: DecisionLearner) -> list[str]:
        ids = []
        rng = np.random.default_rng(1)
        for _ in range(40):
            wait(learner, 1.0)
            ids.append(learner.decide(rng.standard_normal((3, 2))).id)
        learner.decide(TWO, key="kept")
        for i in (3, 1, 38):
            learner.feedback(ids[i], 0.1 * i, event="e")
        learner.feedback("early", 1.0)
        learner.cancel(ids[2])
        learner.forget(before=4)
        return ids

    def second_half(learner: DecisionLearner, ids: list[str]) -> list[object]:
        seen: list[object] = [learner.decide(TWO, key="kept").action, learner.in_flight]
        learner.feedback("kept", 2.0)
        learner.feedback(ids[38], -1.0, event="e", correction=True)
        learner.feedback(ids[37], 1.0)
        wait(learner, 8.0)
        learner.decide(TWO, key="early")
        oldest = learner.oldest
        seen += [learner.tick(), None if oldest is None else oldest.number]
        seen += [(each.action, each.probability) for each in decide_many(learner, 20, seed=2)]
        return [*seen, learner.in_flight, learner.learned, repr(learner)]

    whole, stopped = (learner_of(2, silence=silence, noise="auto", draws=draws, floor=0.0, seed=7) for _ in range(2))
    one, two = first_half(whole), first_half(stopped)
    stopped.save(tmp_path / "learner.npz")
    clock: Any = stopped._engine._clock
    resumed = DecisionLearner.load(str(tmp_path / "learner.npz"), clock=clock)
    assert second_half(resumed, two) == second_half(whole, one)
    with pytest.raises(ForgottenError):
        resumed.feedback(two[2], 1.0)
    assert not list(tmp_path.glob(".*"))


def test_a_save_that_would_not_load_replaces_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner, path = learner_of(), tmp_path / "learner.npz"
    learner.decide(TWO)
    learner.save(path)
    good = path.read_bytes()
    learner._engine.state.learned = 3
    learner._engine.state.counts[DecisionState.REWARDED] += 2
    with pytest.raises(DamagedFileError):
        learner.save(path)
    assert path.read_bytes() == good and not list(tmp_path.glob(".*"))


def test_a_cut_or_changed_or_other_file_is_refused(tmp_path: Path) -> None:
    learner, path = learner_of(), tmp_path / "learner.npz"
    decide_many(learner, 5)
    learner.save(path)
    content = path.read_bytes()
    for damaged in (content[:-40], content[: len(content) // 2], b"", content.replace(b'\\"made', b'\\"mada')):
        path.write_bytes(damaged)
        with pytest.raises(DamagedFileError):
            DecisionLearner.load(path)
    for version, words in ((VERSION + 1, "version"), (1, "older version of belated")):
        save_arrays(path, KIND, version, {}, {})
        with pytest.raises(DamagedFileError, match=words):
            DecisionLearner.load(path)
    with pytest.raises(FileNotFoundError):
        DecisionLearner.load(tmp_path / "none.npz")


def edit(name: str, value: Any) -> Any:
    def change(header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        if name in header:
            header[name] = value
        elif np.ndim(value):
            arrays[name] = np.array(value)
        else:
            arrays[name] = arrays[name].copy()
            arrays[name][1] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        edit("dimension", 3), edit("dimension", "2"), edit("settings", {}), edit("settings", {"silence": 3}),
        edit("snapshot", "{}"), edit("snapshot", 3), edit("purged", "x"), edit("order", [True]), edit("order", None),
        edit("decisions", [["a", None, '["0"]', "3", None]] * 5), edit("decisions", [[1]] * 5), edit("events", 3),
        edit("features", np.nan), edit("features", [1.0]), edit("lengths", -1), edit("lengths", [1, 2]),
        edit("decision number", 1.0), edit("decision number", 9.0), edit("decision made", np.nan),
        edit("event reward", [1.0]), edit("event counted", np.nan), edit("posterior", 0), edit("snapshot digest", 0),
    ],
)  # fmt: skip
def test_a_file_that_makes_no_sense_is_refused(change: Any, tmp_path: Path) -> None:
    learner = learner_of()
    for decision in decide_many(learner, 5)[:3]:
        learner.feedback(decision.id, 1.0)
    learner.save(tmp_path / "learner.npz")
    header, arrays = load_arrays(tmp_path / "learner.npz", KIND, VERSION)
    change(header, arrays)
    kept = {name: value for name, value in header.items() if name not in ("format", "version")}
    save_arrays(tmp_path / "learner.npz", KIND, VERSION, kept, arrays)
    with pytest.raises(DamagedFileError, match="does not contain a valid learner"):
        DecisionLearner.load(tmp_path / "learner.npz")
