"""QPM-D: an undelayed bandit algorithm that is fed from queues of what has arrived."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from belated._util.validate import array, check_generator, indices, integer
from belated.agents import _invariants as invariants
from belated.agents._heard import Heard
from belated.agents._invariants import LARGEST_COUNT
from belated.agents._wrapper import AroundBase, ask, part_of
from belated.errors import InvalidInputError
from belated.types import LAST_EPISODE, Agent, Feedback, Ints, Problem, TablePolicy, TableProblem, Trajectory

#: What is chosen where the base has not been asked.
NONE = -1


@dataclass(frozen=True, kw_only=True)
class QPMD(AroundBase):
    """QPM-D (Joulani et al., 2013): delayed feedback for a bandit algorithm that knows nothing of delays.

    Rewards that arrive go to a queue, one for each context and action. The base is asked for its choice; if the queue
    of that choice holds a reward, the base is told it at once and asked again. When the queue is empty, the choice is
    played, and kept until a reward for it arrives. So the base learns without delay, in an order of its own: each
    reward that it is told is one for what it has just chosen. Meanwhile the choice is played over and over, and what
    that brings is kept in the queue for later. Feedback that never arrives costs time, but nothing else.

    From the source, as we understand it, is all of that. Ours are:

    * a choice that waits for each context: the base may be asked in one while it waits in another;
    * a queue is ordered by the number of the round, so that the order of arrival within a batch does not matter;
    * `plan(rng)`, where the context is not known: one table of choices for all contexts waits, and is over when
      a reward has arrived for any of them.

    Rewards are assumed to depend on context and action alone, not on the round.

    The agent can be saved if the base is an algorithm of the library that can.

    Examples
    --------
    >>> from belated import Constant, DelayedPSVI, LinearBandit, simulate
    >>> bandit, base = LinearBandit(actions=10, dimension=3), DelayedPSVI()
    >>> late = simulate(bandit, QPMD(base=base), Constant(0), episodes=50, seed=0)
    >>> late.equals(simulate(bandit, base, Constant(0), episodes=50, seed=0))
    True
    """

    kind: ClassVar[str] = "qpm-d"
    one_step: ClassVar[bool] = True

    def start(self, problem: Problem) -> QPMDAgent:
        self.check_steps(problem)
        table = self.needs_table(problem)
        base = self.base.start(table)
        return (SavableQPMDAgent if self.can_be_loaded(base) else QPMDAgent)(self, table, base)


class QPMDAgent:
    """A base agent, its choices that wait, and the queues."""

    def __init__(self, settings: QPMD, problem: TableProblem, base: Agent) -> None:
        self.settings = settings
        self.problem = problem
        self.base: Any = base
        self.queues: dict[tuple[int, int], list[tuple[int, float]]] = {}
        """Rounds and rewards that the base has not been told, by context and action: heaps, none of them empty."""
        self.chosen: Ints = np.full(problem.states, NONE)
        """The choice that waits in each context."""
        self.number: Ints = np.zeros(problem.states, np.int64)
        """Which question to the base it answers."""
        self.asked = 0
        """How often the base has been asked."""
        self.news: set[int] = set()
        """The contexts of rewards that have arrived since the last plan."""
        self.heard = Heard(problem.horizon)

    def plan(self, rng: np.random.Generator) -> TablePolicy:
        """Return the base's choices for all contexts, once no reward is queued for any of them."""
        check_generator("rng", rng)
        while True:
            if (self.chosen == NONE).any():
                choices = ask(self.base, rng, None).actions
                self.chosen[:] = indices("the base's policy", choices, (1, self.problem.states), self.problem.actions)[
                    0
                ]
                self.number[:] = self.asked
                self.asked += 1
            answered = [s for s in range(self.problem.states) if (s, int(self.chosen[s])) in self.queues]
            if not answered:
                break
            self._tell(answered[:1])  # one answer to the one question; then all contexts are asked again
        self.news.clear()
        return TablePolicy(self.chosen[np.newaxis].copy())

    def plan_from(self, rng: np.random.Generator, state: int) -> TablePolicy:
        """Return the base's choice in `state`, once no reward is queued for it."""
        check_generator("rng", rng)
        state = integer("state", state, at_least=0, at_most=self.problem.states - 1)
        answered = {int(self.number[s]): s for s in sorted(self.news) if (s, int(self.chosen[s])) in self.queues}
        self._tell([answered[number] for number in sorted(answered)])
        self.news.clear()
        while True:
            if self.chosen[state] == NONE:
                choice = ask(self.base, rng, state).actions[0, state]
                self.chosen[state] = integer("the base's choice", choice, at_least=0, at_most=self.problem.actions - 1)
                self.number[state] = self.asked
                self.asked += 1
            if (state, int(self.chosen[state])) not in self.queues:
                break
            self._tell([state])
        actions = np.zeros((1, self.problem.states), np.int64)
        actions[0, state] = self.chosen[state]
        return TablePolicy(actions)

    def _tell(self, contexts: list[int]) -> None:
        """Tell the base the oldest reward of what it has chosen in each of `contexts`, of questions that all differ.

        A question has one answer: what the base chose in other contexts by the same one is asked again.
        """
        batch = []
        for s in contexts:
            action = int(self.chosen[s])
            queue = self.queues[s, action]
            _, reward = heapq.heappop(queue)
            if not queue:
                del self.queues[s, action]
            trajectory = Trajectory(np.array([s, s]), np.array([action]), np.array([reward]))
            batch.append(Feedback(int(self.number[s]), trajectory))
            self.chosen[self.number == self.number[s]] = NONE
        if batch:
            self.base.learn(batch)

    def learn(self, batch: Sequence[Feedback]) -> None:
        """Put a batch of late rewards into their queues; if one of them is bad, none is."""
        clean = self.settings.check_feedback(batch, self.problem)
        self.heard.take(clean)
        for feedback in clean:
            late = feedback.trajectory
            state = int(late.rows[0])
            queue = self.queues.setdefault((state, int(late.actions[0])), [])
            heapq.heappush(queue, (feedback.episode, float(late.rewards[0])))
            self.news.add(state)

    def __repr__(self) -> str:
        queued = sum(len(queue) for queue in self.queues.values())
        return f"<{self.settings}: {self.problem.states} contexts, {self.problem.actions} actions, {queued} queued>"


