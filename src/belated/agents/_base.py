"""The common structure of all algorithms.

An algorithm is a file with two parts:

* its settings, a frozen dataclass that validates itself and whose `start(problem)` creates an agent;
* its record, a `NamedTuple` of arrays and numbers with the methods of `Record`: how the agent plans and learns. The
field `learned` has everything learned from feedback.

The methods are compiled. `Learner` wraps a record as an `Agent`, and the runner's compiled loop calls the same methods.

An algorithm that is not compiled has only settings, whose `start(problem)` creates an agent of any class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, NamedTuple, Protocol, Self, overload

import numpy as np
import numpy.typing as npt

from belated._kernels.jit import borrowed, entry_point, record_method
from belated._util.validate import check_generator, integer, refuse
from belated.agents._first_map import OnFirstMap, with_first_map
from belated.agents._heard import Heard, without_heard
from belated.agents._invariants import check_memory
from belated.agents._row_agent import RowAgent
from belated.agents._row_regression import MOST_EXACT
from belated.agents._sparse import WeightAgent, WeightRule
from belated.errors import InvalidInputError
from belated.features import Adaptive
from belated.types import (
    PARTS,
    Agent,
    Feedback,
    Floats,
    Ints,
    Plays,
    Problem,
    Savable,
    SimulatorProblem,
    TablePolicy,
    TableProblem,
    check_batch,
)

#: `settle` is called after this many arrivals, and after the last of a batch.
BATCH = 256
#: The first state of an episode, if it is unknown.
ANYWHERE = -1
#: What an arrival contains: everything, states without rewards, or rewards of earlier states.
ALL, STATES, REWARDS, SIGNAL = range(len(PARTS))


class Arrival(NamedTuple):
    """Validated late feedback for the compiled methods: n steps of an episode."""

    episode: int
    first: int
    """The number of the first step."""
    states: Ints
    """Shape (n + 1,)."""
    actions: Ints
    """Shape (n,)."""
    rewards: Floats
    """Shape (n,); zeros if only the states have arrived."""
    terminated: bool
    """Whether the last state is terminal, with value zero."""
    part: int
    """`ALL`, `STATES`, `REWARDS` or `SIGNAL`."""


class Record(Protocol):
    """The arrays of one agent, a `NamedTuple`, and its methods."""

    @property
    def learned(self) -> Any:
        """Everything learned from feedback, a `NamedTuple` of arrays."""

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Fill `policy` (H, S) with the actions of the next episode.

        The episode begins in the state `start`, or `ANYWHERE`. Only reachable entries of the policy matter.
        """

    def learn(self, arrival: Arrival) -> None:
        """Learn one late trajectory, or a piece of one."""

    def settle(self) -> None:
        """Do the work deferred by `learn`, for at most `BATCH` arrivals; always called before `plan`."""


@record_method
def plan(record: Record, rng: np.random.Generator, start: int, policy: Ints) -> None:
    record.plan(rng, start, policy)


@record_method
def learn(record: Record, arrival: Arrival) -> None:
    record.learn(arrival)


@record_method
def settle(record: Record) -> None:
    record.settle()


@entry_point
def plan_compiled(record: Record, rng: np.random.Generator, start: int, policy: Ints) -> None:
    """Plan, called from Python."""
    plan(borrowed(record), rng, start, borrowed(policy))


@entry_point
def learn_compiled(record: Record, arrival: Arrival, last: bool) -> None:
    """Learn, called from Python, and settle if this was the last of a batch."""
    record = borrowed(record)
    learn(record, borrowed(arrival))
    if last:
        settle(record)


