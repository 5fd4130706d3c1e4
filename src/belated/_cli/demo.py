"""The demo: five agents learn while feedback is late."""

from __future__ import annotations

import time

from rich.console import Console
from rich.live import Live

from belated.agents import AutoPSVI, RandomPolicy, Settings
from belated.delays import Poisson
from belated.environments import SyntheticLinearMDP
from belated.runner import run
from belated_studies.reports.replay import Replay
from belated_studies.winners import tuned

FAIR = (
    "AutoPSVI needs no settings and no search, RandomPolicy has none; all others have the settings that won one search "
    "of equal size: belated tune synthetic."
)


def agents() -> dict[str, Settings]:
    """Return the agents of the demo: one that needs no search, the winners of one, and one that cannot learn."""
    best = tuned("synthetic")
    labels = ("psvi-0.1", "ucbvi", "epsilon-greedy")
    return {type(agent).__name__: agent for agent in (AutoPSVI(), *(best[label] for label in labels), RandomPolicy())}


def play_demo(console: Console, *, episodes: int = 1000, seconds: float = 6.0) -> None:
    """Play the demo's agents and tell it over `seconds`; at once when `console` is not a terminal."""
    results = run(SyntheticLinearMDP(actions=20), agents(), Poisson(50), episodes=episodes, seeds=1)
    replay = Replay(results)
    if console.is_terminal:
        _animate(console, replay, seconds)
    else:
        console.print(replay.frame(replay.episodes))
    console.print(f"{replay.takeaway()} {FAIR}", highlight=False)


def _animate(console: Console, replay: Replay, seconds: float) -> None:
    begun = time.monotonic()
    with Live(replay.frame(1), console=console, auto_refresh=False) as live:
        passed = 0.0
        while passed < 1.0:
            time.sleep(1 / 15)
            passed = min((time.monotonic() - begun) / seconds, 1.0)
            live.update(replay.frame(max(1, round(passed * replay.episodes))), refresh=True)
