"""Rare planning, from rows and times with known numbers."""

from __future__ import annotations

import invented
import pytest

from belated.agents import RareSwitching
from belated_studies.systems.comparisons import Timed
from belated_studies.systems.switching import ARTEFACT, TIMES
from belated_studies.systems.testbeds import QUICK

SIZE = QUICK.resized(seeds=2)
RULES = {
    "": "every episode",
    "-det-1.1": "det Ω grows by 1.1",
    "-det-1.5": "det Ω grows by 1.5",
    "-det-2.0": "det Ω grows by 2.0",
    "-every-10": "every 10",
    "-every-50": "every 50",
}
BASES = {
    "psvi": "Delayed-PSVI",
    "lpsvi": "Delayed-LPSVI",
    "ucbvi": "Delayed-UCBVI",
    "tabular-ucbvi": "tabular UCBVI, active",
}
LABELS = {f"{base}{ending}": (BASES[base], RULES[ending]) for base in BASES for ending in RULES}


def test_every_base_plans_by_every_rule() -> None:
    (experiment,) = ARTEFACT.experiments(SIZE)
    assert list(experiment.agents) == list(LABELS)
    for base in BASES:
        inner = experiment.agents[base]
        assert experiment.agents[f"{base}-det-1.5"] == RareSwitching(base=inner, growth=1.5)  # type: ignore[arg-type]
        assert experiment.agents[f"{base}-every-50"] == RareSwitching(base=inner, growth=None, every=50)  # type: ignore[arg-type]


def test_regret_and_times_stand_beside_their_rule() -> None:
    numbers = {label: i + 1.0 for i, label in enumerate(LABELS)}
    times = [Timed("switching", label, 120.0 / n, 1.0, 200.0) for label, n in numbers.items()]
    played = invented.played(
        ARTEFACT, SIZE, lambda run: 100 * numbers[run.agent_label], measured={TIMES.name: times[::-1]}
    )
    section = ARTEFACT.section(played)
    expected = [
        [*said, 100 * numbers[label], 120.0 / numbers[label], numbers[label] / numbers[base]]
        for label, said in LABELS.items()
        for base in [next(base for base, name in BASES.items() if name == said[0])]
    ]
    for row, wanted in zip(invented.table(section, "switching-table"), expected, strict=True):
        assert row[:2] == wanted[:2]
        assert row[2:] == pytest.approx(wanted[2:])
