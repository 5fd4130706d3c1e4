"""The temperature as √γ: what is played, and where its numbers stand."""

from __future__ import annotations

import invented
import pytest
from small import SMALL

from belated.runner import Run
from belated_studies.paper.agents import literal_riverswim, literal_synthetic
from belated_studies.paper.details import CHAINS
from belated_studies.paper.temperature import ARTEFACT, experiments, rooted


def test_only_the_temperature_is_another() -> None:
    for printed, root in ((literal_synthetic(), 0.02**0.5), (literal_riverswim(), 0.2**0.5)):
        warm = rooted(printed)
        for reading in CHAINS:
            before, after = reading.of(printed["lpsvi"]).to_dict(), warm[reading.label].to_dict()
            assert after.pop("temperature") == pytest.approx(root)
            assert before.pop("temperature") == pytest.approx(root**2)
            assert before == after


def test_what_the_study_of_details_plays_is_played_once() -> None:
    names = [one.name for one in experiments(SMALL)]
    assert names == ["details-langevin", "details-riverswim", "temperature", "temperature-riverswim"]


def value(run: Run) -> float:
    """Return 1 to 4 by experiment, a tenth more under heavy tails, and more for the last reading."""
    number = [one.name for one in experiments(SMALL)].index(run.experiment) + 1.0
    return number + 0.1 * (run.delay_label == "pareto") + 5 * (run.agent_label == CHAINS[-1].label)


def test_both_temperatures_stand_side_by_side() -> None:
    played = invented.played(ARTEFACT, SMALL.resized(seeds=2), lambda run: 100 * value(run), value=value)
    section = ARTEFACT.section(played)
    first, *_, last = invented.table(section, "temperature-table")
    assert first[:2] + last[:2] == ["episode", "1.0", "cold", "0.1"]
    assert first[2:] == pytest.approx([1.0, 3.0, 2.0, 4.0, 200.0, 400.0])
    assert last[2:] == pytest.approx([6.0, 8.0, 7.0, 9.0, 700.0, 900.0])
    first, *_ = invented.table(section, "temperature-table-2")
    assert first[2:] == pytest.approx([3.0, 3.0, 3.1])
    (told,) = ARTEFACT.findings(played)
    assert "has the value 8.00, with γ 6.00 (paper 11.37)" in told
