"""Learning by age: what came of a decision between two ages, of every decision that has reached the second."""

from __future__ import annotations

import heapq
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import by_age_oracle
import numpy as np
import pytest
from decision_learners import TWO, learner_of, wait
from decision_models import CONTEXT, Clock, model_of, settings_of

from belated.decisions import (
    ByAge,
    DecisionLearner,
    DecisionState,
    MemoryStore,
    Model,
    ModelSettings,
    SQLiteStore,
)
from belated.decisions._aged import AgedPosterior
from belated.decisions._ageing import TICKS, Ages
from belated.decisions._ledger import increments, silent, tally, with_signals
from belated.decisions._snapshot import differences
from belated.errors import InvalidInputError


def parts(learner: Any, name: str) -> tuple[float, ...]:
    """Return what is learned of a decision at each age that is over."""
    engine = learner._engine if isinstance(learner, DecisionLearner) else learner
    tracked = engine.state.find(name)
    assert tracked is not None
    assert tracked.tally is not None
    return tuple(tracked.tally.parts)


def test_the_ages_of_a_window() -> None:
    assert ByAge(64.0).ends == (1.0, 4.0, 9.0, 16.0, 25.0, 36.0, 49.0, 64.0)
    assert ByAge(16.0, ages=4).left == (15.0, 12.0, 7.0, 0.0)
    assert ByAge(16.0, ages=1).ends == (16.0,)
    for bad in (
        {"seconds": 0.0},
        {"seconds": 1.0, "ages": 0},
        {"seconds": 1.0, "ages": 65},
        {"seconds": 1.0, "ages": 2.5},
    ):
        with pytest.raises(InvalidInputError, match=r"seconds|ages"):
            ByAge(**bad)  # type: ignore[arg-type]


def test_increments_by_hand() -> None:
    """Ages end after 1, 4, 9 and 16 seconds: 2 come after 3 seconds, 1 is refunded after 8, 5 come after 20."""
    learner = learner_of(silence=ByAge(16.0, ages=4))
    made = learner.decide(TWO)
    seen = []
    for second in range(1, 26):
        wait(learner, 1.0)
        learner.tick()
        if second == 3:
            learner.feedback(made.id, 2.0, event="sold")
        if second == 8:
            learner.feedback(made.id, 1.0, event="sold", correction=True)
        if second == 20:
            learner.feedback(made.id, 5.0, event="again")
        seen.append(parts(learner, made.id))
    first, second_age, third, last = (0.0,), (0.0, 2.0), (0.0, 2.0, -1.0), (0.0, 2.0, -1.0, 0.0)
    assert seen == [first] * 3 + [second_age] * 5 + [third] * 7 + [last] * 4 + [(0.0, 2.0, -1.0, 5.0)] * 6
    assert (learner.learned, learner.lookup(made.id).learned) == (1, 6.0)
    learner.cancel(made.id)
    assert parts(learner, made.id) == ()
    state = learner._engine.state
    assert differences(state, learner_of(silence=ByAge(16.0, ages=4))._engine.state)[-1].startswith("counts")


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        ("sum", (1.0, 3.0, -2.0, 1.0)),
        ("first", (1.0, 0.0, 0.0, 0.0)),
        ("last", (1.0, 2.0, -5.0, 3.0)),
        ("max", (1.0, 2.0, 0.0, 0.0)),
        ("min", (1.0, 0.0, -3.0, 0.0)),
        ("mean", (1.0, 1.0, -4.0 / 3.0, 1.0 / 12.0)),
    ],
)
def test_an_increment_is_what_the_reward_has_changed_by(aggregate: str, expected: tuple[float, ...]) -> None:
    """1, 3, -2 and 1 come in the four ages; whatever the aggregate, the increments sum to it."""
    learner = learner_of(silence=ByAge(16.0, ages=4), aggregate=aggregate)
    made = learner.decide(TWO)
    for seconds, reward in ((0.5, 1.0), (2.0, 3.0), (5.0, -2.0), (5.0, 1.0)):
        wait(learner, seconds)
        learner.feedback(made.id, reward, event=str(seconds) + str(reward))
    wait(learner, 10.0)
    learner.tick()
    assert parts(learner, made.id) == pytest.approx(expected)
    assert sum(parts(learner, made.id)) == pytest.approx(learner.lookup(made.id).reward)


