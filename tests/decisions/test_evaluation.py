"""The logged probabilities are true, and so are the estimates that are made from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from belated.decisions import DecisionState, Entry, Event, MemoryStore, Model, ModelSettings, Status, Unknown
from belated.decisions._evaluation import Evaluation, Law, always, assess, evaluate, target_of, uniform, usable
from belated.decisions._intervals import carried
from belated.decisions._replay import replay
from belated.errors import InvalidInputError
from benchmarks import coverage

RATES = {"a": (0.4, 0.3), "b": (0.6, -0.2), "c": (0.4, 0.0)}  # chance of a yes: intercept and slope in x


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def settings_of(**changes: Any) -> ModelSettings:
    table = {"actions": list(RATES), "features": ["x"], "silence": {"kind": "unknown"}, "floor": 0.15}
    return ModelSettings.from_table({**table, **changes})


def run(n: int, seed: int, delay: float = 20.0, **changes: Any) -> Model:
    """A learning model with late rewards."""
    clock, rng = Clock(), np.random.default_rng(seed)
    model = Model("m", settings_of(seed=seed, **changes), MemoryStore(), clock=clock)
    due: list[tuple[float, str, float]] = []
    for _ in range(n):
        clock.now += 1.0
        ready = [each for each in due if each[0] <= clock.now]
        due = [each for each in due if each[0] > clock.now]
        for _, name, reward in ready:
            model.feedback(name, reward)
        x = float(rng.choice([-1.0, 1.0]))
        choice = model.decide({"x": x})
        rate, slope = RATES[choice.action]
        due.append((clock.now + rng.exponential(delay), choice.id, float(rng.random() < rate + slope * x)))
    for _, name, reward in due:
        model.feedback(name, reward)
    return model


def of(evaluation: Evaluation, method: str) -> Any:
    return next(each for each in evaluation.estimates if each.method == method)


def entry(number: int, action: str, probabilities: dict[str, float], reward: float) -> Entry:
    """A decision without a context that was drawn from these probabilities."""
    return Entry(
        id=str(number), number=number, made=float(number), action=action, probability=probabilities[action],
        status=DecisionState.REWARDED, reward=reward, learned=reward, slot=0, due=None, ranking=(action,), context={},
        actions=tuple(probabilities), probabilities=tuple(probabilities.values()), suggestion=None, history=(),
    )  # fmt: skip


def test_by_hand() -> None:
    clock = Clock()
    model = Model("m", settings_of(features=[]), MemoryStore(), clock=clock)
    for action, probability, reward in (("a", 0.5, 1.0), ("b", 0.25, 2.0), ("a", 0.5, 0.0), ("c", 0.25, 3.0)):
        model.record({}, action, reward, probability=probability)
    model.record({}, "a", 9.0)  # nobody knows how likely that was
    model.decide({})  # still in flight
    result = evaluate(model.log(), always("a"), model.settings)
    assert (result.decisions, result.largest, result.effective, result.young) == (4, 2.0, 2.0, 1)
    assert of(result, "IPS").value == 0.5
    assert of(result, "SNIPS").value == 0.5
    # q̂(a) is 0 at first, and 1/2 · 1 once the first decision is known: with a ridge of 1, half of its reward
    assert of(result, "DR").value == pytest.approx(np.mean([2 * 1.0, 0.5, 0.5 + 2 * (0 - 0.5), 1 / 3]))
    assert result.logged.value == 1.5
    for estimate in result.estimates:
        assert "among more than two actions, and only the propensity" in estimate.reason
        assert math.isnan(estimate.error) and math.isnan(estimate.low) and math.isnan(estimate.high)
    assert math.isnan(result.carrying) and math.isnan(result.possible)


def test_of_two_actions_the_other_has_the_rest() -> None:
    settings = settings_of(features=[], actions=["a", "b"])
    drawn = [entry(i, "aaab"[i % 4], {"a": 0.75, "b": 0.25}, float(i % 3)) for i in range(1200)]
    chosen = [
        each._replace(suggestion="a", probabilities=(0.5, 0.5)) for each in drawn
    ]  # the model's, not the caller's
    for policy in (always("a"), always("b"), uniform):
        assert evaluate(chosen, policy, settings) == evaluate(drawn, policy, settings)
    assert not of(evaluate(chosen, always("b"), settings), "IPS").reason


def test_errors_and_ends_by_hand() -> None:
    rng, settings = np.random.default_rng(0), settings_of(features=[], actions=["a", "b"])
    law = {"a": 0.5, "b": 0.5}
    entries = [entry(i, "ab"[i % 2], law, float(rng.normal(1.0, 1.0))) for i in range(400)]
    weights, rewards = np.tile([2.0, 0.0], 200), np.array([each.learned for each in entries], float)
    result = evaluate(entries, always("a"), settings, level=0.9)
    assert (result.carrying, result.effective) == pytest.approx((200.0, 200.0))
    assert (result.possible, result.largest) == (2.0, 2.0)
    assert of(result, "IPS").error == pytest.approx(np.std(weights * rewards, ddof=1) / math.sqrt(400))
    normed = of(result, "SNIPS").value
    assert normed == pytest.approx(rewards[::2].mean())
    assert of(result, "SNIPS").error == pytest.approx(np.std(weights * (rewards - normed), ddof=1) / math.sqrt(400))
    for each in result.estimates:
        quantile = 1.6525467465  # Student's, 199 degrees of freedom, 95 %
        assert (each.high - each.value, each.value - each.low) == pytest.approx((quantile * each.error,) * 2)
    assert result.logged.value == pytest.approx(rewards.mean())


def test_all_logs_of_a_small_problem_agree_on_average() -> None:
    """Every log of two decisions, where the second is drawn by what the first has earned."""
    chances, target = {"a": 0.3, "b": 0.8}, {"a": 0.6, "b": 0.4}
    truth = sum(target[name] * chances[name] for name in target)
    settings = settings_of(features=[], actions=["a", "b"])
    average, total = dict.fromkeys(("IPS", "DR"), 0.0), 0.0

    def outcomes(law: dict[str, float]) -> list[tuple[str, float, float]]:
        return [
            (name, reward, law[name] * (chances[name] if reward else 1 - chances[name]))
            for name in law
            for reward in (0.0, 1.0)
        ]

    first = {"a": 0.7, "b": 0.3}
    for action, reward, chance in outcomes(first):
        second = {"a": 0.95, "b": 0.05} if (action == "a") == bool(reward) else {"a": 0.1, "b": 0.9}
        for other, later, next_chance in outcomes(second):
            entries = [entry(0, action, first, reward), entry(1, other, second, later)]
            result = evaluate(entries, lambda context, actions: [target[each] for each in actions], settings)
            total += chance * next_chance
            for method in average:
                average[method] += chance * next_chance * of(result, method).value
    assert total == pytest.approx(1.0)
    assert average == pytest.approx(dict.fromkeys(average, truth), abs=1e-12)


def test_what_carries_an_estimate_is_known_without_it() -> None:
    law = {"a": 0.9, "b": 0.1}
    for action in "ab":  # whatever was seen
        entries = [entry(i, action, law, float(i % 2)) for i in range(1000)]
        result = evaluate(entries, always("b"), settings_of(features=[], actions=["a", "b"]))
        assert (result.carrying, result.possible, result.effective) == pytest.approx((100.0, 10.0, 100.0))
    log = usable(entries)
    known = Law.of(log, target_of(uniform, log.entries))
    assert known is not None
    assert known.masses.sum() == pytest.approx(1000.0)
    assert carried(known.masses, known.weights()) == pytest.approx(
        (0.25 / 0.9 + 2.5) ** 3 / (0.125 / 0.81 + 12.5) ** 2 * 1e3
    )
    assert carried(np.array([1.0]), np.array([math.inf])) == 0.0


def test_a_log_that_could_not_take_an_action_carries_nothing() -> None:
    entries = [entry(i, "a", {"a": 1.0, "b": 0.0}, float(i % 2)) for i in range(200)]
    result = evaluate(entries, uniform, settings_of(features=[], actions=["a", "b"], floor=0.0))
    assert (result.carrying, result.possible) == (0.0, math.inf)
    assert "some of which it could never take" in of(result, "IPS").reason
    assert not result.logged.reason


def test_what_cannot_be_used_is_said() -> None:
    model = run(20, 0)
    with pytest.raises(InvalidInputError, match="at least 2 decisions"):
        evaluate([], uniform, model.settings)
    for bad in (lambda context, actions: [0.5, 0.6, 0.0], lambda context, actions: [1.0]):
        with pytest.raises(InvalidInputError, match="what the policy returns must be 3 probabilities"):
            evaluate(model.log(), bad, model.settings)
    with pytest.raises(InvalidInputError, match="level must be"):
        evaluate(model.log(), uniform, model.settings, level=1.0)
    nothing = evaluate(model.log(), lambda context, actions: [0.0, 0.0, 1.0], settings_of())
    assert nothing.decisions == 20


def test_actions_follow_the_logged_probabilities() -> None:
    model = run(1500, 3)
    expected, counts, variance = np.zeros(3), np.zeros(3), np.zeros(3)
    for entry in model.log():
        assert entry.probabilities is not None
        p = np.array(entry.probabilities)
        assert p.min() >= 0.15 / 3 - 1e-12 and p.sum() == pytest.approx(1.0)
        assert entry.probability == p[entry.actions.index(entry.action)]
        expected += p
        variance += p * (1 - p)
        counts[entry.actions.index(entry.action)] += 1
    assert variance.min() > 20
    assert float(((counts - expected) ** 2 / variance).max()) < 3.5**2
    # among the decisions whose action had a small probability, that many took it
    for low, high in ((0.0, 0.1), (0.1, 0.4), (0.4, 0.9)):
        inside = [
            (p, action == entry.action)
            for entry in model.log()
            for p, action in zip(entry.probabilities or (), entry.actions, strict=True)
            if low <= p < high
        ]
        chances, taken = np.array([p for p, _ in inside]), sum(hit for _, hit in inside)
        assert len(inside) > 50
        assert abs(taken - chances.sum()) < 3.5 * math.sqrt((chances * (1 - chances)).sum())


def truth(policy: Any) -> float:
    rows = [(policy({"x": x}, list(RATES)), x) for x in (-1.0, 1.0)]
    values = [p * (RATES[a][0] + RATES[a][1] * x) for row, x in rows for p, a in zip(row, RATES, strict=True)]
    return float(sum(values)) / 2


def mostly_right(context: Any, actions: Any) -> list[float]:
    return [0.8, 0.1, 0.1] if context["x"] > 0 else [0.0, 1.0, 0.0]


def test_estimates_are_near_the_truth() -> None:
    model = run(2500, 1, floor=0.4)
    for policy in (uniform, always("a"), mostly_right):
        result = evaluate(model.log(), policy, model.settings)
        for estimate in result.estimates:
            assert not estimate.reason
            assert abs(estimate.value - truth(policy)) < 3 * estimate.error
            assert estimate.error < 0.1
    assert of(result, "DR").error < of(result, "IPS").error  # of the last: a good guess of the rewards helps


@pytest.mark.parametrize(
    ("floor", "count", "logs", "least"),
    [
        (0.1, 2000, 12, 9),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in [(0.05, 4000, 12, 9), (0.1, 2000, 30, 25)]),
    ],
)
def test_intervals_cover_the_truth(floor: float, count: int, logs: int, least: int) -> None:
    given, missed = ({"IPS": 0, "SNIPS": 0, "DR": 0} for _ in range(2))
    earned = coverage.earned(uniform)
    for seed in range(logs):
        model = coverage.play(count, floor, True, seed)
        result = evaluate(model.log(), uniform, model.settings)
        for estimate in result.estimates:
            given[estimate.method] += not estimate.reason
            missed[estimate.method] += not estimate.reason and not estimate.low <= earned <= estimate.high
    assert min(given.values()) >= logs / 2
    assert max(missed.values()) <= logs - least  # more in 3 of 1000 times at 95 %


def test_at_the_default_floor_a_reason_is_given_and_its_advice_is_good() -> None:
    model = coverage.play(4000, ModelSettings(silence=Unknown()).floor, True, 0)
    for policy, advised in ((uniform, 0.05), (always("c"), 0.2)):
        result = evaluate(model.log(), policy, model.settings)
        assert result.learned and result.carrying < 10 and result.possible > 400
        for estimate in result.estimates:
            assert math.isnan(estimate.low) and math.isnan(estimate.high) and math.isnan(estimate.error)
            assert estimate.reason.startswith(
                "this log has learned, so its first third decides whether the rest gives an interval"
            )
            assert estimate.reason.endswith(
                f"an interval needs 100; as many decisions with a floor of {advised:g} instead of 0.002 would suffice"
            )
        wider = coverage.play(4000, advised, True, 1)
        assert not any(each.reason for each in evaluate(wider.log(), policy, wider.settings).estimates)


def learned_log(chances: list[float], seed: int = 0) -> list[Entry]:
    """A log whose probabilities of b were these, with rewards that came at once."""
    rng, found = np.random.default_rng(seed), []
    for i, p in enumerate(chances):
        action = "b" if rng.random() < p else "a"
        made = entry(i, action, {"a": 1.0 - p, "b": p}, float(rng.random() < 0.5))
        found.append(made._replace(history=(Event("reward", made.made, made.reward),)))
    return found


def test_the_first_third_says_whether_there_is_an_interval_and_the_rest_says_where() -> None:
    """Whatever the rest comes to like or leave: it is given for what was known before."""
    settings = settings_of(features=[], actions=["a", "b"], floor=0.0)
    left = evaluate(learned_log([0.5] * 600 + [0.02] * 1200), always("b"), settings)
    liked = evaluate(learned_log([0.12] * 600 + [0.5] * 1200), always("b"), settings)
    assert not any(each.reason for each in left.estimates)
    assert all("its first third decides whether" in each.reason for each in liked.estimates)
    assert liked.carrying > 100  # a log that does not learn would have one
    still = [each._replace(history=()) for each in learned_log([0.12] * 600 + [0.5] * 1200)]
    assert not any(each.reason for each in evaluate(still, always("b"), settings).estimates)


def test_the_rest_counts_by_what_was_known_before_by_hand() -> None:
    """IPS is Σ h w r / Σ h over the last two thirds, h the mean of 1/s of the hundred before, s² = 1/p here."""
    chances = [0.5] * 700 + [0.1] * 1100
    entries = learned_log(chances)
    result = evaluate(entries, always("b"), settings_of(features=[], actions=["a", "b"], floor=0.0))
    total = paid = 0.0
    for i in range(600, 1800):
        h = sum(math.sqrt(p) for p in chances[i - 100 : i]) / 100
        total += h
        paid += h * (entries[i].action == "b") / chances[i] * (entries[i].reward or 0.0)
    assert of(result, "IPS").value == pytest.approx(paid / total)


def test_few_decisions_need_more_than_a_floor() -> None:
    model = run(30, 0)
    reason = of(evaluate(model.log(), always("a"), model.settings), "DR").reason
    assert reason.endswith("with so few decisions no floor would suffice (the floor is 0.15)")
    assert evaluate(model.log(), always("a"), model.settings).logged.reason == (
        "only 30 decisions are usable; an interval needs 100"
    )


def test_few_rewards_carry_no_interval() -> None:
    law = {"a": 0.5, "b": 0.5}
    entries = [entry(i, "ab"[i % 2], law, float(i % 100 == 0)) for i in range(1000)]
    result = evaluate(entries, always("a"), settings_of(features=[], actions=["a", "b"]))
    assert result.carrying == pytest.approx(500.0)
    for estimate in result.estimates:
        assert "nearly all rewards are equal" in estimate.reason and "an interval needs 20" in estimate.reason


def test_the_young_are_left_out_whatever_they_earned() -> None:
    """Ten decisions, of which those with a yes are told at once."""
    for silence, used in (({"kind": "default_after", "seconds": 5.0}, 5), ({"kind": "unknown", "seconds": 5.0}, 5)):
        clock = Clock()
        model = Model("m", settings_of(features=[], silence=silence), MemoryStore(), clock=clock)
        for i in range(10):
            clock.now = 1_000.0 + i
            made = model.decide({})
            if i % 2 == 0:
                model.feedback(made.id, 1.0)
        model.tick()
        log = usable(model.log())
        assert [each.number for each in log.entries] == list(range(1, used + 1))
        assert log.young == 10 - used
        assert log.seen.sum() == (5 if silence["kind"] == "default_after" else 3)


def test_without_a_window_those_as_young_as_the_delays_are_left_out() -> None:
    clock = Clock()
    model = Model("m", settings_of(features=[]), MemoryStore(), clock=clock)
    made = []
    for i in range(100):
        clock.now = 1_000.0 + i
        made.append(model.decide({}).id)
        if i % 2:
            model.feedback(made[i], 1.0)  # told at once
        if i >= 10 and i % 2 == 0 and i != 50:
            model.feedback(made[i - 10], 0.0)  # ten seconds later; those of 40, 90, 92, … never came
    log = usable(model.log())
    assert log.young == 11  # 89 and all that came later
    assert [each.number for each, told in zip(log.entries, log.seen, strict=True) if not told] == [41]


def test_rewards_that_are_lost_by_action_do_not_bias() -> None:
    law = {"a": 0.5, "b": 0.5}
    entries = [entry(i, "ab"[i % 2], law, float(i % 2)) for i in range(400)]
    lost = [
        each._replace(learned=None, reward=None, status=DecisionState.EXPIRED) if i % 8 == 1 else each
        for i, each in enumerate(entries)
    ]  # every fourth of b
    result = evaluate(lost, uniform, settings_of(features=[], actions=["a", "b"]))
    assert (result.decisions, result.lost) == (400, 50)
    assert result.largest == pytest.approx(4 / 3)
    assert [of(result, method).value for method in ("IPS", "SNIPS")] == pytest.approx([0.5, 0.5])
    assert of(result, "DR").value == pytest.approx(0.5, abs=0.01)
    assert result.logged.value == pytest.approx(0.5)


@pytest.mark.slow
@pytest.mark.parametrize("floor", coverage.FLOORS)
def test_intervals_cover_whatever_the_policy(floor: float) -> None:
    # the three estimates of a log are correlated: it takes so many logs for a standard error of 1.5 points
    judged = [
        each for normal in (False, True) for seed in range(100) for each in coverage.judge(8000, floor, normal, seed)
    ]
    given = [each for each in judged if each.given]
    share = sum(each.inside for each in given) / len(given)
    print(f"\nfloor {floor}: {len(given)} intervals of {len(judged)}, {share:.1%} cover")
    assert 0.92 <= share <= 0.98


def test_replay_of_the_same_settings_rebuilds_the_model() -> None:
    model = run(400, 5, forgetting={"decisions": 200})
    pairs = list(replay(model, model.settings))
    entries = list(model.log())
    assert [entry for entry, _ in pairs] == entries
    same = 0
    for entry, probabilities in pairs:
        assert probabilities.sum() == pytest.approx(1.0)
        same += entry.probabilities == tuple(probabilities)
    assert same == len(entries)  # it would have drawn from the very same numbers


def test_replay_through_other_settings_tells_what_they_would_earn() -> None:
    model = run(1200, 2, floor=0.6)
    other = settings_of(floor=0.01, features=["x"], ridge=2.0)
    pairs = list(replay(model, other))
    log = usable(entry for entry, _ in pairs)
    target = [p for entry, p in pairs if entry.learned is not None and entry.probability is not None]
    result = assess(log, target, other)
    best = (0.7 + 0.8) / 2  # a or b, as x says
    assert of(result, "DR").value > result.logged.value + 3 * of(result, "DR").error
    assert abs(of(result, "DR").value - best) < 0.1
    assert len(list(replay(model, settings_of(scale=0.0, floor=0.02)))) == 1200


def test_replay_repeats_everything_that_happened() -> None:
    clock = Clock()
    silence = {"kind": "mature", "seconds": 10.0}
    model = Model("m", settings_of(silence=silence, aggregate="sum"), MemoryStore(), clock=clock)
    ids = []
    for i in range(60):
        clock.now += 1.0
        ids.append(model.decide({"x": float(i % 2)}, active=i % 5 > 0, size=1 + i % 2).id)
        model.feedback(ids[i // 2], 1.0, event=f"{i % 3}", slot=None if i // 2 % 2 == 0 else 1)
        if i % 7 == 0:
            model.cancel(ids[i // 3])
        if i % 4 == 0:
            model.activate(ids[i // 4])
    clock.now += 100.0
    model.tick()
    pairs = list(replay(model, model.settings))
    assert [entry for entry, _ in pairs] == list(model.log())
    assert {entry.status for entry, _ in pairs} >= {
        DecisionState.CANCELLED,
        DecisionState.REWARDED,
        DecisionState.DEFAULTED,
        DecisionState.INACTIVE,
    }
    assert model.counts[Status.ACCEPTED] > 40


def test_targets_are_probabilities_for_each_decision() -> None:
    model = run(10, 0)
    entries = list(model.log())
    assert [row.tolist() for row in target_of(always("z"), entries)] == [[1 / 3] * 3] * 10
    assert [row.tolist() for row in target_of(always("b"), entries)] == [[0.0, 1.0, 0.0]] * 10


def aged(n: int, seed: int, window: float, floor: float = 0.3) -> Model:
    """A model that learns by age; yeses come within the window, those of a later than those of b and c."""
    clock, rng = Clock(), np.random.default_rng(seed)
    silence = {"kind": "by_age", "seconds": window, "ages": 4}
    model = Model("m", settings_of(seed=seed, silence=silence, floor=floor), MemoryStore(), clock=clock)
    due: list[tuple[float, str]] = []
    for _ in range(n):
        clock.now += 1.0
        for each in [each for each in due if each[0] <= clock.now]:
            due.remove(each)
            model.feedback(each[1], 1.0)
        x = float(rng.choice([-1.0, 1.0]))
        choice = model.decide({"x": x})
        rate, slope = RATES[choice.action]
        if rng.random() < rate + slope * x:
            due.append((clock.now + window * rng.random() ** (0.5 if choice.action == "a" else 3.0), choice.id))
    return model


def test_decisions_in_flight_count_with_the_ages_that_they_have_reached() -> None:
    """Against sums by hand over decisions and ages."""
    model = aged(400, seed=1, window=150.0)
    found = evaluate(model.log(), always("a"), model.settings)
    entries = [entry for entry in model.log() if entry.parts]
    assert 100 < found.in_flight == sum(len(entry.parts) < 4 for entry in entries) < 200
    assert (found.decisions, found.decisions + found.young, found.lost) == (len(entries), 400, 0)
    ips = snips = mean = variance = 0.0
    for age in range(4):
        reached = [entry for entry in entries if len(entry.parts) > age]
        weights = [(entry.action == "a") / (entry.probability or math.nan) for entry in reached]
        values = [entry.parts[age] for entry in reached]
        ips += np.dot(weights, values) / len(reached)
        snips += np.dot(weights, values) / sum(weights)
        mean += float(np.mean(values))
    assert of(found, "IPS").value == pytest.approx(ips)
    assert of(found, "SNIPS").value == pytest.approx(snips)
    assert found.logged.value == pytest.approx(mean)
    for entry in entries:  # what each decision adds to the mean of the log, beyond what it was bound to add
        news = 0.0
        for age in range(len(entry.parts)):
            reached = [each for each in entries if len(each.parts) > age]
            news += (entry.parts[age] - float(np.mean([each.parts[age] for each in reached]))) / len(reached)
        variance += float(news) ** 2
    assert found.logged.error == pytest.approx(math.sqrt(variance), rel=0.01)


def test_by_age_all_windows_over_it_is_what_it_was() -> None:
    """The same log, learned by age and when mature: if nothing is in flight, all that is not fitted is the same."""
    model = aged(600, seed=2, window=20.0, floor=0.8)
    clock: Any = model._clock
    clock.now += 100.0
    model.tick()
    entries = list(model.log())
    assert all(len(entry.parts) == 4 for entry in entries)
    found = evaluate(entries, uniform, model.settings)
    plain = evaluate([each._replace(parts=(sum(each.parts),)) for each in entries], uniform, model.settings)
    assert (found.in_flight, found.decisions, found.carrying) == (0, 600, plain.carrying)
    for one, two in zip((*found.estimates[:2], found.logged), (*plain.estimates[:2], plain.logged), strict=True):
        assert one[1:5] == pytest.approx(two[1:5])


def test_without_a_window_that_is_over_there_is_no_estimate() -> None:
    model = aged(50, seed=3, window=100.0)
    with pytest.raises(InvalidInputError, match="at least 2 decisions"):
        evaluate(model.log(), uniform, model.settings)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_intervals_cover_with_decisions_in_flight(share: float) -> None:
    """Decisions at random, of which a share is in flight: yeses of c come late, those of a and b at once."""
    rng, n, ages, settings = np.random.default_rng(int(10 * share)), 800, 4, settings_of()
    inside = given = 0
    for _ in range(150):
        entries = []
        for i in range(n):
            x, action = float(rng.choice([-1.0, 1.0])), "abc"[int(rng.integers(3))]
            rate, slope = RATES[action]
            parts = np.zeros(ages)
            if rng.random() < rate + slope * x:
                parts[int(ages * rng.random() ** (0.5 if action == "c" else 8.0))] = 1.0
            reached = min(ages, int(ages * ((n - i) / (share * n))))  # the last ones have reached no age, or few
            known = tuple(parts[:reached].tolist())
            made = entry(i, action, dict.fromkeys(RATES, 1 / 3), float(parts.sum()))
            learned = float(parts.sum()) if reached == ages else None
            entries.append(made._replace(context={"x": x}, parts=known, learned=learned))
        found = evaluate(entries, always("c"), settings)
        assert found.in_flight + found.young == pytest.approx(share * n, abs=2)
        for each in found.estimates:
            given += not each.reason
            inside += each.low <= 0.4 <= each.high
    print(f"\n{share:.0%} in flight: {100 * inside / given:.1f} % of {given} intervals cover")
    assert given == 450
    assert 0.91 <= inside / given <= 0.985