class SavableQPMDAgent(QPMDAgent):
    """The same, around an agent of the library that can be saved."""

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        queued = [(s, a, *entry) for (s, a), queue in sorted(self.queues.items()) for entry in sorted(queue)]
        return {
            **{f"base.{name}": values for name, values in self.base.memory().items()},
            "chosen": self.chosen,
            "number": self.number,
            "asked": np.array([self.asked], np.int64),
            "queued": np.array([entry[:3] for entry in queued], np.int64).reshape(-1, 3),
            "queued_rewards": np.array([entry[3] for entry in queued], np.float64),
            "heard": self.heard.memory(),
        }

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        fresh = SavableQPMDAgent(self.settings, self.problem, self.settings.base.start(self.problem))
        own = {"chosen", "number", "asked", "queued", "queued_rewards", "heard"}
        if own != {name for name in memory if not name.startswith("base.")}:
            raise InvalidInputError(
                f"memory must hold the arrays {sorted(own)} beside the base's, got {sorted(memory)}"
            )
        states, actions = self.problem.states, self.problem.actions
        fresh.heard = Heard.restored(memory["heard"], self.problem.horizon)
        fresh.asked = int(indices("memory['asked']", memory["asked"], (1,), LARGEST_COUNT)[0])
        fresh.chosen = np.array(indices("memory['chosen']", memory["chosen"], (states,), actions, least=NONE))
        fresh.number = np.array(indices("memory['number']", memory["number"], (states,), max(fresh.asked, 1)))
        queued = indices("memory['queued']", memory["queued"], (None, 3), LAST_EPISODE)
        rewards = array("memory['queued_rewards']", memory["queued_rewards"], (len(queued),))
        invariants.rewards("queued_rewards", rewards, self.problem)
        indices("memory['queued'][:, 0]", queued[:, 0], (None,), states)
        indices("memory['queued'][:, 1]", queued[:, 1], (None,), actions)
        fresh.base.restore(part_of(memory, "base."))
        for (s, a, episode), reward in zip(queued.tolist(), rewards.tolist(), strict=True):
            heapq.heappush(fresh.queues.setdefault((s, a), []), (episode, reward))
            fresh.news.add(s)
        self.__dict__.update(fresh.__dict__)
