"""A report as one HTML page that works offline."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape
from plotly.offline import get_plotlyjs

from belated_studies.reports.document import VERDICTS, Cell, Chart, Document, Series
from belated_studies.reports.formatting import NOTHING, holds_numbers, interval_text, published_text, value_text
from belated_studies.reports.markup import plain, spans
from belated_studies.reports.style import VERDICT_COLOURS, VERDICT_SYMBOLS, Style, bar_places, styles

_DASHES = {"-": "solid", "--": "dash", ":": "dot", "-.": "dashdot"}
_TAGS = {"code": "code", "bold": "strong"}


def render_html(document: Document) -> str:
    """Return `document` as a page that holds its own charts, styles and scripts, and asks for nothing outside."""

    def inline(text: str) -> Markup:
        """Escape `text`, then set its code and bold."""
        written = Markup()
        for kind, part in spans(text):
            tag = _TAGS.get(kind)
            written += Markup(f"<{tag}>{escape(part)}</{tag}>") if tag else escape(part)
        return written

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(
        inline=inline, plain=plain, value=value_text, interval=interval_text, published=published_text
    )
    environment.tests["cell"] = lambda entry: isinstance(entry, Cell)
    page = environment.from_string(_asset("template.html")).render(
        document=document,
        verdicts=_verdict_counts(document),
        symbols=VERDICT_SYMBOLS,
        colours=VERDICT_COLOURS,
        nothing=NOTHING,
        holds_numbers=holds_numbers,
        describe=_describe,
        style=Markup(_asset("report.css")),
        script=Markup(_asset("report.js")),
        plotly=Markup(get_plotlyjs()),
        charts=Markup(_charts_json(document)),
    )
    return page + "\n"


def _asset(name: str) -> str:
    return files("belated_studies.reports").joinpath(name).read_text(encoding="utf-8")


def _verdict_counts(document: Document) -> dict[str, int]:
    """Return how often each verdict was given, those never given left out."""
    entries = (
        entry for section in document.sections for table in section.tables for row in table.rows for entry in row
    )
    counts = Counter(entry.verdict for entry in entries if isinstance(entry, Cell))
    return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}


def _describe(chart: Chart) -> str:
    """Return what a reader who cannot see `chart` should know of it."""
    names = ", ".join(plain(series.name) for series in chart.series)
    level = f", with a line at {plain(chart.level[0])} {chart.level[1]:.6g}" if chart.level is not None else ""
    kind = "Bar chart" if chart.bars else "Line chart"
    title, x, y = plain(chart.title), plain(chart.x_label), plain(chart.y_label)
    return f"{kind}: {title}. {y} against {x} for {names}{level}."


def _charts_json(document: Document) -> str:
    drawn = styles(document)
    charts = {chart.id: _chart_data(chart, drawn) for section in document.parts for chart in section.charts}
    text = json.dumps(charts, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Inside a script element nothing but "<" can end the element or open a comment.
    return text.replace("<", "\\u003c")


def _chart_data(chart: Chart, drawn: Mapping[str, Style]) -> dict[str, Any]:
    """Return `chart` as the page's script reads it."""
    data: dict[str, Any] = {
        "x": plain(chart.x_label),
        "y": plain(chart.y_label),
        "logX": chart.log_x,
        "logY": chart.log_y,
        "series": [_series_data(series, drawn[series.name]) for series in chart.series],
    }
    if chart.level is not None:
        data["level"] = {"name": plain(chart.level[0]), "height": _rounded([chart.level[1]])[0]}
    if chart.bars:
        places = bar_places(chart)
        names = None if places.categories is None else [plain(category) for category in places.categories]
        data["bars"] = {"categories": names, "grouped": places.grouped}
        if names is not None:
            for series, centres in zip(data["series"], places.centres, strict=True):
                series["x"] = [names[int(centre)] for centre in centres]
    return data


def _series_data(series: Series, style: Style) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": plain(series.name),
        "colour": style.colour,
        "dash": "dash" if series.dashed else _DASHES[style.line],
        "hatch": style.hatch,
        "x": _rounded(series.x),
        "y": _rounded(series.y),
    }
    if series.low is not None and series.high is not None:
        data |= {"low": _rounded(series.low), "high": _rounded(series.high)}
    return data


def _rounded(values: Iterable[float]) -> list[float | int | None]:
    """Return `values` with six significant digits, more than a screen can show; None where there is no number."""
    rounded = (float(f"{value:.6g}") for value in values)
    return [None if not math.isfinite(v) else int(v) if v.is_integer() else v for v in rounded]
