"""Every system on common testbeds: bandits, conversions, contexts, chains, arbitrary delays, adversaries."""

from __future__ import annotations

from belated_studies.study import Played, Study
from belated_studies.systems.testbeds import FULL, QUICK, Size


def _facts(played: Played[Size]) -> dict[str, str]:
    size = played.size
    return {
        "Seeds": f"0 to {size.seeds - 1}, or to {size.slow_seeds - 1} where agents run in Python",
        "Rounds and episodes": f"{size.rounds} rounds of a bandit, {size.episodes} episodes of an MDP",
    }


def _remarks(played: Played[Size]) -> list[str]:
    if played.size.name == FULL.name:
        return []
    return [f"This is a quick look with {played.size.seeds} seeds; `belated systems --full` plays {FULL.seeds}."]


TITLE = "Learning from late feedback: every system on common testbeds"
STUDY = Study(name="systems", title=TITLE, package=__name__, quick=QUICK, full=FULL, facts=_facts, remarks=_remarks)
