"""The one shape of every algorithm of the library.

An algorithm is a file with four parts:

* its settings, a frozen dataclass that validates itself and whose `start(problem)` makes an agent;
* its record, a `NamedTuple` of arrays, of which the field `learned` holds all that feedback has taught it;
* `plan` and `learn`, two kernels registered for that record, and `plan_from` where a start saves work.

`Learner` wraps a record as an `Agent`, and the runner's compiled loop calls the same two kernels directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from belated.compiled import F, by_record, entry_point
from belated.errors import InvalidInputError
from belated.types import Feedback, Floats, Ints, Policy, Problem, check_batch
from belated.validate import check_generator, integer, refuse


def plan(record: Any, rng: np.random.Generator, policy: Ints) -> None:
    """Fill `policy` (H, S) with the actions of the next episode: compiled, chosen by the type of `record`."""
    raise TypeError(f"no plan kernel is registered for {type(record).__name__}")


def plan_from(record: Any, rng: np.random.Generator, state: int, policy: Ints) -> None:
    """Fill `policy` where an episode that starts in `state` can come: compiled, chosen by the type of `record`."""
    raise TypeError(f"no plan kernel is registered for {type(record).__name__}")


def learn(record: Any, episode: int, states: Ints, actions: Ints, rewards: Floats) -> None:
    """Take in the trajectory of `episode`: compiled, chosen by the type of `record`."""
    raise TypeError(f"no learn kernel is registered for {type(record).__name__}")


def plan_everywhere(record: Any, rng: np.random.Generator, state: int, policy: Ints) -> None:
    """Fill the whole policy, wherever the episode starts."""
    plan(record, rng, policy)


plans = by_record(plan)
plans_from = by_record(plan_from, otherwise=plan_everywhere)
learns = by_record(learn)


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
def _learn(record: Any, episode: int, states: Ints, actions: Ints, rewards: Floats) -> None:
    learn(record, episode, states, actions, rewards)


class Record(Protocol):
    """What `Learner` asks of a record: the arrays that feedback changes, under the name `learned`."""

    @property
    def learned(self) -> NamedTuple:
        """All that the agent has learned."""


class Nothing(NamedTuple):
    """What an agent that does not learn has learned: an empty array, since a record cannot hold none."""

    nothing: Floats


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Base of all settings: frozen, validated, convertible to plain values and back."""

    kind: ClassVar[str]
    """The name by which specs and saved files know the algorithm."""
    one_step: ClassVar[bool] = False
    """Whether the algorithm is for bandits, problems of one step, only."""
    compiled: ClassVar[bool] = True
    """Whether `start` gives a `Learner`, whose kernels many threads can run side by side."""

    def record(self, problem: Problem) -> Any:
        """Return the record of an agent that has seen nothing yet."""
        raise TypeError(f"{type(self).__name__} must define record(problem)")

    def start(self, problem: Problem) -> Learner:
        """Return a new agent for `problem` that has seen nothing yet."""
        return Learner(self, problem)

    def check_one_step(self, problem: Problem) -> None:
        """Refuse a problem of several steps, for which an algorithm for bandits is not made."""
        if problem.horizon != 1:
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


class Learner:
    """An agent made of compiled kernels: plans with what has arrived, learns in any order."""

    def __init__(self, settings: Settings, problem: Problem) -> None:
        self.settings = settings
        self.problem = problem
        self.record = settings.record(problem)

    def plan(self, rng: np.random.Generator) -> Policy:
        """Return the policy of the next episode."""
        check_generator("rng", rng)
        actions = np.empty((self.problem.horizon, self.problem.states), dtype=np.int64)
        _plan(self.record, rng, actions)
        return Policy(actions)

    def plan_from(self, rng: np.random.Generator, state: int) -> Policy:
        """Return the policy of an episode that starts in `state`; where such an episode cannot come it is arbitrary."""
        check_generator("rng", rng)
        state = integer("state", state, at_least=0, at_most=self.problem.states - 1)
        actions = np.zeros((self.problem.horizon, self.problem.states), dtype=np.int64)
        _plan_from(self.record, rng, state, actions)
        return Policy(actions)

    def learn(self, batch: Sequence[Feedback]) -> None:
        """Take in a batch of late trajectories; if one of them is bad, none is learned."""
        clean = [
            (integer("feedback.episode", feedback.episode, at_least=0), feedback.trajectory.check(self.problem))
            for feedback in check_batch(batch)
        ]
        for episode, trajectory in clean:
            _learn(self.record, episode, trajectory.states, trajectory.actions, trajectory.rewards)

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        """Return what the agent has learned, as named arrays (views, not copies)."""
        return dict(self.record.learned._asdict())

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        """Replace what the agent has learned; arrays that do not fit are refused and change nothing."""
        fresh = self.settings.record(self.problem)
        wanted = fresh.learned._asdict()
        if set(wanted) != set(memory):
            raise InvalidInputError(f"memory must hold the arrays {sorted(wanted)}, got {sorted(memory)}")
        for name, target in wanted.items():
            given = memory[name]
            if given.shape != target.shape or given.dtype != target.dtype:
                raise InvalidInputError(
                    f"memory[{name!r}] must be {target.dtype} of shape {target.shape}, "
                    f"got {given.dtype} of shape {given.shape}"
                )
            if not np.isfinite(given).all():
                raise InvalidInputError(f"memory[{name!r}] must be finite")
            target[...] = given
        self.record = fresh

    def __repr__(self) -> str:
        """Show the settings and the size of the problem."""
        p = self.problem
        return f"<{self.settings}: {p.states} states, {p.actions} actions, d={p.dimension}, H={p.horizon}>"
