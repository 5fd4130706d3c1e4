"""The untuned agent beside tuned ones and beside published numbers, on problems that have to be explored."""

from __future__ import annotations

from belated_studies.exploration.peers import SEEDS
from belated_studies.exploration.problems import FULL, QUICK, Size
from belated_studies.exploration.published import THEIR_AGENTS
from belated_studies.study import Played, Study

PEERS = (
    f"DQN and PPO of Stable-Baselines3 play the same episodes under the same delays, with {SEEDS} seeds (six numbers: "
    "10). They learn only from what has arrived: DQN counts steps when they arrive, and PPO fills its rollouts with "
    "arrived episodes, with the values and probabilities from the time when they were played. They use the settings of "
    "RL Zoo where it has any, settings chosen by hand for DQN on six numbers, and their defaults elsewhere."
)
SEARCHED = (
    "The other agents have settings found by a search on development seeds; within a search all agents have the same "
    "budget. A table in each section says what was searched, on what, and how long. AutoPSVI has no settings."
)
LEFT_OUT = "DQN and PPO of Stable-Baselines3, which take hours, are left out of a quick look."


def _facts(played: Played[Size]) -> dict[str, str]:
    size = played.size
    return {
        "Seeds": (
            f"0 to {size.seeds - 1} unless a table says otherwise; nothing was chosen on them (the section on the "
            "testbeds names one exception)"
        ),
        "Episodes": f"as each problem says, at most {size.episodes:,}",
    }


def _remarks(played: Played[Size]) -> list[str]:
    if played.size.large:
        absent = [each.id for each in STUDY.artefacts() if f"{each.id}-times" not in played.measured]
        return [
            SEARCHED,
            f"Published numbers are from other authors and without delay. {THEIR_AGENTS}",
            *([PEERS] if any(name.startswith("peers-") for name in played.measured) else []),
            *([f"Not on this page: {', '.join(absent)}."] if absent else []),
        ]
    quick = f"This is a quick look at the smaller problems with {played.size.seeds} seeds"
    return [f"{quick}; `belated exploration --full` plays all of them with {FULL.seeds}.", LEFT_OUT]


TITLE = "Exploring with late feedback and nothing to tune"
STUDY = Study(name="exploration", title=TITLE, package=__name__, quick=QUICK, full=FULL, facts=_facts, remarks=_remarks)
