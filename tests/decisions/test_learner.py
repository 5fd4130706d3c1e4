"""The learner: a ridge regression refitted on what counts, whatever the order, repeats, corrections and defaults."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decision_learners import TWO, Floats, assert_fits, decide_many, learner_of, state, wait

from belated.decisions import (
    ConflictError,
    Decision,
    DecisionLearner,
    DecisionState,
    DefaultAfter,
    Forgetting,
    ForgottenError,
    Mature,
    Status,
    Unknown,
)
from belated.decisions._ids import new_id, time_of
from belated.errors import InvalidInputError, UnknownNameError


def test_a_decision_is_a_value() -> None:
    learner = learner_of()
    contexts = np.array([[1.0, 2.0], [3.0, 4.0]])
    first, second = learner.decide(contexts), learner.decide(contexts.tolist(), key="order 7")
    assert (first.number, second.number, second.id) == (1, 2, "order 7")
    assert time_of(first.id) == 1_000.0
    assert first.probability is not None and 0 < first.probability < 1
    np.testing.assert_array_equal(first.features, contexts[first.action])
    contexts[:] = 9.0
    assert first.features.max() < 9.0
    with pytest.raises(ValueError, match="read-only"):
        first.features[0] = 9.0
    with pytest.raises(AttributeError):
        first.action = 1  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(3))
def test_any_order_with_repeats_and_corrections_is_the_refit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    learner = learner_of(4, ridge=0.3, seed=seed)
    decisions = decide_many(learner, 60, seed)
    rewards = rng.standard_normal(60)
    for i in rng.permutation(60):
        wrong = i % 3 == 0
        for expected in (Status.ACCEPTED, Status.DUPLICATE):
            assert learner.feedback(decisions[i].id, rewards[i] + 5.0 * wrong) is expected
        if wrong:
            learner.feedback(decisions[i].id, rewards[i], correction=True)
    assert_fits(learner, [(d.features, r) for d, r in zip(decisions, rewards, strict=True)], 0.3)
    assert (learner.in_flight, learner.learned, learner.oldest) == (0, 60, None)
    assert (learner.counts[Status.ACCEPTED], learner.counts[Status.DUPLICATE]) == (80, 60)


def test_a_conflict_changes_nothing(tmp_path: Path) -> None:
    learner = learner_of()
    decision = learner.decide(TWO)
    learner.feedback(decision.id, 1.0)
    before = state(learner, tmp_path)
    with pytest.raises(ConflictError, match=r"the reward is already 1\.0, got 2\.0, which is not marked as a corr"):
        learner.feedback(decision.id, 2.0)
    assert learner.feedback(decision.id, 1.0, correction=True) is Status.DUPLICATE
    assert state(learner, tmp_path) == before


def test_two_purchases_with_two_names_are_two() -> None:
    learner = learner_of()
    decision = learner.decide(TWO)
    for name, expected in (("one", Status.ACCEPTED), ("two", Status.ACCEPTED), ("one", Status.DUPLICATE)):
        assert learner.feedback(decision.id, 5.0, event=name) is expected
    assert_fits(learner, [(decision.features, 10.0)])
    first = learner_of(aggregate="first")
    decision = first.decide(TWO)
    first.feedback(decision.id, 1.0, event="late", observed=20.0)
    first.feedback(decision.id, 3.0, event="early", observed=10.0)
    assert_fits(first, [(decision.features, 3.0)])


def test_silence_as_a_default_after_a_window() -> None:
    learner = learner_of(silence=DefaultAfter(10.0, reward=-1.0))
    first = learner.decide(TWO)
    wait(learner, 6.0)
    second = learner.decide(TWO)
    learner.feedback(second.id, 2.0)  # counts at once
    assert_fits(learner, [(second.features, 2.0)])
    wait(learner, 5.0)
    assert learner.tick() == 1  # nothing else happens
    assert learner.lookup(first.id).status is DecisionState.DEFAULTED
    assert_fits(learner, [(first.features, -1.0), (second.features, 2.0)])
    assert learner.feedback(first.id, 3.0) is Status.ACCEPTED  # no correction needed: nobody said −1
    assert_fits(learner, [(first.features, 3.0), (second.features, 2.0)])
    with pytest.raises(ConflictError):
        learner.feedback(first.id, -1.0)


def test_a_yes_counts_no_earlier_than_a_no() -> None:
    learner = learner_of(silence=Mature(10.0, default=0.0))
    yes, no = learner.decide(TWO), learner.decide(TWO)
    learner.feedback(yes.id, 1.0)
    wait(learner, 9.999)
    learner.tick()
    assert (learner.learned, learner.in_flight) == (0, 1)
    wait(learner, 0.001)
    learner.tick()
    assert_fits(learner, [(yes.features, 1.0), (no.features, 0.0)])
    learner.feedback(no.id, 1.0)  # late truth still corrects exactly
    assert_fits(learner, [(yes.features, 1.0), (no.features, 1.0)])


def test_cancelling_takes_back_exactly_what_was_taught() -> None:
    learner, clean = learner_of(3), learner_of(3)
    kept = decide_many(learner, 40)
    wrong = learner.decide(np.full((1, 3), 1e9))  # features that were wrong
    learner.feedback(wrong.id, 1e6)
    for decision in kept:
        learner.feedback(decision.id, 0.1 * decision.number)
    for decision in decide_many(clean, 40):
        clean.feedback(decision.id, 0.1 * decision.number)
    assert learner.cancel(wrong.id) is Status.ACCEPTED
    assert learner.cancel(wrong.id) is Status.DUPLICATE
    actions = [(one.features, 0.1 * one.number) for one in kept]
    assert_fits(learner, actions)
    assert learner.feedback(wrong.id, 5.0, event="e") is Status.LATE
    assert_fits(learner, actions)
    assert learner.lookup(wrong.id).status is DecisionState.CANCELLED


def test_a_decision_that_was_not_shown_does_not_count() -> None:
    learner = learner_of(silence=Mature(10.0, default=0.0))
    hidden, shown = learner.decide(TWO, active=False), learner.decide(TWO, active=False)
    learner.feedback(shown.id, 1.0)
    wait(learner, 100.0)
    learner.tick()
    assert (learner.learned, learner.in_flight) == (0, 0)
    assert learner.activate(shown.id) is Status.ACCEPTED
    assert learner.activate(shown.id) is Status.DUPLICATE
    assert learner.learned == 0
    wait(learner, 10.0)
    learner.tick()
    assert_fits(learner, [(shown.features, 1.0)])
    assert learner.lookup(hidden.id).status is DecisionState.INACTIVE


def test_expired_cancelled_forgotten_and_never_made_are_told_apart() -> None:
    learner = learner_of(silence=Unknown(10.0))
    expired, cancelled, rewarded = decide_many(learner, 3)
    keyed = learner.decide(TWO, key="k")
    learner.cancel(cancelled.id)
    learner.feedback(rewarded.id, 1.0)
    learner.feedback("k", 1.0)
    wait(learner, 10.5)
    learner.tick()
    assert learner.feedback(expired.id, 1.0) is Status.LATE
    assert learner.feedback(cancelled.id, 1.0) is Status.LATE
    assert learner.feedback(rewarded.id, 2.0, correction=True) is Status.ACCEPTED  # it was there in time
    assert_fits(learner, [(rewarded.features, 2.0), (keyed.features, 1.0)])
    states = [learner.lookup(each.id).status for each in (expired, cancelled, rewarded)]
    assert states == [DecisionState.EXPIRED, DecisionState.CANCELLED, DecisionState.REWARDED]
    assert learner.forget(before=5) == 4
    for name in (expired.id, rewarded.id, "k"):
        with pytest.raises(ForgottenError, match="which was forgotten"):
            learner.feedback(name, 1.0)
        with pytest.raises(ForgottenError):
            learner.lookup(name)
    with pytest.raises(UnknownNameError, match="which never existed"):
        learner.feedback(new_id(2_000.0), 1.0)
    assert learner.feedback("l", 3.0) is Status.PARKED  # a key may come later
    later = learner.decide(TWO, key="l")
    assert learner.lookup("l").reward == 3.0
    assert_fits_after_forgetting(learner, [(rewarded.features, 2.0), (keyed.features, 1.0), (later.features, 3.0)])
    assert learner.decide(TWO, key="k").number == 6  # its key is free again


def assert_fits_after_forgetting(learner: DecisionLearner, log: list[tuple[Floats, float]]) -> None:
    assert_fits(learner, log)


def test_forgetting_drops_only_what_is_no_longer_in_flight() -> None:
    learner = learner_of(2)
    decisions = decide_many(learner, 100)
    log = []
    for decision in decisions[:60]:
        if decision.number != 7:
            learner.feedback(decision.id, 0.5)
            log.append((decision.features, 0.5))
    assert learner.forget(before=51) == 49
    assert learner.forget(before=51) == 0
    assert_fits(learner, log)
    assert (learner.in_flight, learner.oldest) == (41, decisions[6])
    for late in (decisions[6], decisions[99]):
        learner.feedback(late.id, 2.0)
        log.append((late.features, 2.0))
    learner.feedback(decisions[54].id, 1.0, correction=True)
    log[53] = (decisions[54].features, 1.0)
    assert_fits(learner, log)
    assert learner.oldest == decisions[60]
    assert learner.decide(TWO).number == 101


def test_forgetting_bounds_the_memory() -> None:
    learner = learner_of(2, silence=DefaultAfter(10.0))
    for number in range(1, 1001):
        wait(learner, 1.0)
        learner.decide(TWO)
        if number % 100 == 0:
            learner.forget(before=number)
    assert len(list(learner._engine.store.log("learner"))) < 250
    assert learner.learned == 990


def test_a_key_makes_a_decision_once(tmp_path: Path) -> None:
    learner = learner_of(2)
    contexts = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    decision = learner.decide(contexts, key="a")
    before = state(learner, tmp_path)
    again = learner.decide(contexts.tolist(), key="a")
    assert again == decision
    np.testing.assert_array_equal(again.features, decision.features)
    assert learner.decide(np.where(contexts == 0, -0.0, contexts), key="a") == decision
    for other in (contexts[:2], contexts[::-1], contexts + 1e-12, contexts[[0, 1, 2, 2]]):
        with pytest.raises(ConflictError, match="'a' already belongs to a decision"):
            learner.decide(other, key="a")
    assert state(learner, tmp_path) == before
    assert learner.decide(contexts, key="b").number == 2


def test_past_decisions_can_be_learned() -> None:
    learner = learner_of(2, noise=1.0, forgetting=Forgetting(seconds=100.0))
    learner.record([1.0, 0.0], 4.0, made=900.0)
    learner.record(np.array([0.0, 2.0]), 1.0, made=1_000.0, key="b", probability=0.25)
    np.testing.assert_allclose(learner.mean(), [0.5 * 4.0 / 1.5, 2.0 / 5.0])  # a half-life ago, and now
    assert learner.lookup("b").probability == 0.25
    for bad in ([1.0], [[1.0, 2.0]], [np.nan, 1.0], "no", None):
        with pytest.raises(InvalidInputError):
            learner.record(bad, 1.0)
    with pytest.raises(InvalidInputError):
        learner.record([1.0, 0.0], "1")  # type: ignore[arg-type]
    assert learner.learned == 2


def test_threads_do_not_corrupt_it(tmp_path: Path) -> None:
    learner = learner_of(4)
    decisions: list[Decision] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(400):
            decision = learner.decide(rng.standard_normal((3, 4)))
            decisions.append(decision)
            learner.feedback(decision.id, 1.0)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({each.id for each in decisions}) == len({each.number for each in decisions}) == 1600
    assert_fits(learner, [(each.features, 1.0) for each in decisions])
    learner.save(tmp_path / "learner.npz")
    assert DecisionLearner.load(tmp_path / "learner.npz").learned == 1600


@pytest.mark.parametrize("changes", [{}, {"draws": 1, "floor": 0.0}])
def test_it_beats_chance_although_every_reward_is_late(changes: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    weights = rng.standard_normal(5) / np.sqrt(5)
    learner = learner_of(5, noise="auto", seed=1, **changes)
    due: list[tuple[int, str, float]] = []
    regret = chance = 0.0
    for now in range(1500):
        for _, name, reward in [item for item in due if item[0] <= now]:
            learner.feedback(name, reward)
        due = [item for item in due if item[0] > now]
        contexts = rng.standard_normal((6, 5))
        values = contexts @ weights
        decision = learner.decide(contexts)
        due.append((now + int(rng.geometric(0.02)), decision.id, values[decision.action] + 0.5 * rng.standard_normal()))
        regret += values.max() - values[decision.action]
        chance += values.max() - values.mean()
    assert learner.in_flight == len(due)
    assert regret < 0.15 * chance
    assert learner.noise == pytest.approx(0.5, rel=0.1)


def test_it_follows_a_change_if_it_forgets() -> None:
    def late_score(forgetting: Forgetting | None) -> float:
        learner, score = learner_of(2, noise="auto", forgetting=forgetting), 0.0
        for t in range(1200):
            decision = learner.decide(TWO)
            reward = float(decision.action == (t >= 800))
            learner.feedback(decision.id, reward)
            score += reward if t >= 1000 else 0
        return score / 200

    assert late_score(Forgetting(decisions=50)) > 0.9 > 0.5 > late_score(None)


def test_repr_shows_the_counts_and_the_mean() -> None:
    learner = learner_of(7, silence=DefaultAfter(9.0, 0.5))
    learner.decide(np.eye(7)[:1], key="k")
    learner.decide(np.eye(7)[:1])
    learner.feedback("k", 1.0)
    assert repr(learner) == (
        "DecisionLearner(dimension=7, silence=DefaultAfter(seconds=9.0, reward=0.5), in_flight=1, learned=1, "
        "mean=[0.5, 0, 0, 0, 0, 0, ...])"
    )
