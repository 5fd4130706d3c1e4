"""`LateFeedbackVector`: a vector of Gymnasium environments, with feedback that arrives late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.core import ActType, ObsType
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import iterate

from belated._util.validate import refuse
from belated.gymnasium._in_flight import Distribution, InFlight, Transition, checked, kept
from belated.gymnasium._late_feedback import NOTHING, with_arrived

Flags = npt.NDArray[np.bool_]


class LateFeedbackVector(VectorWrapper[ObsType, ActType, ObsType, ActType, npt.NDArray[Any]], RecordConstructorArgs):
    """Withholds the rewards of a vector of environments; see :class:`LateFeedback` for what that means.

    Each sub-environment has episodes, steps and delays of its own, exactly as if it were wrapped alone.
    ``infos["arrived"][i]`` is the list of what has arrived for sub-environment i. Every autoreset mode is supported,
    and whole trajectories arrive as soon as the next episode has begun:

    * ``NEXT_STEP`` - with the step that resets the sub-environment, whose action is ignored and is no transition;
    * ``SAME_STEP`` - with the step that ends the episode before; ``next_observation`` of its last transition is the
      final observation, not that of the reset;
    * ``DISABLED`` - with ``reset(options={"reset_mask": ...})``.

    Seeds are those of the sub-environments: ``reset(seed=s)`` seeds the delays of sub-environment i with s + i.

    Example:
        >>> import gymnasium
        >>> from belated import Poisson
        >>> from belated.gymnasium import LateFeedbackVector
        >>> envs = LateFeedbackVector(gymnasium.make_vec("CartPole-v1", num_envs=3), Poisson(2), unit="reward")
        >>> observations, infos = envs.reset(seed=1)
        >>> _ = envs.action_space.seed(1)
        >>> for _ in range(3):
        ...     observations, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
        ...     print([[(late.episode, late.step, late.reward) for late in arrived] for arrived in infos["arrived"]])
        [[], [], []]
        [[(0, 0, 1.0)], [(0, 0, 1.0)], []]
        [[], [], [(0, 1, 1.0)]]
        >>> rewards.tolist()
        [0.0, 0.0, 0.0]
        >>> [[late.step for late in rest] for rest in envs.flush()]
        [[1, 2], [1, 2], [0, 2]]
        >>> envs.close()
    """

    def __init__(
        self,
        env: VectorEnv[ObsType, ActType, npt.NDArray[Any]],
        delay: Distribution | Mapping[str, Any],
        unit: str = "trajectory",
    ) -> None:
        """Wrap a vector of environments.

        Args:
            env: The vector environment to wrap
            delay: How late feedback is: a delay distribution of :mod:`belated.delays`, or its plain values
            unit: What travels together: ``"trajectory"`` or ``"reward"``
        """
        if not isinstance(env, VectorEnv):
            raise refuse("env", env, "a gymnasium.vector.VectorEnv; LateFeedback wraps a single environment")
        mode = env.metadata.get("autoreset_mode")
        if not isinstance(mode, AutoresetMode):
            raise refuse("env.metadata['autoreset_mode']", mode, "a gymnasium.vector.AutoresetMode")
        delay, unit = checked(delay, unit, env.single_action_space)
        RecordConstructorArgs.__init__(self, delay=delay.to_dict(), unit=unit)
        VectorWrapper.__init__(self, env)
        self._mode = mode
        self._feedback = [InFlight(delay, unit) for _ in range(env.num_envs)]
        self._observations: list[Any] = [NOTHING] * env.num_envs
        self._ended = [False] * env.num_envs

    @property
    def in_flight(self) -> int:
        """How many steps have been played whose feedback has not arrived; without those that never will."""
        return sum(feedback.in_flight for feedback in self._feedback)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[ObsType, dict[str, Any]]:
        """Start the next episode of every sub-environment, or of those in ``options["reset_mask"]``."""
        everyone = range(self.num_envs)
        mask = (options or {}).get("reset_mask")
        chosen = list(everyone) if mask is None else np.flatnonzero(mask).tolist()
        observations, infos = self.env.reset(seed=seed, options=options)
        seeds: Any = [seed + i for i in everyone] if isinstance(seed, int) else seed
        rows = list(iterate(self.observation_space, observations))
        arrived: list[list[Transition]] = [[] for _ in everyone]
        for i in chosen:
            if seeds is not None and seeds[i] is not None:
                self._feedback[i].seed(seeds[i])
            self._observations[i], self._ended[i] = kept(rows[i]), False
            arrived[i] = self._feedback[i].begin()
        return observations, self._with_arrived(infos, arrived)

    def step(
        self, actions: ActType
    ) -> tuple[ObsType, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Take a step in every sub-environment; the rewards are withheld."""
        if any(observation is NOTHING for observation in self._observations):
            raise gymnasium.error.ResetNeeded("call reset() before step(): no episode has been started")
        if self._mode is AutoresetMode.DISABLED and any(self._ended):
            which = [i for i, ended in enumerate(self._ended) if ended]
            raise gymnasium.error.ResetNeeded(f"call reset() before step(): the episodes of {which} have ended")
        for feedback, ended in zip(self._feedback, self._ended, strict=True):
            if not ended:
                feedback.prepare()
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        after = list(map(kept, iterate(self.observation_space, observations)))
        taken = list(map(kept, iterate(self.action_space, actions)))
        paid, ends, cuts = rewards.tolist(), terminations.tolist(), truncations.tolist()
        last = self._final_observations(infos) if self._mode is AutoresetMode.SAME_STEP else after
        same_step = self._mode is AutoresetMode.SAME_STEP
        arrived: list[list[Transition]] = []
        for i, feedback in enumerate(self._feedback):
            before, self._observations[i] = self._observations[i], after[i]
            if self._ended[i]:  # this call was the reset of NEXT_STEP
                self._ended[i] = False
                arrived.append(feedback.begin())
                continue
            over = ends[i] or cuts[i]
            new = feedback.add(before, taken[i], paid[i], last[i] if over else after[i], ends[i], cuts[i])
            arrived.append(new + feedback.begin() if over and same_step else new)
            self._ended[i] = over and not same_step
        return observations, np.zeros_like(rewards), terminations, truncations, self._with_arrived(infos, arrived)

    def flush(self) -> list[list[Transition]]:
        """Hand out, for each sub-environment, all that is in flight, in the order in which it was played."""
        return [feedback.flush() for feedback in self._feedback]

    def _with_arrived(self, infos: dict[str, Any], arrived: list[list[Transition]]) -> dict[str, Any]:
        """Return `infos` with what has arrived, and with the mask that Gymnasium keeps beside every entry."""
        lists = np.empty(self.num_envs, dtype=object)
        for i, each in enumerate(arrived):
            lists[i] = each
        return {**with_arrived(infos, lists), "_arrived": np.ones(self.num_envs, dtype=np.bool_)}

    def _final_observations(self, infos: dict[str, Any]) -> list[Any]:
        """Return the last observations of the episodes that have ended; None where none has."""
        final = infos.get("final_obs")
        if final is None:
            return [None] * self.num_envs
        if isinstance(final, np.ndarray) and final.dtype == object:
            return [kept(observation) for observation in final]
        return [kept(observation) for observation in iterate(self.observation_space, final)]
