from belated.runner import Space
from belated.types import SimulatorProblem
from belated_studies.exploration import searches


def test_the_searches_are_of_equal_size_in_simulators_without_a_table() -> None:
    found = [searches.mountain_car(), searches.cart_pole()]
    for search in found:
        assert isinstance(search.environment.problem, SimulatorProblem)
        assert search.environment.problem.homogeneous  # as sharing needs it
        assert set(search.spaces) == {"psvi", "lpsvi", "ucbvi"}
        for space in search.spaces.values():
            assert isinstance(space, Space)
            assert all(getattr(candidate, "shared", False) for candidate in space.candidates())
    assert found[0].environment.label != found[1].environment.label
