"""Settings of any kind are accepted or refused in a sentence, and what would take too much is refused beforehand."""

from __future__ import annotations

from typing import Any

import pytest
from decision_models import model_of
from hypothesis import given, settings
from hypothesis import strategies as st

from belated.decisions import DecisionLearner, ModelSettings, Unknown
from belated.decisions import _settings as module
from belated.decisions._settings import most_actions, most_blocks, work
from belated.errors import BelatedError, InvalidInputError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.sampled_from(["a", "b", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "kind", "x"]), inner),
    max_leaves=6,
)
FIELDS = [
    "silence", "actions", "retired", "encoding", "aggregate", "forgetting", "floor", "draws", "scale", "noise", "ridge",
    "seed", "features", "categories", "tags", "action_features", "action_categories", "action_tags", "weights",
    "hashed", "other",
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4) | JSON, st.booleans())
def test_odd_tables_are_settings_or_are_refused_in_a_sentence(table: Any, sound: bool) -> None:
    if sound and isinstance(table, dict):
        table = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}, **table}
    try:
        made = ModelSettings.from_table(table)
    except BelatedError as error:
        assert len(str(error)) > 20
    else:
        assert ModelSettings.from_table(made.to_table()) == made


def test_a_model_that_would_take_too_much_memory_is_refused_with_figures() -> None:
    words = r"at most 16 with 1001 features, got 17: the model would take 0\.8 GB of memory, and may take 0\.8"
    table: dict[str, Any] = {"categories": ["c"], "hashed": 1000, "silence": {"kind": "unknown"}, "draws": 1}
    assert most_blocks(1001) == 16
    ModelSettings.from_table({**table, "actions": [str(i) for i in range(16)]})
    with pytest.raises(InvalidInputError, match=words):
        ModelSettings.from_table({**table, "actions": [str(i) for i in range(17)]})
    with pytest.raises(InvalidInputError, match="dimension must be an integer >= 1 and <= 1024"):
        DecisionLearner(1025, silence=Unknown())


def test_new_names_are_refused_when_no_more_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NUMBERS", 5 * 2 * 3)
    model = model_of(actions=[], features=["x"])
    assert len(model.decide({"x": 1.0}, actions=["a", "b", "c"], size=3).ranking) == 3
    with pytest.raises(InvalidInputError, match="weights of their own must be at most 5 with 2 features, got 6"):
        model.decide({"x": 1.0}, actions=["d", "e", "f"], size=3)
    answers = model.run([])
    assert answers == []
    model.decide({"x": 1.0}, actions=["c", "b", "a", "d"], size=4)
    model.decide({"x": 1.0}, actions=["d", "e"], size=2)
    assert len(model.decide({"x": 1.0}, actions=["a", "b", "e"], size=3).ranking) == 3
    with pytest.raises(InvalidInputError, match="at most 5"):
        model.decide({"x": 1.0}, actions=["g"])
    assert model.verify() == []


@pytest.mark.parametrize("own_weights", [True, False])
def test_a_decision_that_would_take_too_long_is_refused_with_figures(own_weights: bool) -> None:
    for dimension, draws in ((1, 1), (2, 10_000), (100, 32), (1024, 10_000)):
        most = most_actions(dimension, draws, own_weights=own_weights)
        assert most >= 100
        if most < module.MOST_ACTIONS:
            assert work(most, dimension, draws, own_weights=own_weights) <= module.MOST_WORK
            assert work(most + 1, dimension, draws, own_weights=own_weights) > module.MOST_WORK
    model = model_of(actions=[], draws=10_000)
    most = most_actions(3, 10_000, own_weights=True)
    words = rf"actions must be at most {most} with 3 features and 10000 draws, got {most + 1}: .* multiplications"
    with pytest.raises(InvalidInputError, match=words):
        model.decide({"x": 1.0, "y": 0.0}, actions=[str(i) for i in range(most + 1)])
    with pytest.raises(InvalidInputError, match=words):
        model_of(actions=[str(i) for i in range(most + 1)], draws=10_000)
    assert model.summary()["decisions"] == 0


def test_a_long_ranking_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belated.decisions._core.MOST_RANKED", 6)
    model = model_of()
    assert len(model.decide({"x": 1.0, "y": 0.0}, size=2).ranking) == 2
    with pytest.raises(InvalidInputError, match="size must be at most 2, with 3 features of each action, got 3"):
        model.decide({"x": 1.0, "y": 0.0}, size=3)
