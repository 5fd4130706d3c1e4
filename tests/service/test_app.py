"""The service, asked over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from starlette.testclient import TestClient

from belated.decisions import MemoryStore, ModelSettings, SQLiteStore
from belated.service import _app as app
from belated.service._app import LARGEST_BODY, make_app
from belated.service._keys import Key, Keyring, digest
from belated.service._service import Service

TABLE = {"actions": ["a", "b", "c"], "features": ["x", "y"], "silence": {"kind": "unknown"}}
CONTEXT = {"context": {"x": 0.3, "y": 1.0}}


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def make(store: Any, clock: Clock, keys: Keyring | None = None, **table: Any) -> TestClient:
    settings = ModelSettings.from_table({**TABLE, **table})
    return TestClient(make_app(Service(store, {"ads": settings}, clock=clock, keys=keys)), base_url="http://localhost")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(clock: Clock) -> Iterator[TestClient]:
    with make(MemoryStore(), clock) as made:
        yield made


def decide(client: TestClient, **more: Any) -> Any:
    answer = client.post("/v1/models/ads/decide", json={**CONTEXT, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def feedback(client: TestClient, **event: Any) -> Any:
    return client.post("/v1/models/ads/feedback", json=event)


def test_a_decision_its_reward_and_its_history(client: TestClient) -> None:
    made = decide(client)
    assert set(made) == {"id", "action", "probability", "model_version"}
    assert 0 < made["probability"] <= 1
    answer = feedback(client, id=made["id"], reward=1.0, event="order-1")
    assert (answer.status_code, answer.json()["status"]) == (200, "accepted")
    found = client.get(f"/v1/decisions/{made['id']}").json()
    assert (found["action"], found["probability"], found["reward"]) == (made["action"], made["probability"], 1.0)
    assert found["status"] == "rewarded"
    assert [event["kind"] for event in found["history"]] == ["reward"]


def test_repeats_conflicts_and_corrections(client: TestClient) -> None:
    made = decide(client)["id"]
    statuses = [
        feedback(client, id=made, reward=1.0, event="e"),
        feedback(client, id=made, reward=1.0, event="e"),
        feedback(client, id=made, reward=2.0, event="e"),
        feedback(client, id=made, reward=2.0, event="e", version=1),
        feedback(client, id=made, reward=1.0, event="e"),  # the original, delivered again
        feedback(client, id=made, reward=1.0, event="f"),  # another purchase of equal value
    ]
    assert [(each.status_code, each.json()["status"]) for each in statuses] == [
        (200, "accepted"),
        (200, "duplicate"),
        (409, "conflict"),
        (200, "accepted"),
        (200, "duplicate"),
        (200, "accepted"),
    ]
    assert client.get(f"/v1/decisions/{made}").json()["reward"] == 3.0


def test_a_list_has_a_status_for_each(client: TestClient) -> None:
    first, second = decide(client)["id"], decide(client)["id"]
    sent = [{"id": first, "reward": 1}, {"id": "nobody", "reward": 1}, {"id": second}, {"id": second, "reward": 0.5}]
    answer = client.post("/v1/models/ads/feedback/batch", json=sent)
    assert answer.status_code == 200
    assert [each["status"] for each in answer.json()] == ["accepted", "unknown", "invalid", "accepted"]


def test_many_decisions_at_once(client: TestClient) -> None:
    answer = client.post("/v1/models/ads/decide/batch", json=[CONTEXT, {"context": {}}, CONTEXT])
    made = answer.json()
    assert answer.status_code == 200
    assert "error" in made[1]
    assert len({made[0]["id"], made[2]["id"]}) == 2


def test_a_key_gives_the_same_answer_and_another_body_is_a_conflict(client: TestClient) -> None:
    first, again = decide(client, key="request-1"), decide(client, key="request-1")
    assert first == again
    other = client.post("/v1/models/ads/decide", json={"context": {"x": 9.0, "y": 1.0}, "key": "request-1"})
    assert other.status_code == 409


def test_a_signal_is_reported_like_a_reward_and_is_none(clock: Clock) -> None:
    with make(MemoryStore(), clock, silence={"kind": "by_age", "seconds": 60}, signals=["click"]) as client:
        made = decide(client)["id"]
        answer = client.post("/v1/models/ads/signal", json={"id": made, "signal": "click", "value": 2.0})
        assert (answer.status_code, answer.json()["status"]) == (200, "accepted")
        many = [{"id": made, "signal": "click", "value": 2.0}, {"id": made, "signal": "look"}, {"id": "x"}]
        answers = client.post("/v1/models/ads/signal/batch", json=many).json()
        assert [each["status"] for each in answers] == ["duplicate", "invalid", "invalid"]
        found = client.get(f"/v1/decisions/{made}").json()
        assert (found["status"], found["reward"], found["history"][0]["event"]) == ("in flight", None, "click")


def test_what_was_not_shown_counts_only_once_activated(client: TestClient) -> None:
    made = decide(client, active=False)["id"]
    assert client.get(f"/v1/decisions/{made}").json()["status"] == "inactive"
    assert client.post("/v1/models/ads/activate", json={"id": made}).json()["status"] == "accepted"
    assert client.get(f"/v1/decisions/{made}").json()["status"] == "in flight"
    assert client.post("/v1/models/ads/cancel", json={"id": made}).json()["status"] == "accepted"
    assert client.get(f"/v1/decisions/{made}").json()["status"] == "cancelled"


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ('{"id": "x", "reward": NaN}', 422, "malformed"),
        ('{"id": "x", "reward": 1e999}', 422, "out of range"),
        ('{"id": "x", "reward": "0.5"}', 422, "got `str`"),
        ('{"id": "x", "reward": true}', 422, "got `bool`"),
        ('{"id": "x", "reward": null}', 422, "got `null`"),
        ('{"id": "x"}', 422, "missing required field `reward`"),
        ('{"id": "x", "reward": 1, "more": 2}', 422, "unknown field `more`"),
        ("[]", 422, "got `array`"),
        ("", 422, "truncated"),
        ("[" * 100_000, 422, "got `array`"),
        ('{"id": "\\ud800", "reward": 1}', 422, ""),
    ],
)
def test_bad_bodies_are_refused_in_a_sentence(client: TestClient, body: str, code: int, words: str) -> None:
    answer = client.post("/v1/models/ads/feedback", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == code
    assert words in answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "words"), [("[]", "1 to"), ("[1, 2", "truncated"), ("{}", "must be a list"), ("[" * 100_000, "list")]
)
def test_bad_lists_are_refused_in_a_sentence(client: TestClient, body: str, words: str) -> None:
    for what in ("decide", "feedback", "activate", "cancel"):
        answer = client.post(f"/v1/models/ads/{what}/batch", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 422
        assert words in answer.json()["error"]


@pytest.mark.parametrize(
    "context",
    [
        {},
        {"x": 1.0},
        {"x": "1", "y": 1},
        {"x": True, "y": 1},
        {"x": [1], "y": 1},
        {"x": 1e200, "y": 1},
        {"x": 1, "y": 1, "z": 1},
    ],
)
def test_contexts_that_are_not_declared_are_refused(client: TestClient, context: Any) -> None:
    answer = client.post("/v1/models/ads/decide", json={"context": context})
    assert answer.status_code == 422
    assert "got" in answer.json()["error"]


def test_limits(client: TestClient) -> None:
    large = client.post(
        "/v1/models/ads/feedback", content=b" " * (LARGEST_BODY + 1), headers={"content-type": "application/json"}
    )
    assert large.status_code == 413
    text = client.post("/v1/models/ads/feedback", content=b"{}", headers={"content-type": "text/plain"})
    packed = {"content-type": "application/json", "content-encoding": "gzip"}
    assert (text.status_code, client.post("/v1/models/ads/decide", content=b"x", headers=packed).status_code) == (
        415,
        415,
    )


def test_unknown_models_and_decisions(client: TestClient) -> None:
    assert client.post("/v1/models/other/decide", json=CONTEXT).status_code == 404
    assert client.get("/v1/decisions/nobody").status_code == 404
    for method, path, code in (("GET", "/v1/nothing", 404), ("GET", "/v1/models/ads/decide", 405)):
        nowhere = client.request(method, path)
        assert nowhere.status_code == code
        assert path in nowhere.json()["error"]


def test_a_purged_decision_is_gone_and_not_unknown(clock: Clock) -> None:
    store = MemoryStore()
    with make(store, clock) as client:
        made = decide(client)["id"]
        feedback(client, id=made, reward=1.0)
        clock.now += 100.0
        service: Service = client.app.state.service  # type: ignore[attr-defined]
        assert service.model("ads").purge(clock.now) == 1
        assert client.get(f"/v1/decisions/{made}").status_code == 410
        assert feedback(client, id=made, reward=1.0).status_code == 410


@pytest.mark.parametrize("keep", ["true", "false"])
def test_decisions_are_erased_while_the_service_runs(keep: str, clock: Clock, tmp_path: Path) -> None:
    with make(SQLiteStore(tmp_path / "d.db", durable=False), clock) as client:
        old, one, two = (decide(client, key=f"{name} of a person")["id"] for name in ("old", "one", "two"))
        for made in (old, one, two):
            assert feedback(client, id=made, reward=1.0).status_code == 200
        where = "/v1/models/ads/decisions"
        for query in ("", "?id=x&before=1", "?key=one", f"?id={one}&keep_learned=maybe", "?before=soon", "?ids=x"):
            assert client.delete(where + query).status_code == 422, query
        assert client.delete(f"{where}?id=nobody&keep_learned={keep}").status_code == 404
        service: Service = client.app.state.service  # type: ignore[attr-defined]
        before = service.model("ads").weights()
        erased = client.delete(f"{where}?id={one}&key=two%20of%20a%20person&keep_learned={keep}")
        assert (erased.status_code, erased.json()) == (200, {"model": "ads", "erased": 2})
        after = service.model("ads").weights()
        assert all((after[name] == before[name]).all() for name in before) == (keep == "true")
        assert client.get(f"/v1/decisions/{one}").status_code == 410
        assert client.delete(f"{where}?id={one}&keep_learned={keep}").status_code == 410
        clock.now += 100.0
        assert client.delete(f"{where}?before={clock.now}").json() == {"model": "ads", "erased": 1}
        assert feedback(client, id=old, reward=1.0).status_code == 410
        assert decide(client)["id"] and service.model("ads").verify() == []


def test_erasing_needs_the_key_of_an_administrator(clock: Clock) -> None:
    keys = Keyring([Key("site", digest("k"), frozenset({"decide", "feedback", "read"}))])
    with make(MemoryStore(), clock, keys=keys) as client:
        assert client.delete("/v1/models/ads/decisions?before=1", headers={"X-API-Key": "k"}).status_code == 403


def test_a_store_that_was_replaced_underneath_takes_nothing_more(clock: Clock, tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "d.db", durable=False)
    with make(store, clock) as client:
        made = decide(client)["id"]
        store.backup(tmp_path / "copy.db")
        (tmp_path / "copy.db").rename(tmp_path / "d.db")
        for path, body in (("decide", CONTEXT), ("feedback", {"id": made, "reward": 1.0})):
            answer = client.post(f"/v1/models/ads/{path}", json=body)
            assert answer.status_code == 503
            assert "was replaced" in answer.json()["error"]
        assert client.get("/health/ready").status_code == 503


def test_nothing_is_drawn_from_a_posterior_that_is_not_finite_and_that_is_an_alarm(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(MemoryStore(), {"ads": ModelSettings.from_table(TABLE)}, clock=clock)
    with TestClient(make_app(service), base_url="http://localhost") as client:
        made, posterior = decide(client)["id"], service.model("ads").state.posterior
        with monkeypatch.context() as broken:
            size = posterior.ages[0].dimension
            broken.setattr(posterior.ages[0].sums, "moment", lambda block: np.full(size, np.nan))
            assert feedback(client, id=made, reward=1.0).status_code == 200
            posterior.configure(scale=1.0, noise=None, ridge=1.0)
            answer = client.post("/v1/models/ads/decide", json=CONTEXT)
            assert answer.status_code == 503 and "is not finite" in answer.json()["error"]
            assert service.writer.failures["ads", "posterior"] == 1
            assert "is not finite" in service.writer.problems["ads"]
            assert client.get("/health/ready").status_code == 503
            assert feedback(client, id=made, reward=2.0, correction=True).status_code == 200  # still learned
        posterior.configure(scale=1.0, noise=None, ridge=1.0)
        assert decide(client)["probability"] and client.get("/health/ready").status_code == 200


def test_windows_end_without_traffic(clock: Clock) -> None:
    with make(MemoryStore(), clock, silence={"kind": "mature", "seconds": 10.0, "default": 0.0}) as client:
        made = decide(client)["id"]
        clock.now += 11.0
        service: Service = client.app.state.service  # type: ignore[attr-defined]
        service.model("ads").tick()
        assert client.get(f"/v1/decisions/{made}").json()["status"] == "defaulted"


def test_models_are_made_and_changed_over_http(client: TestClient) -> None:
    made = client.put("/v1/models/mail", json={**TABLE, "actions": ["now", "later"]})
    assert made.json() == {"model": "mail", "settings_version": 1}
    assert (
        client.put("/v1/models/mail", json={**TABLE, "actions": ["now", "later", "never"]}).json()["settings_version"]
        == 2
    )
    assert client.get("/v1/models").json() == {"models": ["ads", "mail"]}
    assert client.put("/v1/models/bad", json={"actions": ["a"]}).status_code == 422
    assert client.put("/v1/models/bad", json={**TABLE, "flor": 0.1}).status_code == 422
    assert client.put("/v1/models/bad", content=b"{", headers={"content-type": "application/json"}).status_code == 422


@pytest.mark.parametrize(
    "odd",
    [{"actions": {"a": 5}}, {"actions": {"a": "xy"}}, {"actions": [["a"]]}, {"retired": 5}, {"retired": [["a"]]},
     {"features": 5}, {"features": [None]}, {"forgetting": {"seconds": "1"}}, {"silence": []}, {"noise": {}},
     {"seed": 1.5}, {"hashed": [1]}, {"weights": []}, {"encoding": "1"}],
)  # fmt: skip
def test_odd_settings_are_refused_in_a_sentence(client: TestClient, odd: dict[str, Any]) -> None:
    for table in ({**TABLE, **odd}, [odd], odd):
        answer = client.put("/v1/models/odd", json=table)
        assert (answer.status_code, bool(answer.json()["error"])) == (422, True)
    assert client.get("/v1/models").json() == {"models": ["ads"]}


@pytest.mark.parametrize("name", ["a\r\nb", "\x1b[2J", "a\u202eb", "\0", "..", "\u2028"])
def test_a_name_that_a_terminal_would_obey_is_refused(client: TestClient, name: str) -> None:
    answer = client.put(f"/v1/models/{quote(name, safe='')}", json=TABLE)
    assert (answer.status_code, name in answer.text) == (422, False) or name == ".."
    assert client.get("/v1/models").json() == {"models": ["ads"]}


def test_an_id_that_no_store_can_hold_is_refused(client: TestClient) -> None:
    assert client.get("/v1/decisions/%00").status_code == 422


def test_what_fails_inside_is_said_in_the_log_only(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> None:
        raise RuntimeError("password=secret")

    service: Service = client.app.state.service  # type: ignore[attr-defined]
    monkeypatch.setattr(app, "overview", fail)
    monkeypatch.setattr(app, "specification", fail)
    monkeypatch.setattr(service, "run", fail)
    posted = client.post("/v1/models/ads/decide", json=CONTEXT)
    for answer in (posted, client.get("/v1/models/ads"), client.get("/openapi.json")):
        assert (answer.status_code, "secret" in answer.text) == (500, False)
        assert "see the log of the service" in answer.json()["error"]


def test_a_page_of_another_site_neither_reads_nor_writes(client: TestClient) -> None:
    path = "/v1/models/ads/decide"
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {"host": "evil.example"}):
        for answer in (client.post(path, json=CONTEXT, headers=headers), client.get("/v1/models", headers=headers)):
            assert answer.status_code in (403, 421)
            assert "access-control-allow-origin" not in answer.headers
    for body in (b'{"context": {"x": 1, "y": 1}}', b""):  # a Blob, an ArrayBuffer, a beacon: no type
        assert client.post(path, content=body).status_code == 415
    assert client.options(path, headers={"origin": "http://evil.example"}).status_code == 403
    assert client.get("/v1/models/ads").json()["decisions"] == 0


def test_other_names_can_be_allowed_and_with_keys_any_name_will_do(clock: Clock) -> None:
    settings = ModelSettings.from_table(TABLE)
    keys = Keyring([Key("site", digest("secret"), frozenset({"read"}))])
    for ring, hosts, codes in (
        (None, ["Shop.example:80"], (200, 421)),
        (keys, [], (200, 200)),
        (keys, ["shop.example"], (200, 421)),
    ):
        service = Service(MemoryStore(), {"ads": settings}, clock=clock, keys=ring)
        with TestClient(make_app(service, hosts=hosts), headers={"x-api-key": "secret"}) as client:
            found = [client.get("/v1/models", headers={"host": host}) for host in ("shop.example", "other.example")]
            assert tuple(each.status_code for each in found) == codes


def test_the_page_is_in_no_frame_and_runs_nothing_of_others(client: TestClient) -> None:
    assert "frame-ancestors 'none'" in client.get("/").headers["content-security-policy"]


def test_health_figures_specification_and_page(client: TestClient) -> None:
    made = decide(client)
    feedback(client, id=made["id"], reward=1.0)
    assert client.get("/health/live").json() == {"status": "alive"}
    assert client.get("/health/ready").json()["status"] == "ready"
    figures = client.get("/metrics").text
    assert f'belated_decisions_total{{action="{made["action"]}",model="ads"}} 1.0' in figures
    assert 'belated_feedback_total{model="ads",status="accepted"} 1.0' in figures
    assert set(client.get("/openapi.json").json()["paths"]) >= {"/v1/models/{model}/decide", "/v1/decisions/{id}"}
    shown = client.get("/v1/models/ads").json()
    assert (shown["decisions"], shown["alarms"]) == (1, [])
    assert "<title>belated" in client.get("/").text


def test_a_repeated_key_is_counted_as_one_decision(client: TestClient) -> None:
    made = decide(client, key="request-1")
    sent = [{**CONTEXT, "key": "request-1"}] * 3
    assert [each["id"] for each in client.post("/v1/models/ads/decide/batch", json=sent).json()] == [made["id"]] * 3
    figures = [line for line in client.get("/metrics").text.splitlines() if line.startswith("belated_decisions_total")]
    assert figures == [f'belated_decisions_total{{action="{made["action"]}",model="ads"}} 1.0']


def test_a_replaced_version_no_longer_counts_in_the_history(client: TestClient) -> None:
    made = decide(client)["id"]
    for event, version, reward in (("e", 0, 1.0), ("f", 0, 5.0), ("e", 1, 2.0)):
        feedback(client, id=made, reward=reward, event=event, version=version)
    history = client.get(f"/v1/decisions/{made}").json()["history"]
    found = [(each["event"], each["version"], each["counted"]) for each in history]
    assert found == [("e", 0, False), ("f", 0, True), ("e", 1, True)]


def test_weights_have_the_names_of_their_features(client: TestClient) -> None:
    shown = client.get("/v1/models/ads").json()
    assert shown["weight_names"] == ["1", "x", "y"]
    assert {len(weights) for weights in shown["weights"].values()} == {3}


def test_keys_and_scopes(clock: Clock) -> None:
    keys = Keyring(
        [Key("site", digest("secret"), frozenset({"decide"})), Key("boss", digest("root"), frozenset({"admin"}))]
    )
    with make(MemoryStore(), clock, keys) as client:
        path = "/v1/models/ads/decide"
        assert client.post(path, json=CONTEXT).status_code == 401
        assert client.post(path, json=CONTEXT, headers={"x-api-key": "wrong"}).status_code == 401
        assert client.post(path, json=CONTEXT, headers={"x-api-key": "secret"}).status_code == 200
        assert client.post(path, json=CONTEXT, headers={"authorization": "Bearer secret"}).status_code == 200
        assert client.get("/v1/models", headers={"x-api-key": "secret"}).status_code == 403
        assert client.get("/v1/models", headers={"x-api-key": "root"}).status_code == 200
        assert client.get("/health/live").status_code == 200


def test_a_restart_knows_everything(tmp_path: Path, clock: Clock) -> None:
    with make(SQLiteStore(tmp_path / "d.db"), clock) as client:
        made = decide(client)["id"]
        feedback(client, id=made, reward=1.0)
        before = client.get("/v1/models/ads").json()["weights"]
    with make(SQLiteStore(tmp_path / "d.db"), clock) as client:
        assert client.get(f"/v1/decisions/{made}").json()["reward"] == 1.0
        assert client.get("/v1/models/ads").json()["weights"] == before
        assert feedback(client, id=made, reward=1.0).json()["status"] == "duplicate"
