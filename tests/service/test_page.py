"""The page for people in a real browser."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from serving import free_port

from belated.decisions import MemoryStore, ModelSettings
from belated.service._app import PAGE, make_app
from belated.service._service import Service

SECONDS = 60
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync")  # fmt: skip


def test_the_page_asks_nobody_else_for_anything() -> None:
    text = PAGE.decode().replace("http://www.w3.org/2000/svg", "").replace('<link rel="icon" href="data:,">', "")
    assert not any(word in text for word in ("http://", "https://", "src=", "@import", "<link"))


class Seen:
    """A service with a log that has something of everything, and the address of its page."""

    def __init__(self, silence: dict[str, Any] | None = None) -> None:
        actions = ["a rather long name of an action", "b", *(f"action {i}" for i in range(38))]
        table = {"actions": actions, "features": ["x", "y"], "silence": silence or {"kind": "unknown"}}
        self.now = 1_800_000_000.0
        visits = {"actions": ["article", "offer"], "categories": ["page"], "hashed": 4, "horizon": 3}
        models: dict[str, dict[str, Any]] = {"ads": table, "visits": {**visits, "silence": {"kind": "unknown"}}}
        settings = {name: ModelSettings.from_table(each) for name, each in models.items()}
        self.service = Service(MemoryStore(), settings, clock=lambda: self.now)
        model = self.service.model("ads")
        for i in range(200):
            made = model.decide({"x": i / 200, "y": 1.0})
            self.now += 30.0
            if i % 3:
                model.feedback(made.id, float(made.action == "b"))
        self.id = made.id
        self.now += 100_000.0  # rewards have stopped
        self.visits = self.service.model("visits")
        for i in range(30):
            for page in ("home", "list", "a page of a rather long name")[: 1 + i % 3]:
                self.visits.decide({"page": page}, session=f"visit-{i}")
            if i < 25:
                self.visits.end(f"visit-{i}", terminal=True)
        port = free_port()
        self.address = f"http://127.0.0.1:{port}/"
        self.server = uvicorn.Server(uvicorn.Config(make_app(self.service), port=port, log_level="error"))


@pytest.fixture(scope="module")
def seen() -> Iterator[Seen]:
    made = Seen()
    thread = threading.Thread(target=made.server.run)
    thread.start()
    while not made.server.started:
        time.sleep(0.01)
    yield made
    made.server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service as Driver

    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip("no chromium and chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Driver(executable_path=chromedriver))
    try:
        yield driver
    finally:
        driver.quit()


def opened(browser: Any, seen: Seen, width: int) -> None:
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get(seen.address)
    until(
        browser,
        "return document.querySelectorAll('#state dt').length > 0 && document.querySelectorAll('svg').length > 2",
    )


def until(browser: Any, script: str) -> None:
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(browser, SECONDS).until(lambda page: page.execute_script(script))


def text(browser: Any, name: str) -> str:
    return str(browser.execute_script("return document.getElementById(arguments[0]).innerText", name))


@pytest.mark.browser
def test_it_shows_the_model_what_is_in_flight_and_the_alarm(browser: Any, seen: Seen) -> None:
    browser.get_log("browser")
    opened(browser, seen, 1280)
    assert browser.execute_script("return document.getElementById('model').value") == "ads"
    words = text(browser, "state").split("\n")
    state = dict(zip(words[::2], words[1::2], strict=False))
    assert (state["decisions"], state["in flight"]) == ("200", str(seen.service.model("ads").in_flight))
    assert "Rewards have stopped" in text(browser, "alarms")
    assert text(browser, "weights").split("\n")[0].split() == ["action", "1", "x", "y"]
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.mark.browser
def test_a_decision_is_found_by_its_id_and_a_wrong_id_is_said(browser: Any, seen: Seen) -> None:
    opened(browser, seen, 1280)
    for wanted, words in ((seen.id, '"status"'), ("nobody", "there is no decision")):
        browser.execute_script(
            "document.getElementById('id').value = arguments[0]; document.getElementById('search').requestSubmit()",
            wanted,
        )
        until(browser, f"return document.getElementById('entry').textContent.includes({words!r})")
        assert wanted in text(browser, "entry")


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_every_action_has_a_line_of_its_own_and_no_text_covers_another(browser: Any, seen: Seen, width: int) -> None:
    opened(browser, seen, width)
    lines = text(browser, "actions").split("\n")
    assert lines[::2][:3] == ["a rather long name of an action", "b", "action 0"]
    assert sum(int(count) for count in lines[1::2]) == 200
    for texts in ("#actions span", "svg text", "#weights td"):
        boxes = browser.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map(each => {"
            "const box = each.getBoundingClientRect(); return [box.left, box.top, box.right, box.bottom]; })",
            texts,
        )
        both = [(one, two) for i, one in enumerate(boxes) for two in boxes[:i]]
        assert len(both) > 20
        assert [
            (one, two)
            for one, two in both
            if min(one[2], two[2]) - max(one[0], two[0]) > 1 and min(one[3], two[3]) - max(one[1], two[1]) > 1
        ] == []


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(browser: Any, seen: Seen, width: int, tmp_path: Path) -> None:
    opened(browser, seen, width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    browser.save_screenshot(str(tmp_path / "page.png"))


@pytest.mark.browser
def test_the_arrival_of_rewards_is_drawn_for_each_action(browser: Any, tmp_path: Path) -> None:
    seen = Seen({"kind": "by_age", "seconds": 1800})
    thread = threading.Thread(target=seen.server.run)
    thread.start()
    while not seen.server.started:
        time.sleep(0.01)
    try:
        opened(browser, seen, 1280)
        until(browser, "return document.querySelectorAll('#arrival polyline').length > 0")
        assert "of 40 actions" in text(browser, "arrived") or "actions with the most" in text(browser, "arrived")
        assert browser.execute_script("return document.querySelectorAll('#arrival polyline').length") == 6
        browser.execute_script("document.getElementById('arrivals').scrollIntoView()")
        browser.save_screenshot(str(tmp_path / "arrival.png"))
    finally:
        seen.server.should_exit = True
        thread.join()


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_sessions_are_shown_from_step_to_step(browser: Any, seen: Seen, width: int) -> None:
    browser.get_log("browser")
    opened(browser, seen, width)
    browser.execute_script("document.getElementById('model').value = 'visits'; refresh()")
    until(browser, "return document.querySelectorAll('#flow rect').length > 0")
    words = text(browser, "state").split("\n")
    state = dict(zip(words[::2], words[1::2], strict=False))
    assert (state["sessions open"], state["sessions ended"]) == ("3", "27")
    told = "return [...document.querySelectorAll(arguments[0])].map(t => t.textContent)"
    titles = browser.execute_script(told, "#flow .move title")
    assert sorted(titles) == ["home → list: 20", "list → a page of a rather long name: 10"]
    steps = browser.execute_script(told, "#flow rect title")
    assert sum(int(each.split()[-3]) for each in steps) == 60
    assert browser.execute_script("return document.getElementById('learned').hidden")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
