"""The table of all systems, from rows and times with known numbers."""

from __future__ import annotations

import invented

from belated.runner import Run
from belated_studies.paper.published import SYSTEMS
from belated_studies.systems.comparisons import Timed
from belated_studies.systems.systems import ARTEFACT, TIMES
from belated_studies.systems.testbeds import QUICK

SIZE = QUICK.resized(seeds=2)
TESTBEDS = {"testbed-mdp": "synthetic MDP", "testbed-bandit": "linear bandit", "testbed-adversarial": "adversarial MDP"}


def test_every_system_stands_beside_its_own_run() -> None:
    agents = {(one.name, label) for one in ARTEFACT.experiments(SIZE) for label in one.agents}
    numbers = {key: i + 1.0 for i, key in enumerate(sorted(agents))}

    def regret(run: Run) -> float:
        return numbers[run.experiment, run.agent_label]

    times = [Timed(name, label, 10 * number, 1.0, 999.0) for (name, label), number in numbers.items()]
    section = ARTEFACT.section(invented.played(ARTEFACT, SIZE, regret, measured={TIMES.name: times}))
    rows = {str(row[0]): row for row in invented.table(section, "systems-table")}
    for system in SYSTEMS:
        assert rows[system.name][:5] == list(system)
    for name, (testbed, agent) in {
        "Howson et al. (2023a)": ("testbed-bandit", "ofu"),
        "Yang et al. (2023)": ("testbed-mdp", "multi-batch"),
        "Lancewicki et al. (2022)": ("testbed-adversarial", "oppo"),
        "Delayed-PSVI": ("testbed-mdp", "psvi"),
        "BOLD around PSLB": ("testbed-bandit", "bold"),
        "LSVI-PHE (2021), delayed": ("testbed-mdp", "phe"),
    }.items():
        number = numbers[testbed, agent]
        assert rows[name][5:] == [TESTBEDS[testbed], number, 10 * number]
    assert len(rows) == len(SYSTEMS) + 6
    settings = {row[0] for row in invented.table(section, "systems-settings")}
    assert {"QPM-D around PSLB", "Delayed DAPO", "tabular UCBVI, active"} <= settings
