"""The paper's agents in simulators: what is played, and what is said of it."""

from __future__ import annotations

from belated_studies.exploration import paper_agents
from belated_studies.exploration.problems import AUTO, FULL, QUICK
from belated_studies.exploration.rows import Line
from belated_studies.winners import tuned


def test_the_winners_of_each_search_play_beside_the_untuned_agent() -> None:
    for problem in paper_agents.problems():
        search = problem.label.removeprefix("paper-")
        winners = {**tuned(search), **tuned(f"{search}-greedy")}
        assert set(winners) == {"psvi", "lpsvi", "ucbvi", "epsilon-greedy", "q-learning"}
        assert problem.others == winners
        agents = {run.agent_label for run in problem.experiments(FULL)[0].runs()}
        assert agents == {AUTO, *winners}


def test_a_quick_look_leaves_the_largest_problem_out() -> None:
    names = {size.name: [one.name for one in paper_agents.ARTEFACT.experiments(size)] for size in (QUICK, FULL)}
    assert names["quick"] == names["full"][:2]
    assert names["full"][2] == "paper-acrobot"


def test_the_finding_ranks_the_agents_and_says_which_are_tuned() -> None:
    problem = paper_agents.problems()[1]
    found = [
        Line(problem.label, "poisson-10", agent, 2, 300, value, value, value, 200.0, None, None)
        for agent, value in ((AUTO, 150.0), ("psvi", 199.5))
    ]
    said = paper_agents._said(problem, found)
    assert said.index("Delayed-PSVI 199.5") < said.index("AutoPSVI 150")
    assert "AutoPSVI untuned, the others tuned" in said
