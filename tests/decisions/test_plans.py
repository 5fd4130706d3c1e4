"""Contexts become states, and plans say what members do in them; what is stored is checked."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from belated.decisions import ModelSettings
from belated.decisions._plans import MEMBERS, encode_state, plans_from_bytes
from belated.decisions._session_learner import SessionLearner
from belated.errors import DamagedFileError, InvalidInputError

BASE: dict[str, Any] = {"actions": ["a", "b", "c"], "silence": {"kind": "unknown"}, "horizon": 4}


def settings(**more: Any) -> ModelSettings:
    return ModelSettings.from_table({**BASE, **more})


def test_numbers_come_after_a_constant() -> None:
    state = encode_state(settings(features=["x", "y"]), {"y": 2.0, "x": -1.0}, ["c", "a"])
    assert state.terms.tolist() == [0, 1, 2]
    assert state.values.tolist() == [1.0, -1.0, 2.0]
    assert state.offered.tolist() == [2, 0]


def test_a_category_takes_the_place_of_the_constant() -> None:
    """A context of one category is a row of a table; one without a value is a row of its own."""
    model = settings(categories=["page"], hashed=4)
    states = [
        encode_state(model, context, ["a"]) for context in ({"page": "home"}, {"page": "cart"}, {}, {"page": None})
    ]
    assert all(state.values.tolist() == [1.0] for state in states)
    terms = [int(state.terms[0]) for state in states]
    assert terms[2] == terms[3]
    assert len(set(terms)) == 3
    assert all(0 <= term < 2**63 for term in terms)


def test_numbers_categories_and_tags_together() -> None:
    model = settings(features=["x"], categories=["page"], tags=["likes"], hashed=8)
    state = encode_state(model, {"x": 0.5, "page": "home", "likes": ["tea", "cake"]}, ["a"])
    assert state.values.tolist() == [0.5, 1.0, 1.0, 1.0]
    assert state.terms[0] == 0
    assert (state.terms[1:] >= 1).all()


def test_a_basis_maps_the_numbers() -> None:
    tiles = {"features": "tiles", "low": [0.0], "high": [1.0], "tilings": 2, "bins": 2}
    model = settings(features=["x"], basis=tiles)
    state = encode_state(model, {"x": 0.9}, ["a"])
    assert model.basis is not None
    expected: Any = model.basis.encode(np.array([0.9]))
    assert state.terms.tolist() == expected.indices.tolist()
    assert state.values.tolist() == expected.values.tolist()


@pytest.mark.parametrize(
    ("context", "offered", "message"),
    [
        ({"x": "one"}, ["a"], "x of context must be"),
        ({"x": 1.0, "z": 1.0}, ["a"], "must be those declared"),
        ([1.0], ["a"], "context must be an object"),
        ({"x": 1.0}, ["a", "d"], "each of the actions must be one of a, b, c, got 'd'"),
    ],
)
def test_what_does_not_fit_is_refused(context: Any, offered: list[str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        encode_state(settings(features=["x"]), context, offered)


def test_a_model_of_single_decisions_has_no_states() -> None:
    single = ModelSettings.from_table({"actions": ["a"], "silence": {"kind": "unknown"}})
    with pytest.raises(InvalidInputError, match="horizon must be given"):
        SessionLearner(single)


def played(model: ModelSettings, sessions: int = 12) -> SessionLearner:
    learner, rng = SessionLearner(model), np.random.default_rng(0)
    for session in range(sessions):
        for step in range(int(rng.integers(1, 5))):
            context = {"x": float(rng.random()), "page": "uvw"[rng.integers(3)]}
            learner.step(session, step, encode_state(model, context, "abc"), int(rng.integers(3)))
            learner.reward(session, step, float(rng.random()))
        learner.end(session, terminal=bool(rng.random() < 0.5))
    return learner


MIXED = settings(features=["x"], categories=["page"], hashed=8)


@pytest.mark.parametrize("agent", ["auto-psvi", "ucbvi", "epsilon-greedy"])
def test_plans_are_read_as_they_were_written(agent: str) -> None:
    model = settings(features=["x"], categories=["page"], hashed=8, agent=agent)
    plans = played(model).draw(7)
    again = plans_from_bytes(model, plans.to_bytes())
    assert (again.place, again.members) == (7, plans.members)
    assert again.members == (MEMBERS if agent == "auto-psvi" else 1)
    assert again.to_bytes() == plans.to_bytes()
    for step in range(4):
        for page in "uvwz":
            state = encode_state(model, {"x": 0.3, "page": page}, ["b", "c"])
            found = plans.distributions(step, state)
            np.testing.assert_array_equal(again.distributions(step, state), found)
            np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_a_term_that_was_never_seen_says_nothing() -> None:
    """Its state is worth what its known features are worth: here nothing, so that all actions are alike."""
    model = settings(categories=["page"], hashed=8)
    learner = SessionLearner(model)
    learner.step(0, 0, encode_state(model, {"page": "u"}, "abc"), 0)
    learner.reward(0, 0, 0.0)
    learner.end(0, terminal=True)
    plans = learner.draw(1)
    np.testing.assert_allclose(plans.distributions(0, encode_state(model, {"page": "v"}, "abc")), 1 / 3)
    known = plans.distributions(0, encode_state(model, {"page": "u"}, "abc"))
    assert known[:, 0].sum() < known[:, 1:].sum() / 2  # it has paid nothing


def test_terms_share_places_when_all_are_taken() -> None:
    """With two places a third page is where its hash says, as for the learner so for the plans."""
    model = settings(categories=["page"], hashed=2)
    learner = SessionLearner(model)
    pages = "uvw"
    for session, page in enumerate(pages):
        learner.step(session, 0, encode_state(model, {"page": page}, "abc"), session)
        learner.reward(session, 0, 1.0)
        learner.end(session, terminal=True)
    steps = learner.steps(joint=False)
    assert steps.states.indices.tolist()[:2] == [0, 1]
    shared = int(steps.states.indices[2])
    assert shared == int(encode_state(model, {"page": "w"}, "a").terms[0]) % 2
    plans = learner.draw(3)
    for step in range(4):
        np.testing.assert_array_equal(
            plans.distributions(step, encode_state(model, {"page": "w"}, "abc")),
            plans.distributions(step, encode_state(model, {"page": pages[shared]}, "abc")),
        )


def test_what_is_not_a_set_of_plans_is_refused() -> None:
    plans = played(MIXED).draw(3)
    content = plans.to_bytes()
    with pytest.raises(DamagedFileError, match="a set of plans cannot be"):
        plans_from_bytes(MIXED, content[:-50])
    with pytest.raises(DamagedFileError, match="a set of plans cannot be"):
        plans_from_bytes(MIXED, b"nothing of the kind")
    with pytest.raises(DamagedFileError, match="for these settings"):
        plans_from_bytes(settings(features=["x"], categories=["page"], hashed=8, horizon=5), content)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("weights", lambda values: values * np.nan),
        ("weights", lambda values: values[:, :1, :, :, :-1]),
        ("weights", lambda values: values.astype(np.float32)),
        ("features", lambda values: values[::-1]),
        ("features", lambda values: values + 100),
        ("caps", lambda values: values[:1]),
        ("numbers", lambda values: values + 2.0),
        ("terms", lambda values: values[::-1]),
        ("places", lambda values: values + 1),
        ("place", lambda values: values - 100),
    ],
)
def test_arrays_that_do_not_fit_are_refused(name: str, change: Any) -> None:
    with np.load(io.BytesIO(played(MIXED).draw(3).to_bytes())) as archive:
        arrays = {each: archive[each] for each in archive.files}
    arrays[name] = change(arrays[name])
    content = io.BytesIO()
    np.savez(content, **arrays)
    with pytest.raises(DamagedFileError, match="a set of plans cannot be used"):
        plans_from_bytes(MIXED, content.getvalue())
