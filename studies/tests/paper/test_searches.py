from belated.environments import RiverSwim
from belated_studies.paper import searches
from belated_studies.paper.agents import SIGMAS


def test_the_search_is_on_the_worlds_of_the_figures() -> None:
    synthetic, river = searches.synthetic_search(), searches.riverswim_search()
    assert (synthetic.environment.problem.actions, synthetic.delay.label) == (50, "poisson-50")
    assert isinstance(river.environment, RiverSwim)
    assert (river.environment.states, river.delay.label) == (5, "poisson-5")
    assert {f"psvi-{sigma}" for sigma in SIGMAS} < set(synthetic.spaces)
    assert set(river.spaces) == {"psvi", "lpsvi", "lpsvi-plain", "ucbvi"}
