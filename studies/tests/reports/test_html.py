import json
import math
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from documents import MEASURED, opened, table

from belated_studies.reports.document import Cell, Chart, Document, Section, Series, Table
from belated_studies.reports.html import render_html

plotly_offline = pytest.importorskip("plotly.offline")

EVIL = "<script>alert('x')</script> & \"quotes\""


class Page(HTMLParser):
    """Collects every tag, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._silent = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._silent = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._silent = False

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.text += data


def sample() -> Document:
    x = np.arange(1.0, 4.0)
    curves = Chart(
        id="curves",
        title=EVIL,
        caption="A `band` and **bold**.",
        x_label="episode",
        y_label="regret",
        series=[
            Series(name="a", x=x, y=x / 3, low=x - 1, high=np.array([np.nan, 3.0, np.inf])),
            Series(name=EVIL, x=x, y=x**2, dashed=True),
        ],
        level=("optimum", 1 / 7),
        log_y=True,
    )
    bars = Chart(
        id="bars", title="Bars", caption="", x_label="x", y_label="y", series=[Series(name="a", x=x, y=x)], bars=True
    )
    cells: list[str | Cell] = [
        EVIL,
        Cell(value=11.53, low=11.4, high=11.66, published=11.48, published_spread=0.81, verdict="reproduced"),
        Cell(value=2.0, low=math.nan, digits=0, verdict="not reproduced"),
        Cell(value=None, note=f"not run {EVIL}"),
    ]
    table = Table(id="returns", title="Returns", caption=EVIL, columns=["agent", "b", "c", "d"], rows=[cells])
    return Document(
        title=EVIL,
        summary=[f"It **works** {EVIL}"],
        facts={"seeds": EVIL},
        sections=[
            Section(id="first", title="First", paragraphs=[EVIL, "Run `a <b>`."], tables=[table], charts=[curves]),
            Section(id="second", title="Second", charts=[bars]),
        ],
    )


def without_plotly(text: str) -> str:
    library: str = plotly_offline.get_plotlyjs()
    assert text.count(library) == 1
    return text.replace(library, "")


def chart_data(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="report-charts">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    loaded: dict[str, Any] = json.loads(found[1])
    return loaded


@pytest.fixture(scope="module")
def text() -> str:
    return without_plotly(render_html(sample()))


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_text_is_shown_as_it_was_written(text: str, page: Page) -> None:
    assert "<script>alert" not in text
    # Title, heading, summary, fact, paragraph, row, note, caption, chart, and the chart's line of the contents.
    assert page.text.count(EVIL) == 10
    assert "Run <code>a &lt;b&gt;</code>." in text
    assert "<strong>works</strong>" in text
    assert sum(tag == "script" for tag, _ in page.tags) == 3


def test_every_id_is_there_exactly_once(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    by_id = {attributes.get("id"): tag for tag, attributes in page.tags}
    assert [by_id[name] for name in ("first", "second", "returns", "curves", "bars")] == [
        "section",
        "section",
        "table",
        "figure",
        "figure",
    ]
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert {f"#{name}" for name in ("first", "returns", "curves", "second", "bars")} <= set(links)


def test_nothing_is_asked_of_the_network(text: str, page: Page) -> None:
    assert not re.search(r"https?://|@import|url\(", text)
    for tag, attributes in page.tags:
        assert "src" not in attributes
        assert tag != "link" or attributes["href"] == "data:,"


def test_cells_show_number_interval_paper_and_verdict(text: str) -> None:
    assert '<span class="value">11.53</span>' in text
    assert '<small class="interval">[11.40, 11.66]</small>' in text
    assert '<small class="paper">paper 11.48 ± 0.81</small>' in text
    assert '<span class="badge good"><span aria-hidden="true">✓</span> reproduced</span>' in text
    assert '<span class="badge poor"><span aria-hidden="true">✗</span> not reproduced</span>' in text
    assert '<span class="value">2</span>' in text
    assert text.count('class="interval"') == 1
    assert "nan" not in text.split("<main", 1)[1].split("</main>", 1)[0]


def test_charts_and_tables_can_be_read_without_seeing(page: Page) -> None:
    plots = [attributes for _, attributes in page.tags if attributes.get("class") == "plot"]
    assert [plot["role"] for plot in plots] == ["img", "img"]
    label = plots[0]["aria-label"]
    assert label is not None
    assert label.startswith("Line chart: ")
    assert "regret against episode for a, " in label
    assert "optimum 0.142857" in label
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")
    assert sum(tag == "caption" for tag, _ in page.tags) == sum(tag == "table" for tag, _ in page.tags)


def test_chart_numbers_have_six_digits_and_gaps_are_null(text: str) -> None:
    data = chart_data(text)
    curve = data["curves"]["series"][0]
    assert curve["y"] == [0.333333, 0.666667, 1]
    assert curve["high"] == [None, 3, None]
    assert data["curves"]["level"] == {"name": "optimum", "height": 0.142857}
    assert data["curves"]["series"][1]["dash"] == "dash"
    assert data["curves"]["series"][1]["name"] == EVIL
    assert data["curves"]["logY"] is True
    assert data["bars"]["bars"] == {"categories": ["1", "2", "3"], "grouped": True}
    assert data["bars"]["series"][0]["colour"] == curve["colour"]


def test_an_empty_document_is_still_a_page() -> None:
    page = Page(without_plotly(render_html(Document(title="Empty", summary=[], facts={}))))
    assert not any(tag in ("table", "figure") for tag, _ in page.tags)


def test_the_opening_comes_before_everything_else_and_is_not_counted_twice() -> None:
    page = without_plotly(render_html(opened(table(["DPSVI", MEASURED]))))
    places = [page.index(part) for part in ("<h1>", 'id="glance"', 'id="first"', "All is well.", 'id="returns"')]
    assert places == sorted(places)
    assert chart_data(page)["glance"]["bars"]["categories"] == ["slow", "fast"]
    assert "</span> 1 reproduced" in page, "the table at the top repeats a number, and is left out"