def test_silence_is_worth_the_default_until_something_comes() -> None:
    learner = learner_of(silence=ByAge(16.0, default=-1.0, ages=4))
    silent, told = learner.decide(TWO), learner.decide(TWO)
    wait(learner, 5.0)
    learner.feedback(told.id, 2.0)
    wait(learner, 15.0)
    learner.tick()
    assert parts(learner, silent.id) == (-1.0, 0.0, 0.0, 0.0)
    assert parts(learner, told.id) == (-1.0, 0.0, 3.0, 0.0)
    assert learner.lookup(silent.id).status is DecisionState.DEFAULTED


@pytest.mark.parametrize("signals", [(), ("click", "visit")])
@pytest.mark.parametrize("ages", [1, 4])
def test_what_silence_comes_to_is_what_no_events_come_to(ages: int, signals: tuple[str, ...]) -> None:
    silence = ByAge(16.0, default=0.5, ages=ages)
    settings: Any = SimpleNamespace(signals=signals, aggregate="sum")
    row: Any = SimpleNamespace(active=1, due=100.0, session=None)
    for passed, found in enumerate(silent(silence, len(signals))):
        over = 100.0 - silence.left[passed - 1] if passed else 0.0
        assert tally(row, (), SimpleNamespace(silence=silence, signals=signals), over) == found  # type: ignore[arg-type]
        parts = increments(row, (), settings, silence, 100.0, passed)
        before: tuple[tuple[float, ...], ...] = ((0.0,), *[(0.5,)] * (ages - 1))[:passed] if ages > 1 else ()
        if signals and ages > 1:
            parts, before = with_signals(parts, row, (), settings, silence, 100.0)
        assert (found.parts, found.before) == (parts, before)
        assert found.learned == (0.5 if passed == ages else None)
        assert found.state is (DecisionState.DEFAULTED if passed == ages else DecisionState.IN_FLIGHT)


def test_the_ages_of_a_decision_begin_when_it_is_activated() -> None:
    learner = learner_of(silence=ByAge(16.0, ages=4))
    made = learner.decide(TWO, active=False)
    wait(learner, 100.0)
    learner.feedback(made.id, 1.0)  # before it was shown: of the first age
    learner.activate(made.id)
    wait(learner, 5.0)
    learner.tick()
    assert parts(learner, made.id) == (1.0, 0.0)


def test_a_recorded_decision_goes_by_when_its_rewards_happened() -> None:
    clock = Clock()
    model = model_of(clock=clock, silence={"kind": "by_age", "seconds": 16, "ages": 4})
    choice = model.record(CONTEXT, "a", made=900.0)
    model.feedback(choice.id, 1.0, event="one", observed=902.0)
    model.feedback(choice.id, 2.0, event="two")  # nobody knows when
    model.tick()
    assert parts(model, choice.id) == (0.0, 1.0, 0.0, 2.0)
    own = model.decide(CONTEXT)
    clock.now += 5.0
    model.feedback(own.id, 1.0, observed=1_000.5)  # told late: it was not known at the end of the first age
    clock.now += 20.0
    model.tick()
    assert parts(model, own.id) == (0.0, 0.0, 1.0, 0.0)


def test_another_slot_takes_all_ages_along() -> None:
    clock = Clock()
    model = model_of(clock=clock, silence={"kind": "by_age", "seconds": 16, "ages": 4})
    choice = model.decide(CONTEXT, size=2)
    clock.now += 5.0
    model.tick()
    model.feedback(choice.id, 1.0, slot=1)
    clock.now += 20.0
    model.tick()
    block = model.state.blocks[choice.ranking[1]]
    for part in model.state.posterior.ages:
        assert part.sums.gram(block)[0, 0] == 1.0
        assert part.sums.gram(model.state.blocks[choice.ranking[0]]).any() == 0
    assert model.verify() == []


