"""BOLD: as many copies of an undelayed algorithm as there are episodes in flight."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from belated._util.validate import check_generator, indices, integer, refuse
from belated.agents._heard import Heard
from belated.agents._invariants import LARGEST_COUNT
from belated.agents._wrapper import AroundBase, ask, part_of, savable
from belated.errors import InvalidInputError
from belated.types import Agent, Feedback, Problem, TablePolicy, TableProblem

#: The episode of a free copy, in saved agents.
FREE = -1
#: Offset for the numbers of episodes that a copy has not planned itself.
FOREIGN = 2**62


@dataclass(frozen=True, kw_only=True)
class BOLD(AroundBase):
    """BOLD (Joulani et al., 2013): a wrapper that makes any undelayed algorithm handle delayed feedback.

    A copy of `base` that has planned an episode waits until the feedback of that episode arrives. An episode is planned
    by the first free copy; if all are waiting, a new one is started. So every copy learns without delay, and there are
    as many copies as episodes in flight: with a constant delay D, each of D + 1 copies plays every (D + 1)-th episode.
    The price is that no copy learns from another.

    This follows the source, as we understand it. Our choices: the first free copy is used, and feedback that no copy
    waits for (from a log, or a repetition) goes to the first copy.

    Feedback that never arrives keeps its copy waiting forever: under lost feedback the number of copies keeps growing,
    and each has learned little.

    The agent can be saved if the base is a built-in algorithm that can be saved.

    Examples
    --------
    >>> from belated import Constant, DelayedPSVI, RiverSwim, simulate
    >>> river, rng = RiverSwim(), np.random.default_rng(0)
    >>> agent = BOLD(base=DelayedPSVI()).start(river.problem)
    >>> first, second = agent.plan(rng), agent.plan(rng)
    >>> agent.learn([Feedback(1, river.rollout(second, rng))])
    >>> third = agent.plan(rng)  # by the second copy: the first still waits
    >>> len(agent.copies), agent.in_flight
    (2, {0: 0, 2: 1})
    """

    kind: ClassVar[str] = "bold"

    def start(self, problem: Problem) -> BOLDAgent:
        table = self.needs_table(problem)
        first = self.base.start(table)
        return (SavableBOLDAgent if self.can_be_loaded(first) else BOLDAgent)(self, table, first)


class BOLDAgent:
    """Copies of a base agent, each waiting for the feedback of its own last episode."""

    def __init__(self, settings: BOLD, problem: TableProblem, first: Agent) -> None:
        self.settings = settings
        self.problem = problem
        self.copies = [first]
        """The base agents."""
        self.asked = [0]
        """Number of episodes that each copy has planned."""
        self.free = [0]
        """The free copies, as a heap."""
        self.in_flight: dict[int, int] = {}
        """The waiting copies, by the episode whose feedback they wait for."""
        self.planned = 0
        """Number of episodes planned."""
        self.heard = Heard(problem.horizon)

    def _add_copy(self) -> None:
        heapq.heappush(self.free, len(self.copies))
        self.copies.append(self.settings.base.start(self.problem))
        self.asked.append(0)

    def plan(self, rng: np.random.Generator) -> TablePolicy:
        """Return the policy of the next episode, planned by the first free copy."""
        return self._plan(rng, None)

    def plan_from(self, rng: np.random.Generator, state: int) -> TablePolicy:
        """Return the policy of an episode that starts in `state`, planned by the first free copy."""
        return self._plan(rng, integer("state", state, at_least=0, at_most=self.problem.states - 1))

    def _plan(self, rng: np.random.Generator, state: int | None) -> TablePolicy:
        check_generator("rng", rng)
        if not self.free:
            self._add_copy()
        policy = ask(self.copies[self.free[0]], rng, state)
        copy = heapq.heappop(self.free)
        self.in_flight[self.planned] = copy
        self.asked[copy] += 1
        self.planned += 1
        return policy

    def learn(self, batch: Sequence[Feedback]) -> None:
        """Pass each trajectory to the copy that waits for it; if one is invalid, none is learned."""
        clean = self.settings.check_feedback(batch, self.problem)
        self.heard.take(clean)
        parts: dict[int, list[Feedback]] = {}
        answered: dict[int, int] = {}
        for feedback in clean:
            copy, number = 0, feedback.episode
            if number in self.in_flight:
                copy = answered[number] = self.in_flight[number]
                number = self.asked[copy] - 1  # the last episode that the copy itself has planned
            elif number < FOREIGN:
                number += FOREIGN  # not an episode that the copy has planned
            parts.setdefault(copy, []).append(Feedback(number, feedback.trajectory))
        for copy, part in parts.items():
            self.copies[copy].learn(part)
        for episode, copy in answered.items():
            del self.in_flight[episode]
            heapq.heappush(self.free, copy)

    def __repr__(self) -> str:
        return f"<{self.settings}: {len(self.copies)} copies, {len(self.free)} of them free>"


class SavableBOLDAgent(BOLDAgent):
    """A BOLD agent around a built-in agent that can be saved."""

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        learned = {
            f"base.{copy}.{name}": values
            for copy, agent in enumerate(self.copies)
            for name, values in savable(agent).memory().items()
        }
        waits_for = np.full(len(self.copies), FREE)
        waits_for[list(self.in_flight.values())] = list(self.in_flight)
        return {
            **learned,
            "waits_for": waits_for,
            "asked": np.array(self.asked, np.int64),
            "planned": np.array([self.planned], np.int64),
            "heard": self.heard.memory(),
        }

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        base, problem = self.settings.base, self.problem
        own = {"waits_for", "asked", "planned", "heard"}
        if not own <= set(memory):
            raise InvalidInputError(f"memory must hold the arrays {sorted(own)}, got {sorted(memory)}")
        fresh = SavableBOLDAgent(self.settings, problem, base.start(problem))
        fresh.heard = Heard.restored(memory["heard"], problem.horizon)
        fresh.planned = int(indices("memory['planned']", memory["planned"], (1,), LARGEST_COUNT)[0])
        fresh.asked = indices("memory['asked']", memory["asked"], (None,), fresh.planned + 1).tolist()
        if not fresh.asked or sum(fresh.asked) != fresh.planned:
            raise refuse("memory['asked']", fresh.asked, f"the number of plans of each copy, {fresh.planned} in total")
        shape = (len(fresh.asked),)
        fresh.copies = [base.start(problem) for _ in fresh.asked]
        awaited = indices("memory['waits_for']", memory["waits_for"], shape, fresh.planned, least=FREE)
        fresh.free = [copy for copy, episode in enumerate(awaited) if episode == FREE]
        fresh.in_flight = {int(episode): copy for copy, episode in enumerate(awaited) if episode != FREE}
        if len(fresh.free) + len(fresh.in_flight) < len(fresh.copies):
            raise refuse("memory['waits_for']", awaited.tolist(), "a different episode for each copy, or -1")
        for copy, agent in enumerate(fresh.copies):
            savable(agent).restore(part_of(memory, f"base.{copy}."))
        unknown = sorted(set(memory) - set(fresh.memory()))
        if unknown:
            raise InvalidInputError(f"memory must not hold the array {unknown[0]!r}")
        self.__dict__.update(fresh.__dict__)
