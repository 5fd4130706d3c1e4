"""The paper's problems, from rows with known numbers."""

from __future__ import annotations

import invented

from belated.runner import Run
from belated_studies.exploration.paper_problems import ARTEFACT
from belated_studies.exploration.problems import AUTO, QUICK

SIZE = QUICK.resized(seeds=2)


def test_regret_is_held_against_the_best_tuned_agent() -> None:
    def regret(run: Run) -> float:
        if run.agent_label == AUTO:
            return 90.0 if run.delay_label == "poisson" else 110.0
        return {"lpsvi": 100.0}.get(run.agent_label, 200.0)

    played = invented.played(ARTEFACT, SIZE, regret)
    bars = invented.table(ARTEFACT.section(played), "paper-problems-bars")
    assert [(row[1], row[4]) for row in bars] == [
        ("Multinomial {10, 20, 30}", "not reached"),
        ("Poisson 50", "reached"),
        ("Pareto, shape 1, scale 500", "not reached"),
        ("Poisson 5", "not reached"),
    ]
    assert {str(row[2]).split(";")[0] for row in bars} == {"regret at most 100 (lpsvi)"}
    assert str(bars[3][2]).endswith("regret at most 1.1 × 91, that of the earlier rule")
