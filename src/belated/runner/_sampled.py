"""A run in an environment that can only be sampled: the same blocks, rows and delays, without tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from belated._kernels.streams import stream
from belated._util.validate import integer, refuse
from belated.delays import DelayBuffer, DelayDistribution, OutcomeDelays
from belated.delays._outcome import NOTHING
from belated.environments._gym_environment import GymEnvironment, TablePolicy
from belated.errors import InvalidInputError
from belated.runner._parts import check_algorithm, check_delay, check_episodes, table_for
from belated.runner._rows import make_columns, make_journal
from belated.runner._simulation import CHUNK, Simulation
from belated.types import Algorithm, Feedback, Floats, Ints, Policy


class SampledSimulation(Simulation):
    """A run of an agent in a `GymEnvironment`.

    An algorithm that says `takes_samples` learns from features alone, unless the environment is one of this library
    with a table and no other features: then it plays as it does without Gymnasium. Any other plays with the
    environment's table where there is one. With a table, values and regret are exact; elsewhere nobody knows them.
    """

    def __init__(
        self,
        environment: GymEnvironment,
        algorithm: Algorithm,
        delay: DelayDistribution | OutcomeDelays,
        *,
        episodes: int,
        seed: int,
        record_every: int = 1,
        observe: Any = None,
    ) -> None:
        check_algorithm("algorithm", algorithm)
        if observe is not None:
            raise refuse("observe", observe, "None where an environment can only be sampled")
        if not isinstance(delay, DelayDistribution):
            raise refuse("delay", delay, "of type DelayDistribution where an environment can only be sampled")
        self.episodes, self.record_every = check_episodes(episodes, record_every)
        self.seed = integer("seed", seed, at_least=0)
        check_delay(delay, environment, self.episodes)
        self.environment: Any = environment
        self.algorithm, self.delay, self.outcome, self.observe = algorithm, delay, NOTHING, None
        self.table = table_for(environment, algorithm)
        problem: Any = environment.problem if self.table is None else self.table.problem
        self.agent = algorithm.start(problem)
        self.rngs = {name: stream(seed, name) for name in ("delay", "environment", "agent")}
        self.buffer: DelayBuffer[Any] = DelayBuffer()
        self.delays, self.distribution_state = np.zeros((0, 1), np.int64), None
        self.journal = make_journal(CHUNK)
        self.played, self.regret, self.recorded = 0, 0.0, 0
        self.columns = make_columns(-(-self.episodes // self.record_every))
        self.best = None if self.table is None else environment.in_rewards(self.table.optimal_values())[0]

    @property
    def compiled(self) -> bool:
        """Never: the environment is asked in Python."""
        return False

    def optimal_of(self, episodes: Ints, starts: Ints) -> Floats:
        """Return the value of the best policy from each first state, nan where nobody knows it."""
        if self.best is None:
            return np.full(len(episodes), np.nan)
        found: Floats = self.best[starts]
        return found

    def play_in_python(self, delays: Ints) -> None:
        """Play a block, asking agent and environment step by step."""
        with threadpool_limits(1):  # BLAS on more cores rounds differently, and is slower on matrices of this size
            for k, delay in enumerate(delays[:, 0].tolist()):
                self._play_episode(k, delay)

    def _play_episode(self, k: int, delay: int) -> None:
        """Play number `k` of a block, whose feedback comes after `delay`."""
        episode, journal = self.played + k, self.journal
        batch = [Feedback(origin, late) for origin, late in self.buffer.arrived(episode)]
        self.agent.learn(batch)
        policy = self.agent.plan(self.rngs["agent"])
        acting: Any = policy if self.table is None else TablePolicy(policy)
        if not callable(getattr(acting, "act", None)):
            raise InvalidInputError(f"plan must return a policy with act(step, state), got {type(policy).__name__}")
        played, earned = self.environment.play(acting, seed=self.seed, episode=episode)
        if delay < self.episodes - episode - 1:  # what arrives after the end need not be kept
            sent = played if self.table is None else self.environment.tabulated(played)
            self.buffer.add(episode, delay, sent)
        journal.start[k] = 0 if self.table is None else int(played.states[0].indices[0])
        journal.delay[k] = delay
        journal.arrived[k] = len(batch)
        journal.value[k] = self._value(policy, int(journal.start[k]))
        journal.sampled_return[k] = earned

    def _value(self, policy: Policy, start: int) -> float:
        if self.table is None:
            return float("nan")
        return float(self.environment.in_rewards(self.table.values(policy))[0, start])
