"""What is shown of sessions, counted by hand."""

from __future__ import annotations

from belated.decisions import MemoryStore, Model, ModelSettings
from belated.service import _visits
from belated.service._visits import Looks, flow, visits_of


def shop(**given: object) -> Model:
    table = {"actions": ["article", "offer"], "categories": ["page"], "hashed": 16, "horizon": 3}
    return Model("shop", ModelSettings.from_table({**table, "silence": {"kind": "unknown"}, **given}), MemoryStore())


def test_returns_are_of_sessions_that_have_ended_and_are_known() -> None:
    model = shop()
    for name, rewards in (("known", (0.25, 0.5)), ("half", (1.0,)), ("open", (1.0, 1.0))):
        steps = [model.decide({"page": page}, session=name) for page in ("home", "list")]
        for step, reward in zip(steps, rewards, strict=False):
            model.feedback(step.id, reward)
        if name != "open":
            model.end(name, terminal=True)
    found = visits_of(model, model.store.last("shop"))
    assert [earned for _, earned in found.returns] == [0.75]
    assert len(found.entries) == len(found.latest) == 6


def test_the_flow_counts_what_is_done_where_and_where_it_leads() -> None:
    model = shop()
    for name, pages in (("a", ("home", "list")), ("b", ("home", "home", "list")), ("c", ("list",))):
        for page in pages:
            model.decide({"page": page}, session=name, chosen="offer" if page == "list" else "article")
    found = flow([model.lookup_session(name) for name in "abc"], ["page"])
    assert found == {
        "by": "page",
        "sessions": 3,
        "places": ["home", "list"],
        "steps": [
            [0, "home", "article", 2],
            [0, "list", "offer", 1],
            [1, "home", "article", 1],
            [1, "list", "offer", 1],
            [2, "list", "offer", 1],
        ],
        "moves": [[0, "home", "home", 1], [0, "home", "list", 1], [1, "home", "list", 1]],
        "longest": 3,
    }


def test_rare_places_are_one_and_without_a_category_there_is_one() -> None:
    model = shop()
    for i in range(10):
        for page in ["home"] * (i < 9) + [f"page {i}"]:
            model.decide({"page": page}, session=str(i))
    sessions = [model.lookup_session(str(i)) for i in range(10)]
    places = flow(sessions, ["page"])["places"]
    assert len(places) == _visits.PLACES
    assert {"home", "others"} <= set(places)
    assert flow(sessions, [])["places"] == ["all"]


def test_nothing_is_looked_up_again_while_the_log_is_the_same() -> None:
    model, looks = shop(), Looks()
    model.decide({"page": "home"}, session="a")
    first = looks(model)
    assert looks(model) is first
    looks._known = {name: (place, 0.0, each) for name, (place, _, each) in looks._known.items()}  # it has rested
    assert looks(model) is first
    model.decide({"page": "list"}, session="a")
    assert len(looks(model).latest) == 2
