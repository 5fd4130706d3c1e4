"""The one shape of every algorithm of the library.

An algorithm is a file with three parts:

* its settings, a frozen dataclass that validates itself and whose `start(problem)` makes an agent;
* its record, a `NamedTuple` of arrays, of which the field `learned` holds all that feedback has taught it;
* its kernels, registered for that record: `plan` and `learn`, and where they save work `plan_from` and `settle`.

`learn` may put work off until `settle`, which is called after the last trajectory of a batch: `plan` finds everything
settled. `Learner` wraps a record as an `Agent`, and the runner's compiled loop calls the same kernels directly.

An algorithm that is not compiled has settings only, whose `start(problem)` makes an agent of any class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self, overload

import numpy as np
import numpy.typing as npt

from belated._kernels.jit import F, by_record, entry_point
from belated._util.validate import check_generator, integer, refuse
from belated.agents._invariants import check_memory
from belated.agents._sparse import WeightAgent, WeightRule
from belated.errors import InvalidInputError
from belated.types import (
    Agent,
    Feedback,
    Floats,
    Ints,
    Plays,
    Policy,
    Problem,
    Savable,
    SimulatorProblem,
    TableProblem,
    check_batch,
)


def plan_everywhere(record: Any, rng: np.random.Generator, state: int, policy: Ints) -> None:
    """Fill the whole policy, wherever the episode starts."""
    plan(record, rng, policy)


def settle_nothing(record: Any) -> None:
    """Do nothing: all was learned at once."""


@by_record()
def plan(record: Any, rng: np.random.Generator, policy: Ints) -> None:
    """Fill `policy` (H, S) with the actions of the next episode: compiled, chosen by the type of `record`."""


@by_record(otherwise=plan_everywhere)
def plan_from(record: Any, rng: np.random.Generator, state: int, policy: Ints) -> None:
    """Fill `policy` for an episode that starts in `state`: compiled, chosen by the type of `record`."""


@by_record()
def learn(record: Any, episode: int, states: Ints, actions: Ints, rewards: Floats) -> None:
    """Learn the trajectory of `episode`: compiled, chosen by the type of `record`."""


@by_record(otherwise=settle_nothing)
def settle(record: Any) -> None:
    """Do what `learn` has put off: compiled, chosen by the type of `record`. Most put nothing off."""


plans = plan.register
"""Decorate the kernel (record, rng, policy) that computes the policy of the next episode, for records of this type."""
plans_from = plan_from.register
"""Decorate the kernel (record, rng, state, policy) that plans an episode whose first state is known."""
learns = learn.register
"""Decorate the kernel (record, episode, states, actions, rewards) that learns one trajectory."""
settles = settle.register
"""Decorate the kernel (record) that brings what was learned since the last plan into the factors."""


def plans_states(record: type) -> Callable[[F], F]:
    """Register a kernel (agent, rng, first, last, policy) that plans for the states from `first` to `last - 1`.

    It plans for all states, but where an episode has a single step, for the first one only.
    """

    def decorate(plan_states: F) -> F:
        @plans(record)
        def plan(agent: Any, rng: np.random.Generator, policy: Ints) -> None:
            # not a plain 0, for which all would be compiled once more
            plan_states(agent, rng, np.int64(0), agent.table.states, policy)

        @plans_from(record)
        def plan_from(agent: Any, rng: np.random.Generator, state: int, policy: Ints) -> None:
            first, last = (state, state + 1) if agent.table.horizon == 1 else (0, agent.table.states)
            plan_states(agent, rng, first, last, policy)

        return plan_states

    return decorate


@entry_point
def _plan(record: Any, rng: np.random.Generator, policy: Ints) -> None:
    plan(record, rng, policy)


@entry_point
def _plan_from(record: Any, rng: np.random.Generator, state: int, policy: Ints) -> None:
    plan_from(record, rng, state, policy)


@entry_point
def _learn(record: Any, episode: int, states: Ints, actions: Ints, rewards: Floats, last: bool) -> None:
    learn(record, episode, states, actions, rewards)
    if last:
        settle(record)


class Nothing(NamedTuple):
    """What an agent that does not learn has learned: an empty array, since a record cannot hold none."""

    nothing: Floats


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Base of all settings: frozen, validated, convertible to plain values and back."""

    kind: ClassVar[str]
    """The name by which specs and saved files know the algorithm."""

    @property
    def plays(self) -> Plays:
        """Where it can play: see `belated.types.Plays`."""
        return "tables"

    @property
    def one_step(self) -> bool:
        """Whether the algorithm is for bandits, problems of one step, only."""
        return False

    def start(self, problem: Problem) -> Agent:
        """Return a new agent for `problem` that has seen nothing yet."""
        raise TypeError(
            f"{type(self).__name__} must define start(problem), or be CompiledSettings with record(problem)"
        )

    def needs_table(self, problem: Problem) -> TableProblem:
        """Return `problem` if it is a table, else raise `InvalidInputError`."""
        if not isinstance(problem, TableProblem):
            raise InvalidInputError(f"{type(self).__name__} needs a table of all states, got a simulator: {problem}")
        return problem

    def check_steps(self, problem: Problem) -> None:
        """Refuse a problem of several steps if the algorithm is for bandits."""
        if self.one_step and problem.horizon != 1:
            raise refuse("the problem's horizon", problem.horizon, f"1, since {type(self).__name__} is for bandits")

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
    """Base of the settings of compiled algorithms, whose kernels many threads can run side by side."""

    learns_from_plans: ClassVar[bool] = False
    """Whether planning changes what is learned, so that no episode may be played without a plan of its own."""

    def record(self, problem: TableProblem) -> Any:
        """Return the record of an agent that has seen nothing yet."""
        raise TypeError(f"{type(self).__name__} must define record(problem)")

    def check_learned(self, learned: Any, problem: TableProblem) -> None:
        """Refuse what no feedback can have taught: `learned` fits the record and is finite, but comes from a file.

        The kernels trust what passes.
        """

    def weight_rule(self, problem: SimulatorProblem) -> WeightRule:
        """Return how weights are drawn in a simulator; only for algorithms whose `plays` is not "tables"."""
        raise InvalidInputError(f"{type(self).__name__} needs a table of all states, got a simulator: {problem}")

    @overload
    def start(self, problem: TableProblem) -> Learner: ...
    @overload
    def start(self, problem: Problem) -> Savable: ...
    def start(self, problem: Problem) -> Savable:
        """Return a new agent for `problem` that has seen nothing yet."""
        self.check_steps(problem)
        if isinstance(problem, TableProblem):
            return self.start_table(problem)
        assert isinstance(problem, SimulatorProblem)
        return self.start_simulator(problem)

    def start_table(self, problem: TableProblem) -> Learner:
        return Learner(self, problem)

    def start_simulator(self, problem: SimulatorProblem) -> Savable:
        return WeightAgent(self, problem, self.weight_rule(problem))


