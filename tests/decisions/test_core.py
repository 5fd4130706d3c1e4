"""The two functions of the core: `step` changes nothing, `apply` is all that changes a state."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from decision_models import CONTEXT, Clock, model_of

from belated.decisions import (
    Activate,
    Cancel,
    Decide,
    Decided,
    Outcome,
    PosteriorError,
    Reward,
    Status,
)
from belated.decisions._core import State, apply, step
from belated.decisions._ids import new_id
from belated.decisions._rows import DecisionRow, EventRow
from belated.decisions._snapshot import differences, take
from belated.errors import InvalidInputError


def operations(rng: np.random.Generator, ids: list[str], now: float) -> list[Any]:
    """Return a batch of everything that can be asked, with repeats and rewards that come before their decision."""
    given: list[Any] = [
        Decide(
            {"x": float(rng.standard_normal()), "y": 1.0}, active=bool(rng.integers(2)), size=1 + int(rng.integers(2))
        )
        for _ in range(3)
    ]
    early = new_id(now)
    given += [Decide(CONTEXT, key="k"), Decide(CONTEXT, key="k"), Decide({}, key="bad")]
    given += [Reward(early, 1.0), Decide(CONTEXT, chosen="b", id=early), Reward(early, 2.0, event="again")]
    for name in rng.permutation(ids)[:6].tolist():
        given.append(Reward(name, float(rng.standard_normal()), str(rng.integers(2)), correction=bool(rng.integers(2))))
    given += [Cancel(name) for name in ids[-2:-1]] + [Activate(name) for name in ids[-12:]]
    return given


@pytest.mark.parametrize("silence", [{"kind": "unknown"}, {"kind": "mature", "seconds": 3.0}])
def test_a_step_changes_nothing_and_its_rows_are_complete(silence: dict[str, Any]) -> None:
    clock, rng, ids = Clock(), np.random.default_rng(0), list[str]()
    model = model_of(clock=clock, silence=silence)
    for _ in range(20):
        clock.now += 1.0
        given = operations(rng, ids, clock.now)
        before = take(model.state, 0.0)
        rows, answers = step(model.state, given, clock.now, new_id)
        assert take(model.state, 0.0) == before
        assert [row.seq for row in rows] == [0] * len(rows) and len(answers) == len(given)
        made = [answer for answer in answers if isinstance(answer, Decided)]
        assert all(
            each.row.ranking and each.row.features and each.row.probability for each in made if not each.row.suggestion
        )
        model.store.append(rows)
        kept = copy.deepcopy(rows)
        for row in rows:
            assert apply(model.state, row) is model.state
        assert rows == kept
        ids += [each.row.id for each in made]
    assert model.verify() == []
    assert {row.kind for row in model.store.log("ads") if isinstance(row, EventRow)} >= {"reward", "cancel", "activate"}


def test_a_state_is_a_function_of_its_log() -> None:
    clock, rng = Clock(), np.random.default_rng(1)
    model = model_of(clock=clock, silence={"kind": "default_after", "seconds": 5.0, "reward": -1.0})
    ids: list[str] = []
    for _ in range(15):
        clock.now += 1.0
        ids += [each.row.id for each in model.answer(operations(rng, ids, clock.now)) if isinstance(each, Decided)]
    again = State("ads", model.state.requests, model.state.versions, model.store)
    for row in model.store.log("ads"):
        again = apply(again, row)
    assert differences(model.state, again) == [] and model.state.ended == again.ended > 0


def test_a_reward_before_its_decision_in_one_batch_is_attached() -> None:
    model, name = model_of(), new_id(1_000.0)
    parked, _, second = model.answer([Reward(name, 1.0), Decide(CONTEXT, chosen="a", id=name), Reward(name, 2.0, "e")])
    assert isinstance(parked, Outcome) and isinstance(second, Outcome)
    assert (parked.status, second.status, second.reward) == (Status.PARKED, Status.ACCEPTED, 3.0)
    assert model.lookup(name).learned == 3.0 and model.verify() == []


def test_an_operation_that_is_none_is_rejected_before_anything_is_stored() -> None:
    model = model_of()
    wanted = "each operation must be a Decide, Reward, Signal, Activate, Cancel or End"
    with pytest.raises(InvalidInputError, match=wanted):
        model.answer([Decide(CONTEXT), "decide"])  # type: ignore[list-item]
    assert not [row for row in model.store.log("ads") if isinstance(row, DecisionRow)]


def test_a_posterior_that_is_not_finite_decides_nothing_but_still_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of()
    choice = model.decide(CONTEXT)
    model.feedback(choice.id, 1.0)
    with monkeypatch.context() as broken:
        broken.setattr(model.state.posterior.ages[0].sums, "moment", lambda block: np.full(3, np.nan))
        model.state.posterior.configure(scale=1.0, noise=None, ridge=1.0)
        reward, decided = model.run([Reward(choice.id, 2.0, correction=True), Decide(CONTEXT)])
        assert isinstance(reward, Outcome) and reward.status is Status.ACCEPTED
        assert isinstance(decided, PosteriorError)
    model.state.posterior.configure(scale=1.0, noise=None, ridge=1.0)
    assert model.decide(CONTEXT).probability is not None
    assert model.summary()["decisions"] == 2 and model.verify() == []
