"""The rule of comparison, case by case."""

from __future__ import annotations

import pytest
from belated.reports.paper.verdicts import verdict

PUBLISHED = {"psvi": 11.5, "lpsvi": 11.4, "ucbvi": 10.5}


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        ({"psvi": 11.9, "lpsvi": 11.0, "ucbvi": 10.4}, "reproduced"),
        ({"psvi": 8.0, "lpsvi": 7.0, "ucbvi": 6.0}, "ordering reproduced"),
        ({"psvi": 7.0, "lpsvi": 8.0, "ucbvi": 6.0}, "ordering reproduced"),  # psvi and lpsvi are published as equal
        ({"psvi": 5.0, "lpsvi": 8.0, "ucbvi": 6.0}, "not reproduced"),
        ({"psvi": 6.0, "lpsvi": 8.0, "ucbvi": 6.0}, "not reproduced"),  # a tie is not an order
    ],
)
def test_the_verdict_on_psvi(measured: dict[str, float], expected: str) -> None:
    assert verdict("psvi", measured, PUBLISHED, 0.05) == expected


def test_the_tolerance_is_relative_to_the_published_number() -> None:
    assert verdict("a", {"a": 1249.0}, {"a": 1000.0}, 0.25) == "reproduced"
    assert verdict("a", {"a": 1251.0, "b": 1.0}, {"a": 1000.0, "b": 5000.0}, 0.25) == "not reproduced"
