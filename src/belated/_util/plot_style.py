"""What all pictures of the library share: style, colours, axes, files.

They need Matplotlib, which `pip install "belated[plots]"` brings; nothing here imports it before it is used.
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
from belated._util.validate import choice
from belated.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

#: Okabe and Ito's colours, told apart with every kind of colour vision; black is kept for the optimum.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
#: When the colours run out they start again with the next style.
LINE_STYLES = ("-", "--", ":", "-.")
INK = "#333333"
#: Letters of a label that a picture shows at most.
LONGEST = 60
#: Which axes of a picture can be logarithmic.
LOGS = ("", "x", "y", "xy")

#: How to save each format so that the same figure gives the same bytes.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "svg": {"Date": None, "Creator": None},
}


class MissingMatplotlibError(MissingExtraError):
    """Figures were asked for, but Matplotlib is not installed."""


@contextmanager
def drawing() -> Iterator[type[Figure]]:
    """Set the style for what is drawn meanwhile, and give Matplotlib's `Figure`; without it, say what to install."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingMatplotlibError("figures need Matplotlib: pip install 'belated[plots]'") from None
    sheet = files("belated") / "figure.mplstyle"  # in the package itself, for `plt.style.use("belated.figure")`
    with as_file(sheet) as style, rc_context(fname=style):
        yield Figure


def new_figure() -> Axes:
    """Return the axes of a new figure of pyplot, which a notebook or `plt.show()` shows."""
    from matplotlib import pyplot

    _, axes = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    return axes


def discard(axes: Axes) -> None:
    """Close a figure of pyplot, so that nothing half drawn is shown."""
    from matplotlib import pyplot

    pyplot.close(axes.figure)  # type: ignore[arg-type]


def drawn(label: str) -> str:
    """Return a label as Matplotlib draws it: without mathematics, never hidden, and not longer than a line.

    >>> drawn("$5"), drawn("_x"), len(drawn("x" * 300))
    ('\\\\$5', ' _x', 60)
    """
    short = label if len(label) <= LONGEST else f"{label[: LONGEST - 21]}…{label[-20:]}"
    return ("" if short[0] != "_" else " ") + " ".join(short.replace("$", r"\$").split())


def plain_ticks(axis: Axis, most: int = 6, steps: Sequence[float] | None = None) -> None:
    """Write the numbers of an axis in full."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(most, steps=steps))
    axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.10g}"))


def scale(axes: Axes, log: str) -> None:
    """Make the axes named by `log` logarithmic, and write the numbers of both in full.

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
    """Return at most `points` positions spread evenly over a curve of `length`, the first and the last among them.

    With `log` they are spread evenly over a logarithmic axis.

    >>> thin(11, points=3).tolist(), thin(3).tolist(), thin(10_000, points=5, log=True).tolist()
    ([0, 5, 10], [0, 1, 2], [0, 9, 99, 999, 9999])
    """
    spread = np.geomspace(1, length, points) - 1 if log else np.linspace(0, length - 1, points)
    return np.unique(spread.round().astype(np.int64))


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write `figure` as PNG (200 dpi), PDF or SVG, by the name's ending; the same figure gives the same bytes."""
    file = Path(path)
    kind = choice("the ending of the figure's name", file.suffix.removeprefix(".").lower(), _METADATA)
    import matplotlib

    content = io.BytesIO()
    # Identifiers inside an SVG are random unless salted, and fonts inside a PDF should be ones that can be edited.
    with matplotlib.rc_context({"svg.hashsalt": "belated", "pdf.fonttype": 42}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # labels may be any text, and have a box for it
        figure.savefig(content, format=kind, dpi=200, metadata=_METADATA[kind])
    write_atomically(file, content.getvalue())
