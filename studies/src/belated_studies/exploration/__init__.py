"""The untuned agent beside tuned ones and beside published numbers, on problems that have to be explored."""

from __future__ import annotations

from belated_studies.exploration.peers import SEEDS
from belated_studies.exploration.problems import FULL, QUICK, Size
from belated_studies.study import Played, Study

PEERS = (
    f"DQN and PPO of Stable-Baselines3 play what plain Gymnasium has, toy text and classic control, with {SEEDS} "
    "seeds: the same episodes under the same delays. They learn only from what has arrived: DQN counts steps when "
    "they arrive, and PPO fills its rollouts with arrived episodes, with the values and probabilities from the time "
    "when they were played. On classic control they have the settings of RL Zoo, on toy text the defaults of "
    "Stable-Baselines3; Q-learning has our defaults everywhere."
)
LEFT_OUT = "DQN and PPO of Stable-Baselines3, which take hours, are left out of a quick look."


def _facts(played: Played[Size]) -> dict[str, str]:
    size = played.size
    return {
        "Seeds": f"0 to {size.seeds - 1}; nothing was chosen on them (the adversaries among the testbeds: see there)",
        "Episodes": f"as each problem says, at most {size.episodes:,}",
    }


def _remarks(played: Played[Size]) -> list[str]:
    if played.size.large:
        absent = [each.id for each in STUDY.artefacts() if f"{each.id}-times" not in played.measured]
        return [
            *([PEERS] if any(name.startswith("peers-") for name in played.measured) else []),
            *([f"Not on this page: {', '.join(absent)}."] if absent else []),
        ]
    quick = f"This is a quick look at the smaller problems with {played.size.seeds} seeds"
    return [f"{quick}; `belated exploration --full` plays all of them with {FULL.seeds}.", LEFT_OUT]


TITLE = "Exploring with late feedback and nothing to tune"
STUDY = Study(name="exploration", title=TITLE, package=__name__, quick=QUICK, full=FULL, facts=_facts, remarks=_remarks)
