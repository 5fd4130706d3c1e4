"""The stopwatch, and what is made of its readings."""

from __future__ import annotations

import pytest
from small import SMALL

from belated_studies.paper import computation
from belated_studies.paper.computation import Timing, exponent
from belated_studies.reports.document import Cell
from belated_studies.study import Played


@pytest.mark.slow
def test_every_variant_is_timed_at_every_dimension() -> None:
    timings = list(computation.measure((2, 3), repeats=2, least_seconds=1e-4))
    assert [(each.variant, each.dimension) for each in timings] == [
        (variant, dimension) for dimension in (2, 3) for variant in computation.VARIANTS
    ]
    assert all(0 < each.low <= each.seconds <= each.high for each in timings)


def test_the_exponent_of_a_power_distribution_is_its_power() -> None:
    timings = [Timing("x", d, 3e-9 * d**2.5, 0.0, 0.0) for d in (10, 100, 316, 1000)]
    timings[0] = timings[0]._replace(seconds=1.0)  # below the fitted range
    assert exponent(timings, "x") == pytest.approx(2.5)


def test_growth_is_told_from_the_readings() -> None:
    power = {variant: 1.0 + i for i, variant in enumerate(computation.VARIANTS)}
    timings = [Timing(name, d, 1e-6 * d ** power[name], 0.0, 1.0) for d in (10, 100, 1000) for name in power]
    played = Played(SMALL, {}, {}, {"computation": timings})
    (table,) = computation.section(played).tables
    exponents = {str(row[0]): row[2].value for row in table.rows if isinstance(row[2], Cell)}
    assert exponents == pytest.approx(power)
    (told,) = computation.findings(played)
    assert "grows like d^2.0 for exact draws" in told
    assert "takes 10.0 to 1000.0 times as long" in told
