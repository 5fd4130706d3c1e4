"""Rare policy switching: keep the policy until enough has been learned, or for a number of episodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.jit import copy, kernel
from belated._util.validate import integer, real, refuse
from belated.agents import _invariants as invariants
from belated.agents._base import ANYWHERE, Arrival, CompiledSettings, Learner, Record, Settings
from belated.agents._heard import Heard, without_heard
from belated.agents._information import SLACK, InformedRecord, information_of
from belated.agents._invariants import check_memory
from belated.agents._switching import RareSimulatorAgent
from belated.agents._wrapper import AroundBase, part_of
from belated.errors import InvalidInputError
from belated.types import Floats, Ints, Plays, Savable, SimulatorProblem, TableProblem


@dataclass(frozen=True, kw_only=True)
class RareSwitching(AroundBase, CompiledSettings):
    """Plans with any built-in algorithm, but only rarely: the cheap mode for large problems.

    Feedback is learned as it arrives, which is cheap; planning, which is expensive, is skipped while it would change
    little. A new policy is planned when det Ω_h of some step has grown by the factor `growth` since the last plan, or
    after `every` episodes, whichever comes first; either may be None. With ‖φ‖ <= 1, K episodes and the determinant
    rule alone there are at most 1 + dH·log(1 + K/(dλσ²))/log(growth) plans (Abbasi-Yadkori et al., 2011, for bandits;
    Wang et al., 2021, for linear MDPs). For a tabular algorithm Ω = I + diag N. An algorithm that keeps no Ω, such as
    `DelayedPHE`, can only be planned on a schedule.

    Unlike `MultiBatch`, it drops no feedback.

    Examples
    --------
    >>> from belated import DelayedPSVI, RiverSwim
    >>> agent = RareSwitching(base=DelayedPSVI()).start(RiverSwim().problem)
    >>> rng = np.random.default_rng(0)
    >>> first = agent.plan(rng).actions
    >>> bool((agent.plan(rng).actions == first).all())  # nothing has arrived: nothing to plan again
    True
    """

    kind: ClassVar[str] = "rare-switching"

    base: Settings
    """The algorithm that plans."""
    growth: float | None = 2.0
    """Factor by which det Ω_h of some step must have grown; None to use `every` only."""
    every: int | None = None
    """Maximum number of episodes between plans; None to use `growth` only."""

    def __post_init__(self) -> None:
        if not isinstance(self.base, CompiledSettings) or isinstance(self.base, RareSwitching):
            raise refuse("base", self.base, "the settings of a compiled algorithm, such as DelayedPSVI()")
        if self.base.learns_from_plans:
            raise refuse("base", self.base, "an algorithm that learns from feedback only, not from its plans")
        if self.growth is None and self.every is None:
            raise InvalidInputError("growth and every must not both be None: no new policy would ever be planned")
        if self.growth is not None:
            real("growth", self.growth, above=1)
        if self.every is not None:
            integer("every", self.every, at_least=1)

    @property
    def whole_episodes(self) -> bool:
        return self.base.whole_episodes

    def start_base(self, problem: TableProblem) -> Learner:
        base = self.base.start(problem)
        if not isinstance(base, Learner):
            raise refuse("base", self.base, "the settings of a compiled algorithm, such as DelayedPSVI()")
        return base

    def record(self, problem: TableProblem) -> RareRecord:
        base = self.start_base(problem).record
        if self.growth is not None and not isinstance(base, InformedRecord):
            wanted = f"None, and every an integer: {type(self.base).__name__} keeps no Ω to measure growth by"
            raise refuse("growth", self.growth, wanted)
        return RareRecord(
            base=base,
            switching=Switching(
                mark=np.zeros(problem.horizon),
                policy=np.zeros((problem.horizon, problem.states), np.int64),
                counts=np.zeros(3, np.int64),
            ),
            work=np.zeros(problem.horizon),
            growth=math.inf if self.growth is None else math.log(self.growth) - SLACK,
            every=np.iinfo(np.int64).max if self.every is None else int(self.every),
        )

    @property
    def plays(self) -> Plays:
        return self.base.plays

    def start_table(self, problem: TableProblem) -> RareLearner:
        return RareLearner(self, problem)

    def start_simulator(self, problem: SimulatorProblem) -> Savable:
        return RareSimulatorAgent(self, problem)


class Switching(NamedTuple):
    """The wrapper's own state."""

    mark: Floats
    """log det Ω_h at the last plan, shape (H,)."""
    policy: Ints
    """The policy in use, shape (H, S)."""
    counts: Ints
    """[episodes since the last plan, feedback since Ω was last checked, plans so far]."""


class RareRecord(NamedTuple):
    """The record of the base, and the state of the wrapper."""

    base: Record
    switching: Switching
    work: Floats
    growth: float
    every: int

    @property
    def learned(self) -> Switching:
        """The wrapper's own state; the base keeps what it has learned."""
        return self.switching

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Plan if it is due, else play the last policy again; `rng` is used only in the first case."""
        switching = self.switching
        if is_due(self):
            self.base.plan(rng, ANYWHERE, switching.policy)
            if self.growth != np.inf:
                information_of(self.base, switching.mark)
            switching.counts[0] = 0
            switching.counts[1] = 0
            switching.counts[2] += 1
        switching.counts[0] += 1
        copy(switching.policy, policy)

    def learn(self, arrival: Arrival) -> None:
        self.base.learn(arrival)
        self.switching.counts[1] += 1

    def settle(self) -> None:
        self.base.settle()


@kernel
def is_due(agent: RareRecord) -> bool:
    """Whether a new policy is due; leaves log det Ω in the work space if it was computed."""
    since, arrived, plans_made = agent.switching.counts
    if plans_made == 0 or since >= agent.every:
        return True
    if arrived == 0 or agent.growth == np.inf:
        return False
    agent.switching.counts[1] = 0
    information_of(agent.base, agent.work)
    most = 0.0
    for h in range(agent.work.size):
        most = max(most, agent.work[h] - agent.switching.mark[h])
    return most >= agent.growth


class RareLearner(Learner):
    """A learner whose memory is that of its base and the wrapper's state."""

    settings: RareSwitching

    @property
    def plans(self) -> int:
        """Number of policies planned so far."""
        return int(self.record.switching.counts[2])

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        """Return what the agent has learned and the wrapper's state, as named arrays."""
        base = self.record.base.learned._asdict()
        own = {**self.record.switching._asdict(), "heard": self.heard.memory()}
        return {**{f"base.{name}": values for name, values in base.items()}, **own}

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        wanted = {name: values for name, values in self.memory().items() if name != "heard"}
        heard = memory.get("heard")
        memory = check_memory(without_heard(memory, wanted), wanted)
        fresh = self.settings.record(self.problem)
        for name, target in fresh.switching._asdict().items():
            target[...] = memory[name]
        since, _, planned = fresh.switching.counts
        invariants.counts("counts", fresh.switching.counts)
        invariants.require(since == 0 or planned > 0, "counts", "count a plan before any episode")
        invariants.within("policy", fresh.switching.policy, self.problem.actions)
        base = self.settings.start_base(self.problem)
        base.restore({**part_of(memory, "base."), "heard": base.heard.memory()})
        self.heard = Heard.restored(heard, self.problem.horizon)
        self.record = fresh._replace(base=base.record)
