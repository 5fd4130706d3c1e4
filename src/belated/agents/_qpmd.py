"""QPM-D: an undelayed bandit algorithm fed from queues of arrived rewards."""

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

#: The choice in contexts for which the base has not been asked.
NONE = -1


@dataclass(frozen=True, kw_only=True)
class QPMD(AroundBase):
    """QPM-D (Joulani et al., 2013): a wrapper that makes any undelayed bandit algorithm handle delayed feedback.

    Arrived rewards are queued by context and action. The base is asked for its choice; if the queue of that choice has
    a reward, the base learns it at once and is asked again. When the queue is empty, the choice is played, and repeated
    until a reward for it arrives. So the base learns without delay, in its own order: each reward it learns is for its
    latest choice. The rewards of repeated plays are queued for later. Feedback that never arrives costs time, but
    nothing else.

    This follows the source, as we understand it. Our choices:

    * a pending choice for each context: the base may be asked in one context while it waits in another;
    * queues are ordered by round, so that the order of arrival within a batch does not matter;
    * `plan(rng)`, for an unknown context: one table of choices for all contexts is pending, until a reward has arrived
    for any of them.

    Rewards are assumed to depend only on context and action, not on the round.

    The agent can be saved if the base is a built-in algorithm that can be saved.

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
    """A base agent, its pending choices, and the queues."""

    def __init__(self, settings: QPMD, problem: TableProblem, base: Agent) -> None:
        self.settings = settings
        self.problem = problem
        self.base: Any = base
        self.queues: dict[tuple[int, int], list[tuple[int, float]]] = {}
        """Rounds and rewards that the base has not learned, by context and action: heaps, never empty."""
        self.chosen: Ints = np.full(problem.states, NONE)
        """The pending choice of each context."""
        self.number: Ints = np.zeros(problem.states, np.int64)
        """The number of the base's plan that made it."""
        self.asked = 0
        """Number of plans of the base."""
        self.news: set[int] = set()
        """The contexts of rewards that have arrived since the last plan."""
        self.heard = Heard(problem.horizon)

    def plan(self, rng: np.random.Generator) -> TablePolicy:
        """Return the base's choices for all contexts, after it has learned every queued reward for them."""
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
            self._tell(answered[:1])  # one reward per plan of the base; then it plans for all contexts again
        self.news.clear()
        return TablePolicy(self.chosen[np.newaxis].copy())

    def plan_from(self, rng: np.random.Generator, state: int) -> TablePolicy:
        """Return the base's choice in `state`, after it has learned every queued reward for it."""
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
        """Let the base learn the oldest queued reward of its choice in each of `contexts`, made by different plans.

        A plan of the base gets one reward: its choices in other contexts are discarded and made again.
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
        """Queue a batch of late rewards; if one is invalid, none is queued."""
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
    """A QPM-D agent around a built-in agent that can be saved."""

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
