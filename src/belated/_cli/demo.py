"""The demo: five agents learn while feedback is late."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from belated._cli.tables import spark
from belated.agents import AutoPSVI, DelayedPSVI, DelayedUCBVI, EpsilonGreedy, RandomPolicy, Settings
from belated.delays import Poisson
from belated.environments import SyntheticLinearMDP
from belated.evaluation import first_reaching
from belated.runner import Results, run
from belated.types import Floats

_CURVE = 31  # characters of a whole curve: the table then fits 80 columns
_GOOD = 0.9  # the fraction of the optimum whose first episode is reported


@dataclass(frozen=True, eq=False)
class _Told:
    """One agent's rows, each of length K."""

    share: Floats
    """Value of the policy played, as a fraction of the optimum."""
    curve: str
    """The same as a mini curve."""
    in_flight: Floats
    """Trajectories played but not yet arrived."""
    regret: Floats
    """Cumulative regret."""


class Replay:
    """The first seed of every agent in one environment and delay, one frame per episode.

    >>> from belated import Poisson, RandomPolicy, RiverSwim, run
    >>> rows = run(RiverSwim(), {"random": RandomPolicy()}, Poisson(5), episodes=20, seeds=1, progress=False)
    >>> Replay(rows).episodes
    20
    """

    def __init__(self, results: Results) -> None:
        self.title = f"{results.environments[0]}, {results.delays[0]}"
        self.late = float(results.frame["delay"].drop_nulls().to_numpy().mean())
        self._agents: dict[str, _Told] = {}
        for agent in results.agents:
            value, optimal, arrived = (
                results.array(column, agent=agent)[0] for column in ("value", "optimal", "arrived")
            )
            share, sent = value / optimal, np.arange(1, value.size + 1)
            self._agents[agent] = _Told(
                share=share,
                curve=spark(share, _CURVE, low=0.0, high=1.0),
                in_flight=sent - np.cumsum(arrived),
                regret=results.regret(agent=agent)[0],
            )
        self.episodes: int = value.size

    def frame(self, episode: int) -> Table:
        """Return the state of every agent after `episode` episodes, counted from 1."""
        table = Table(
            title=Text(f"{self.title}: episode {episode:,} of {self.episodes:,}"),
            title_justify="left",
            title_style="bold",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
        )
        table.add_column("agent", no_wrap=True)
        table.add_column("value relative to the optimum", width=_CURVE, no_wrap=True, style="cyan")
        for heading in ("now", "in flight", "regret"):
            table.add_column(heading, justify="right", no_wrap=True)
        for agent, told in self._agents.items():
            table.add_row(
                Text(agent),
                told.curve[: len(told.curve) * episode // self.episodes],
                f"{told.share[self._recent(episode)].mean():.0%}",
                f"{told.in_flight[episode - 1]:,}",
                f"{told.regret[episode - 1]:,.0f}",
            )
        return table

    def takeaway(self) -> str:
        """Return a summary in two sentences."""
        ranked = sorted(self._agents, key=lambda agent: float(self._agents[agent].regret[-1]))
        best, worst = ranked[0], ranked[-1]
        least, most = (float(self._agents[agent].regret[-1]) for agent in (best, worst))
        share = self._agents[best].share
        reached = first_reaching([share], _GOOD, window=self._window)
        got = (
            f"reached {_GOOD:.0%} of the optimum after {reached:,} episodes"
            if reached
            else f"got to {share[self._recent(self.episodes)].mean():.0%} of the optimum in {self.episodes:,} episodes"
        )
        times = f", {most / least:.1f} times as much" if least > 0 else ""
        return (
            f"With every trajectory about {self.late:.0f} episodes late, {best} {got} "
            f"and paid a regret of {least:,.0f}. {worst} met the same delays and paid {most:,.0f}{times}."
        )

    @property
    def _window(self) -> int:
        return max(1, self.episodes // 40)

    def _recent(self, episode: int) -> slice:
        """The last episodes played: enough to smooth out the randomness of a single draw."""
        return slice(max(0, episode - self._window), episode)


FAIR = (
    "AutoPSVI needs no settings and no search, RandomPolicy has none; all others have the settings that won one search "
    "of equal size: belated tune synthetic."
)


#: An agent without settings, the winners of `belated tune synthetic`, and one that does not learn.
AGENTS: tuple[Settings, ...] = (
    AutoPSVI(),
    DelayedPSVI(noise=0.1, ridge=0.1, scale=2.92),
    DelayedUCBVI(bonus_ratio=0.0231, ridge=0.1),
    EpsilonGreedy(epsilon=0.0811, ridge=0.1),
    RandomPolicy(),
)


def play_demo(console: Console, *, episodes: int = 1000, seconds: float = 6.0) -> None:
    """Run the demo's agents and replay them over `seconds`; at once if `console` is not a terminal."""
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