class Learner:
    """An agent made of compiled kernels: plans with what has arrived, learns in any order."""

    def __init__(self, settings: CompiledSettings, problem: TableProblem) -> None:
        self.settings = settings
        self.problem = problem
        self.record = settings.record(problem)

    def record_for(self, most: int) -> Any:
        """Return the record, the same arrays, as the kernels for batches of at most `most` trajectories want it.

        A record that has a method `for_batches` says by it which of its kernels have to be compiled.
        """
        choose = getattr(self.record, "for_batches", None)
        return self.record if choose is None else choose(most)

    def plan(self, rng: np.random.Generator) -> Policy:
        """Return the policy of the next episode."""
        check_generator("rng", rng)
        actions = np.empty((self.problem.horizon, self.problem.states), dtype=np.int64)
        _plan(self.record, rng, actions)
        return Policy(actions)

    def plan_from(self, rng: np.random.Generator, state: int) -> Policy:
        """Return the policy of an episode that starts in `state`; it is arbitrary in states that cannot follow."""
        check_generator("rng", rng)
        state = integer("state", state, at_least=0, at_most=self.problem.states - 1)
        actions = np.zeros((self.problem.horizon, self.problem.states), dtype=np.int64)
        _plan_from(self.record, rng, state, actions)
        return Policy(actions)

    def learn(self, batch: Sequence[Feedback]) -> None:
        """Learn a batch of late trajectories; if one of them is bad, none is learned."""
        clean = check_batch(batch, self.problem)
        record = self.record_for(len(clean))
        for number, feedback in enumerate(clean, start=1):
            late = feedback.trajectory
            _learn(record, feedback.episode, late.rows, late.actions, late.rewards, number == len(clean))

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        """Return what the agent has learned, as named arrays (views, not copies)."""
        return dict(self.record.learned._asdict())

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        """Replace what the agent has learned; arrays that do not fit are refused and change nothing."""
        fresh = self.settings.record(self.problem)
        wanted = fresh.learned._asdict()
        for name, values in check_memory(memory, wanted).items():
            wanted[name][...] = values
        self.settings.check_learned(fresh.learned, self.problem)
        self.record = fresh

    def __repr__(self) -> str:
        """Show the settings and the size of the problem."""
        p = self.problem
        return f"<{self.settings}: {p.states} states, {p.actions} actions, d={p.dimension}, H={p.horizon}>"
