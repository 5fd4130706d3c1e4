"""Scenes with a signal: the same worlds with and without it, and the table from rows with known numbers."""

from __future__ import annotations

import invented
import pytest

from belated_studies.trials import signals
from belated_studies.trials.settings import AGE, MATURE, QUICK
from belated_studies.trials.signals import ARTEFACT, CLICK, NONE, SIGNALLED, TOSS


def test_a_signal_changes_nothing_but_what_is_told() -> None:
    worlds = {signal: signals.clicks(signal, 100) for signal in (NONE, CLICK, TOSS)}
    for world in worlds.values():
        assert world.rewards[0, 0] == pytest.approx([0.10, 0.06, 0.06, 0.06, 0.06])
    assert [world.signals for world in worlds.values()] == [False, True, True]
    sold = [report for report in worlds[CLICK].reports(0, episode=0) if not report[2]]
    assert sold == worlds[NONE].reports(0, episode=0)
    assert len(worlds[CLICK].reports(0, episode=0)) == 2


def test_the_table_says_what_a_signal_saves() -> None:
    ends = {AGE: 100.0, SIGNALLED: 90.0, MATURE: 200.0}
    played = invented.played(ARTEFACT, QUICK.resized(seeds=3), lambda run: ends[run.agent_label])
    rows = invented.table(ARTEFACT.section(played), "signals-table")
    assert rows[0] == ["clicks", CLICK, "1.4", 90.0, 100.0, pytest.approx(10.0), 200.0]
    assert "a click on clicks, 1.4 windows: 10.0 %;" in ARTEFACT.findings(played)[0]