class Nothing(NamedTuple):
    """The `learned` of an agent that does not learn: an empty array, since a record cannot be empty."""

    nothing: Floats


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Base class of all settings: immutable, validated, convertible to plain values and back."""

    kind: ClassVar[str]
    """The name of the algorithm in specifications and saved files."""

    @property
    def plays(self) -> Plays:
        """Where it can play: see `belated.types.Plays`."""
        return "tables"

    @property
    def one_step(self) -> bool:
        """Whether the algorithm is only for bandits, problems of one step."""
        return False

    @property
    def whole_episodes(self) -> bool:
        """Whether the algorithm can only learn whole episodes with their rewards, not parts of them."""
        return True

    def start(self, problem: Problem) -> Agent:
        """Return a new agent for `problem`."""
        raise TypeError(
            f"{type(self).__name__} must define start(problem), or be CompiledSettings with record(problem)"
        )

    def needs_table(self, problem: Problem) -> TableProblem:
        """Return `problem` if it is a table, else raise `InvalidInputError`."""
        if not isinstance(problem, TableProblem):
            raise InvalidInputError(f"{type(self).__name__} needs a table of all states, got a simulator: {problem}")
        return problem

    @property
    def discounts(self) -> bool:
        """Whether the algorithm supports a problem's discount."""
        return False

    def check_steps(self, problem: Problem) -> None:
        """Raise InvalidInputError if the algorithm does not support several steps or the problem's discount."""
        if problem.discount < 1.0 and problem.horizon > 1 and not self.discounts:
            wanted = f"1, since {type(self).__name__} does not discount"
            raise refuse("the problem's discount", problem.discount, wanted)
        if self.one_step and problem.horizon != 1:
            raise refuse("the problem's horizon", problem.horizon, f"1, since {type(self).__name__} is for bandits")

    def check_feedback(self, batch: Sequence[Feedback], problem: Problem) -> list[Feedback]:
        """Return validated copies of the feedback; raise InvalidInputError if any cannot be learned."""
        clean = check_batch(batch, problem)
        for feedback in clean:
            late = feedback.trajectory
            if late.part == PARTS[SIGNAL]:
                raise refuse(
                    "trajectory.part", late.part, f"a part of an episode: {type(self).__name__} has no signals"
                )
            if self.whole_episodes:
                if late.part != PARTS[ALL]:
                    wanted = f'"all": {type(self).__name__} learns states and rewards together'
                    raise refuse("trajectory.part", late.part, wanted)
                if len(late.actions) != problem.horizon:
                    wanted = f"{problem.horizon}: {type(self).__name__} learns whole episodes only"
                    raise refuse("the number of trajectory.actions", len(late.actions), wanted)
        return clean

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values.

        >>> from belated import RandomPolicy
        >>> RandomPolicy().to_dict()
        {'algorithm': 'random'}
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}
        return {"algorithm": self.kind, **plain}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the settings that `to_dict` described."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(values) - {*known, "algorithm"})
        if unknown:
            listed = ", ".join(known) or "none"
            raise InvalidInputError(f"{cls.kind} has no setting {unknown[0]!r}; its settings are: {listed}")
        needed = [field.name for field in fields(cls) if field.default is MISSING and field.name not in values]
        if needed:
            raise InvalidInputError(f"{cls.kind} needs the setting {needed[0]!r}")
        return cls(**{name: value for name, value in values.items() if name != "algorithm"})


