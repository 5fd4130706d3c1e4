"""Figure 2: empirical distributions of the delays."""

from __future__ import annotations

import numpy as np

from belated._kernels.streams import stream
from belated.delays import DelayDistribution
from belated.types import Floats, Ints
from belated_studies.paper.setting import DELAY_NAMES, DELAYS, LOMAX, PaperSize
from belated_studies.reports.document import Chart, Section, Series
from belated_studies.study import Artefact, Played

SHOWN: dict[str, DelayDistribution] = {**DELAYS, "lomax": LOMAX}
DRAWS = 10_000
MOST = 80
"""The most bins of a histogram."""


def section(played: Played[PaperSize]) -> Section:
    """Return a histogram of each distribution, of those without a mean up to the 95 % quantile."""
    return Section(
        id="figure-2",
        title="Figure 2: the delays",
        charts=[_chart(name, distribution) for name, distribution in SHOWN.items()],
    )


def _chart(name: str, distribution: DelayDistribution) -> Chart:
    drawn = distribution.sample(stream(0, "delay"), DRAWS)
    shown = drawn[drawn <= np.quantile(drawn, 0.95)] if np.isinf(distribution.mean) else drawn
    centres, shares, width = bins(shown)
    tail = ", up to the 95 % quantile" if shown.size < drawn.size else ""
    each = "" if width == 1 else f" in bins of {width} episodes"
    mean = "infinite" if np.isinf(distribution.mean) else f"{distribution.mean:g}"
    return Chart(
        id=f"figure-2-{name}",
        title=DELAY_NAMES[name],
        caption=f"10 000 draws{each}{tail}; largest {drawn.max():,}; mean of the distribution {mean}.",
        x_label="delay in episodes",
        y_label="share",
        series=[Series(name=DELAY_NAMES[name], x=centres, y=shares * shown.size / drawn.size)],
        bars=True,
    )


def bins(delays: Ints) -> tuple[Floats, Floats, int]:
    """Return the centres of bins of whole episodes, the share of `delays` in each, and how wide they are.

    A bin is one episode wide if that makes at most `MOST` of them; those without delays are left out.

    >>> bins(np.array([10, 10, 20, 30]))
    (array([10., 20., 30.]), array([0.5 , 0.25, 0.25]), 1)
    >>> bins(np.arange(500, 740))[0][:3]
    array([501., 504., 507.])
    """
    least = int(delays.min())
    width = -(-(int(delays.max()) - least + 1) // MOST)
    found, counts = np.unique((delays - least) // width, return_counts=True)
    return least + found * width + (width - 1) / 2, counts / delays.size, width


ARTEFACT = Artefact(id="figure-2", order=2, section=section)
