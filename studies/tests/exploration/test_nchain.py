"""The N-chain, from rows with known numbers."""

from __future__ import annotations

import invented

from belated.runner import Run
from belated_studies.exploration.nchain import ARTEFACT, SOURCE, problems
from belated_studies.exploration.problems import FULL
from belated_studies.exploration.published import SIZES

SIZE = FULL.resized(seeds=2)


def value(run: Run) -> float:
    """The optimum, but for the longest chain without delay."""
    return 9.5 if (run.environment_label, run.delay_label) == ("nchain-100", "none") else 10.0


def test_chains_have_a_budget_of_steps() -> None:
    assert [each.episodes for each in problems()] == [3030, 1724, 1204, 925]
    assert [each.world.states for each in problems()] == list(SIZES)


def test_bars_and_published_numbers_stand_beside_ours() -> None:
    section = ARTEFACT.section(invented.played(ARTEFACT, SIZE, lambda run: 1.0, value=value))
    bars = {tuple(row[:2]): row[2:] for row in invented.table(section, "nchain-bars")}
    assert len(bars) == 8
    assert bars["N-chain 25", "none"] == [
        "at least 10; solved by episode 59; regret at most 1.1 × 77, that of the earlier rule",
        "10; by episode 1; 1 (0.01 ×)",
        "reached",
        SOURCE,
    ]
    assert bars["N-chain 100", "none"] == [
        "at least 9.8; solved by episode 59; regret at most 1.1 × 193, that of the earlier rule",
        "9.5; not by every seed; 1 (0.01 ×)",
        "not reached",
        SOURCE,
    ]
    assert bars["N-chain 100", "Poisson 50"][2] == "reached"
    ours, *theirs = invented.table(section, "nchain-published")
    assert ours == ["AutoPSVI, measured here", 10.0, 10.0, 10.0, 9.5]
    assert len(theirs) == 8
