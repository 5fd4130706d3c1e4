"""The multi-batch reduction: play one policy until enough of its own feedback has arrived, then plan the next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, overload

import numpy as np
import numpy.typing as npt

from belated._util.validate import check_generator, flag, real, refuse
from belated.agents import _invariants as invariants
from belated.agents._base import CompiledSettings, Learner, Settings
from belated.agents._first_map import OnFirstMap, with_first_map
from belated.agents._information import SLACK, InformedRecord, measure
from belated.agents._invariants import check_memory
from belated.agents._switching import MultiBatchSimulatorAgent
from belated.agents._wrapper import AroundBase, part_of
from belated.features import Adaptive
from belated.types import Feedback, Floats, Plays, Problem, Savable, SimulatorProblem, TablePolicy, TableProblem


@dataclass(frozen=True, kw_only=True)
class MultiBatch(AroundBase):
    """The reduction of Yang et al. (2023), by the determinant rule, around a linear algorithm.

    Episodes are grouped into batches, and every episode of a batch plays the same policy. A batch ends when enough of
    its own feedback has arrived; only then does `base` plan the next policy, with everything learned. The delays of
    single trajectories no longer matter, only the time until a fraction of them has arrived: delays may have an
    infinite mean, and feedback may be lost.

    From the source, as we understand it: a policy is kept until its batch has enough feedback, later feedback of the
    batch is dropped, and the base is any algorithm that changes its policy rarely. Our choices:

    * a batch has enough feedback when some det Ω_h has grown by the factor `growth` since it began. This is the rule of
      linear MDPs with few policy switches (Wang et al., 2021; Gao et al., 2021), applied to arrivals. With ‖φ‖ <= 1 and
      `growth` c there are at most 1 + dH·log(1 + K/(dλσ²))/log c batches in K episodes;
    * the base may draw from a posterior. The source proves nothing about that case, and we claim nothing;
    * `drop_stragglers=False` learns the feedback of earlier batches too. A regression can use it, too, if delays do not
    depend on the trajectory, and the bound on the number of batches still holds.

    For the base, a batch is one episode: the k of a "growing" bonus counts batches. The agent runs in Python, not in
    compiled blocks, because a batch is identified by its episode numbers.

    Examples
    --------
    >>> from belated import DelayedPSVI, RiverSwim
    >>> river, rng = RiverSwim(), np.random.default_rng(0)
    >>> agent = MultiBatch(base=DelayedPSVI()).start(river.problem)
    >>> policy = agent.plan(rng)
    >>> bool((agent.plan(rng).actions == policy.actions).all())  # nothing has arrived: the batch goes on
    True
    >>> agent.learn([Feedback(1, river.rollout(policy, rng))])  # one visit doubles det Ω from λ = 1
    >>> bool((agent.plan(rng).actions == policy.actions).all())
    False
    """

    kind: ClassVar[str] = "multi-batch"

    base: Settings
    """The algorithm that plans; it must keep Ω."""
    growth: float = 2.0
    """c: a batch ends when det Ω_h of some step has grown by this factor; with 1, any arrival of the batch ends it."""
    drop_stragglers: bool = True
    """Whether feedback of earlier batches is dropped, as in the source."""

    def __post_init__(self) -> None:
        if not isinstance(self.base, CompiledSettings) or isinstance(self.base, AroundBase):
            raise refuse("base", self.base, "the settings of a linear algorithm, such as DelayedPSVI()")
        real("growth", self.growth, at_least=1)
        flag("drop_stragglers", self.drop_stragglers)

    @property
    def plays(self) -> Plays:
        return self.base.plays

    @overload
    def start(self, problem: TableProblem) -> MultiBatchAgent: ...
    @overload
    def start(self, problem: Problem) -> Savable: ...
    def start(self, problem: Problem) -> Savable:
        if isinstance(problem, TableProblem):
            return MultiBatchAgent(self, problem)
        assert isinstance(problem, SimulatorProblem)
        if isinstance(problem.features, Adaptive):
            return OnFirstMap(self.start(with_first_map(problem)), problem, problem.features.begun)
        return MultiBatchSimulatorAgent(self, problem)


class MultiBatchAgent:
    """An agent that plans only when a batch is over.

    A single learner suffices: it learns the feedback of the batch as it arrives, and plans only when the batch is over.
    """

    def __init__(self, settings: MultiBatch, problem: TableProblem) -> None:
        self.settings = settings
        self.problem = problem
        learner = settings.base.start(problem)
        if not isinstance(learner, Learner) or not isinstance(learner.record, InformedRecord):
            raise refuse("base", settings.base, "an algorithm that keeps Ω, such as DelayedPSVI()")
        self.learner = learner
        self.mark = self.log_determinants()
        """log det Ω_h when the batch began, shape (H,)."""
        self.actions = np.zeros((problem.horizon, problem.states), dtype=np.int64)
        """The policy of the batch, after the first plan."""
        self.planned = 0
        """Number of episodes planned."""
        self.first = 0
        """The first episode of the batch."""
        self.arrived = 0
        """Number of trajectories learned since the batch began."""

    def log_determinants(self) -> Floats:
        """Return log det Ω_h of every step, shape (H,)."""
        found = np.zeros(self.problem.horizon)
        measure(self.learner.record, found)
        return found

    def batch_is_over(self) -> bool:
        """Whether enough feedback has arrived for the next policy."""
        if self.planned == 0 or self.arrived == 0:
            return self.planned == 0
        grown = float((self.log_determinants() - self.mark).max())
        return grown >= math.log(self.settings.growth) - SLACK

    def plan(self, rng: np.random.Generator) -> TablePolicy:
        """Return the policy of the next episode; `rng` is used only at the beginning of a batch."""
        check_generator("rng", rng)
        if self.batch_is_over():
            self.actions = self.learner.plan(rng).actions
            self.mark, self.first, self.arrived = self.log_determinants(), self.planned, 0
        self.planned += 1
        return TablePolicy(self.actions.copy())

    def learn(self, batch: Sequence[Feedback]) -> None:
        """Learn a batch of late trajectories; if one is invalid, none is learned."""
        clean = self.settings.base.check_feedback(batch, self.problem)
        kept = [each for each in clean if each.episode >= self.first or not self.settings.drop_stragglers]
        self.learner.learn(kept)
        self.arrived += len(kept)

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        """Return what the agent has learned and the state of its batch, as named arrays."""
        return {
            **{f"base.{name}": values for name, values in self.learner.memory().items()},
            "mark": self.mark,
            "policy": self.actions,
            "counts": np.array([self.planned, self.first, self.arrived]),
        }

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        base = part_of(memory, "base.")
        own = {name: values for name, values in memory.items() if not name.startswith("base.")}
        wanted = {name: values for name, values in self.memory().items() if not name.startswith("base.")}
        memory = check_memory(own, wanted)
        invariants.within("policy", memory["policy"], self.problem.actions)
        invariants.counts("counts", memory["counts"])
        planned, first, arrived = memory["counts"].tolist()
        invariants.require(first < max(planned, 1), "counts", "be [planned, first, arrived] with first < planned")
        self.learner.restore(base)
        self.mark, self.actions = memory["mark"], memory["policy"]
        self.planned, self.first, self.arrived = planned, first, arrived

    def __repr__(self) -> str:
        p = self.problem
        return f"<{self.settings}: {p.states} states, {p.actions} actions, d={p.dimension}, H={p.horizon}>"
