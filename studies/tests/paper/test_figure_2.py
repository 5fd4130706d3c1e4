from __future__ import annotations

import numpy as np
import pytest
from small import SMALL

from belated_studies.paper import figure_2
from belated_studies.study import Played


def test_shares_add_up_to_what_is_shown() -> None:
    charts = figure_2.section(Played(SMALL, {}, {})).charts
    assert [chart.id for chart in charts] == [
        f"figure-2-{distribution}" for distribution in ("multinomial", "poisson", "pareto", "lomax")
    ]
    shown = [float(np.sum(chart.series[0].y)) for chart in charts]
    assert shown == pytest.approx([1.0, 1.0, 0.95, 0.95], abs=1e-3)
    assert ["95 % quantile" in chart.caption for chart in charts] == [False, False, True, True]
    assert charts[0].series[0].x.tolist() == [10, 20, 30]
    whole = charts[1].series[0].x
    assert (whole == np.round(whole)).all(), "every delay has a bar of its own"
    assert np.diff(whole).min() == 1
    assert "in bins of" not in charts[1].caption
    assert "in bins of" in charts[2].caption
    assert "mean of the distribution 17" in charts[0].caption
