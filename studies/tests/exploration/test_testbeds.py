"""The testbeds of the study of systems: none is left out."""

from __future__ import annotations

from belated.environments import AdversarialMDP, Chain, SyntheticLinearMDP
from belated_studies.exploration.problems import FULL
from belated_studies.exploration.testbeds import problems
from belated_studies.systems import STUDY as SYSTEMS


def test_every_mdp_of_the_study_of_systems_is_there_under_its_delays() -> None:
    ours = {(each.world.label, str(distribution)) for each in problems() for distribution in each.delays.values()}
    for name in ("testbed-mdp", "chains", "arbitrary", "testbed-adversarial", "adversarial"):
        for run in SYSTEMS.experiments(SYSTEMS.full)[name].runs():
            assert isinstance(run.environment, SyntheticLinearMDP | Chain | AdversarialMDP)
            assert (run.environment.label, str(run.delay)) in ours, run.id
    assert all(bar.regret == 1.2 for each in problems() for bar in each.bars.values())
    assert all(each.shortened(FULL) == SYSTEMS.full.episodes for each in problems())