def history(model: Model, clock: Clock, n: int, seed: int) -> None:
    """Let all kinds of things happen."""
    rng = np.random.default_rng(seed)
    ids: list[str] = []
    for i in range(n):
        clock.now += float(rng.exponential(2.0))
        choice = model.decide({"x": float(rng.standard_normal()), "y": 1.0}, active=bool(rng.random() < 0.9))
        ids.append(choice.id)
        for name in rng.choice(ids, 2):
            what = rng.random()
            if what < 0.4:
                model.feedback(name, float(rng.integers(-2, 5)), event=str(i % 3), correction=bool(rng.random() < 0.5))
            elif what < 0.45:
                model.cancel(name)
            elif what < 0.6:
                model.activate(name)
    clock.now += 10.0
    model.tick()


@pytest.mark.parametrize("forgetting", [None, {"decisions": 30}, {"seconds": 50}])
def test_one_age_is_mature_to_the_bit(forgetting: Any) -> None:
    found = []
    for silence in (
        {"kind": "mature", "seconds": 30, "default": 0.5},
        {"kind": "by_age", "seconds": 30, "default": 0.5},
    ):
        clock, changes = Clock(), {} if forgetting is None else {"forgetting": forgetting}
        if silence["kind"] == "by_age":
            silence["ages"] = 1
        model = model_of(clock=clock, silence=silence, **changes)
        history(model, clock, 150, seed=3)
        arrays = model.state.posterior.state()
        entries = [(entry.action, entry.probabilities, entry.status, entry.learned) for entry in model.log()]
        found.append((entries, {name: each.tobytes() for name, each in arrays.items()}, model.weights()["a"].tobytes()))
    assert found[0] == found[1]


def test_the_weights_are_those_of_a_regression_for_each_age(tmp_path: Path) -> None:
    clock, store = Clock(), SQLiteStore(tmp_path / "d.db", durable=False)
    model = model_of(store=store, clock=clock, silence={"kind": "by_age", "seconds": 60, "default": 0.25})
    history(model, clock, 200, seed=5)
    for name, weights in by_age_oracle.weights(model).items():
        np.testing.assert_allclose(model.weights()[name], weights, rtol=1e-7, atol=1e-9)
    assert model.verify() == []
    model.snapshot()
    again = Model("ads", None, store, clock=clock)
    assert differences(model.state, again.state) == []
    assert again.state.next_due == model.state.next_due
    history(again, clock, 50, seed=6)
    assert again.verify() == []
    names = [entry.id for entry in again.log()][:40]
    again.erase(names, keep_learned=False)
    for name, weights in by_age_oracle.weights(again).items():
        np.testing.assert_allclose(again.weights()[name], weights, rtol=1e-7, atol=1e-9)
    before = again.weights()["a"]
    again.purge(clock.now)
    np.testing.assert_array_equal(again.weights()["a"], before)
    assert again.verify() == []
    store.close()


def test_what_is_cancelled_leaves_no_trace() -> None:
    """The same decisions with and without others that are cancelled at some age: all sums are equal, bit for bit."""
    found = []
    for odd in (False, True):
        learner = learner_of(silence=ByAge(64.0), noise="auto")
        others = []
        for i in range(90):
            wait(learner, 1.0)
            made = learner.record(np.array([1.0, 0.1 * i]), key=str(i))
            if i % 7 == 0:
                learner.feedback(made.id, 1.0 + i)
            if odd:
                others.append(learner.record(np.array([1e9, -3.0 * i]), 1e-3 * i).id)
                if i % 10 == 9:
                    learner.cancel(others.pop(0))
        for name in others:
            learner.cancel(name)
        learner.tick()
        found.append({name: each.tobytes() for name, each in learner._engine.state.posterior.state().items()})
    assert found[0] == found[1]


