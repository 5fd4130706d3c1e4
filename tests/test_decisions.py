"""The learner is a ridge regression refitted on the log, whatever the order, repeats, corrections and defaults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belated.decisions import ConflictError, Decision, DecisionLearner, DefaultAfter, Unknown
from belated.decisions.learner import KIND, VERSION
from belated.errors import DamagedFileError, InvalidInputError, UnknownNameError
from belated.storage import load_arrays, save_arrays

Floats = npt.NDArray[np.float64]
TWO = np.eye(2)


def learner_of(dimension: int = 2, **changes: Any) -> DecisionLearner:
    return DecisionLearner(dimension, **{"silence": Unknown(), **changes})


def refit(learner: DecisionLearner, log: list[tuple[Floats, float]]) -> tuple[Floats, Floats]:
    """Mean and precision from scratch, by the textbook formulas."""
    d = learner.dimension
    x = np.array([features for features, _ in log]).reshape(-1, d)
    y = np.array([reward for _, reward in log])
    precision: Floats = x.T @ x / learner.noise**2 + learner.ridge * np.eye(d)
    return np.linalg.solve(precision, x.T @ y / learner.noise**2), precision


def assert_fits(learner: DecisionLearner, log: list[tuple[Floats, float]]) -> None:
    mean, precision = refit(learner, log)
    np.testing.assert_allclose(learner.mean(), mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(learner._factor.T @ learner._factor, precision, rtol=1e-8, atol=1e-9)


def state(learner: DecisionLearner, folder: Path) -> tuple[str, list[bytes]]:
    learner.save(folder / "state.npz")
    header, arrays = load_arrays(folder / "state.npz", KIND, VERSION)
    return json.dumps(header), [arrays[name].tobytes() for name in sorted(arrays)]


def decide_many(learner: DecisionLearner, n: int, seed: int = 0) -> list[Decision]:
    rng = np.random.default_rng(seed)
    return [learner.decide(rng.standard_normal((3, learner.dimension))) for _ in range(n)]


def test_one_dimension_by_hand() -> None:
    learner = learner_of(1, ridge=2.0, noise=0.5)
    first, second = learner.decide([[3.0]]), learner.decide([[1.0]])
    learner.feedback(second.id, -2.0)
    learner.feedback(first.id, 1.0)
    assert learner.mean() == pytest.approx([4 / 42], rel=1e-14)  # Ω = 2 + 10/0.25, b = (3 − 2)/0.25
    learner.feedback(second.id, 1.0, correction=True)
    assert learner.mean() == pytest.approx([16 / 42], rel=1e-14)


def test_a_decision_is_a_value() -> None:
    learner = learner_of()
    contexts = np.array([[1.0, 2.0], [3.0, 4.0]])
    first, second = learner.decide(contexts), learner.decide(contexts, key="order 7")
    assert (first.id, first.number, first.probability) == ("d-000001", 1, None)
    assert (second.id, second.number) == ("order 7", 2)
    np.testing.assert_array_equal(first.features, contexts[first.action])
    assert learner.decide(contexts).id == "d-000003"
    with pytest.raises(ValueError, match="read-only"):
        first.features[0] = 9.0
    with pytest.raises(AttributeError):
        first.action = 1  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(3))
def test_any_order_with_repeats_and_corrections_is_the_refit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    learner = learner_of(4, noise=0.7, ridge=0.3, seed=seed)
    decisions = decide_many(learner, 60, seed)
    rewards = rng.standard_normal(60)
    for i in rng.permutation(60):
        wrong = i % 3 == 0
        learner.feedback(decisions[i].id, rewards[i] + 5.0 * wrong)
        learner.feedback(decisions[i].id, rewards[i] + 5.0 * wrong)
        if wrong:
            learner.feedback(decisions[i].id, rewards[i], correction=True)
    assert_fits(learner, [(d.features, r) for d, r in zip(decisions, rewards, strict=True)])
    assert (learner.pending, learner.settled, learner.oldest) == (0, 60, None)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.one_of(st.none(), st.integers(1, 4)))
def test_every_history_is_the_refit_of_its_log(data: st.DataObject, window: int | None) -> None:
    default = 0.25
    learner = learner_of(2, noise=0.8, silence=Unknown() if window is None else DefaultAfter(window, default))
    rng = np.random.default_rng(1)
    decisions: list[Decision] = []
    known: dict[str, float] = {}
    reward = st.integers(-3, 3).map(float)
    for step in data.draw(st.lists(st.sampled_from(["decide", "reward", "correct"]), max_size=25)):
        if step == "decide" or not decisions:
            decisions.append(learner.decide(rng.standard_normal((2, 2))))
            continue
        name, value = data.draw(st.sampled_from(decisions)).id, data.draw(reward)
        if step == "reward" and known.get(name, value) != value:
            with pytest.raises(ConflictError):
                learner.feedback(name, value)
        else:
            learner.feedback(name, value, correction=step == "correct")
            known[name] = value
    log, silent = [], []
    for decision in decisions:
        expired = window is not None and len(decisions) - decision.number >= window
        if decision.id in known or expired:
            log.append((decision.features, known.get(decision.id, default)))
        else:
            silent.append(decision)
    assert_fits(learner, log)
    assert (learner.pending, learner.settled) == (len(silent), len(log))
    assert learner.oldest == (silent[0] if silent else None)


def test_a_conflict_changes_nothing(tmp_path: Path) -> None:
    learner = learner_of()
    decision = learner.decide(TWO)
    learner.feedback(decision.id, 1.0)
    before = state(learner, tmp_path)
    with pytest.raises(ConflictError, match=r"'d-000001' already has the reward 1\.0, got 2\.0"):
        learner.feedback(decision.id, 2.0)
    learner.feedback(decision.id, 1.0, correction=True)
    assert state(learner, tmp_path) == before


def test_a_corrected_blunder_leaves_no_trace() -> None:
    blundered, clean = learner_of(3), learner_of(3)
    for learner in (blundered, clean):
        decisions = decide_many(learner, 20)
        for i, decision in enumerate(decisions):
            learner.feedback(decision.id, 1e18 / 3 if learner is blundered and i == 4 else 0.1 * i)
    blundered.feedback("d-000005", 0.1 * 4, correction=True)
    np.testing.assert_allclose(blundered.mean(), clean.mean(), rtol=1e-10)


def test_silence_counts_after_the_window_until_the_reward_comes() -> None:
    learner = learner_of(2, silence=DefaultAfter(decisions=2, reward=-1.0))
    first, second = learner.decide(TWO), learner.decide(TWO)
    assert (learner.pending, learner.settled, learner.oldest) == (2, 0, first)
    third = learner.decide(TWO)
    assert (learner.pending, learner.settled, learner.oldest) == (2, 1, second)
    assert_fits(learner, [(first.features, -1.0)])
    learner.feedback(first.id, 3.0)  # no correction needed: nobody said −1
    assert_fits(learner, [(first.features, 3.0)])
    with pytest.raises(ConflictError):
        learner.feedback(first.id, -1.0)
    learner.feedback(second.id, 0.5)
    learner.decide(TWO)
    learner.feedback(third.id, -1.0)
    with pytest.raises(ConflictError):  # a reward that equals the default is a reward
        learner.feedback(third.id, 0.0)
    learner.decide(TWO)
    assert_fits(learner, [(first.features, 3.0), (second.features, 0.5), (third.features, -1.0)])


def test_a_key_makes_a_decision_once(tmp_path: Path) -> None:
    learner = learner_of(2, propensity_draws=5)
    contexts = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    decision = learner.decide(contexts, key="a")
    before = state(learner, tmp_path)
    again = learner.decide(contexts.tolist(), key="a")
    assert again == decision
    np.testing.assert_array_equal(again.features, decision.features)
    assert learner.decide(np.where(contexts == 0, -0.0, contexts), key="a") == decision
    for other in (contexts[:2], contexts[::-1], contexts + 1e-12, contexts[[0, 1, 2, 2]]):
        with pytest.raises(ConflictError, match="'a' already has a decision"):
            learner.decide(other, key="a")
    assert state(learner, tmp_path) == before
    learner.feedback("a", 1.0)
    assert learner.decide(contexts, key="a") == decision
    assert learner.decide(contexts, key="b").number == 2


def brute_force(learner: DecisionLearner, contexts: Floats, n: int) -> Floats:
    rng = np.random.default_rng(99)
    mean, precision = learner.mean(), learner._factor.T @ learner._factor
    draws = rng.multivariate_normal(mean, learner.scale**2 * np.linalg.inv(precision), size=(n, learner.draws))
    chosen = (draws @ contexts.T).max(axis=1).argmax(axis=1)
    return np.bincount(chosen, minlength=len(contexts)) / n


def taught(draws: int, **changes: Any) -> DecisionLearner:
    learner = learner_of(3, draws=draws, scale=0.8, noise=0.6, ridge=0.5, **changes)
    for i, decision in enumerate(decide_many(learner, 6, seed=5)):
        learner.feedback(decision.id, [0.3, -0.2, 0.9][i % 3])
    return learner


@pytest.mark.parametrize("draws", [1, 4])
def test_actions_and_propensities_follow_the_law(draws: int) -> None:
    contexts = np.random.default_rng(2).standard_normal((4, 3))
    learner = taught(draws)
    law = brute_force(learner, contexts, 100_000)
    n = 8000
    frequency = np.bincount([learner.decide(contexts).action for _ in range(n)], minlength=4) / n
    np.testing.assert_allclose(frequency, law, atol=4.5 * np.sqrt(0.25 / n))
    assert np.sort(law)[-2] > 0.1  # the law is not trivial
    estimating = taught(draws, propensity_draws=20_000)
    for _ in range(4):
        decision = estimating.decide(contexts)
        assert decision.probability == pytest.approx(law[decision.action], abs=4.5 * np.sqrt(0.25 / 20_000))


def test_estimating_propensities_changes_no_decision() -> None:
    plain, estimating = taught(2), taught(2, propensity_draws=7)
    actions = [(d.action, e.action) for d, e in zip(decide_many(plain, 50), decide_many(estimating, 50), strict=True)]
    assert all(one == two for one, two in actions)
    probability = estimating.decide(np.ones((1, 3))).probability
    assert probability == 1.0


def test_ties_are_broken_at_random_and_shared() -> None:
    learner = learner_of(2, propensity_draws=9)
    decisions = [learner.decide(np.ones((4, 2))) for _ in range(2000)]
    counts = np.bincount([d.action for d in decisions], minlength=4)
    np.testing.assert_allclose(counts / 2000, 0.25, atol=0.045)
    assert decisions[0].probability == pytest.approx((9 / 4 + 1) / 10)


def test_the_best_action_is_taken_without_spread() -> None:
    learner = learner_of(2, scale=0.0)
    learner.decide([[1.0, 0.0]], key="k")
    learner.feedback("k", 1.0)
    contexts = [[0.2, 5.0], [0.9, 0.0], [0.5, -5.0]]
    assert {learner.decide(contexts).action for _ in range(20)} == {1}


@pytest.mark.parametrize("silence", [Unknown(), DefaultAfter(3, 0.5)])
def test_going_on_after_a_load_equals_never_having_stopped(silence: Unknown | DefaultAfter, tmp_path: Path) -> None:
    def first_half(learner: DecisionLearner) -> None:
        decide_many(learner, 20, seed=1)
        learner.decide(TWO, key="kept")
        for i in (3, 1, 18):
            learner.feedback(f"d-{i:06d}", 0.1 * i)
        learner.forget(before=4)

    def second_half(learner: DecisionLearner) -> list[object]:
        seen: list[object] = [learner.decide(TWO, key="kept"), learner.oldest]
        learner.feedback("kept", 2.0)
        learner.feedback("d-000018", -1.0, correction=True)
        learner.feedback("d-000017", 1.0)
        return [*seen, *decide_many(learner, 20, seed=2), learner.pending, learner.settled, repr(learner)]

    whole, stopped = (learner_of(2, silence=silence, draws=2, propensity_draws=3, seed=7) for _ in range(2))
    first_half(whole)
    first_half(stopped)
    stopped.save(tmp_path / "learner.npz")
    resumed = DecisionLearner.load(str(tmp_path / "learner.npz"))
    assert state(resumed, tmp_path) == state(whole, tmp_path)
    assert second_half(resumed) == second_half(whole)
    assert state(resumed, tmp_path) == state(whole, tmp_path)


def test_a_new_learner_can_be_saved(tmp_path: Path) -> None:
    learner_of().save(tmp_path / "new.npz")
    loaded = DecisionLearner.load(tmp_path / "new.npz")
    assert loaded.decide(TWO) == learner_of().decide(TWO)


def test_a_cut_or_changed_or_newer_file_is_refused(tmp_path: Path) -> None:
    learner = learner_of()
    decide_many(learner, 5)
    path = tmp_path / "learner.npz"
    learner.save(path)
    content = path.read_bytes()
    for damaged in (content[:-40], content[: len(content) // 2], b"", content.replace(b"d-000002", b"d-000009")):
        path.write_bytes(damaged)
        with pytest.raises(DamagedFileError):
            DecisionLearner.load(path)
    save_arrays(path, KIND, VERSION + 1, {}, {})
    with pytest.raises(DamagedFileError, match="version"):
        DecisionLearner.load(path)
    with pytest.raises(FileNotFoundError):
        DecisionLearner.load(tmp_path / "none.npz")


def edit(name: str, value: object) -> Any:
    def change(header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        if name in header:
            header[name] = value
        elif name in arrays:
            arrays[name] = np.array(value)
        else:
            arrays["decisions"][name][1] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        edit("made", 4),
        edit("made", "5"),
        edit("ids", ["d-000001"]),
        edit("ids", ["d-000001"] * 5),
        edit("ids", [1, 2, 3, 4, 5]),
        edit("ids", None),
        edit("streams", [{}, {}]),
        edit("streams", []),
        edit("settings", {"dimension": 2, "depth": 3}),
        edit("settings", {"dimension": 3}),
        edit("silence", {"decisions": 0, "reward": 0.0}),
        edit("silence", 3),
        edit("factor", [[1.0, 0.0], [1.0, 1.0]]),
        edit("factor", [[1.0, 0.0], [0.0, -1.0]]),
        edit("factor", [[1.0]]),
        edit("moment", [[np.nan, 0.0], [0.0, 0.0]]),
        edit("decisions", [1.0, 2.0, 3.0, 4.0, 5.0]),
        edit("number", 3),
        edit("number", 0),
        edit("status", 3),
        edit("reward", np.inf),
        edit("features", np.nan),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(change: Any, tmp_path: Path) -> None:
    learner = learner_of()
    decide_many(learner, 5)
    learner.save(tmp_path / "learner.npz")
    header, arrays = load_arrays(tmp_path / "learner.npz", KIND, VERSION)
    change(header, arrays)
    save_arrays(tmp_path / "learner.npz", KIND, VERSION, header, arrays)
    with pytest.raises(DamagedFileError, match="does not hold a usable learner"):
        DecisionLearner.load(tmp_path / "learner.npz")


def test_forgetting_drops_only_old_settled_decisions() -> None:
    learner = learner_of(2)
    decisions = [learner.decide(TWO, key="a"), *decide_many(learner, 99)]
    log = []
    for decision in decisions[:60]:
        if decision.number != 7:
            learner.feedback(decision.id, 0.5)
            log.append((decision.features, 0.5))
    assert learner.forget(before=51) == 49
    assert learner.forget(before=51) == 0
    assert_fits(learner, log)
    assert (learner.pending, learner.settled, learner.oldest) == (41, 59, decisions[6])
    for gone in ("d-000002", "a"):
        with pytest.raises(UnknownNameError, match=rf"made and not forgotten, got '{gone}'"):
            learner.feedback(gone, 1.0)
    for late in (decisions[6], decisions[99]):
        learner.feedback(late.id, 2.0)
        log.append((late.features, 2.0))
    learner.feedback("d-000055", 1.0, correction=True)
    log[53] = (decisions[54].features, 1.0)
    assert_fits(learner, log)
    assert learner.oldest == decisions[60]
    assert learner.decide(TWO).id == "d-000101"
    assert learner.decide(TWO, key="a").number == 102  # its key is free again


def test_forgetting_bounds_the_memory() -> None:
    learner = learner_of(2, silence=DefaultAfter(10))
    for number in range(1, 2001):
        learner.decide(TWO)
        if number % 100 == 0:
            learner.forget(before=number)
    assert len(learner._records) <= 256
    assert learner.settled == 1990


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"dimension": 0}, "dimension"),
        ({"draws": 0}, "draws"),
        ({"draws": 1.5}, "draws"),
        ({"scale": -1.0}, "scale"),
        ({"scale": 1e41}, "scale"),
        ({"noise": 0.0}, "noise"),
        ({"ridge": np.nan}, "ridge"),
        ({"propensity_draws": -1}, "propensity_draws"),
        ({"seed": -1}, "seed"),
        ({"silence": "unknown"}, "silence"),
        ({"silence": DefaultAfter}, "silence"),
    ],
)
def test_bad_settings_are_named(changes: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"^{name} must be"):
        learner_of(**changes)


@pytest.mark.parametrize(("decisions", "reward"), [(0, 0.0), (1.5, 0.0), (10, np.nan), (10, 1e41), (10, "0")])
def test_a_bad_default_is_refused(decisions: Any, reward: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^(decisions|reward) must be"):
        DefaultAfter(decisions, reward)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda a: a.decide([[1.0]]), InvalidInputError, "contexts must have shape"),
        (lambda a: a.decide([1.0, 2.0]), InvalidInputError, "contexts must have shape"),
        (lambda a: a.decide(np.empty((0, 2))), InvalidInputError, "the number of actions in contexts"),
        (lambda a: a.decide([[1.0, np.nan]]), InvalidInputError, "contexts must be finite"),
        (lambda a: a.decide([[1.0, -1e41]]), InvalidInputError, "contexts must be of magnitude"),
        (lambda a: a.decide("no"), InvalidInputError, "contexts must be"),
        (lambda a: a.decide(TWO, key=""), InvalidInputError, "key must be"),
        (lambda a: a.decide(TWO, key=3), InvalidInputError, "key must be"),
        (lambda a: a.decide(TWO, key="d-000002"), InvalidInputError, "key must be"),
        (lambda a: a.feedback("d-000001", np.nan), InvalidInputError, "reward must be"),
        (lambda a: a.feedback("d-000001", -np.inf), InvalidInputError, "reward must be"),
        (lambda a: a.feedback("d-000001", 1e41), InvalidInputError, "reward must be"),
        (lambda a: a.feedback("d-000001", "1"), InvalidInputError, "reward must be"),
        (lambda a: a.feedback("d-000001", None), InvalidInputError, "reward must be"),
        (lambda a: a.feedback("d-000001", 1.0, correction=1), InvalidInputError, "correction must be"),
        (lambda a: a.feedback(1, 1.0), InvalidInputError, "id must be"),
        (lambda a: a.feedback("d-000002", 1.0), UnknownNameError, "id must be"),
        (lambda a: a.feedback("d-1", 1.0), UnknownNameError, "id must be"),
        (lambda a: a.forget(before=0), InvalidInputError, "before must be"),
        (lambda a: a.forget(before=1.0), InvalidInputError, "before must be"),
    ],
)
def test_bad_input_changes_nothing(call: Any, error: type[Exception], message: str, tmp_path: Path) -> None:
    learner = learner_of(2, propensity_draws=2)
    learner.decide(TWO)
    before = state(learner, tmp_path)
    with pytest.raises(error, match=f"^{message}"):
        call(learner)
    assert state(learner, tmp_path) == before


def test_the_largest_numbers_do_not_overflow() -> None:
    learner = learner_of(2, noise=1e-40, ridge=1e-40, scale=1e40)
    for number, reward in enumerate([1e40, -1e40, 1e40, 1e40]):
        learner.decide([[1e40, 1e40], [-1e40, 1e40], [1e-40, 0.0]], key=str(number))
        learner.feedback(str(number), reward)
    assert np.isfinite(learner.mean()).all()
    assert learner.decide(TWO).action in (0, 1)


def test_it_beats_chance_although_every_reward_is_late() -> None:
    rng = np.random.default_rng(3)
    weights = rng.standard_normal(5) / np.sqrt(5)
    learner = learner_of(5, noise=0.5, seed=1)
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
    assert learner.pending == len(due)
    assert regret < 0.15 * chance


def test_repr_shows_the_counts_and_the_mean() -> None:
    learner = learner_of(7, silence=DefaultAfter(9, 0.5))
    learner.decide(np.eye(7)[:1], key="k")
    learner.decide(np.eye(7)[:1])
    learner.feedback("k", 1.0)
    assert repr(learner) == (
        "DecisionLearner(dimension=7, silence=DefaultAfter(decisions=9, reward=0.5), pending=1, settled=1, "
        "mean=[0.5, 0, 0, 0, 0, 0, ...])"
    )
