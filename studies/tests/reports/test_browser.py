"""The page of a report in a real browser."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated_studies.reports.document import Cell, Chart, Document, Section, Series, Table
from belated_studies.reports.report import write_report

pytest.importorskip("selenium")

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

pytestmark = pytest.mark.browser

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SECONDS = 60
DRAWN = "return [...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('.main-svg'))"


def sample() -> Document:
    x = np.arange(1.0, 101.0)
    agents = ("posterior sampling", "upper confidence <b>bound</b>", "random")

    def curves(prefix: str) -> list[Chart]:
        regret = [
            Series(name=name, x=x, y=i * np.sqrt(x), low=i * np.sqrt(x) - 2, high=i * np.sqrt(x) + 2)
            for i, name in enumerate(agents, 1)
        ]
        bound = Series(name="√K", x=x, y=5 * np.sqrt(x), dashed=True)
        delays = np.array([0.0, 10.0, 100.0])
        bars = [
            Series(name=name, x=delays, y=delays + i, low=delays, high=delays + 2 * i) for i, name in enumerate(agents)
        ]
        distributions = [Series(name=f"distribution {i}", x=x[:20], y=x[:20]) for i in range(8)]
        shared: dict[str, Any] = {"caption": "Mean of **30** seeds.", "y_label": "regret"}
        return [
            Chart(
                id=f"{prefix}-lines", title="Regret", x_label="episode", series=regret, level=("best", 0.5), **shared
            ),
            Chart(
                id=f"{prefix}-logs",
                title="Growth",
                x_label="episode",
                series=[*regret, bound],
                log_x=True,
                log_y=True,
                **shared,
            ),
            Chart(id=f"{prefix}-bars", title="By delay", x_label="mean delay", series=bars, bars=True, **shared),
            Chart(
                id=f"{prefix}-distributions",
                title="Distributions",
                x_label="delay",
                series=distributions,
                bars=True,
                **shared,
            ),
        ]

    def tables(prefix: str) -> list[Table]:
        cell = Cell(value=11.53, low=11.4, high=11.66, published=11.48, published_spread=0.81, verdict="reproduced")
        columns = ["agent", *(f"mean delay {delay}" for delay in (0, 10, 50, 100, 500))]
        return [
            Table(
                id=f"{prefix}-returns",
                title="Returns",
                caption="Mean of the last episodes.",
                columns=columns,
                rows=[[name, *[cell] * 4, Cell(value=None, note="not run")] for name in agents],
            ),
            Table(id=f"{prefix}-settings", title="Settings", caption="", columns=["name", "value"], rows=[["λ", "1"]]),
        ]

    return Document(
        title="A report",
        summary=["It **works**."],
        facts={"seeds": "30"},
        sections=[
            Section(id=name, title=name, paragraphs=["Text."], tables=tables(name), charts=curves(name))
            for name in ("first", "second")
        ],
    )


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(sample(), tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip("no chromium and chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(executable_path=chromedriver))
    try:
        yield driver
    finally:
        driver.quit()


def opened(browser: webdriver.Chrome, index: Path, width: int) -> None:
    """Open the page `width` pixels wide and wait until its charts are drawn."""
    # A window cannot be as narrow as a phone; an emulated screen can.
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get(index.as_uri())
    WebDriverWait(browser, SECONDS).until(lambda page: page.execute_script(DRAWN))


def complaints(browser: Any) -> list[Any]:
    """Return the errors in the browser's console since the last call."""
    return [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_every_chart_and_table_is_shown_without_a_complaint(browser: webdriver.Chrome, index: Path) -> None:
    complaints(browser)  # those of earlier pages
    opened(browser, index, 1280)
    for section in sample().sections:
        for chart in section.charts:
            figure = browser.find_element(By.ID, chart.id)
            assert figure.find_element(By.CSS_SELECTOR, ".main-svg").size["height"] > 200
            names = [text.text for text in figure.find_elements(By.CSS_SELECTOR, ".legendtext")]
            assert names == [series.name for series in chart.series]
        for table in section.tables:
            rows = browser.find_elements(By.CSS_SELECTOR, f"#{table.id} tbody tr")
            assert len(rows) == len(table.rows)
            assert all(row.is_displayed() for row in rows)
    assert complaints(browser) == []


def test_a_click_in_the_legend_hides_a_curve_with_its_band(browser: webdriver.Chrome, index: Path) -> None:
    opened(browser, index, 1280)
    entry = browser.find_element(By.CSS_SELECTOR, "#first-lines .legendtoggle")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", entry)
    ActionChains(browser).move_to_element(entry).click().perform()
    hidden = (
        "return document.querySelector('#first-lines .plot')._fullData"
        ".filter((trace) => trace.visible === 'legendonly').map((trace) => [trace.legendgroup, trace.fill])"
    )
    # The page waits a moment for a second click, which would show this curve alone.
    WebDriverWait(browser, SECONDS).until(lambda page: page.execute_script(hidden))
    assert browser.execute_script(hidden) == [["posterior sampling", "toself"], ["posterior sampling", "none"]]


def test_a_hatched_bar_keeps_its_colour(browser: webdriver.Chrome, index: Path) -> None:
    opened(browser, index, 1280)
    assert len(browser.find_elements(By.CSS_SELECTOR, "#first-distributions .bars .point")) == 8 * 20
    grounds = browser.execute_script(
        "return [...document.querySelectorAll('#first-distributions pattern rect')]"
        ".map((rect) => getComputedStyle(rect).fill)"
    )
    assert set(grounds) == {"rgb(0, 114, 178)"}  # the eighth name has the first colour again


def test_on_a_phone_only_tables_scroll_sideways(browser: webdriver.Chrome, index: Path) -> None:
    opened(browser, index, 390)
    assert browser.execute_script("return [window.innerWidth, document.documentElement.scrollWidth <= 390]") == [
        390,
        True,
    ]
    assert browser.execute_script("return document.querySelector('.contents details').open") is False
    frame = "const frame = document.querySelector('#first-returns').parentElement;"
    assert browser.execute_script(frame + "return frame.scrollWidth > frame.clientWidth")


def test_the_contents_are_open_beside_the_text_on_a_wide_screen(browser: webdriver.Chrome, index: Path) -> None:
    opened(browser, index, 1280)
    assert browser.execute_script("return document.querySelector('.contents details').open") is True
    contents, main = (browser.find_element(By.CSS_SELECTOR, name).rect for name in (".contents", "main"))
    assert contents["x"] + contents["width"] <= main["x"]
