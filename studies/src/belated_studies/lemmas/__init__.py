"""What the lemmas and theorems claim, measured on problems small enough to see it."""

from __future__ import annotations

from belated_studies.lemmas.worlds import BANDIT, DELTA, EPISODES, FULL, MEDIUM, QUICK, SMALL_EPISODES, WORLDS, Size
from belated_studies.study import Played, Study


def _facts(played: Played[Size]) -> dict[str, str]:
    small, larger, bandit = (
        f"S = {world.states}, A = {world.actions}, d = {world.dimension}, H = {world.horizon}"
        for world in (WORLDS[0], MEDIUM, BANDIT)
    )
    return {
        "Small worlds": f"{len(WORLDS)} of {small}, {played.size.seeds} seeds each, K = {SMALL_EPISODES}",
        "Larger world": f"{larger}, K = {EPISODES}",
        "Bandit": f"{bandit}, K = {EPISODES}",
        "δ": f"{DELTA:g}",
    }


def _remarks(played: Played[Size]) -> list[str]:
    from belated_studies.lemmas.regret import all_checks

    proved = [check for check in all_checks(played) if check.applies]
    held = sum(check.holds for check in proved)
    return [f"Of {len(proved)} claims with the settings they are proved for, {held} hold as often as promised."]


TITLE = "The lemmas, measured"
STUDY = Study(name="lemmas", title=TITLE, package=__name__, quick=QUICK, full=FULL, facts=_facts, remarks=_remarks)
