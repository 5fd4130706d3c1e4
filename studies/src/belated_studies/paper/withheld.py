"""The paper's future work: delays chosen by an adversary that sees everything, under a budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from belated._kernels.streams import stream
from belated.agents import (
    AutoPSVI,
    DelayedPHE,
    DelayedPSRL,
    EpsilonGreedy,
    Settings,
    TabularUCBVI,
    VarianceWeightedPSVI,
)
from belated.delays import FeedbackQueue
from belated.environments import FiniteMDP, RiverSwim
from belated.evaluation import mean_interval
from belated.types import Feedback, Floats, TablePolicy, Trajectory
from belated_studies.cells_and_curves import cell, name_of
from belated_studies.paper.setting import PaperSize
from belated_studies.reports.document import Cell, Row, Section, Table
from belated_studies.study import Artefact, Measurement, Played
from belated_studies.winners import tuned

#: How many episodes are in flight at any moment: the mean delay that the budget allows.
HELD = (5, 20, 50)
EPISODES, SEEDS = 1000, 5
NONE, CONSTANT, WITHHELD = "no delay", "constant", "withheld"


class Withholding:
    """An adversary that withholds, at any moment, the `held` episodes that would teach most.

    It sees every trajectory and all that the agent has been told. An episode teaches Σ_h log(1 + φᵀΩ_h⁻¹φ), what it
    would add to the log-determinants of what has been delivered. Of all that is in flight it keeps the `held` that
    teach most and delivers the rest, in the order in which they were played. An episode that is kept while another one
    is played costs one unit of delay. So the delays of K episodes add up to `held`·K at most, as with a constant delay.
    """

    def __init__(self, mdp: FiniteMDP, held: int) -> None:
        self._features, self._held = mdp.features, held
        self._inverse: Floats = np.tile(np.eye(mdp.dimension), (mdp.horizon, 1, 1))
        self._steps = np.arange(mdp.horizon)
        self._kept: dict[int, tuple[Trajectory, Floats]] = {}
        self.delays = 0
        """The sum of all delays so far."""

    def deliver(self, episode: int, trajectory: Trajectory) -> list[Feedback]:
        """Take in an episode that has been played, and return what is delivered before the next one."""
        phi = self._features[trajectory.rows[:-1], trajectory.actions]
        self._kept[episode] = trajectory, phi
        released = []
        while len(self._kept) > self._held:
            gains = {each: self._teaches(found) for each, (_, found) in self._kept.items()}
            least = min(gains, key=lambda each: (gains[each], each))
            late, found = self._kept.pop(least)
            self._learn(found)
            released.append(Feedback(least, late))
        self.delays += len(self._kept)
        return sorted(released, key=lambda each: each.episode)

    def _teaches(self, phi: Floats) -> float:
        return float(np.log1p(np.einsum("hi,hij,hj->h", phi, self._inverse, phi)).sum())

    def _learn(self, phi: Floats) -> None:
        """Bring an episode into Ω_h⁻¹: (Ω + φφᵀ)⁻¹ = Ω⁻¹ − Ω⁻¹φφᵀΩ⁻¹/(1 + φᵀΩ⁻¹φ)."""
        moved = np.einsum("hij,hj->hi", self._inverse, phi)
        grown = 1.0 + np.einsum("hi,hi->h", phi, moved)
        self._inverse -= np.einsum("hi,hj->hij", moved, moved) / grown[:, None, None]


class Outcome(NamedTuple):
    """The regret of one run."""

    agent: str
    delay: str
    held: int
    seed: int
    regret: float
    delays: int
    """The sum of the delays of all episodes."""


def agents() -> dict[str, Settings]:
    """Return the tuned agents of RiverSwim, and others as they come."""
    return {
        **{name: settings for name, settings in tuned("riverswim").items() if name != "lpsvi-plain"},
        "auto-psvi": AutoPSVI(),
        "weighted-psvi": VarianceWeightedPSVI(shared=True, scale=0.3, ridge=20.0**-2),
        "phe": DelayedPHE(),
        "psrl": DelayedPSRL(),
        "tabular-ucbvi": TabularUCBVI(),
        "epsilon-greedy": EpsilonGreedy(),
    }


def play(mdp: FiniteMDP, settings: Settings, delay: str, held: int, episodes: int, seed: int) -> tuple[float, int]:
    """Return the regret of a run, and the sum of its delays."""
    agent, adversary = settings.start(mdp.problem), Withholding(mdp, held if delay == WITHHELD else 0)
    queue: FeedbackQueue[Trajectory] = FeedbackQueue()
    mine, world = stream(seed, "agent"), stream(seed, "environment")
    regret, total = 0.0, 0
    for k in range(episodes):
        agent.learn([Feedback(origin, late) for origin, late in queue.arrived(k)])
        policy = agent.plan(mine)
        assert isinstance(policy, TablePolicy)
        regret += mdp.optimal_value - mdp.value(policy)
        played = mdp.rollout(policy, world, episode=k)
        if delay == WITHHELD:
            agent.learn(adversary.deliver(k, played))
        else:
            queue.add(k, held if delay == CONSTANT else 0, played)
            total += held if delay == CONSTANT else 0
    return regret, total + adversary.delays


def measure(size: PaperSize) -> Iterator[Outcome]:
    """Play every agent without delay, with a constant one, and under the adversary."""
    mdp, episodes = RiverSwim(), min(EPISODES, size.episodes)
    for name, settings in agents().items():
        for delay, held in [(NONE, 0), *((delay, held) for held in HELD for delay in (CONSTANT, WITHHELD))]:
            for seed in range(min(SEEDS, size.seeds)):
                yield Outcome(name, delay, held, seed, *play(mdp, settings, delay, held, episodes, seed))


def section(played: Played[PaperSize]) -> Section:
    """Return the regret of every agent under each delay."""
    outcomes: list[Outcome] = list(played.measured["withheld"])
    rows: list[Row] = [
        [
            name_of(name),
            _cell(outcomes, name, NONE, 0),
            *(_cell(outcomes, name, delay, held) for held in HELD for delay in (CONSTANT, WITHHELD)),
        ]
        for name in agents()
    ]
    return Section(
        id="withheld",
        title="Future work: delays chosen by an adversary",
        paragraphs=[
            "The theorems hold for delays that are drawn. Here an adversary sees everything, and keeps back whatever "
            "would teach most: at any moment the m undelivered episodes that would add most to the log-determinants of "
            "what the agent has been told. It delivers the rest. The delays of K episodes then add up to m·K at most, "
            "as with the constant delay m that stands beside it.",
        ],
        tables=[
            Table(
                id="withheld-table",
                title="Regret on RiverSwim under a constant delay and under the adversary with the same budget",
                caption=(
                    f"Regret after {EPISODES:,} episodes, mean and 95 % interval over {SEEDS} seeds. The first three "
                    "agents are tuned under Poisson delays; the others have their usual settings, so compare along a "
                    "row, not along a column."
                ),
                columns=[
                    "Agent",
                    "No delay",
                    *(f"{delay}, m = {held}" for held in HELD for delay in (CONSTANT, WITHHELD)),
                ],
                rows=rows,
            )
        ],
    )


def _regrets(outcomes: list[Outcome], agent: str, delay: str, held: int) -> Floats:
    return np.array([one.regret for one in outcomes if one[:3] == (agent, delay, held)])


def _cell(outcomes: list[Outcome], agent: str, delay: str, held: int) -> Cell:
    return cell(mean_interval(_regrets(outcomes, agent, delay, held)), 0)


def findings(played: Played[PaperSize]) -> list[str]:
    """Tell how much worse than a constant delay the adversary is for Delayed-PSVI."""
    outcomes = list(played.measured["withheld"])
    held = HELD[-1]
    constant, worst = (_regrets(outcomes, "psvi", delay, held).mean() for delay in (CONSTANT, WITHHELD))
    return [
        f"An adversary that may keep back {held} episodes at a time: tuned Delayed-PSVI has the regret {worst:.0f} on "
        f"RiverSwim, under a constant delay of {held} it has {constant:.0f}."
    ]


ARTEFACT = Artefact(
    id="withheld",
    order=14,
    section=section,
    measurements=[Measurement(name="withheld", kind=Outcome, measure=measure)],
    findings=findings,
    extra=True,
)
