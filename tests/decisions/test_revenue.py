"""Revenue: a chance times an amount, from exact sums. Draws are those of a naive posterior, and undo is exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from decision_models import model_of

from belated.decisions import Decide, DecisionLearner, Unknown
from belated.decisions._revenue import RIDGES, RevenuePosterior, products
from belated.errors import BelatedError, InvalidInputError
from belated.types import Floats

Sale = tuple[int, Floats, float]


def sales(count: int, seed: int = 0) -> list[Sale]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        x = np.append(1.0, rng.standard_normal(2))
        amount = float(np.exp(3.0 + 0.7 * x[1] + rng.standard_normal())) if rng.random() < 0.4 else 0.0
        found.append((int(rng.integers(3)), x, amount))
    return found


def taught(rows: list[Sale], blocks: int = 3) -> RevenuePosterior:
    posterior = RevenuePosterior(3, blocks=blocks)
    for block, x, reward in rows:
        posterior.learn(block, x, reward)
    return posterior


def naive(rows: list[Sale], block: int, x: Floats) -> tuple[float, float, float]:
    """Mean and variance of the log amount without its centre, and λ: by the density of all logarithms at once."""
    sold = [(k, features, math.log(r)) for k, features, r in rows if r > 0.0]
    design = np.zeros((len(sold), 9))
    for i, (k, features, _) in enumerate(sold):
        design[i, 3 * k : 3 * k + 3] = features
    y = np.array([each for _, _, each in sold])
    y = y - y.mean()
    length = 2.0 ** round(math.log2(np.mean([features @ features for _, features, _ in sold])))
    best = None
    for ridge in RIDGES.tolist():
        covariance = np.eye(len(y)) + design @ design.T / (ridge * length)
        square = float(y @ np.linalg.solve(covariance, y)) + 1.0
        evidence = -0.5 * np.linalg.slogdet(covariance)[1] - 0.5 * (len(y) + 1) * math.log(square)
        if best is None or evidence > best[0]:
            best = evidence, ridge, square / (len(y) + 1)
    assert best is not None
    _, ridge, variance = best
    inverse = np.linalg.inv(design.T @ design + ridge * length * np.eye(9))
    wide = np.zeros(9)
    wide[3 * block : 3 * block + 3] = x
    return float(wide @ inverse @ design.T @ y), float(variance * wide @ inverse @ wide), ridge


def test_amounts_are_those_of_a_naive_regression() -> None:
    rows, x = sales(80), np.array([1.0, 0.3, -1.2])
    posterior = taught(rows)
    mean, spread = posterior.amounts_of(x[None], np.arange(3))
    for block in range(3):
        wanted = naive(rows, block, x)
        assert mean[0, block] == pytest.approx(wanted[0], rel=1e-9)
        assert spread[0, block] ** 2 == pytest.approx(wanted[1], rel=1e-9)
    assert wanted[2] not in (RIDGES[0], RIDGES[-1])  # the amounts tell which


def test_equal_amounts_leave_chances_alone() -> None:
    rng = np.random.default_rng(3)
    rows = [(k, x, float(np.exp(2.0 + rng.standard_normal())) if r else 0.0) for k, x, r in sales(600, 1)]
    posterior = taught(rows)
    _, spread = posterior.amounts_of(np.array([[1.0, 0.0, 0.0]]), np.arange(3))
    assert posterior.amounts._kappa >= 16.0 * posterior.amounts.sums.scale
    assert spread.max() < 0.2


def test_what_is_taken_back_leaves_no_trace() -> None:
    rows = sales(60)
    seen, never = taught(rows), taught(rows[:40])
    for block, x, reward in rows[40:]:
        other = 0.0 if reward else 7.0
        seen.correct(block, x, reward, other)
        seen.correct(block, x, other, 1e6)
        seen.unlearn(block, x, 1e6)
    first, second = seen.state(), never.state()
    assert all(first[name].tobytes() == second[name].tobytes() for name in second)
    x = np.array([[1.0, 0.3, -1.2]])
    for one, two in zip(seen.amounts_of(x, np.arange(3)), never.amounts_of(x, np.arange(3)), strict=True):
        assert one.tolist() == two.tolist()


def test_without_a_sale_only_chances_count_and_restored_is_as_before() -> None:
    posterior = taught([(0, np.ones(3), 0.0), (1, np.ones(3), 5.0)])
    posterior.unlearn(1, np.ones(3), 5.0)
    for each in posterior.amounts_of(np.ones((1, 3)), np.array([0, 1, -1])):
        assert each.tolist() == [[0.0, 0.0, 0.0]]
    posterior = taught(sales(50))
    again = RevenuePosterior(3, blocks=3)
    again.restore(posterior.state())
    x = np.array([[1.0, 2.0, 0.5]])
    for one, two in zip(
        again.amounts_of(x, np.array([0, -1])), posterior.amounts_of(x, np.array([0, -1])), strict=True
    ):
        assert one.tolist() == two.tolist()


def test_what_fades_weighs_less() -> None:
    posterior = RevenuePosterior(1)
    for _ in range(20):
        posterior.learn(0, np.ones(1), math.e, time=1.0)
    for _ in range(5):
        posterior.learn(0, np.ones(1), 1.0, time=11.0)
    posterior.freshen_amounts(11.0)
    old = 20.0 * 2.0**-10
    assert posterior.amounts.centre == pytest.approx(old / (old + 5.0))


def test_beliefs_are_those_of_draws() -> None:
    posterior, x = taught(sales(300), 3), np.array([1.0, 0.5, 0.0])
    ((mean, variance),) = posterior.increments(1, x)
    rng = np.random.default_rng(0)
    chance, width = (float(each[0, 0]) for each in posterior.scores(x[None], np.array([1])))
    log, spread = (float(each[0, 0]) for each in posterior.amounts_of(x[None], np.array([1])))
    level = math.exp(posterior.amounts.centre + 0.5 * posterior.amounts.variance)
    drawn = (chance + width * rng.standard_normal(10**6)) * level * np.exp(log + spread * rng.standard_normal(10**6))
    assert mean == pytest.approx(drawn.mean(), rel=5e-3)
    assert variance == pytest.approx(drawn.var(), rel=2e-2)


@pytest.mark.parametrize("shared", [False, True])
def test_probabilities_are_shares_of_products(shared: bool) -> None:
    """Against draws of the weights themselves, multiplied out."""
    rng, names = np.random.default_rng(5), "abc"
    described = {name: {"u": float(rng.standard_normal()), "v": float(rng.standard_normal())} for name in names}
    changes: dict[str, Any] = {"actions": list(names)}
    if shared:
        changes = {"actions": described, "action_features": ["u", "v"], "features": []}
    model = model_of(**changes, likelihood="revenue", draws=10_000, floor=0.0)
    context = {} if shared else {"x": 0.4, "y": 1.0}
    for i in range(40):
        made = model.decide(context)
        amount = float(np.exp(0.3 * rng.standard_normal() + 2.0 * names.index(made.action)))
        model.feedback(made.id, amount if i % 3 == 0 else 0.0)
    posterior, features = model.state.posterior, model.state.requests.encode(Decide(context), model.settings).features
    assert isinstance(posterior, RevenuePosterior) and isinstance(features, np.ndarray)
    sigma, amounts = posterior.noise(), posterior.amounts
    posterior.freshen_amounts(0.0)
    scores = []
    normals = rng.standard_normal((3, 2, features.shape[1], 40_000))
    for place, name in enumerate(names):
        block, x = (0, features[place]) if shared else (model.state.blocks[name], features[0])
        vectors, z = amounts._vectors[block], normals[0 if shared else place]
        root = vectors * np.sqrt(amounts.variance / amounts._precisions[block])
        chance = x @ (posterior.cache[block, :, :1] + sigma * posterior.cache[block, :, 1:] @ z[0])
        amount = x @ ((vectors @ amounts._weights[block])[:, None] + root @ z[1])
        scores.append(chance * np.exp(amount))
    wanted = np.bincount(np.argmax(scores, axis=0), minlength=3) / 40_000
    assert model.probabilities(context) == pytest.approx(wanted, abs=0.02)


def test_products_do_not_overflow() -> None:
    assert np.isfinite(products(np.ones((2, 3)), np.array([[1e4] * 3, [-1e4] * 3]))).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"likelihood": "poisson"}, "likelihood must be"),
        ({"likelihood": "revenue", "noise": 1.0}, "noise must be"),
        ({"likelihood": "revenue", "silence": {"kind": "by_age", "seconds": 60}}, "learned by age"),
        ({"likelihood": "revenue", "horizon": 3}, "left out for sessions"),
        ({"likelihood": "revenue", "categories": ["c"], "hashed": 1000}, "more than 256 features"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(BelatedError, match=words):
        model_of(**changes)


def test_negative_revenue_is_a_refund_or_refused() -> None:
    learner = DecisionLearner(1, silence=Unknown(), likelihood="revenue")
    made = learner.decide([[1.0]])
    learner.feedback(made.id, -3.0, event="refund")
    learner.feedback(made.id, 8.0, event="sale")
    assert learner.lookup(made.id).reward == 5.0
    posterior = learner._engine.state.posterior
    assert isinstance(posterior, RevenuePosterior)
    posterior.freshen_amounts(0.0)
    assert posterior.amounts.centre == pytest.approx(math.log(5.0))
    last = DecisionLearner(1, silence=Unknown(), likelihood="revenue", aggregate="last")
    made = last.decide([[1.0]])
    with pytest.raises(InvalidInputError, match="at least 0"):
        last.feedback(made.id, -3.0)
    assert last.learned == 0
    with pytest.raises(InvalidInputError, match="256 features"):
        DecisionLearner(300, silence=Unknown(), likelihood="revenue")


def test_blocks_that_come_later_are_as_those_of_the_beginning() -> None:
    rows, x = sales(60), np.array([[1.0, 0.3, -1.2]])
    grown = RevenuePosterior(3, blocks=0)
    for block, features, reward in rows:
        grown.grow(block)
        grown.amounts_of(x, np.array([block]))
        grown.learn(block, features, reward)
    at_once = taught(rows)
    for one, two in zip(grown.amounts_of(x, np.arange(3)), at_once.amounts_of(x, np.arange(3)), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12)
