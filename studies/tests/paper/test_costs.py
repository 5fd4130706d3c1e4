from __future__ import annotations

import pytest

from belated_studies.paper import STUDY
from belated_studies.paper.costs import seconds
from belated_studies.paper.setting import FULL


def test_chains_cost_most_and_every_run_something() -> None:
    runs = [run for one in STUDY.experiments(FULL, STUDY.usual(full=False)).values() for run in one.runs()]
    costs = {run.agent_label: seconds(run) for run in runs if run.episodes == FULL.episodes}
    assert max(costs, key=lambda agent: costs[agent]) in ("lpsvi", "lpsvi-plain")
    assert min(costs.values()) == pytest.approx(0.1)
