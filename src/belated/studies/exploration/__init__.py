"""The untuned agent beside tuned ones and beside published numbers, on problems that have to be explored."""

from __future__ import annotations

from belated.studies.exploration.problems import FULL, QUICK, Size
from belated.studies.study import Played, Study

LEFT_OUT = (
    "Tabular Q-learning, and DQN and PPO of Stable-Baselines3 fed with late feedback, are not in this study: what is "
    "published of DQN stands in a column of its own, and was measured without delay."
)


def _facts(played: Played[Size]) -> dict[str, str]:
    size = played.size
    return {
        "Seeds": f"0 to {size.seeds - 1}; nothing was chosen on them",
        "Episodes": f"as each problem says, at most {size.episodes:,}",
    }


def _remarks(played: Played[Size]) -> list[str]:
    if played.size.large:
        return [LEFT_OUT]
    quick = f"This is a quick look at the smaller problems with {played.size.seeds} seeds"
    return [f"{quick}; `belated exploration --full` plays all of them with {FULL.seeds}.", LEFT_OUT]


TITLE = "Exploring with late feedback and nothing to tune"
STUDY = Study(name="exploration", title=TITLE, package=__name__, quick=QUICK, full=FULL, facts=_facts, remarks=_remarks)