@dataclass(frozen=True, kw_only=True)
class CompiledSettings(Settings):
    """Base class of the settings of compiled algorithms, whose kernels can run in parallel threads."""

    chooses_features: ClassVar[bool] = False
    """Whether agents in simulators choose their feature map as they learn; if not, they keep the first one."""
    learns_from_plans: ClassVar[bool] = False
    """Whether planning changes what is learned, so that every episode needs its own plan."""

    adds_reports: ClassVar[bool] = False
    """Whether the reward of a play may arrive in several reports that add up (trajectories with the part "rewards")."""

    @property
    def hears_signals(self) -> bool:
        """Whether it learns from trajectories with the part "signal"."""
        return False

    def record(self, problem: TableProblem) -> Record:
        """Return the record of a new agent."""
        raise TypeError(f"{type(self).__name__} must define record(problem)")

    def check_learned(self, learned: Any, problem: TableProblem) -> None:
        """Raise InvalidInputError if `learned`, which was read from a file, cannot result from any feedback.

        Its shapes have been checked. The kernels rely on these invariants.
        """

    def check_reports(self, batch: Sequence[Feedback], problem: Problem) -> list[Feedback]:
        """Return validated copies of whole rewards and of reports, for an algorithm that `adds_reports`."""
        clean = check_batch(batch, problem)
        for feedback in clean:
            part = feedback.trajectory.part
            if part == PARTS[STATES] or (part == PARTS[SIGNAL] and not self.hears_signals):
                raise refuse("trajectory.part", part, '"all", or "rewards" for a part of the reward')
        return clean

    def weight_rule(self, problem: SimulatorProblem) -> WeightRule:
        """Return the rule for drawing weights in a simulator; only for algorithms whose `plays` is not "tables"."""
        raise InvalidInputError(f"{type(self).__name__} needs a table of all states, got a simulator: {problem}")

    @overload
    def start(self, problem: TableProblem) -> Learner: ...
    @overload
    def start(self, problem: Problem) -> Savable: ...
    def start(self, problem: Problem) -> Savable:
        """Return a new agent for `problem`."""
        self.check_steps(problem)
        if isinstance(problem, TableProblem):
            return self.start_table(problem)
        assert isinstance(problem, SimulatorProblem)
        if isinstance(problem.features, Adaptive) and not self.chooses_features:
            return OnFirstMap(self.start_simulator(with_first_map(problem)), problem, problem.features.begun)
        return self.start_simulator(problem)

    def start_table(self, problem: TableProblem) -> Learner:
        return Learner(self, problem)

    def start_simulator(self, problem: SimulatorProblem) -> Savable:
        rule = self.weight_rule(problem)
        by_rows = rule.draw_rows is not None and problem.features.size > MOST_EXACT
        return RowAgent(self, problem, rule) if by_rows else WeightAgent(self, problem, rule)


class Learner:
    """An agent made of compiled kernels: plans with the feedback that has arrived, learns in any order."""

    record: Any
    """The algorithm's `Record`."""

    def __init__(self, settings: CompiledSettings, problem: TableProblem) -> None:
        self.settings = settings
        self.problem = problem
        self.record = settings.record(problem)
        self.heard = Heard(problem.horizon)

    def plan(self, rng: np.random.Generator) -> TablePolicy:
        """Return the policy of the next episode."""
        check_generator("rng", rng)
        actions = np.empty((self.problem.horizon, self.problem.states), dtype=np.int64)
        plan_compiled(self.record, rng, ANYWHERE, actions)
        return TablePolicy(actions)

    def plan_from(self, rng: np.random.Generator, state: int) -> TablePolicy:
        """Return the policy of an episode that starts in `state`; it is arbitrary in unreachable states."""
        check_generator("rng", rng)
        state = integer("state", state, at_least=0, at_most=self.problem.states - 1)
        actions = np.zeros((self.problem.horizon, self.problem.states), dtype=np.int64)
        plan_compiled(self.record, rng, state, actions)
        return TablePolicy(actions)

    def learn(self, batch: Sequence[Feedback]) -> None:
        """Learn a batch of late trajectories; if one is invalid, or was learned before, none is learned."""
        clean = self.settings.check_feedback(batch, self.problem)
        reports = self.settings.adds_reports  # reports add up: a second one is not a repetition
        self.heard.take([each for each in clean if not reports or each.trajectory.part not in PARTS[REWARDS:]])
        for number, feedback in enumerate(clean, start=1):
            late = feedback.trajectory
            part = PARTS.index(late.part)
            arrival = Arrival(
                feedback.episode, late.first, late.rows, late.actions, late.rewards, late.terminated, part
            )
            learn_compiled(self.record, arrival, number % BATCH == 0 or number == len(clean))

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        """Return what the agent has learned, and from which episodes, as named arrays (views, not copies)."""
        return {**self.record.learned._asdict(), "heard": self.heard.memory()}

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        """Replace what the agent has learned; invalid arrays raise InvalidInputError and change nothing."""
        fresh = self.settings.record(self.problem)
        wanted = fresh.learned._asdict()
        for name, values in check_memory(without_heard(memory, wanted), wanted).items():
            wanted[name][...] = values
        self.settings.check_learned(fresh.learned, self.problem)
        self.heard = Heard.restored(memory["heard"], self.problem.horizon)
        self.record = fresh

    def __repr__(self) -> str:
        """Show the settings and the size of the problem."""
        return f"<{self.settings}: {self.problem}>"