def test_saved_and_loaded_it_goes_on_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    def go_on(learner: DecisionLearner, seed: int) -> list[tuple[int, float | None]]:
        rng = np.random.default_rng(seed)
        made: list[tuple[int, float | None]] = []
        for _ in range(40):
            wait(learner, 1.0)
            decision = learner.decide(rng.standard_normal((3, 2)), key=f"{seed} {len(made)}")
            if rng.random() < 0.3:
                learner.feedback(decision.id, 1.0)
            made.append((decision.action, decision.probability))
        return made

    learner = learner_of(silence=ByAge(50.0), noise="auto")
    go_on(learner, 1)
    learner.save(tmp_path / "learner.npz")
    clock = Clock(learner._engine._clock())
    again = DecisionLearner.load(tmp_path / "learner.npz", clock=clock)
    assert go_on(again, 2) == go_on(learner, 2)


def test_the_clock_set_back_opens_ages_again(tmp_path: Path) -> None:
    clock, store = Clock(), SQLiteStore(tmp_path / "d.db", durable=False)
    model = model_of(store=store, clock=clock, silence={"kind": "by_age", "seconds": 16, "ages": 4})
    choice = model.decide(CONTEXT)
    clock.now += 2.0
    model.tick()
    before = model.state.posterior.state()
    clock.now += 1e6
    model.tick()
    assert len(parts(model, choice.id)) == 4
    clock.now -= 1e6 - 0.5
    model.repair_clock()
    assert parts(model, choice.id) == (0.0,)
    assert all(before[name].tobytes() == each.tobytes() for name, each in model.state.posterior.state().items())
    assert model.verify() == []
    store.close()


def test_the_ages_cannot_change_while_a_model_lives() -> None:
    model = model_of(silence={"kind": "by_age", "seconds": 60})
    for silence in ({"kind": "by_age", "seconds": 61}, {"kind": "mature", "seconds": 60}):
        with pytest.raises(InvalidInputError, match="silence must keep its ages"):
            model.change(settings_of(silence=silence))
    assert model.change(settings_of(silence={"kind": "by_age", "seconds": 60, "default": 1.0})) == 2


