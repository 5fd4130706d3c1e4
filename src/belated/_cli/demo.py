"""The demo: five agents learn while feedback is late."""

from __future__ import annotations

import time

from rich.console import Console
from rich.live import Live

from belated._cli.replay import Replay
from belated.agents import AutoPSVI, DelayedPSVI, DelayedUCBVI, EpsilonGreedy, RandomPolicy, Settings
from belated.delays import Poisson
from belated.environments import SyntheticLinearMDP
from belated.runner import run

FAIR = (
    "AutoPSVI needs no settings and no search, RandomPolicy has none; all others have the settings that won one search "
    "of equal size: belated tune synthetic."
)


#: One that needs no search, the winners of `belated tune synthetic`, and one that cannot learn.
AGENTS: tuple[Settings, ...] = (
    AutoPSVI(),
    DelayedPSVI(noise=0.1, ridge=0.1, scale=2.92),
    DelayedUCBVI(bonus_ratio=0.0231, ridge=0.1),
    EpsilonGreedy(epsilon=0.0811, ridge=0.1),
    RandomPolicy(),
)


def play_demo(console: Console, *, episodes: int = 1000, seconds: float = 6.0) -> None:
    """Play the demo's agents and tell it over `seconds`; at once when `console` is not a terminal."""
    agents = {type(agent).__name__: agent for agent in AGENTS}
    results = run(SyntheticLinearMDP(actions=20), agents, Poisson(50), episodes=episodes, seeds=1)
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
