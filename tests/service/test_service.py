"""What runs behind the addresses."""

from __future__ import annotations

import threading
import time

import pytest
from starlette.testclient import TestClient

from belated.decisions import MemoryStore, ModelSettings
from belated.service._app import make_app
from belated.service._service import Service

TABLE = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "mature", "seconds": 10.0}}
CONTEXT = {"context": {"x": 0.5}}
DAY = 86_400.0


def test_who_asks_for_the_same_at_once_is_told_the_same_once() -> None:
    service = Service(MemoryStore(), {})
    made, told = list[int](), list[int]()
    entered, goes_on = threading.Event(), threading.Event()

    def make() -> int:
        made.append(len(made))
        entered.set()
        assert goes_on.wait(30)
        return made[-1]

    threads = [threading.Thread(target=lambda: told.append(service.show("ads", make))) for _ in range(5)]
    threads[0].start()
    assert entered.wait(30)
    for thread in threads[1:]:
        thread.start()
    time.sleep(0.05)  # they wait, too
    goes_on.set()
    for thread in threads:
        thread.join()
    assert (made, sorted(told)) == ([0, 1], [0, 1, 1, 1, 1])  # nobody is told what was made before he asked
    assert service.show("ads", make) == 2
    service.close()


@pytest.mark.parametrize("jump", [DAY, -DAY, 3650 * DAY, -3650 * DAY])
def test_a_jump_of_the_clock_is_refused_with_a_sentence_and_an_alarm(
    jump: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, wrong = MemoryStore(), 0.0
    monkeypatch.setattr(store, "time", lambda: time.time() + wrong)
    with TestClient(
        make_app(Service(store, {"ads": ModelSettings.from_table(TABLE)})), base_url="http://localhost"
    ) as client:
        made = client.post("/v1/models/ads/decide", json=CONTEXT).json()["id"]
        rows = store.last("ads")
        wrong = jump
        for path, body in (("decide", CONTEXT), ("feedback", {"id": made, "reward": 1.0})):
            answer = client.post(f"/v1/models/ads/{path}", json=body)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert "the expected time" in answer.json()["error"]
        ready = client.get("/health/ready")
        assert ready.status_code == 503 and "the expected time" in ready.json()["problem"]
        figures = client.get("/metrics").text
        assert "belated_ready 0.0" in figures and 'belated_failures_total{kind="clock",model="ads"}' in figures
        assert ["the expected time" in each for each in client.get("/v1/models/ads").json()["alarms"]] == [True]
        assert store.last("ads") == rows
        wrong = 60.0
        assert client.post("/v1/models/ads/decide", json=CONTEXT).status_code == 200
        assert client.get("/health/ready").json() == {"status": "ready", "problem": "", "problems": {}, "queue": 0}
