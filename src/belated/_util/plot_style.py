"""Plot style: colours, axes and files of all figures.

Matplotlib (`pip install "belated[plots]"`) is imported only when it is used.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from belated._util.files import write_atomically
from belated._util.plugins import needed
from belated._util.validate import choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

#: Okabe and Ito's colours, distinguishable with every kind of colour vision; black is for the optimum.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
#: After the last colour, the colours repeat with the next style and the next marker.
LINE_STYLES = ("-", "--", ":", "-.")
MARKERS = ("", "o", "s", "^", "D")
INK = "#333333"
#: The maximum length of a label in a figure.
LONGEST = 60
#: Which axes can be logarithmic.
LOGS = ("", "x", "y", "xy")

#: How to save each format so that the same figure gives the same bytes.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "svg": {"Date": None, "Creator": None},
}


@contextmanager
def drawing() -> Iterator[type[Figure]]:
    """Apply the style, and yield Matplotlib's `Figure`; raise MissingExtraError if it is not installed."""
    needed("matplotlib.figure", "plots")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    sheet = files("belated") / "figure.mplstyle"  # in the package itself, for `plt.style.use("belated.figure")`
    with as_file(sheet) as style, rc_context(fname=style):
        yield Figure


def new_figure() -> Axes:
    """Return the axes of a new pyplot figure, which a notebook or `plt.show()` shows."""
    from matplotlib import pyplot

    _, axes = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    return axes


def discard(axes: Axes) -> None:
    """Close a pyplot figure, so that nothing half drawn is shown."""
    from matplotlib import pyplot

    pyplot.close(axes.figure)  # type: ignore[arg-type]


def look(number: int, line: int | None = None) -> dict[str, Any]:
    """Return how curve `number` of a figure is drawn: by colour, and once the colours are used up also by marker.

    The style of the line is number `line`; if that is None, it changes with the marker, so that 140 curves differ.

    >>> look(1), look(8)["marker"], look(8)["linestyle"], look(8, line=0)["linestyle"]
    ({'color': '#D55E00', 'linestyle': '-'}, 'o', '--', '-')
    """
    again, colour = divmod(number, len(PALETTE))
    style = LINE_STYLES[(again if line is None else line) % len(LINE_STYLES)]
    found: dict[str, Any] = {"color": PALETTE[colour], "linestyle": style}
    if marker := MARKERS[again % len(MARKERS)]:
        # spacing as fractions of the axes' diagonal, with a different offset for each colour
        found |= {"marker": marker, "markersize": 5, "markevery": (0.02 + 0.1 * colour / len(PALETTE), 0.1)}
    return found


def drawn(label: str) -> str:
    """Return a label for Matplotlib: without mathtext, not hidden by an underscore, and at most one line long.

    >>> drawn("$5"), drawn("_x"), len(drawn("x" * 300))
    ('\\\\$5', ' _x', 60)
    """
    short = label if len(label) <= LONGEST else f"{label[: LONGEST - 21]}…{label[-20:]}"
    return ("" if short[0] != "_" else " ") + " ".join(short.replace("$", r"\$").split())


def plain_ticks(axis: Axis, most: int = 6, steps: Sequence[float] | None = None) -> None:
    """Write the numbers of an axis without exponents."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(most, steps=steps))
    axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.10g}"))


def scale(axes: Axes, log: str) -> None:
    """Make the axes named by `log` logarithmic, and write the numbers of both without exponents.

    A logarithmic x axis is linear from 0 to 1, since a delay may be 0.
    """
    from matplotlib.ticker import FuncFormatter, NullFormatter, SymmetricalLogLocator

    if "x" in log:
        axes.set_xscale("symlog", linthresh=1, linscale=0.3)
        axes.xaxis.set_minor_locator(SymmetricalLogLocator(linthresh=1, base=10, subs=np.arange(2, 10).tolist()))
    if "y" in log:
        axes.set_yscale("log")
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if name in log:
            axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.10g}"))
            axis.set_minor_formatter(NullFormatter())
        else:
            plain_ticks(axis, 5, steps=[1, 2, 2.5, 5, 10])


def thin(length: int, points: int = 250, *, log: bool = False) -> npt.NDArray[np.int64]:
    """Return at most `points` evenly spaced positions of a curve of `length`, including the first and the last.

    With `log` they are evenly spaced on a logarithmic axis.

    >>> thin(11, points=3).tolist(), thin(3).tolist(), thin(10_000, points=5, log=True).tolist()
    ([0, 5, 10], [0, 1, 2], [0, 9, 99, 999, 9999])
    """
    spread = np.geomspace(1, length, points) - 1 if log else np.linspace(0, length - 1, points)
    return np.unique(spread.round().astype(np.int64))


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write `figure` as PNG (200 dpi), PDF or SVG, by its file extension; the same figure gives the same bytes."""
    file = Path(path)
    kind = choice("the ending of the figure's name", file.suffix.removeprefix(".").lower(), _METADATA)
    import matplotlib

    content = io.BytesIO()
    # Identifiers in an SVG are random unless salted; fonts in a PDF should be editable.
    with matplotlib.rc_context({"svg.hashsalt": "belated", "pdf.fonttype": 42}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # labels may be any text
        figure.savefig(content, format=kind, dpi=200, metadata=_METADATA[kind])
    write_atomically(file, content.getvalue())
