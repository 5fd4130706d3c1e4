"""Settings of any kind are accepted or refused in a sentence, and what would take too much is refused beforehand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from decision_models import model_of
from hypothesis import given, settings
from hypothesis import strategies as st

from belated.agents import EpsilonGreedy
from belated.decisions import Decide, DecisionLearner, ModelSettings, Unknown
from belated.decisions import _settings as module
from belated.decisions._settings import most_actions, most_blocks, sparse_bytes, work
from belated.errors import BelatedError, InvalidInputError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.sampled_from(["a", "b", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "kind", "x"]), inner),
    max_leaves=6,
)
FIELDS = [
    "silence", "actions", "retired", "encoding", "aggregate", "forgetting", "floor", "draws", "scale", "noise", "ridge",
    "likelihood",
    "seed", "features", "categories", "tags", "action_features", "action_categories", "action_tags", "weights",
    "hashed", "horizon", "idle", "agent", "reward_range", "basis", "leaving", "other",
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


SESSIONS: dict[str, Any] = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}, "horizon": 8}


def test_a_horizon_makes_a_model_of_sessions_and_tables_go_both_ways() -> None:
    basis = {"features": "tiles", "low": [0.0], "high": [1.0]}
    agent = {"agent": "epsilon-greedy", "epsilon": 0.2}
    made = ModelSettings.from_table({**SESSIONS, "agent": agent, "basis": basis, "reward_range": [0, 2], "idle": 60})
    assert made.sessions is not None
    assert made.sessions.reward_range == (0.0, 2.0)
    assert made.sessions.algorithm() == EpsilonGreedy(epsilon=0.2)
    assert made.sessions.features() is not None
    assert ModelSettings.from_table(made.to_table()) == made
    assert ModelSettings.from_table(json.loads(made.to_json())) == made
    assert "draws" not in made.to_table()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"horizon": 0}, "horizon must be an integer >= 1"),
        ({"idle": 0}, "idle must be a finite number > 0"),
        ({"agent": "psvj"}, "agent must be one of 'psvi', 'auto-psvi', 'lpsvi', 'phe', 'ucbvi', 'q-learning', "),
        ({"agent": {"agent": 3}}, "agent must be one of 'psvi', "),
        ({"agent": "psrl"}, "agent must be an agent that plays in simulators, got 'psrl'"),
        ({"agent": "os:system"}, "data files may not import"),
        ({"agent": {"width": 1.0}}, "agent must be a name, or a table such as"),
        ({"agent": {"agent": "psvi", "colour": 1}}, "psvi has no setting 'colour'"),
        ({"basis": "tiles"}, "basis must be a table such as"),
        ({"basis": {"features": "builtins:print"}}, "data files may not import"),
        ({"reward_range": [1.0, 0.0]}, "reward_range must be two numbers, minimum below maximum"),
        ({"leaving": "often"}, "leaving must be one of 'cut', 'terminal', got 'often'"),
        ({"actions": []}, "actions must be given in the settings of a model of sessions"),
        ({"draws": 8}, "draws must be left out for sessions"),
        ({"forgetting": {"seconds": 60}}, "forgetting must be left out for sessions"),
        ({"action_features": ["price"], "actions": {"a": {"price": 1.0}}}, "their actions have no features"),
    ],
)
def test_settings_of_sessions_that_do_not_fit_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(BelatedError, match=words):
        ModelSettings.from_table({**SESSIONS, **changes})


def test_settings_of_sessions_need_a_horizon() -> None:
    table = {name: value for name, value in SESSIONS.items() if name != "horizon"}
    with pytest.raises(InvalidInputError, match="horizon must be given, since idle is for models of sessions"):
        ModelSettings.from_table({**table, "idle": 60})


def test_a_model_that_would_take_too_much_memory_is_refused_with_figures() -> None:
    words = r"at most 255 with 256 features, got 256: the model would take 0\.8 GB of memory, and may take 0\.8"
    table: dict[str, Any] = {"categories": ["c"], "hashed": 255, "silence": {"kind": "unknown"}, "draws": 1}
    assert most_blocks(256) == 255
    ModelSettings.from_table({**table, "actions": [str(i) for i in range(255)]})
    with pytest.raises(InvalidInputError, match=words):
        ModelSettings.from_table({**table, "actions": [str(i) for i in range(256)]})
    with pytest.raises(InvalidInputError, match="dimension must be an integer >= 1 and <= 1048576"):
        DecisionLearner(2**20 + 1, silence=Unknown())


def test_a_sparse_model_that_might_take_too_much_memory_is_refused_with_figures() -> None:
    """2²⁰ features of 4·17 + 28 bytes, and 2¹⁷ rows of 4·17 + 8·30 + 64, are 149 MB; with 1 024 draws 2.5 GB."""
    assert sparse_bytes(2**20, 32) == 2**20 * 96 + 2**17 * 372 == 149_422_080
    DecisionLearner(2**20, silence=Unknown())
    with pytest.raises(InvalidInputError, match=r"1048576 features and 1024 draws might take 2\.5 GB.*may take 0\.8"):
        DecisionLearner(2**20, silence=Unknown(), draws=1024)
    table: dict[str, Any] = {"categories": ["c"], "hashed": 2**18, "silence": {"kind": "unknown"}}
    ModelSettings.from_table({**table, "actions": [str(i) for i in range(16)]})
    with pytest.raises(InvalidInputError, match="fewer actions with their own weights"):
        ModelSettings.from_table({**table, "actions": [str(i) for i in range(40)]})
    with pytest.raises(InvalidInputError, match="at most 1024 in sessions and by age"):
        ModelSettings.from_table({**table, "actions": ["a"], "silence": {"kind": "by_age", "seconds": 60}})
    with pytest.raises(InvalidInputError, match="at most 1024 in sessions and by age"):
        ModelSettings.from_table({**table, "actions": ["a"], "horizon": 3})


def test_new_names_are_refused_when_no_more_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NUMBERS", 5 * 2 * 3)
    model = model_of(actions=[], features=["x"])
    assert len(model.decide({"x": 1.0}, actions=["a", "b", "c"], size=3).ranking) == 3
    with pytest.raises(InvalidInputError, match="their own weights must be at most 5 with 2 features, got 6"):
        model.decide({"x": 1.0}, actions=["d", "e", "f"], size=3)
    answers = model.run([Decide({"x": 1.0}, actions=[name]) for name in "defg"])  # of which two fit
    assert [isinstance(each, InvalidInputError) for each in answers] == [False, False, True, True]
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
    with pytest.raises(InvalidInputError, match="size must be at most 2 with 3 features per action, got 3"):
        model.decide({"x": 1.0, "y": 0.0}, size=3)
