"""Active and lazy updating, from rows with known numbers."""

from __future__ import annotations

import invented
import pytest

from belated.runner.experiment import Run
from belated.studies.systems.chains import ARTEFACT, LAZY, agents
from belated.studies.systems.testbeds import QUICK

SIZE = QUICK.resized(seeds=2)
EXTRA = {"active": 0.0, "lazy-1": 9.0, "lazy-4": 5.0, "lazy-16": 1.0, "psvi": 2.0}


def regret(run: Run) -> float:
    """Linear in E[τ]; on the longest chain, one lazy rule is better than active updating."""
    better = -30.0 if (run.environment.states, run.agent_label) == (20, "lazy-16") else 0.0
    return 100.0 + 0.5 * run.delay.mean + EXTRA[run.agent_label] + better  # type: ignore[union-attr]


def test_lazy_agents_differ_from_the_active_one_in_updating_only() -> None:
    made = {name: agent.to_dict() for name, agent in agents().items()}
    active = made["active"]
    for alpha, label in LAZY.items():
        lazy = made[label]
        assert {name for name in active if active[name] != lazy[name]} <= {"updating", "growth"}
        assert (lazy["updating"], lazy["growth"]) == ("lazy", alpha)


def test_lazy_updating_is_compared_with_active_updating() -> None:
    section = ARTEFACT.section(invented.played(ARTEFACT, SIZE, regret))
    assert invented.table(section, "chains-lazy") == [
        ["chain-5", 9.0, 5.0, 1.0, "reproduced"],
        ["chain-10", 9.0, 5.0, 1.0, "reproduced"],
        ["chain-20", 9.0, 5.0, -29.0, "refuted"],
    ]
    (table,) = [each for each in section.tables if each.id == "chains-lazy"]
    assert table.columns[1:4] == ["lazy, α = 1", "lazy, α = 4", "lazy, α = 16"]
    lines = {tuple(row[:2]): row[2:] for row in invented.table(section, "chains-lines")}
    assert lines["chain-20", "lazy, α = 16"] == pytest.approx([71.0, 0.5, 0.0], abs=1e-6)


def test_the_findings_count_the_chains() -> None:
    active, larger, linear = ARTEFACT.findings(invented.played(ARTEFACT, SIZE, regret))
    assert active.endswith("refuted on 2 of 3 chains.")
    assert larger.endswith("refuted on 2 of 3 chains.")
    assert linear.endswith("under active updating on 3 of 3 chains.")
