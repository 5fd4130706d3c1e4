"""Ways to draw on sparse features: what is played, and what is made of it."""

from __future__ import annotations

import pytest
from small import SMALL

from belated_studies.paper import computation, sparse_draws
from belated_studies.paper.claims import _computation
from belated_studies.paper.computation import Timing
from belated_studies.paper.sparse_draws import ASCENT, FACTOR, MOST_DENSE, VARIANTS, SparseDraw
from belated_studies.reports.document import Cell
from belated_studies.study import Played


def test_every_way_is_played_where_it_can_be_and_learns() -> None:
    draws = list(sparse_draws.measure((100, MOST_DENSE + 1), rounds=60, seeds=1))
    ways = [
        (variant, d) for d in (100, MOST_DENSE + 1) for variant, (_, by_rows) in VARIANTS.items() if by_rows or d == 100
    ]
    assert [(each.variant, each.dimension) for each in draws] == ways
    assert all(each.seconds > 0.0 for each in draws)
    assert len({each.chance for each in draws if each.dimension == 100}) == 1  # the same contexts for all
    assert all(each.regret < 0.9 * each.chance for each in draws if each.dimension == 100)


DRAWS = [
    SparseDraw(variant, d, seed, 1e-3 * d ** (2.0 if variant == FACTOR else 0.1), 10.0 + 2.0 * seed, 20.0)
    for d in (100, 1000, 10_000)
    for variant in VARIANTS
    for seed in range(2)
    if variant != FACTOR or d <= MOST_DENSE
]


def test_growth_and_regret_are_told() -> None:
    table = sparse_draws.table(DRAWS)
    (factor,) = (row for row in table.rows if row[0] == FACTOR)
    assert isinstance(factor[1], Cell) and factor[1].value == pytest.approx(2.0)
    assert isinstance(factor[2], Cell) and (factor[2].value, factor[2].low) == pytest.approx((0.55, 0.5))
    assert factor[-1] == "–"
    assert sparse_draws.exponent(DRAWS, ASCENT) == pytest.approx(0.1)
    assert "1000000 ms with a factor" in sparse_draws.told(DRAWS)
    timings = [Timing(name, d, 1e-6 * d**2, 0.0, 1.0) for d in (10, 100, 1000) for name in computation.VARIANTS]
    played = Played(SMALL, {}, {}, {"computation": timings, computation.SPARSE.name: DRAWS})
    assert [each.id for each in computation.section(played).tables] == ["computation-table", table.id]
    assert computation.findings(played)[1] == sparse_draws.told(DRAWS)
    (claim,) = _computation(played)
    assert claim.printed is not None and claim.printed.verdict == "does not hold"
    assert "by dual ascent at d = 1,000" in claim.printed.evidence
