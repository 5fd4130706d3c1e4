"""Sessions over HTTP: their addresses and refusals, plans that are drawn meanwhile, and what is said of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from belated.decisions import MemoryStore, Model, ModelSettings, SQLiteStore
from belated.service import _planning as module
from belated.service._app import make_app
from belated.service._overview import OLD, alarms
from belated.service._service import Service

TABLE: dict[str, Any] = {
    "horizon": 3,
    "idle": 50.0,
    "actions": ["a", "b"],
    "features": ["x"],
    "agent": "greedy",
    "silence": {"kind": "mature", "seconds": 100.0},
}
HERE = {"x": 0.5}


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(clock: Clock) -> Iterator[TestClient]:
    tables = {"shop": TABLE, "other": TABLE, "ads": {name: TABLE[name] for name in ("actions", "features", "silence")}}
    settings = {name: ModelSettings.from_table(table) for name, table in tables.items()}
    service = Service(MemoryStore(), settings, clock=clock)
    with TestClient(make_app(service), base_url="http://localhost") as made:
        made.service = service  # type: ignore[attr-defined]
        yield made


def post(client: TestClient, what: str, model: str = "shop", **body: Any) -> tuple[int, Any]:
    answer = client.post(f"/v1/models/{model}/{what}", json=body)
    return answer.status_code, answer.json()


def planned(client: TestClient, model: str = "shop") -> int:
    """Wait until all that has come is in the plans; the service draws them by itself."""
    service: Service = client.service  # type: ignore[attr-defined]
    deadline = time.monotonic() + 60.0
    while service.model(model).plan_is_due():
        assert time.monotonic() < deadline, service.planning.troubles
        time.sleep(0.01)
    return int(service.model(model).summary()["sessions"]["plan"])


def test_a_session_from_its_first_step_to_its_late_reward(client: TestClient, clock: Clock) -> None:
    planned(client)
    steps = [post(client, "decide", session="visit 81", context=HERE, key=f"k{i}") for i in (0, 1, 1)]
    assert [code for code, _ in steps] == [200] * 3
    assert [answer["step"] for _, answer in steps] == [0, 1, 1]
    assert set(steps[0][1]) == {"id", "session", "step", "action", "probability", "model_version"}
    state = {"status": "ended", "steps": 2, "terminal": True, "ended": clock.now, "due": clock.now + 100.0}
    for status in ("accepted", "duplicate"):
        answer = post(client, "end", session="visit 81", terminal=True)[1]
        assert (answer["id"], answer["status"], answer["session"]) == ("visit 81", status, state)
    assert post(client, "feedback", session="visit 81", reward=1.0, event="order")[1]["reward"] == 1.0
    assert post(client, "feedback", id=steps[0][1]["id"], reward=0.25)[0] == 200
    found = client.get("/v1/models/shop/sessions/visit 81").json()
    assert (found["status"], found["terminal"], found["model"]) == ("ended", True, "shop")
    assert [(each["step"], each["reward"], each["session"]) for each in found["steps"]] == [
        (0, 0.25, "visit 81"),
        (1, 1.0, "visit 81"),
    ]
    clock.now += 100.0
    assert post(client, "decide", session="next", context=HERE)[0] == 200
    assert client.get(f"/v1/decisions/{steps[0][1]['id']}").json()["learned"] == 0.25
    place = planned(client)
    assert place > 0
    assert client.get("/v1/models/shop").json()["sessions"]["plan"] == place
    assert post(client, "cancel", session="visit 81")[0] == 200
    assert client.get("/v1/models/shop/sessions/visit 81").json()["status"] == "cancelled"
    service: Service = client.service  # type: ignore[attr-defined]
    assert service.model("shop").verify() == []


def test_refusals_have_a_sentence_and_a_status(client: TestClient, clock: Clock) -> None:
    for name, steps in (("ended", 1), ("full", 3), ("idle", 1)):
        for _ in range(steps):
            post(client, "decide", session=name, context=HERE)
    post(client, "end", session="ended")
    clock.now += 60.0
    post(client, "decide", session="gone", context=HERE)
    client.delete("/v1/models/shop/decisions", params={"session": "gone", "keep_learned": "false"})
    refused = {
        "ended": (409, "has ended"),
        "full": (409, "with its last step"),
        "idle": (409, "by being idle"),
        "gone": (410, "which was forgotten"),
    }
    for name, (code, words) in refused.items():
        got = post(client, "decide", session=name, context=HERE)
        assert (got[0], words in got[1]["error"]) == (code, True), got
    for body, code, words in (
        ({"context": HERE}, 422, "session must be given"),
        ({"context": {}, "session": "new"}, 422, "x of context"),
        ({"context": HERE, "session": "new", "size": 2}, 422, "size must be 1"),
        ({"context": HERE, "session": 3}, 422, "the body must be a request for a decision"),
    ):
        got = post(client, "decide", **body)
        assert (got[0], words in got[1]["error"]) == (code, True), got
    assert post(client, "decide", "ads", context=HERE, session="s")[0] == 422
    assert post(client, "end", session="never")[0] == 404
    assert post(client, "end", "other", session="ended")[0] == 404  # sessions are of one model
    assert post(client, "end", "ads", session="s")[0] == 422
    assert post(client, "end", session="ended", terminal=True)[0] == 409
    assert post(client, "end", session="gone")[0] == 410
    assert post(client, "feedback", session="gone", reward=1.0)[0] == 410
    assert post(client, "feedback", reward=1.0)[0] == 422
    assert post(client, "feedback", session="s", id="x", reward=1.0)[0] == 422
    assert post(client, "feedback", session="tomorrow", reward=1.0)[0] == 202
    assert post(client, "cancel", session="never")[0] == 404
    assert client.get("/v1/models/shop/sessions/never").status_code == 404
    assert client.get("/v1/models/shop/sessions/gone").status_code == 410
    assert client.get("/v1/models/other/sessions/ended").status_code == 404
    assert client.get("/v1/models/ads/sessions/ended").status_code == 404


def test_lists_of_ends_and_steps(client: TestClient) -> None:
    wanted = [{"session": "s", "context": HERE}, {"session": "t", "context": HERE}, {"session": "s", "context": HERE}]
    made = client.post("/v1/models/shop/decide/batch", json=wanted).json()
    assert [each["step"] for each in made] == [0, 0, 1]
    ends = client.post("/v1/models/shop/end/batch", json=[{"session": "s"}, {"session": "u"}, {"session": 1}]).json()
    assert [each["status"] for each in ends] == ["accepted", "unknown", "invalid"]


def test_a_name_may_have_a_slash(client: TestClient) -> None:
    assert post(client, "decide", session="a/b", context=HERE)[0] == 200
    assert client.get("/v1/models/shop/sessions/a%2Fb").json()["session"] == "a/b"


def test_figures_of_sessions(client: TestClient, clock: Clock) -> None:
    post(client, "decide", session="one", context=HERE)
    post(client, "decide", session="two", context=HERE)
    post(client, "end", session="two")
    planned(client)
    text = client.get("/metrics").text
    assert 'belated_sessions_open{model="shop"} 1.0' in text
    assert 'belated_sessions_unseen{model="shop"} 0.0' in text
    assert 'belated_plan_age_seconds{model="shop"} 0.0' in text
    assert 'belated_sessions_open{model="ads"}' not in text
    shown = client.get("/v1/models/shop").json()
    assert (shown["sessions"]["open"], shown["weights"], shown["settings"]["horizon"]) == (1, {}, 3)


def test_plans_that_cannot_be_drawn_leave_sessions_as_they_are(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "LEAST", 0.0)
    monkeypatch.setattr(module, "FAILED", 0.05)

    def fail(self: Any, *given: Any) -> Any:
        raise MemoryError("not enough")

    service = Service(MemoryStore(), {"shop": ModelSettings.from_table(TABLE)}, clock=clock)
    with TestClient(make_app(service), base_url="http://localhost") as client:
        client.service = service  # type: ignore[attr-defined]
        planned(client)
        with monkeypatch.context() as broken:
            broken.setattr("belated.decisions._planner.Planner.draw", fail)
            for name in "stu":
                assert post(client, "decide", session=name, context=HERE)[0] == 200
                assert post(client, "end", session=name)[0] == 200
            deadline = time.monotonic() + 60.0
            while not service.planning.troubles:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert post(client, "decide", session="v", context=HERE)[0] == 200
            found = client.get("/v1/models/shop").json()["alarms"]
            assert any("Sessions continue with old plans: MemoryError" in each for each in found)
            assert 'kind="plan",model="shop"' in client.get("/metrics").text
        planned(client)
        assert service.planning.problem("shop") == ""
    assert "drawing plans for shop failed" in caplog.text


def test_old_plans_are_an_alarm(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(MemoryStore(), {"shop": ModelSettings.from_table(TABLE)}, clock=clock)
    service.planning.close()
    model = service.model("shop")
    model.plan()
    model.decide(HERE, session="s")
    model.end("s")
    assert not [each for each in alarms(service, model, [], [], clock.now) if "plans" in each]
    (found,) = [each for each in alarms(service, model, [], [], clock.now + OLD + 1.0) if "plans" in each]
    assert found == "The plans for sessions are 601 seconds old, and 1 sessions have ended since."
    monkeypatch.setattr(service.planning, "_began", ("shop", time.monotonic() - 100.0))
    assert "taken 100 seconds so far" in service.planning.problem("shop")
    service.close()


def test_a_restarted_service_goes_on_with_open_sessions(tmp_path: Path, clock: Clock) -> None:
    settings = {"shop": ModelSettings.from_table({**TABLE, "floor": 0.0})}
    actions = []
    for i in range(3):
        service = Service(SQLiteStore(tmp_path / "store.db", durable=False), settings, clock=clock)
        with TestClient(make_app(service), base_url="http://localhost") as client:
            client.service = service  # type: ignore[attr-defined]
            if i == 0:
                planned(client)
            code, answer = post(client, "decide", session="s", context=HERE)
            assert (code, answer["step"]) == (200, i)
            actions.append(client.get("/v1/models/shop/sessions/s").json()["plan"])
    assert len(set(actions)) == 1


def test_whoever_learns_rows_in_the_background_rests_half_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    worked = iter([0.0, 0.0004, 0.0013, 0.0013, 0.0015, 0.0043, 0.0043])
    slept: list[float] = []
    monkeypatch.setattr(time, "thread_time", lambda: next(worked))
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "monotonic", lambda: sum(slept))
    rests = module.Rests()
    for _ in range(4):
        rests()
    assert slept == pytest.approx([0.0013, 0.003])
    assert rests.taken == pytest.approx(0.0043)


@pytest.mark.parametrize(("rested", "pause"), [(0.0, 5.0), (1.0, 3.0), (3.0, module.LEAST)])
def test_rests_while_a_set_is_drawn_count_as_rest_after_it(
    rested: float, pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]

    class Slow(Model):
        def plan_is_due(self) -> bool:
            return True

        def plan(self, rest: Any = None) -> int:
            now[0] += 5.0
            rest.taken = rested
            return 0

    planning = module.Planning(lambda: (), lambda _: None)
    planning.close()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    planning._plan(Slow("shop", ModelSettings.from_table(TABLE), MemoryStore()))
    assert planning._next["shop"] == pytest.approx(now[0] + pause)


def test_rests_are_offered_after_each_row_and_change_no_plans() -> None:
    models = [Model("shop", ModelSettings.from_table(TABLE), MemoryStore(), clock=Clock()) for _ in range(2)]
    offered = 0

    def rest() -> None:
        nonlocal offered
        offered += 1

    for model in models:
        for name in "uvw":
            model.decide(HERE, session=name)
            model.end(name, terminal=True)
        model.plan(rest)
    assert offered == 12
    one, two = (model.store.plan("shop", 6) for model in models)
    assert one is not None
    assert two is not None
    assert one.content == two.content
