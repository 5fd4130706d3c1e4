"""What another policy would have earned in sessions: unbiased by going through all logs, and with honest intervals."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from session_logs import funnel_log, funnel_settings, session_entry, step_entry, value_of

from belated.decisions import DecisionState, Estimate, SessionEvaluation, always, evaluate_sessions, uniform
from belated.decisions._session_evaluation import usable_sessions
from belated.environments import ShopFunnel
from belated.errors import InvalidInputError
from belated.types import Floats

BEST = np.eye(3)[[0, 1, 1, 2, 0]]


def soft(share: float) -> Floats:
    """Return a policy that takes what is best so often, and else any action."""
    found: Floats = share * BEST + (1 - share) / 3
    return found


def policy_of(table: Floats) -> Any:
    return lambda context, actions: table[ShopFunnel.PAGES.index(context["page"])]


def by_name(found: SessionEvaluation) -> dict[str, Estimate]:
    return {each.method: each for each in found.estimates}


def test_all_logs_of_two_sessions_have_the_right_mean() -> None:
    """Two sessions of two steps, two actions; the second session is drawn by what the first has earned, as in a log
    that learns. PDIS and DR have the policy's value as their mean over all logs, to rounding."""
    model = funnel_settings(2, actions=["a", "b"])
    pays = {("home", 0): 0.2, ("home", 1): 0.5, ("list", 0): 1.0, ("list", 1): 0.0}
    first, later = np.array([0.7, 0.3]), {True: np.array([0.9, 0.1]), False: np.array([0.4, 0.6])}
    target = np.array([0.25, 0.75])
    total = {"PDIS": 0.0, "DR": 0.0}
    for actions in itertools.product((0, 1), repeat=4):
        chance, sessions = 1.0, []
        chances = first
        for session in range(2):
            steps = []
            for h, page in enumerate(("home", "list")):
                action = actions[2 * session + h]
                chance *= chances[action]
                steps.append(step_entry(session, h, {"page": page}, ("a", "b"), action, chances, pays[page, action]))
            sessions.append(session_entry(session, steps))
            chances = later[pays["home", actions[0]] + pays["list", actions[1]] > 0.6]
        found = by_name(evaluate_sessions(sessions, lambda context, names: target.tolist(), model))
        for method in total:
            total[method] += chance * found[method].value
    value = sum(target[a] * pays[page, a] for page in ("home", "list") for a in (0, 1))
    assert total == pytest.approx({"PDIS": value, "DR": value})


def test_weighted_sums_by_hand() -> None:
    """ρ: (2), (2, 1) and (0.5): at step 0 (2·1 + 2·0 + 0.5·1)/4.5, at step 1 the session that goes on has 1 of 3.5."""
    model = funnel_settings(2, actions=["a", "b"])

    def steps(session: int, *given: tuple[float, float]) -> Any:
        made = []
        for h, (probability, reward) in enumerate(given):
            chances = np.array([probability, 1 - probability])
            made.append(step_entry(session, h, {"page": "home"}, ("a", "b"), 0, chances, reward))
        return session_entry(session, made)

    sessions = [steps(0, (0.25, 1.0)), steps(1, (0.25, 0.0), (1.0, 1.0)), steps(2, (1.0, 1.0))]
    found = by_name(evaluate_sessions(sessions, lambda context, names: [0.5, 0.5], model))
    assert found["PDIS"].value == pytest.approx((2 * 1 + 1 * 1 + 0.5 * 1) / 3)
    assert found["WPDIS"].value == pytest.approx(2.5 / 4.5 + 1 * 1 / 3.5)


def test_the_log_itself_is_its_own_estimate() -> None:
    """A policy with the probabilities of the log has weights of 1: all estimates but DR are the mean return."""
    funnel, model = ShopFunnel(4), funnel_settings(4)
    members = np.random.default_rng(0).integers(3, size=(1, 4, 5))
    log = funnel_log(funnel, 200, members, 1.0, np.random.default_rng(1))  # all actions at random
    found = evaluate_sessions(log, uniform, model)
    returns = np.array([sum(step.reward or 0.0 for step in each.steps) for each in log])
    for each in (*found.estimates[:2], found.logged):
        assert each.value == pytest.approx(returns.mean())
        assert each.error == pytest.approx(returns.std(ddof=1) / math.sqrt(200))
    assert found.effective == pytest.approx(200)
    assert found.largest == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("horizon", "logs"),
    [(4, 20), pytest.param(4, 400, marks=pytest.mark.slow), pytest.param(8, 400, marks=pytest.mark.slow)],
)
def test_intervals_cover(horizon: int, logs: int) -> None:
    """Of logs of 1 000 sessions with a floor of 0.1; `make bench ARGS="--only session-coverage"` serves its own."""
    funnel, model, table = ShopFunnel(horizon), funnel_settings(horizon, floor=0.1), soft(0.6)
    truth = value_of(funnel, table)
    values: dict[str, list[float]] = {"PDIS": [], "WPDIS": [], "DR": []}
    covered: dict[str, list[bool]] = {"PDIS": [], "WPDIS": [], "DR": []}
    for number in range(logs):
        rng = np.random.default_rng([horizon, number])
        shape = (16, horizon, funnel.states)
        members = np.where(rng.random(shape) < 0.5, BEST.argmax(axis=1), rng.integers(3, size=shape))
        found = evaluate_sessions(funnel_log(funnel, 1000, members, 0.1, rng), policy_of(table), model)
        for each in found.estimates:
            values[each.method].append(each.value)
            if not each.reason:
                covered[each.method].append(each.low <= truth <= each.high)
    for method, found_values in values.items():
        inside, given = np.mean(covered[method]), len(covered[method])
        print(f"H = {horizon}, {method}: {100 * inside:.1f} % of {given} intervals from {logs} logs cover")
        assert given > 0.5 * logs
        assert abs(inside - 0.95) < 3.0 * math.sqrt(0.95 * 0.05 / given)
        assert abs(np.mean(found_values) - truth) < 4 * np.std(found_values) / math.sqrt(logs), method


