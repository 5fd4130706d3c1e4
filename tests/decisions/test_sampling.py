"""Decisions that are drawn together are those that would be drawn one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from decision_models import model_of

from belated.decisions import Choice, Decide, Model
from belated.decisions import _sampling as module
from belated.decisions._posterior import Posterior
from belated.decisions._sampling import count_wins, scores
from belated.types import Floats


def taught(**changes: Any) -> Model:
    model = model_of(**changes)
    rng = np.random.default_rng(0)
    for _ in range(60):
        made = model.decide({"x": float(rng.standard_normal()), "y": 1.0}, actions=["a", "b"])  # never c
        model.feedback(made.id, float(rng.standard_normal()) + (made.action == "b"))
    return model


def requests(count: int) -> list[Decide]:
    rng = np.random.default_rng(1)
    choices: list[Any] = [None, ["c", "a"], ["b", "c", "a"]]
    return [
        Decide({"x": float(rng.standard_normal()), "y": 1.0}, actions=choices[i % 3], size=1 + (i % 4 == 0))
        for i in range(count)
    ]


@pytest.mark.parametrize(
    "changes", [{}, {"draws": 1, "floor": 0.0}, {"forgetting": {"decisions": 50}}, {"likelihood": "revenue"}]
)
@pytest.mark.parametrize("at_once", [1, 100, 1 << 17])
def test_together_is_as_one_by_one(changes: dict[str, Any], at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    one, two = taught(**changes), taught(**changes)
    together = one.run(requests(40))
    apart = [two.run([each])[0] for each in requests(40)]
    for first, second in zip(together, apart, strict=True):
        assert isinstance(first, Choice) and isinstance(second, Choice)
        assert (first.ranking, first.probability) == (second.ranking, second.probability)
        assert one.lookup(first.id).probabilities == two.lookup(second.id).probabilities


def test_scores_that_are_equal_but_for_rounding_share_a_win() -> None:
    rng = np.random.default_rng(2)
    posterior, rows = Posterior(5), rng.standard_normal((4, 5))
    for row in rng.standard_normal((20, 5)):
        posterior.learn(0, row, float(rng.standard_normal()))

    def found(rows: Floats, posterior: Posterior = posterior) -> Floats:
        distribution, won = posterior.distribution(rows), np.empty(len(rows))
        count_wins(scores(distribution, 1000, np.random.default_rng(3)), distribution.width, won)
        return won

    alone, drawn = found(rows), scores(posterior.distribution(rows), 1000, np.random.default_rng(3))
    np.testing.assert_array_equal(alone, np.bincount(drawn.argmax(axis=0), minlength=4) / 1000)
    twice = found(np.vstack([rows, rows[2]]))
    assert twice[2] == pytest.approx(twice[4], abs=1e-12) and twice.sum() == pytest.approx(1.0)
    large = found(np.vstack([1e9 * rows[0] + rows[1], 1e9 * rows[0]]))
    np.testing.assert_allclose(large, 0.5, atol=1e-12)
    np.testing.assert_allclose(found(rows, Posterior(5, scale=0.0)), 0.25)  # all are 0 for certain
