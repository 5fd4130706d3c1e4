"""What the lemmas and theorems claim, measured on problems small enough to see it."""

from __future__ import annotations

from collections.abc import Mapping

from belated.studies.lemmas.claims import Check
from belated.studies.lemmas.worlds import BANDIT, DELTA, EPISODES, FULL, MEDIUM, QUICK, SMALL_EPISODES, WORLDS, Size
from belated.studies.study import Played, Study


def facts(played: Played[Size]) -> Mapping[str, str]:
    """Return on what was measured."""
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


def remarks(played: Played[Size]) -> list[str]:
    """Return how many of the claims hold."""
    from belated.studies.lemmas import regret

    checks = [each for values in played.measured.values() for each in values if isinstance(each, Check)]
    if regret.LARGER in played.results:
        checks += regret.checks(played)
    proved = [check for check in checks if check.applies]
    return [
        f"Of {len(proved)} claims with the settings they are proved for, "
        f"{sum(check.holds for check in proved)} hold as often as promised."
    ]


STUDY = Study[Size](
    name="lemmas",
    title="The lemmas, measured",
    package=__name__,
    quick=QUICK,
    full=FULL,
    facts=facts,
    remarks=remarks,
)
