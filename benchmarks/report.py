"""A run of the measures as a table, Markdown, JSON and a picture."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from belated._util.files import write_atomically
from belated._util.plot_style import PALETTE
from belated.errors import MissingExtraError
from belated_studies.timing import spread
from benchmarks.measure import Measure, duration
from benchmarks.profile import Profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEADINGS = ("Measure", "Median", "Range over repeats", "Target", "Met")
_VERDICTS = {True: "yes", False: "NO", None: "–"}
_BLUE, _ORANGE, _GREY = PALETTE[0], PALETTE[1], PALETTE[6]
_INK = "#333333"


@dataclass(frozen=True)
class Report:
    """Everything that one run has found."""

    measures: list[Measure]
    profiles: list[Profile]
    machine: dict[str, Any]
    quick: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "quick": self.quick,
            "machine": self.machine,
            "measures": [measure.to_dict() for measure in self.measures],
            "profiles": [profile.to_dict() for profile in self.profiles],
        }


def describe_machine() -> dict[str, Any]:
    """Return what the figures depend on: processor, cores, load before the run, and versions."""
    packages = ("belated", "numpy", "numba", "llvmlite", "scipy", "polars")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
    }


def _processor() -> str:
    listed = Path("/proc/cpuinfo")
    lines = listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"


def terminal(report: Report) -> RenderableType:
    """Return the tables to print."""
    table = Table(*HEADINGS, box=box.SIMPLE_HEAD, title="speed", title_justify="left", title_style="bold")
    before = ""
    for measure in report.measures:
        if before and measure.group != before:
            table.add_section()
        before = measure.group
        name = Text(measure.name)
        if measure.note:
            name.append("\n" + measure.note, style="dim" if measure.values else "yellow")
        style = {True: "green", False: "red", None: ""}[measure.met]
        median, spread, target, met = _cells(measure)
        table.add_row(name, median, spread, target, Text(met, style=style))
    if not report.profiles:
        return table
    parts = Table(
        *_profile_headings(report.profiles),
        box=box.SIMPLE_HEAD,
        title="one episode",
        title_justify="left",
        title_style="bold",
    )
    for profile in report.profiles:
        parts.add_row(*_profile_cells(profile))
    return Group(table, parts)


def markdown(report: Report) -> str:
    """Return the report as Markdown."""
    machine = report.machine
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    load = "" if machine["load"] is None else f", load {machine['load']:.2f} before the run"
    lines = [
        "# Speed",
        "",
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}{load}; {versions}."
        + (" A quick run: fewer repeats, smaller sizes." if report.quick else ""),
        "",
        *_rows((*HEADINGS, "What it is"), [(m.name, *_cells(m), m.note) for m in report.measures]),
    ]
    if report.profiles:
        cells = [_profile_cells(profile) for profile in report.profiles]
        lines += ["", "## Where the time of an episode goes", "", *_rows(_profile_headings(report.profiles), cells)]
    return "\n".join(lines) + "\n"


def _rows(headings: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    table = [headings, ["---"] * len(headings), *cells]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table]


def _cells(measure: Measure) -> tuple[str, str, str, str]:
    target = str(measure.target or "–")
    if measure.spread is None:
        return "not measured", "–", target, _VERDICTS[None]
    median, low, high = map(_short, measure.spread)
    return f"{median} {measure.unit}", f"{low} – {high} ({len(measure.values)})", target, _VERDICTS[measure.met]


def _short(value: float) -> str:
    """Return three digits, without an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _profile_headings(profiles: list[Profile]) -> tuple[str, ...]:
    return ("Agent", "Problem", "Whole", *profiles[0].parts, "remainder")


def _profile_cells(profile: Profile) -> tuple[str, ...]:
    shares = [*profile.parts.values(), profile.remainder]
    return (
        profile.algorithm,
        profile.problem,
        duration(profile.whole),
        *(f"{100 * share / profile.whole:.1f} %" for share in shares),
    )


def write(report: Report, folder: Path, json_file: Path | None = None) -> list[Path]:
    """Write the report as Markdown and JSON, once more to `json_file`, and return the files."""
    content = json.dumps(report.to_dict(), indent=1, ensure_ascii=False).encode()
    files = {folder / "speed.md": markdown(report).encode(), folder / "speed.json": content}
    if json_file is not None:
        files[json_file] = content
    for path, what in files.items():
        write_atomically(path, what)
    return list(files)


def picture(report: Report) -> Figure | None:
    """Return bars of all ratios on a log axis, their targets marked; None if there is no ratio.

    Those that should be large are above, those that should be small below.
    """
    shown = [measure for measure in report.measures if measure.unit == "×" and measure.values]
    groups = {
        "times as fast (more is better)": [measure for measure in shown if not measure.less_is_better],
        "times as long (less is better)": [measure for measure in shown if measure.less_is_better],
    }
    panels = {title: measures for title, measures in groups.items() if measures}
    if not panels:
        return None
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("figures need Matplotlib: pip install 'belated[plots]'") from None
    heights = [len(measures) + 1.6 for measures in panels.values()]
    figure = Figure(figsize=(10.0, 0.34 * sum(heights) + 0.4), facecolor="white")
    figure.set_layout_engine("constrained", h_pad=0.08)
    grid = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
    for axes, (title, measures) in zip(grid.flat, panels.items(), strict=True):
        _bars(axes, title, measures)
    figure.supxlabel("black mark: target; line: range over repeats", fontsize=9, color=_INK)
    return figure


def _bars(axes: Axes, title: str, measures: list[Measure]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    targets = [measure.target.bound for measure in measures if measure.target]
    reach = [1.0, *targets, *(value for measure in measures for value in measure.values)]
    axes.set_xscale("log")
    axes.set_xlim(min(reach) * 0.8, max(reach) * 2.2)  # room for the numbers beside the bars
    for place, measure in enumerate(measures):
        median, low, high = spread(measure.values)
        colour = {True: _BLUE, False: _ORANGE, None: _GREY}[measure.met]
        bound = measure.target.bound if measure.target else 0.0
        axes.barh(place, median - 1.0, left=1.0, height=0.6, color=colour, alpha=0.85)
        axes.plot([low, high], [place, place], color=_INK, linewidth=1.4, solid_capstyle="butt")
        axes.annotate(
            f"{_short(median)}×",
            (max(high, 1.0, bound), place),  # to the right of all marks
            xytext=(6, 0),
            textcoords="offset points",
            verticalalignment="center",
            fontsize=9,
            color=_INK,
        )
        if measure.target:
            axes.plot([bound, bound], [place - 0.42, place + 0.42], color="black", linewidth=2.2)
    axes.axvline(1.0, color="#999999", linewidth=1.0)
    axes.set_yticks(range(len(measures)), [measure.name for measure in measures], fontsize=9, color=_INK)
    axes.set_ylim(len(measures) - 0.4, -0.6)
    axes.set_title(title, fontsize=10, color=_INK, loc="left")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", colors=_INK, labelsize=9)
    if max(reach) / min(reach) < 50:  # powers of ten alone would be one number or two
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.10g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="x", color="#E6E6E6", linewidth=0.8)
    axes.set_axisbelow(True)
