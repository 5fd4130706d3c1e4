"""The sandwich, as the documentation shows it."""

from __future__ import annotations

from itertools import pairwise

import theory_page

from belated_studies.lemmas.covariance import ARTEFACT, SPREAD, Spread, measure, measure_spread
from belated_studies.lemmas.worlds import QUICK
from belated_studies.study import Played


def test_the_page_shows_what_is_measured() -> None:
    found = list(measure(QUICK))
    assert all(each.holds for each in found)
    theory_page.shows(found)


def test_a_longer_chain_spreads_more_and_stays_above_the_bound() -> None:
    found = list(measure_spread(QUICK))
    assert found[0].steps == 1
    assert found[-1].steps == 400
    for shorter, longer in pairwise(found):
        assert (longer.least, longer.lower_bound) > (shorter.least, shorter.lower_bound)
    assert all(each.lower_bound <= each.least <= each.largest <= 1 for each in found)


def test_the_chart_has_the_three_curves() -> None:
    spread = [Spread(1, 0.5, 0.25, 0.125), Spread(10, 0.75, 0.5, 0.375)]
    (claims, _) = ARTEFACT.measurements
    (chart,) = ARTEFACT.section(Played(QUICK, {}, {}, {claims.name: [], SPREAD.name: spread})).charts
    curves = {series.name: (series.y.tolist(), series.dashed) for series in chart.series}
    assert chart.series[0].x.tolist() == [1.0, 10.0]
    assert curves == {
        "largest eigenvalue": ([0.5, 0.75], False),
        "least eigenvalue": ([0.25, 0.5], False),
        "lower bound of the lemma": ([0.125, 0.375], True),
    }
