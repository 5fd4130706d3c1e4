"""What people want to see of a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from belated.decisions import MemoryStore, Model, ModelSettings, StoreFullError
from belated.service._overview import overview
from belated.service._service import Service


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(clock: Clock) -> Iterator[Service]:
    table = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}}
    made = Service(MemoryStore(), {"ads": ModelSettings.from_table(table)}, clock=clock)
    yield made
    made.close()


def look(service: Service) -> dict[str, Any]:
    return overview(service, service.model("ads"))


def rewarded(model: Model, clock: Clock, count: int, delay: float) -> list[str]:
    ids = [model.decide({"x": 1.0}).id for _ in range(count)]
    clock.now += delay
    for made in ids:
        model.feedback(made, 1.0)
    return ids


def test_a_new_model_has_figures_too(service: Service) -> None:
    found = look(service)
    assert (found["decisions"], found["alarms"], found["rewards"]) == (0, [], [])
    assert found["in_flight"] == {"count": 0, "oldest_seconds": None, "histogram": {"edges": [], "counts": []}}


def test_counts_ages_and_delays_are_those_of_the_log(service: Service, clock: Clock) -> None:
    model = service.model("ads")
    rewarded(model, clock, 30, 120.0)
    model.decide({"x": 1.0})
    clock.now += 7.0
    found = look(service)
    assert (found["decisions"], sum(found["actions"].values()), found["looked_at"]) == (31, 31, 31)
    assert (found["in_flight"]["count"], found["in_flight"]["oldest_seconds"]) == (1, 7.0)
    assert (found["delays"]["count"], found["delays"]["median_seconds"]) == (30, 120.0)
    assert sum(found["delays"]["histogram"]["counts"]) == 30
    edges = found["delays"]["histogram"]["edges"]
    (filled,) = [i for i, count in enumerate(found["delays"]["histogram"]["counts"]) if count]
    assert edges[filled] <= 120.0 <= edges[filled + 1]
    assert [(point["low"], point["mean"], point["high"]) for point in found["rewards"]] == [(1.0, 1.0, 1.0)] * 6
    assert found["alarms"] == []


def test_a_correction_does_not_make_a_reward_later(service: Service, clock: Clock) -> None:
    model = service.model("ads")
    (made,) = rewarded(model, clock, 1, 120.0)
    clock.now += 1000.0
    model.feedback(made, 2.0, version=1)
    assert look(service)["delays"]["median_seconds"] == 120.0


def test_rewards_that_stopped_are_an_alarm_until_they_come_again(service: Service, clock: Clock) -> None:
    model = service.model("ads")
    rewarded(model, clock, 30, 60.0)
    late = model.decide({"x": 1.0}).id
    clock.now += 599.0
    assert look(service)["alarms"] == []
    clock.now += 7200.0
    assert ["Rewards have stopped" in each for each in look(service)["alarms"]] == [True]
    model.feedback(late, 0.0)
    assert look(service)["alarms"] == []


def test_no_reward_at_all_and_rewards_of_another_store_are_alarms(service: Service) -> None:
    model = service.model("ads")
    for _ in range(100):
        model.decide({"x": 1.0})
    for number in range(11):
        model.feedback(f"of-another-store-{number}", 1.0)
    assert [each.split(":")[0] for each in look(service)["alarms"]] == [
        "No reward has arrived yet.",
        "11 rewards were for decisions that do not exist",
    ]


def test_a_long_log_is_looked_at_from_end_to_end(
    service: Service, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belated.service._overview.ROWS", 100)
    monkeypatch.setattr("belated.service._overview.PARTS", 10)
    monkeypatch.setattr("belated.service._overview.LATEST", 50)
    monkeypatch.setattr("belated.decisions._engine.SEARCHED", 7)
    model = service.model("ads")
    silent = model.decide({"x": 1.0})
    old = rewarded(model, clock, 300, 86400.0)  # a day later
    for _ in range(300):
        model.decide({"x": 1.0})
    model.feedback(old[-1], 1.0, event="another")
    clock.now += 3600.0
    found = look(service)
    assert (found["looked_at"], found["latest"], sum(found["actions"].values())) == (69, 49, 49)
    assert (found["delays"]["count"], found["delays"]["median_seconds"]) == (30, 86400.0)
    assert found["in_flight"]["count"] == 301
    assert sum(found["in_flight"]["histogram"]["counts"]) == pytest.approx(301)
    assert found["in_flight"]["oldest_seconds"] == 86400.0 + 3600.0
    assert found["alarms"] == []  # the latest decisions have no reward yet, and cannot have one
    clock.now += 11 * 86400.0
    assert ["Rewards have stopped" in each for each in look(service)["alarms"]] == [True]
    assert model.oldest() == model.lookup(silent.id)
    for made in old[:60]:
        model.feedback(made, 1.0, event="one more")
    assert look(service)["latest"] == 39  # behind a load of rewards, further back


def test_a_commit_that_failed_is_an_alarm(service: Service) -> None:
    service.writer.failed("ads", StoreFullError("there is no space left"))
    assert look(service)["alarms"] == ["No decisions can be made: there is no space left"]


def test_a_clock_that_differs_from_the_stores_is_an_alarm(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "offset", lambda: -2 * 86400.0)
    assert look(service)["alarms"] == ["The clock of this machine differs from the store's by 2.0 days."]


def test_a_learner_that_is_behind_is_an_alarm(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Model, "lag", 20_000)
    monkeypatch.setattr(type(service.writer), "depth", 2_000)
    assert [each.split(":")[0] for each in look(service)["alarms"]] == ["The learner is behind"] * 2


def test_a_floor_that_decides_is_an_alarm(service: Service, clock: Clock) -> None:
    model = service.model("ads")
    model.change(ModelSettings.from_table({**model.settings.to_table(), "floor": 1.0}))
    rewarded(model, clock, 100, 1.0)
    assert ["drawn by the floor" in each for each in look(service)["alarms"]] == [True]


def test_the_arrival_of_rewards_is_shown_by_action(clock: Clock) -> None:
    """Of 40 decisions a quarter is told after 5 seconds, a quarter after 50: by hand."""
    table = {"actions": ["a"], "silence": {"kind": "by_age", "seconds": 64}, "ridge": 1e-9}
    service = Service(MemoryStore(), {"ads": ModelSettings.from_table(table)}, clock=clock)
    model = service.model("ads")
    assert look(service)["arrival"] == {}
    ids = [model.decide({}).id for _ in range(40)]
    for seconds, some in ((5.0, ids[:10]), (45.0, ids[10:20])):
        clock.now += seconds
        model.tick()
        for made in some:
            model.feedback(made, 1.0)
    clock.now += 1.0
    model.tick()
    found = look(service)["arrival"]["a"]
    assert found["seconds"] == (1.0, 4.0, 9.0, 16.0, 25.0, 36.0, 49.0)  # nobody is 64 seconds old
    assert found["means"] == pytest.approx([0.0, 0.0, 0.25, 0.25, 0.25, 0.25, 0.25])
    assert found["decisions"] == pytest.approx([40.0] * 7)
    assert found["errors"][2] == pytest.approx((0.25 * 0.75 / 40) ** 0.5, rel=0.1)
    clock.now += 20.0
    model.tick()
    assert look(service)["arrival"]["a"]["means"][-1] == pytest.approx(0.5)
    service.close()


def test_what_a_signal_is_worth_is_said_in_words(clock: Clock) -> None:
    table = {"actions": ["a"], "silence": {"kind": "by_age", "seconds": 64}, "signals": ["click", "look"]}
    service = Service(MemoryStore(), {"ads": ModelSettings.from_table(table)}, clock=clock)
    model = service.model("ads")
    for i in range(60):
        made = model.decide({}).id
        if i % 2:
            model.signal(made, "click")
        if i % 3:
            model.signal(made, "look")
        clock.now += 30.0
        if i % 2 and i % 10 > 1:
            model.feedback(made, 1.0)
    clock.now += 100.0
    model.tick()
    click, look_ = look(service)["signals"]
    assert click.startswith("click explains")
    assert 40 < float(click.split()[2]) < 90
    assert "look" in look_
    service.close()
