"""A served model as an agent of `run`: the code that decides in production, played in simulation.

Every episode is a session of a `Model` on an in-memory store, every step a decision; a late trajectory becomes the end
of its session and the rewards of its steps. The clock is virtual: an episode takes one second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from belated._util.validate import check_generator, integer, real, refuse
from belated.agents import Settings
from belated.decisions._encoding import MOST_DENSE
from belated.decisions._model import Model
from belated.decisions._operations import Decide, End, Operation, Outcome, Reward, Status
from belated.decisions._session_settings import LONGEST_IDLE
from belated.decisions._settings import ModelSettings
from belated.decisions._store.memory import MemoryStore
from belated.errors import BelatedError
from belated.features import OneHot, Tiles
from belated.types import Feedback, Plays, Problem, SimulatorProblem, State, TableProblem, check_batch

#: Number of sessions from one set of plans to the next.
EVERY = 16

Context = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Served(Settings):
    """A served model of sessions, as an algorithm that can be compared with others.

    States of a table, or with one-hot features, become a category of the context; tiles become tags; any other features
    become numbers.

    >>> from belated import Poisson, RiverSwim, run
    >>> results = run(RiverSwim(horizon=5), Served(), Poisson(2), episodes=20, seeds=1)
    >>> results.returns(agent="served").shape
    (1, 20)
    """

    kind: ClassVar[str] = "served"
    plays: ClassVar[Plays] = "steps"

    agent: str | Mapping[str, Any] = "auto-psvi"
    """The planner, as in the settings of a model."""
    floor: float = 0.002
    """Fraction of decisions drawn uniformly at random."""
    every: int = EVERY
    """Number of sessions after which a set of plans is drawn."""

    def __post_init__(self) -> None:
        real("floor", self.floor, at_least=0.0, at_most=1.0)
        integer("every", self.every, at_least=1)
        self.model(1, ["a"], {}, (0.0, 1.0), 0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; the name includes the import path, since this is not in the agents' registry."""
        return {**super().to_dict(), "algorithm": "belated.decisions:Served"}

    def model(
        self, horizon: int, actions: list[str], encoding: Mapping[str, Any], rewards: tuple[float, float], seed: int
    ) -> ModelSettings:
        """Return the settings of the played model."""
        table = {
            "actions": actions,
            "horizon": horizon,
            "agent": self.agent,
            "floor": self.floor,
            "reward_range": list(rewards),
            "silence": {"kind": "unknown"},
            "idle": LONGEST_IDLE,
            "seed": seed,
            **encoding,
        }
        return ModelSettings.from_table(table)

    def start(self, problem: Problem) -> ServedAgent:
        return ServedAgent(self, problem)


class ServedAgent:
    """Plays the sessions of one model."""

    def __init__(self, settings: Served, problem: Problem) -> None:
        self.settings, self.problem = settings, problem
        self._encoding, self._context = contexts_of(problem)
        self._model: Model | None = None
        self._episodes = 0

    @property
    def model(self) -> Model:
        """The played model, which is created by the first plan."""
        if self._model is None:
            raise refuse("the agent", "one without a plan", "one that has planned, which draws its seed")
        return self._model

    def plan(self, rng: np.random.Generator) -> ServedPolicy:
        """Return the policy of the next session, which follows a member of the latest set of plans."""
        check_generator("rng", rng)
        if self._model is None:
            problem, names = self.problem, [str(action) for action in range(self.problem.actions)]
            seed = int(rng.integers(2**63))
            made = self.settings.model(problem.horizon, names, self._encoding, problem.reward_range, seed)
            self._model = Model("served", made, MemoryStore(), clock=lambda: float(self._episodes))
        episode = self._episodes
        self._episodes += 1
        if episode % self.settings.every == 0:
            self._model.plan()
        return ServedPolicy(self._model, episode, self._context)

    def learn(self, batch: Sequence[Feedback]) -> None:
        """Report the ends of sessions and the rewards of their steps."""
        clean = check_batch(batch, self.problem)
        operations: list[Operation] = []
        for feedback in clean:
            late, session = feedback.trajectory, str(feedback.episode)
            if late.part != "all" or late.first:
                raise refuse("trajectory.part", late.part, '"all", a whole episode')
            context = None if late.terminated else self._context(late.states[-1])
            operations.append(End(session, late.terminated, context))
            operations += [Reward(_id(session, h), reward) for h, reward in enumerate(late.rewards.tolist())]
        for answer in self.model.run(operations) if operations else ():
            if isinstance(answer, BelatedError):
                raise answer
            if isinstance(answer, Outcome) and answer.status != Status.ACCEPTED:
                raise refuse("the batch", answer.id, f"from played sessions, once each ({answer.detail})")

    def __repr__(self) -> str:
        return f"<{self.settings}: {self.problem}>"


class ServedPolicy:
    """One session: every step is a decision of the model."""

    def __init__(self, model: Model, episode: int, context: Context) -> None:
        self._model, self._session, self._context = model, str(episode), context

    def act(self, step: int, state: State) -> int:
        asked = Decide(self._context(state), id=_id(self._session, step), session=self._session)
        (answer,) = self._model.run([asked], all_or_none=True)
        assert not isinstance(answer, BelatedError | Outcome)
        return int(answer.action)


def _id(session: str, step: int) -> str:
    return f"{session}.{step}"


def contexts_of(problem: Problem) -> tuple[dict[str, Any], Context]:
    """Return the encoding of a problem's states as contexts, and the function that maps a state to a context."""
    if isinstance(problem, TableProblem):
        places = min(problem.states, MOST_DENSE)
        return {"categories": ["state"], "hashed": places}, lambda state: {"state": str(int(state))}
    assert isinstance(problem, SimulatorProblem)
    features = problem.features
    places = min(features.size, MOST_DENSE - 1)
    if isinstance(features, OneHot):
        return {"categories": ["state"], "hashed": places}, lambda state: {"state": str(int(state.indices[0]))}
    if isinstance(features, Tiles):
        return {"tags": ["tiles"], "hashed": places}, lambda state: {"tiles": [str(i) for i in state.indices.tolist()]}
    if problem.joint or features.size >= MOST_DENSE:
        wanted = f"at most {MOST_DENSE - 1} features of states, to be served as the numbers of a context"
        raise refuse("the problem's features", features, wanted)
    names = [f"feature {i}" for i in range(features.size)]
    blank = dict.fromkeys(names, 0.0)

    def numbers(state: Any) -> dict[str, Any]:
        found = dict(blank)
        for place, value in zip(state.indices.tolist(), state.values.tolist(), strict=True):
            found[names[place]] = value
        return found

    return {"features": names}, numbers
