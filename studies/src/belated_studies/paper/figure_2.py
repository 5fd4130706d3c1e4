"""Figure 2: empirical distributions of the delays."""

from __future__ import annotations

import numpy as np

from belated._kernels.streams import stream
from belated.delays import DelayDistribution
from belated_studies.paper.setting import DELAY_NAMES, DELAYS, LOMAX, PaperSize
from belated_studies.reports.document import Chart, Section, Series
from belated_studies.study import Artefact, Played

SHOWN: dict[str, DelayDistribution] = {**DELAYS, "lomax": LOMAX}
DRAWS = 10_000


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
    counts, edges = np.histogram(shown, bins=min(40, len(np.unique(shown)) * 2))
    tail = ", up to the 95 % quantile" if shown.size < drawn.size else ""
    mean = "infinite" if np.isinf(distribution.mean) else f"{distribution.mean:g}"
    return Chart(
        id=f"figure-2-{name}",
        title=DELAY_NAMES[name],
        caption=f"10 000 draws{tail}; largest {drawn.max():,}; mean of the distribution {mean}.",
        x_label="delay in episodes",
        y_label="share",
        series=[Series(name=DELAY_NAMES[name], x=(edges[:-1] + edges[1:]) / 2, y=counts / drawn.size)],
        bars=True,
    )


ARTEFACT = Artefact(id="figure-2", order=2, section=section)
