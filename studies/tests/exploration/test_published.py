"""The published numbers."""

from __future__ import annotations

from belated_studies.exploration.published import N_CHAIN, SIZES, best_on_the_chain


def test_the_best_on_each_chain_is_found() -> None:
    assert [best_on_the_chain(size) for size in SIZES] == [
        "FG-ULMCDQN 10",
        "LSVI-PHE 9.86",
        "FG-ULMCDQN 9.8",
        "FG-ULMCDQN 9.8",
    ]
    assert len(N_CHAIN) == 8
