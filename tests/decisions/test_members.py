"""Members of a sparse posterior are draws from it, whatever comes, goes and changes; their state is the log's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import belated.decisions._members as module
from belated.decisions import (
    DecisionLearner,
    Forgetting,
    MemoryStore,
    Model,
    ModelSettings,
    Reward,
    SQLiteStore,
    Unknown,
)
from belated.decisions._copying import migrate
from belated.decisions._members import Row, SparseOffer, SparsePosterior, digest, unpacked
from belated.errors import DamagedFileError, InvalidInputError
from belated.types import Floats, SparseVector

D = 500


def row(number: int, rng: np.random.Generator, size: int = 6) -> Row:
    places = np.sort(rng.choice(D, size, replace=False)).astype(np.int32)
    return Row(digest(str(number)), number, 0, places, rng.standard_normal(size).astype(np.float32))


def dense(given: Row) -> Floats:
    x = np.zeros(D)
    x[given.places] = given.values
    return x


def every_place() -> SparseOffer:
    """Return an action for each place, whose scores are the weights."""
    each = np.arange(D)
    return SparseOffer(each, each + 1, each.astype(np.int32), np.ones(D, np.float32), np.zeros(D, np.int64))


def exact(
    rows: list[Row], rewards: list[float], omegas: list[float], sigma: float, ridge: float
) -> tuple[Floats, Floats]:
    """Return the mean and the covariance of the posterior, by dense matrices."""
    x, omega = np.array([dense(each) for each in rows]), np.array(omegas)
    covariance = np.linalg.inv((x.T * omega) @ x / sigma**2 + ridge * np.eye(D))
    return covariance @ (x.T @ (omega * np.array(rewards))) / sigma**2, covariance


def test_members_are_draws_from_the_posterior_of_what_was_not_taken_back() -> None:
    rng = np.random.default_rng(0)
    posterior = SparsePosterior(D, draws=2000, noise=0.5, ridge=2.0, seed=3)
    rows, rewards = [row(i, rng) for i in range(60)], rng.standard_normal(60).tolist()
    for x, reward in zip(rows, rewards, strict=True):
        posterior.learn(0, x, reward + 5.0)
    for i in range(0, 60, 3):
        posterior.correct(0, rows[i], rewards[i] + 5.0, rewards[i] + 7.0)
    for x, i in zip(rows, range(60), strict=True):
        posterior.correct(0, x, rewards[i] + (7.0 if i % 3 == 0 else 5.0), rewards[i])
    for i in range(0, 60, 5):
        posterior.unlearn(0, rows[i], rewards[i])
    left = [i for i in range(60) if i % 5]
    assert posterior.settle(1e-5) < 1000
    assert posterior.rows == len(left)
    mean, covariance = exact([rows[i] for i in left], [rewards[i] for i in left], [1.0] * len(left), 0.5, 2.0)
    scores = posterior.scores(every_place()).astype(float)
    spread = np.sqrt(covariance.diagonal())
    assert np.abs((scores.mean(axis=1) - mean) / spread).max() < 4.5 / np.sqrt(2000)
    assert np.abs(scores.std(axis=1) / spread - 1.0).max() < 4.5 / np.sqrt(2 * 2000)
    assert np.abs(posterior.mean() - mean)[posterior.mean() != 0].max() < 4.5 * spread.max() / np.sqrt(2000)
    never = SparsePosterior(D, draws=2000, noise=0.5, ridge=2.0, seed=3)
    for i in left:
        never.learn(0, rows[i], rewards[i])
    never.settle(1e-5)
    assert np.abs((never.scores(every_place()) - scores) / spread[:, None]).max() < 1e-3


def test_forgotten_rows_weigh_less_and_are_dropped() -> None:
    rng = np.random.default_rng(1)
    posterior = SparsePosterior(D, draws=2000, noise=0.5, ridge=2.0)
    rows, rewards, times = [row(i, rng) for i in range(60)], rng.standard_normal(60).tolist(), np.linspace(0, 20, 60)
    for x, reward, time in zip(rows, rewards, times, strict=True):
        posterior.learn(0, x, reward, float(time))
    kept = [i for i in range(60) if times[i] >= 8.0]
    assert posterior.rows == len(kept)
    posterior.settle(1e-5)
    omegas = [2.0 ** (times[i] - 20.0) for i in kept]
    mean, covariance = exact([rows[i] for i in kept], [rewards[i] for i in kept], omegas, 0.5, 2.0)
    scores, spread = posterior.scores(every_place()).astype(float), np.sqrt(covariance.diagonal())
    assert np.abs((scores.mean(axis=1) - mean) / spread).max() < 4.5 / np.sqrt(2000)
    assert np.abs(scores.std(axis=1) / spread - 1.0).max() < 4.5 / np.sqrt(2 * 2000)


def test_rows_beyond_the_cap_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """If each row has one feature, what is known of the features is independent, and closing a row loses nothing."""
    monkeypatch.setattr(module, "MOST_ROWS", 20)
    rng = np.random.default_rng(2)
    posterior = SparsePosterior(D, draws=2000, noise=0.5, ridge=2.0)
    rows = [Row(digest(str(i)), i, 0, np.array([i % 7], np.int32), np.ones(1, np.float32)) for i in range(300)]
    rewards = rng.standard_normal(300).tolist()
    for x, reward in zip(rows, rewards, strict=True):
        posterior.learn(0, x, reward)
        posterior.settle(1e-4, 20)
    posterior.correct(0, rows[0], rewards[0], rewards[0] + 1.0)
    assert posterior.rows == 20
    rewards[0] += 1.0
    mean, covariance = exact(rows, rewards, [1.0] * 300, 0.5, 2.0)
    scores, spread = posterior.scores(every_place())[:7].astype(float), np.sqrt(covariance.diagonal())[:7]
    assert np.abs((scores.mean(axis=1) - mean[:7]) / spread).max() < 0.1
    assert np.abs(scores.std(axis=1) / spread - 1.0).max() < 0.1


def test_noise_and_width_are_those_of_the_rewards() -> None:
    rng = np.random.default_rng(3)
    posterior, weights = SparsePosterior(D, seed=1), 0.3 * rng.standard_normal(D)
    for i in range(2000):
        x = row(i, rng)
        posterior.learn(0, x, float(x.values @ weights[x.places]) + 0.5 * rng.standard_normal())
    assert posterior.noise() == pytest.approx(0.5, rel=0.1)
    assert posterior.width == pytest.approx(0.3, rel=0.15)
    assert posterior.residual < 0.5


def test_shares_are_those_of_the_members() -> None:
    rng = np.random.default_rng(5)
    posterior = SparsePosterior(D)
    for i in range(30):
        posterior.learn(0, row(i, rng), float(rng.standard_normal()))
    rows = [row(100 + i, rng) for i in range(5)]
    rows.append(rows[0])  # which shares its wins
    ends = np.cumsum([6] * 6)
    places, values = np.concatenate([x.places for x in rows]), np.concatenate([x.values for x in rows])
    offer = SparseOffer(ends - 6, ends, places, values, np.zeros(6, np.int64))
    posterior._a.damping[:] = 1.0  # as if all features were frequent
    scores = posterior.scores(offer)
    mean = scores.mean(axis=1)
    gained = np.log1p(scores.var(axis=1) / posterior.noise() ** 2)  # twice the information of each row
    part = 1.0 - gained[mean.argmax()] / gained.max()
    assert 0.1 < part < 0.9
    drawn = mean[:, None] + part * (scores - mean[:, None])
    wins = np.bincount(drawn[:5].argmax(axis=0), minlength=6) / 32
    wins[[0, 5]] = wins[0] / 2
    assert posterior.shares(offer) == pytest.approx(wins)
    posterior.configure(scale=0.0, noise=None, ridge=1.0)
    assert posterior.shares(offer)[int(scores[:5].mean(axis=1).argmax())] in (0.5, 1.0)
    assert unpacked(offer.packed([3, 1]), 1)[1].tolist() == rows[1].values.tolist()


def test_deviations_of_features_that_do_not_come_again_are_damped() -> None:
    """Of ten features five come once, three twice and two three times: r₁ = 2·4/6, r₂ = 3·3/4, each with one more."""
    posterior, number = SparsePosterior(D, noise=1.0), 0
    for place, times in enumerate([1] * 5 + [2] * 3 + [3] * 2):
        for _ in range(times):
            number += 1
            posterior.learn(
                0, Row(number, number, 0, np.array([place], np.int32), np.ones(1, np.float32)), 0.0
            )  # fmt: skip
    first, second = 8 / 6, 9 / 4
    again = [first, first, second, second + (second - first)]
    assert posterior._a.damping[:4] == pytest.approx([r / (1 + r) for r in again])
    posterior.unlearn(0, Row(number, number, 0, np.array([9], np.int32), np.ones(1, np.float32)), 0.0)
    assert posterior._a.damping[0] == pytest.approx(10 / 16)  # r₁ = 2·5/6
    again_read = SparsePosterior(D, noise=1.0)
    again_read.restore(posterior.state())
    assert (again_read._a.damping == posterior._a.damping).all()


SHOP: dict[str, Any] = {
    "categories": ["country"], "tags": ["words"], "action_features": ["price"], "action_categories": ["brand"],
    "hashed": 2**18, "silence": {"kind": "unknown"}, "seed": 5,
}  # fmt: skip
OFFER = {name: {"price": 1.0 + i, "brand": name.upper()} for i, name in enumerate("abcdef")}


def play(model: Model, rounds: int, seed: int) -> None:
    """Decide, and report, correct and cancel late."""
    rng, waiting = np.random.default_rng(seed), list[str]()
    for t in range(rounds):
        context = {"country": f"c{rng.integers(9)}", "words": [f"w{each}" for each in rng.integers(0, 500, 8)]}
        waiting.append(model.decide(context, actions=OFFER).id)
        if len(waiting) > 5:
            name = waiting.pop(int(rng.integers(5)))
            model.feedback(name, float(rng.standard_normal()))
            if t % 5 == 0:
                model.feedback(name, 1.0, correction=True)
            if t % 7 == 0:
                model.cancel(name)


@pytest.mark.parametrize("forgetting", [{}, {"forgetting": {"decisions": 10}}])
def test_a_model_goes_on_to_the_bit_and_its_log_says_the_same(forgetting: dict[str, Any], tmp_path: Path) -> None:
    settings = ModelSettings.from_table({**SHOP, **forgetting})
    store = SQLiteStore(tmp_path / "shop.db")
    model = Model("shop", settings, store)
    play(model, 60, 0)
    model.snapshot()
    play(model, 30, 1)
    assert model.verify() == []
    summary = model.summary()
    assert summary["rows"] > 0
    assert summary["features"] > 1000
    assert 0.0 <= summary["residual"] < 1.0
    expected = model.probabilities({"words": ["w1", "w2"]}, OFFER)
    store.close()
    again = Model("shop", None, SQLiteStore(tmp_path / "shop.db"))
    assert (again.probabilities({"words": ["w1", "w2"]}, OFFER) == expected).all()
    assert again.verify() == []
    (first, *_) = again.log()
    kept = again.store.decision(first.id)
    assert kept is not None
    assert len(kept.features) < 1000  # bytes, of 2¹⁸ places
    with pytest.raises(InvalidInputError, match="draws is fixed for the life of a model"):
        again.change(ModelSettings.from_table({**SHOP, **forgetting, "draws": 64}))
    again.store.close()
    (copied,) = migrate(str(tmp_path / "shop.db"), str(tmp_path / "new.db"), {})
    assert copied.decisions == 90
    wider = ModelSettings.from_table({**SHOP, **forgetting, "hashed": 2**19, "draws": 64})
    migrate(str(tmp_path / "shop.db"), str(tmp_path / "wider.db"), {"shop": wider})


def test_actions_with_weights_of_their_own() -> None:
    store = MemoryStore()
    table = {"tags": ["words"], "hashed": 2**16, "actions": ["a", "b"], "silence": {"kind": "unknown"}}
    model = Model("news", ModelSettings.from_table(table), store)
    for i in range(40):
        name = "ab"[i % 2]
        model.record({"words": ["x", f"w{i}"]}, name, 1.0 if name == "a" else 0.0)
    weights = model.weights()
    assert set(weights) == {"a", "b"}
    assert weights["a"][0] > weights["b"][0] + 0.1
    assert model.probabilities({"words": ["x"]})[0] > 0.8
    model.feedback_many([Reward(model.decide({"words": ["x"]}).id, 1.0)])
    assert model.verify() == []


def test_a_learner_takes_sparse_matrices(tmp_path: Path) -> None:
    rng, weights = np.random.default_rng(6), np.random.default_rng(7).standard_normal(D)
    learner, lost = DecisionLearner(D, silence=Unknown(), forgetting=Forgetting(decisions=5000)), list[float]()
    for _ in range(300):
        table = np.zeros((4, D))
        for each in table:
            each[rng.choice(40, 3, replace=False)] = 1.0
        decision = learner.decide(csr_array(table))
        reward = float(table[decision.action] @ weights)
        assert isinstance(decision.features, SparseVector)
        assert reward == pytest.approx(float(decision.features.values @ weights[decision.features.indices]))
        learner.feedback(decision.id, reward)
        lost.append(float((table @ weights).max()) - reward)
    assert np.mean(lost[200:]) < 0.1 * np.mean(lost[:50])
    learner.save(tmp_path / "learner.npz")
    again = DecisionLearner.load(tmp_path / "learner.npz")
    assert again.decide(table).probability == learner.decide(table).probability
    unsorted = csr_array((np.ones(3), np.array([7, 2, 7]), np.array([0, 3])), (1, D))
    assert getattr(learner.decide(unsorted).features, "values").tolist() == [1.0, 2.0]  # noqa: B009
    assert learner.decide(unsorted.astype(np.float32), key="a").id == learner.decide(unsorted, key="a").id
    learner.record(csr_array(table[:1]), 1.0)
    for bad in (
        csr_array((np.ones(1), np.array([D]), np.array([0, 1])), (1, D + 1)), csr_array((1, D))[:0],
        csr_array((np.array([np.nan]), np.array([0]), np.array([0, 1])), (1, D)), np.zeros((2, D + 1)),
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match="contexts"):
            learner.decide(bad)


def test_a_damaged_state_is_refused() -> None:
    rng = np.random.default_rng(8)
    posterior = SparsePosterior(D)
    for i in range(10):
        posterior.learn(0, row(i, rng), 1.0)
    for name, value in {"sizes": -1, "places": 10**6, "names": 0, "members": 0.5}.items():
        arrays = {key: each.copy() for key, each in posterior.state().items()}
        arrays[name] = arrays[name][:3] if name == "members" else np.full_like(arrays[name], value)
        with pytest.raises((InvalidInputError, DamagedFileError)):
            SparsePosterior(D).restore(arrays)
