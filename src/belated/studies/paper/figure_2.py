"""Figure 2: empirical distributions of the delays."""

from __future__ import annotations

import numpy as np

from belated.delays import DelayLaw
from belated.reports.document import Chart, Section, Series
from belated.rng import stream
from belated.studies.paper.setting import DELAY_NAMES, DELAYS, LOMAX, PaperSize
from belated.studies.study import Artefact, Played

LAWS: dict[str, DelayLaw] = {**DELAYS, "lomax": LOMAX}
DRAWS = 10_000


def section(played: Played[PaperSize]) -> Section:
    """Return a histogram of each law, of those without a mean up to the 95 % quantile."""
    return Section(
        id="figure-2", title="Figure 2: the delays", charts=[_chart(name, law) for name, law in LAWS.items()]
    )


def _chart(name: str, law: DelayLaw) -> Chart:
    drawn = law.sample(stream(0, "delay"), DRAWS)
    shown = drawn[drawn <= np.quantile(drawn, 0.95)] if np.isinf(law.mean) else drawn
    counts, edges = np.histogram(shown, bins=min(40, len(np.unique(shown)) * 2))
    tail = ", up to the 95 % quantile" if shown.size < drawn.size else ""
    mean = "infinite" if np.isinf(law.mean) else f"{law.mean:g}"
    return Chart(
        id=f"figure-2-{name}",
        title=DELAY_NAMES[name],
        caption=f"10 000 draws{tail}; largest {drawn.max():,}; mean of the law {mean}.",
        x_label="delay in episodes",
        y_label="share",
        series=[Series(name=DELAY_NAMES[name], x=(edges[:-1] + edges[1:]) / 2, y=counts / drawn.size)],
        bars=True,
    )


ARTEFACT = Artefact(id="figure-2", order=2, section=section)
