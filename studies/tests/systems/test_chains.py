"""Active and lazy updating, from rows with known numbers."""

from __future__ import annotations

import invented
import pytest

from belated.runner import Run
from belated_studies.systems.chains import ARTEFACT, LAZY, agents
from belated_studies.systems.testbeds import QUICK

SIZE = QUICK.resized(seeds=2)
EXTRA = {"active": 0.0, "lazy-1": 9.0, "lazy-4": 5.0, "lazy-16": 2.0, "psvi": 2.0}


def regret(run: Run) -> float:
    """Linear in E[τ], but for one lazy rule at 300: better than active updating on chains of 20, in doubt on 10."""
    mean = run.delay.mean  # type: ignore[union-attr]
    extra = EXTRA[run.agent_label]
    if (run.agent_label, mean) == ("lazy-16", 300):
        extra = {5: 1.0, 10: -1.0 + 4.0 * run.seed, 20: -29.0}[run.environment.problem.horizon]
    return 100.0 + 0.5 * mean + extra


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
    assert lines["chain-20", "lazy, α = 4"] == pytest.approx([105.0, 0.5, 0.0], abs=1e-6)


def test_the_findings_count_the_chains() -> None:
    active, larger, linear = ARTEFACT.findings(invented.played(ARTEFACT, SIZE, regret))
    assert active.endswith("refuted on 2 of 3 chains.")
    assert larger.endswith("refuted on 2 of 3 chains.")
    assert linear.endswith("under active updating on 3 of 3 chains.")