def filled(ages: int, d: int, blocks: int, noise: float | None, seed: int = 0) -> tuple[AgedPosterior, list[Any]]:
    """Return a posterior that knows more of early ages than of late ones, and what it has learned."""
    rng = np.random.default_rng(seed)
    posterior = AgedPosterior(ages, d, scale=1.5, noise=noise, ridge=0.5, blocks=blocks)
    rows = []
    for age in range(ages):
        for _ in range(40 // (1 + age)):
            block, x, y = int(rng.integers(blocks)), rng.standard_normal(d), float(rng.random() < 0.3)
            posterior.ages[age].learn(block, np.append(x, 0.0), y)  # nothing had come before
            rows.append((age, block, x, y))
    return posterior, rows


def moments(rows: list[Any], ages: int, d: int, block: int, variances: list[float], ridge: float) -> tuple[Any, Any]:
    """Return mean and covariance of the weights of a block: sums over the ages, each by the textbook."""
    mean, covariance = np.zeros(d), np.zeros((d, d))
    for age in range(ages):
        x = np.array([each[2] for each in rows if each[0] == age and each[1] == block]).reshape(-1, d)
        y = np.array([each[3] for each in rows if each[0] == age and each[1] == block])
        every = np.array([each[2] for each in rows if each[0] == age])
        kappa = ridge * 2.0 ** round(np.log2(np.mean((every**2).sum(axis=1))))
        inverse, pulled = np.linalg.inv(x.T @ x + kappa * np.eye(d)), np.zeros(d)
        if len({each[1] for each in rows}) > 1:  # towards the weights of all blocks together
            values = np.array([each[3] for each in rows if each[0] == age])
            pulled = kappa * np.linalg.solve(every.T @ every + kappa * np.eye(d), every.T @ values)
        mean += inverse @ (x.T @ y + pulled)
        covariance += 1.5**2 * variances[age] * inverse
    return mean, covariance


def test_draws_are_of_the_sum_over_the_ages() -> None:
    posterior, rows = filled(4, 3, 1, None)
    mean, covariance = moments(rows, 4, 3, 0, posterior.variances(), 0.5)
    offer = np.random.default_rng(9).standard_normal((5, 3))
    found = posterior.distribution(offer)
    np.testing.assert_allclose(found.mean, offer @ mean, rtol=1e-9)
    np.testing.assert_allclose(found.root @ found.root.T, offer @ covariance @ offer.T, rtol=1e-6, atol=1e-9)
    many = np.random.default_rng(9).standard_normal((100, 3))
    wide = posterior.distribution(many)
    np.testing.assert_allclose(wide.root @ wide.root.T, many @ covariance @ many.T, rtol=1e-6, atol=1e-9)
    rng = np.random.default_rng(1)
    drawn = np.array([posterior.draw(offer, rng) for _ in range(20_000)])
    np.testing.assert_allclose(np.cov(drawn.T), offer @ covariance @ offer.T, rtol=0.1, atol=0.05)
    np.testing.assert_allclose(drawn.mean(axis=0), offer @ mean, atol=0.05)


def test_scores_of_actions_with_weights_of_their_own() -> None:
    posterior, rows = filled(4, 3, 2, None)
    x = np.random.default_rng(9).standard_normal((5, 3))
    means, spreads = posterior.scores(x, np.array([1, -1, 0]))
    variances = posterior.variances()
    for place, block in ((0, 1), (2, 0)):
        mean, covariance = moments(rows, 4, 3, block, variances, 0.5)
        np.testing.assert_allclose(means[:, place], x @ mean, rtol=1e-9)
        np.testing.assert_allclose(spreads[:, place] ** 2, np.einsum("ij,jk,ik->i", x, covariance, x), rtol=1e-9)
    posterior.grow(2)  # an action about which nothing is known, and one that has been chosen once
    again, wider = posterior.scores(x, np.array([1, 2, 0]))
    np.testing.assert_allclose(again, means)
    np.testing.assert_allclose(wider, spreads)
    posterior.ages[3].learn(2, np.append(x[0], 0.0), 100.0)
    assert posterior.noise() > 0.0  # whoever asks for what, nothing that was learned is missed
    posterior.cached()
    assert posterior.scores(x, np.array([2]))[0][0, 0] > 1.0


def test_the_noise_of_an_age() -> None:
    """By hand, without features: of n decisions one yes, and the mean square of one more row."""
    posterior = AgedPosterior(3, 1, scale=1.0, noise=None, ridge=1.0, blocks=1)
    one = np.array([1.0, 0.0])
    assert posterior.variances() == [1 / 3] * 3  # nothing has come yet
    for i in range(10):
        posterior.ages[0].learn(0, one, float(i == 0))
    for _ in range(4):
        posterior.ages[1].learn(0, one, 0.0)
    posterior.noise()
    usual = (0.1 + 0.0) / 2  # the mean square of the two ages that were reached
    settled, residual = 10 / 11, 1 - 1 / 11  # Σy² less what the prior and the rows explain
    first = ((usual + 1) / 11 + residual) / (1 + 10 - settled)
    second = (usual / 5) / (1 + 4 - 4 / 5)
    np.testing.assert_allclose(posterior.variances(), [first, second, 0.01 * usual], rtol=1e-12)
    given = AgedPosterior(4, 1, scale=1.0, noise=2.0, ridge=1.0, blocks=1)
    np.testing.assert_allclose(given.variances(), [1.0] * 4)
    assert given.noise() == pytest.approx(2.0)


class Log:
    """Windows with given ends."""

    def __init__(self, ends: list[float]) -> None:
        self.ends = sorted(ends)

    def due(self, model: str, after: float, upto: float, before: int | None, limit: int) -> list[tuple[float, str]]:
        found = [(end, str(end)) for end in self.ends if after < end <= upto]
        return [each for each in found if len(found) < limit or each[0] <= found[limit - 1][0]]

    def next_due(self, model: str, after: float) -> float | None:
        return min((end for end in self.ends if end > after), default=None)


def test_every_decision_reaches_every_age_once_whatever_rounding_does() -> None:
    """Times near 2³¹ seconds, ages that are no round numbers, and steps of all sizes, with and without a limit."""
    rng = np.random.default_rng(4)
    silence = ByAge(0.7777)
    ages = Ages.of(silence)
    made = 1.7e9 + rng.uniform(0.0, 3.0, 200)
    log = Log([float(each + silence.seconds) for each in made])
    for limit in (2**31, 24):
        over, met = 1.7e9, []
        while over < 1.7e9 + 5.0:
            upto = over + float(rng.choice([3e-7, 1e-3, 0.05, 0.4]))
            reached, names = ages.ending(log, "m", over, upto, None, limit)
            assert over < reached <= upto
            for end in log.ends:  # as `increments` has it: those whose number of ages over has changed
                passed = [sum(end <= time + left for left in ages.left) for time in (over, reached)]
                assert names.count(str(end)) == passed[1] - passed[0]
            following = ages.next_end(log, "m", reached)
            assert following is None or following > reached
            met += names
            over = reached
        assert sorted(met) == sorted(str(end) for end in log.ends for _ in ages.left)


def test_ages_end_in_groups() -> None:
    clock = Clock()
    model = model_of(clock=clock, silence={"kind": "by_age", "seconds": 1000})
    for _ in range(3000):
        clock.now += 1.0
        model.decide(CONTEXT)
    ticks = sum(row.id == "" for row in model.store.log("ads"))
    assert TICKS < ticks <= 3 * TICKS + 1
    assert model.state.over >= clock.now - 1000 / TICKS - 1.0


RATES = {"slow": 0.10, "fast": 0.05}


def test_beliefs_are_right_at_every_moment() -> None:
    """Yeses of the better arm come after 400 seconds on average, of the other after 20; nobody reports a no."""
    clock, rng = Clock(0.0), np.random.default_rng(8)
    settings = ModelSettings(actions={"slow": {}, "fast": {}}, silence=ByAge(2000.0), floor=1.0)
    model = Model("m", settings, MemoryStore(), clock=clock)
    due: list[tuple[float, str]] = []
    worst, early = 0.0, 0.0
    for i in range(6_000):
        clock.now += float(rng.exponential(1.0))
        while due and due[0][0] <= clock.now:
            model.feedback(heapq.heappop(due)[1], 1.0)
        choice = model.decide({})
        if rng.random() < RATES[choice.action]:
            delay = float(rng.exponential(400.0 if choice.action == "slow" else 20.0))
            heapq.heappush(due, (clock.now + delay, choice.id))
        if i % 100 == 99:
            for name, rate in RATES.items():
                ends = np.array([0.0, *settings.silence.ends])  # type: ignore[union-attr]
                scale = 400.0 if name == "slow" else 20.0
                shares = rate * np.diff(1.0 - np.exp(-ends / scale))
                counts = [float(part.sums.gram(model.state.blocks[name])[0, 0]) for part in model.state.posterior.ages]
                known = [k for k, count in enumerate(counts) if count > 0.0]
                truth = sum(shares[k] * counts[k] / (counts[k] + 1.0) for k in known)
                error = np.sqrt(sum(shares[k] / counts[k] for k in known) if known else 1.0)
                worst = max(worst, abs(model.weights()[name][0] - truth) / error)
                if i == 1_399:
                    early = max(early, error)
    assert worst < 4.0  # of 120 looks
    assert early < 0.02  # and it does know something, before the first window is over
