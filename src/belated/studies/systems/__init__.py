"""Every system on common testbeds: bandits, conversions, contexts, chains, arbitrary delays, adversaries."""

from __future__ import annotations

from collections.abc import Mapping

from belated.studies.study import Played, Study
from belated.studies.systems.testbeds import FULL, QUICK, Size


def facts(played: Played[Size]) -> Mapping[str, str]:
    """Return how much was played."""
    size = played.size
    return {
        "Seeds": f"0 to {size.seeds - 1}, or to {size.slow_seeds - 1} where agents are asked in Python",
        "Rounds and episodes": f"{size.rounds} rounds of a bandit, {size.episodes} episodes of an MDP",
    }


def remarks(played: Played[Size]) -> list[str]:
    """Return what a quick look is not."""
    if played.size.name == FULL.name:
        return []
    return [f"This is a quick look with {played.size.seeds} seeds; `belated systems --full` plays {FULL.seeds}."]


STUDY = Study[Size](
    name="systems",
    title="Learning from late feedback: every system on common ground",
    package=__name__,
    quick=QUICK,
    full=FULL,
    facts=facts,
    remarks=remarks,
)