def test_a_good_fit_makes_a_small_error() -> None:
    funnel, model = ShopFunnel(6), funnel_settings(6)
    members = np.random.default_rng(0).integers(3, size=(16, 6, 5))
    log = funnel_log(funnel, 3000, members, 1.0, np.random.default_rng(1))
    found = by_name(evaluate_sessions(log, policy_of(soft(0.5)), model))
    assert found["DR"].error < 0.9 * found["PDIS"].error


def test_where_too_few_sessions_carry_an_estimate_there_is_no_interval() -> None:
    funnel, model = ShopFunnel(6), funnel_settings(6)
    members = np.zeros((1, 6, 5), np.int64)
    log = funnel_log(funnel, 300, members, 0.05, np.random.default_rng(1))
    found = evaluate_sessions(log, always("offer"), model)
    assert found.carrying < 100
    for each in found.estimates:
        assert math.isnan(each.low)
        assert "sessions carry the estimate, and an interval needs 100" in each.reason
    assert not found.logged.reason


def test_in_a_log_that_learned_the_first_third_says_whether_there_is_an_interval() -> None:
    """Sessions of two sets of plans: the first likes the policy or does not, and the second does the opposite."""
    funnel, model, liked = ShopFunnel(4), funnel_settings(4, floor=0.1), BEST.argmax(axis=1)
    sets = {
        True: np.broadcast_to(liked, (1, 4, 5)).astype(np.int64),
        False: np.broadcast_to((liked + 1) % 3, (1, 4, 5)).astype(np.int64),
    }
    for first in (True, False):
        rng = np.random.default_rng(int(first))
        log = funnel_log(funnel, 400, sets[first], 0.1, rng) + [
            each._replace(plan=1) for each in funnel_log(funnel, 800, sets[not first], 0.1, rng)
        ]
        found = evaluate_sessions(log, policy_of(soft(0.9)), model)
        assert found.learned
        for each in found.estimates:
            assert bool(each.reason) != first
            assert first or "this log has learned" in each.reason
        still = evaluate_sessions([each._replace(plan=0) for each in log], policy_of(soft(0.9)), model)
        assert not still.learned


def test_without_the_probabilities_of_all_actions_there_is_no_interval() -> None:
    model = funnel_settings(1)
    chances = np.array([0.5, 0.25, 0.25])
    steps = [
        step_entry(i, 0, {"page": "home"}, ShopFunnel.ACTIONS, 0, chances, float(i % 2))._replace(
            suggestion="offer", probabilities=None
        )
        for i in range(300)
    ]
    found = evaluate_sessions([session_entry(i, [each]) for i, each in enumerate(steps)], always("article"), model)
    assert math.isnan(found.carrying)
    assert "some steps were chosen by the caller" in found.estimates[0].reason


def test_sessions_that_wait_are_left_out_with_all_that_began_later() -> None:
    chances = np.array([0.5, 0.5])

    def session(number: int, *, told: bool = True, **more: Any) -> Any:
        step = step_entry(number, 0, {"page": "home"}, ("a", "b"), 0, chances, 1.0)
        if not told:
            step = step._replace(learned=None, status=DecisionState.IN_FLIGHT)
        return session_entry(number, [step], **more)

    log = usable_sessions(
        [
            session(0),
            session(1, told=False),  # its reward is lost: nothing says that it will come
            session(2, status="cancelled"),
            session(3),
            session(4, status="open"),
            session(5),
            session(6, told=False, due=99.0),
        ]
    )
    assert [each.session for each in log.sessions] == ["0", "3"]
    assert (log.young, log.lost) == (3, 1)
    waiting = usable_sessions([session(0), session(1, told=False, due=50.0), session(2)])
    assert [each.session for each in waiting.sessions] == ["0"]


def test_a_log_without_sessions_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"at least 2 that have ended and have their rewards, got 0"):
        evaluate_sessions([], uniform, funnel_settings(2))
