"""The stopwatch counts episodes; how many microseconds come out is the machine's affair."""

import belated
from belated_studies.pace import pace


def test_pace_is_the_middle_of_its_range() -> None:
    found = pace(belated.RiverSwim(), belated.RandomPolicy(), belated.Poisson(5), repeats=3, least_seconds=0.001)
    assert 0.0 < found.low <= found.median <= found.high
