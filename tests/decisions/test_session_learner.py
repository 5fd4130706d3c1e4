"""What is learned of sessions is what counts in the log, however it came; plans follow from it alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from belated.decisions import ModelSettings
from belated.decisions import _session_learner as session_learner
from belated.decisions._plans import Plans, StepState, encode_state
from belated.decisions._session_learner import SessionLearner
from belated.errors import InvalidInputError

AGENTS = ["auto-psvi", "psvi", "lpsvi", "phe", "ucbvi", "epsilon-greedy", "greedy", "q-learning", "random"]


def settings(agent: Any = "auto-psvi", **more: Any) -> ModelSettings:
    table = {"actions": ["a", "b", "c"], "categories": ["page"], "hashed": 8, "silence": {"kind": "unknown"}}
    return ModelSettings.from_table({**table, "horizon": 3, "agent": agent, **more})


def state(model: ModelSettings, page: str, offered: str = "abc") -> StepState:
    return encode_state(model, {"page": page}, offered)


class Diary:
    """Sessions as they were played: what a learner is told of them, in one order or another."""

    def __init__(self, model: ModelSettings, sessions: int = 10, seed: int = 0) -> None:
        self.model, rng = model, np.random.default_rng(seed)
        self.sessions = [
            [
                ("uvw"[rng.integers(3)], int(rng.integers(3)), float(rng.integers(5)) / 4)
                for _ in range(rng.integers(1, 4))
            ]
            for _ in range(sessions)
        ]
        self.ends = [bool(end) for end in rng.random(sessions) < 0.5]

    def play(self, learner: SessionLearner, session: int) -> None:
        for step, (page, action, _) in enumerate(self.sessions[session]):
            learner.step(session, step, state(self.model, page), action)
        learner.end(session, terminal=self.ends[session])

    def pay(self, learner: SessionLearner, session: int) -> None:
        for step, (_, _, reward) in enumerate(self.sessions[session]):
            learner.reward(session, step, reward)

    def whole(self, leave_out: int = -1) -> SessionLearner:
        learner = SessionLearner(self.model)
        for session in range(len(self.sessions)):
            if session != leave_out:
                self.play(learner, session)
                self.pay(learner, session)
        return learner


def same(one: Plans, two: Plans) -> bool:
    return one.to_bytes() == two.to_bytes()


@pytest.mark.parametrize("agent", AGENTS)
def test_plans_follow_from_what_counts_and_from_nothing_else(agent: str) -> None:
    """Late rewards, corrections, a session that was taken back and a restart in between: the same plans, to the bit."""
    diary = Diary(settings(agent))
    learner = SessionLearner(diary.model)
    for session in range(10):
        diary.play(learner, session)
        learner.reward(session, 0, 0.75)  # will be corrected
        if session % 3 == 2:
            learner.draw(session)  # leaves nothing behind
            restarted = SessionLearner(diary.model)
            restarted.restore(learner.memory())
            learner = restarted
    for session in (7, 3, 9, 0, 1, 2, 4, 5, 6, 8):
        diary.pay(learner, session)
    learner.reward(4, 0, None)
    diary.pay(learner, 4)
    assert same(learner.draw(50), diary.whole().draw(50))
    learner.cancel(6)
    learner.reward(6, 0, 1.0)  # no longer matters
    learner.end(6, terminal=True)
    assert same(learner.draw(50), diary.whole(leave_out=6).draw(50))
    different = len(learner.steps(joint=False).state) != len(diary.whole().steps(joint=False).state)
    assert different
    assert not same(learner.draw(50), diary.whole().draw(50)) or agent in ("random", "auto-psvi")


def test_the_place_and_the_seed_make_other_plans() -> None:
    diary = Diary(settings())
    assert same(diary.whole().draw(5), diary.whole().draw(5))
    assert not same(diary.whole().draw(5), diary.whole().draw(6))
    other = Diary(settings(seed=1))
    assert diary.whole().draw(5).arrays()["weights"].tobytes() != other.whole().draw(5).arrays()["weights"].tobytes()


def test_a_step_counts_when_it_is_known_where_it_has_led_to() -> None:
    model = settings()
    learner = SessionLearner(model)
    learner.step(1, 0, state(model, "u"), 2)
    assert learner.steps(joint=False).state.size == 0
    learner.step(1, 1, state(model, "v"), 0)
    steps = learner.steps(joint=False)
    assert (steps.state.tolist(), steps.after.tolist(), steps.rewarded.tolist()) == ([0], [1], [False])
    learner.end(1, terminal=False, state=state(model, "w"))
    steps = learner.steps(joint=False)
    assert (steps.state.tolist(), steps.after.tolist(), steps.action.tolist()) == ([0, 1], [1, 2], [2, 0])
    learner.end(1, terminal=False)  # it is not known where it was cut: it has stayed
    assert learner.steps(joint=False).after.tolist() == [1, 1]
    learner.end(1, terminal=True)
    assert learner.steps(joint=False).after.tolist() == [1, -1]


def test_plans_count_only_on_actions_that_were_on_offer() -> None:
    """From the first page, b leads to a page where only c is on offer, which pays nothing; a pays 0.3 at once.

    Whoever counts on all three actions there, of which two were never tried, goes on choosing b for what they might
    pay: `learn` the same as if all had been on offer shows that.
    """
    answers = []
    for offered in ("c", "abc"):
        model = settings(horizon=2)
        learner = SessionLearner(model)
        for session in range(60):
            learner.step(session, 0, state(model, "first", "ab"), session % 2)
            learner.reward(session, 0, 0.3 if session % 2 == 0 else 0.0)
            if session % 2:
                learner.step(session, 1, state(model, "second", offered), 2)
                learner.reward(session, 1, 0.0)
            learner.end(session, terminal=True)
        answers.append(learner.draw(1).distributions(0, state(model, "first", "ab"))[:, 0].mean())
    assert answers == [1.0, 0.0]


@pytest.mark.parametrize("agent", ["psvi", "ucbvi", "greedy", "q-learning", "phe"])
def test_every_agent_plans_with_what_was_on_offer(agent: str) -> None:
    model = settings(agent, horizon=2)
    learner = SessionLearner(model)
    for session in range(200):
        learner.step(session, 0, state(model, "first", "ab"), session % 2)
        learner.reward(session, 0, 0.9 if session % 2 == 0 else 0.0)
        if session % 2:
            learner.step(session, 1, state(model, "second", "c"), 2)
            learner.reward(session, 1, 0.0)
        learner.end(session, terminal=True)
    plans = learner.draw(1)
    assert plans.distributions(0, state(model, "first", "ab"))[:, 0].mean() > 0.8


def test_a_retired_action_is_no_longer_counted_on() -> None:
    """b leads to a page where c paid, until c was retired; a pays a little."""
    answers = []
    for retired in ([], ["c"]):
        model = settings(horizon=2, retired=retired)
        learner = SessionLearner(model)
        for session in range(120):
            learner.step(session, 0, state(model, "first", "ab"), session % 2)
            learner.reward(session, 0, 0.4 if session % 2 == 0 else 0.0)
            if session % 2:
                action = session // 2 % 3
                learner.step(session, 1, state(model, "second"), action)
                learner.reward(session, 1, 1.0 if action == 2 else 0.0)
            learner.end(session, terminal=True)
        answers.append(learner.draw(1).distributions(0, state(model, "first", "ab"))[:, 0].mean())
    assert answers == [0.0, 1.0]


def test_an_action_that_is_new_is_tried() -> None:
    old = Diary(settings(), sessions=200)
    new = ModelSettings.from_table({**old.model.to_table(), "actions": ["a", "b", "c", "d"]})
    learner = SessionLearner(new)
    learner.restore(old.whole().memory())
    shares = learner.draw(1).distributions(0, state(new, "u", "abcd"))
    assert shares[:, 3].mean() > 0.9  # what was never tried looks as good as it can be


def test_of_too_many_steps_a_sample_of_sessions_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    diary = Diary(settings(), sessions=300)
    everything = diary.whole()
    monkeypatch.setattr(session_learner, "MOST_STEPS", 200)
    sample = diary.whole()
    assert 50 < len(sample) <= 200
    kept = set(sample.memory()["session"].tolist())
    for session in kept:  # whole sessions, as they were
        rows = sample.memory()["session"] == session
        assert sample.memory()["action"][rows].tolist() == [action for _, action, _ in diary.sessions[session]]
    late = diary.whole()
    for session in range(300):
        late.reward(session, 0, 0.0)
        diary.pay(late, session)
    assert same(late.draw(3), sample.draw(3))
    restarted = SessionLearner(diary.model)
    restarted.restore(sample.memory())
    assert same(restarted.draw(3), sample.draw(3))
    assert len(everything) > 500


def test_a_set_that_would_be_large_has_fewer_members(monkeypatch: pytest.MonkeyPatch) -> None:
    diary = Diary(settings())
    assert diary.whole().draw(1).members == 16
    monkeypatch.setattr(session_learner, "MOST_NUMBERS", 6 * 3 * 3 * 3)  # 3 steps, 3 actions, 3 pages
    assert diary.whole().draw(1).members == 6
    monkeypatch.setattr(session_learner, "MOST_NUMBERS", 1)
    assert diary.whole().draw(1).members == 4


def test_trajectories_of_a_log_teach_an_agent_the_same() -> None:
    """An agent that learns the sessions one by one makes the plans that are served, to the bit."""
    learner = Diary(settings()).whole()
    agent = learner.agent(joint=False)
    other: Any = learner.settings.sessions.start(agent.problem)  # type: ignore[union-attr,attr-defined]
    for feedback in learner.feedback():
        other.learn([feedback])
    one, two = (each.plan_set(np.random.default_rng(9), 4) for each in (agent, other))
    assert one.weights.tobytes() == two.weights.tobytes()


@pytest.mark.parametrize("agent", [{"agent": "rare-switching", "base": {"algorithm": "greedy"}}])
def test_an_agent_that_cannot_serve_is_refused(agent: Any) -> None:
    with pytest.raises(InvalidInputError, match="serve the wrapped algorithm"):
        settings(agent)


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        ({"features": "tiles"}, "low and high of 'tiles' features must be given"),
        ({"features": "tiles", "low": [0.0, 0.0], "high": [1.0, 1.0]}, "must have 2 numbers, got 1"),
    ],
)
def test_a_basis_that_does_not_fit_the_numbers_is_refused(basis: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        settings(features=["x"], basis=basis)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("state", lambda values: values + 100),
        ("action", lambda values: values + 3),
        ("step", lambda values: values + 3),
        ("reward", lambda values: values[:-1]),
        ("reward", lambda values: values + np.inf),
        ("before", lambda values: values + 1),
        ("states.places", lambda values: values + 8),
        ("states.starts", lambda values: values[::-1]),
        ("states.digests", lambda values: values[:-1]),
        ("offers", lambda values: values + 1),
        ("terms", lambda values: np.concatenate([values, values])),
        ("session", lambda values: values.astype(float)),
    ],
)
def test_a_memory_that_does_not_fit_is_refused(name: str, change: Any) -> None:
    diary = Diary(settings())
    learner, memory = diary.whole(), diary.whole().memory()
    memory[name] = change(memory[name])
    with pytest.raises(InvalidInputError, match="memory"):
        learner.restore(memory)
    assert same(learner.draw(1), diary.whole().draw(1))
    with pytest.raises(InvalidInputError, match="memory must hold the arrays"):
        learner.restore({})
