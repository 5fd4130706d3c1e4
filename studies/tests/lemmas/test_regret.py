"""Regret beside its bounds, from rows with known numbers."""

from __future__ import annotations

import invented
import pytest

from belated import theory
from belated.runner import Run
from belated_studies.lemmas import regret
from belated_studies.lemmas.regret import ARTEFACT, BANDITS, LARGER
from belated_studies.lemmas.worlds import DELAYS, DELTA, EPISODES, MEDIUM, QUICK

SIZE = QUICK.resized(seeds=4)


def ends(run: Run) -> float:
    """Return another regret for each agent and seed."""
    label = {"exact": 100.0, "chains": 200.0, "practical": 300.0}[run.agent_label]
    return label + 10.0 * run.seed + (5.0 if run.experiment == BANDITS else 0.0)


def test_every_bound_stands_beside_the_worst_run_of_its_agent() -> None:
    played = invented.played(ARTEFACT, SIZE, ends, rows=EPISODES)
    found = regret.checks(played)
    assert [(each.lemma, each.measured, each.applies) for each in found] == [
        ("Theorem 1", 110.0, True),
        ("Theorem 2", 210.0, True),
        ("Theorem 1", 310.0, False),
        ("Bandit corollary", 115.0, True),
    ]
    sizes = (MEDIUM.dimension, MEDIUM.horizon, EPISODES, DELTA, DELAYS["Poisson"])
    assert found[0].bound == found[2].bound == theory.psvi_regret_bound(*sizes).total
    assert found[1].bound == theory.lpsvi_regret_bound(*sizes).total
    (table,) = ARTEFACT.section(played).tables
    assert [row[0] for row in table.rows] == ["Theorem 1", "Theorem 2", "Theorem 1 *", "Bandit corollary"]
    assert regret.all_checks(played) == found


def test_the_curves_are_means_over_seeds_and_end_with_the_last_episode() -> None:
    played = invented.played(ARTEFACT, SIZE, ends, rows=EPISODES)
    (chart,) = ARTEFACT.section(played).charts
    curves = {series.name: series for series in chart.series}
    practical = curves["regret: exact draws, M = 2, ν = 1"]
    assert not practical.dashed
    assert practical.x[-1] == EPISODES
    assert practical.y == pytest.approx(305.0 * practical.x / EPISODES)
    assert curves["HK, the largest regret there can be"].y[-1] == MEDIUM.horizon * EPISODES
    assert curves["bound of Theorem 2"].y[-1] == regret.bounds(EPISODES)["Theorem 2"]
    told = ARTEFACT.findings(played)
    assert "regret: exact draws, M = 2, ν = 1: 305;" in told[0]
    assert told[0].startswith(f"After {EPISODES} episodes: regret: exact draws, M = 717")


def test_bounds_that_cannot_fail_are_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    played, worst = invented.played(ARTEFACT, SIZE, ends, rows=EPISODES), MEDIUM.horizon * EPISODES
    for bound, empty in ((worst + 1.0, True), (worst - 1.0, False)):
        promised = {"Theorem 1": worst + 1.0, "Theorem 2": bound, "Bandit corollary": worst + 1.0}
        monkeypatch.setattr(regret, "bounds", lambda episodes, promised=promised: promised)
        assert ARTEFACT.findings(played)[-1].endswith("none of them could fail.") == empty


def test_a_broken_bound_is_told() -> None:
    played = invented.played(ARTEFACT, SIZE, lambda run: 1e12 if run.experiment == LARGER else 0.0, rows=EPISODES)
    told = ARTEFACT.findings(played)
    assert sum(sentence.startswith("Promised, and not so: theorem") for sentence in told) == 2
    assert sum(sentence.startswith("Not promised, and not so: theorem 1") for sentence in told) == 1
