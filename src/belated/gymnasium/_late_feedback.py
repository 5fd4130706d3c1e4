"""`LateFeedback` and `LateFeedbackVector`: Gymnasium environments, with feedback that arrives late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.core import ActType, ObsType
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import iterate

from belated._util.validate import refuse
from belated.environments._asked import checked_reset, checked_step
from belated.gymnasium._in_flight import Distribution, InFlight, Transition, checked, kept

NOTHING = object()


class LateFeedback(gymnasium.Wrapper[ObsType, ActType, ObsType, ActType], RecordConstructorArgs):
    """Withholds rewards and delivers them later, each with the step that it belongs to.

    Observations and the end of an episode are available at once, since nobody could act without them. The reward that
    ``step`` returns is always 0.0. The true one arrives later in ``info["arrived"]``, which is present, possibly empty,
    after every ``reset`` and ``step``: a list of :class:`Transition`, with the episode, the step, the observation, the
    action, the reward, the next observation, and whether the episode was terminated or truncated.

    What arrives together, and how time is counted, depends on ``unit``:

    * ``"trajectory"`` - all steps of an episode arrive together, and ``delay`` delays them by whole episodes. What was
      played in episode k with the delay τ can be used from episode k' on if and only if k + τ <= k' - 1: it arrives
      with the ``reset`` that starts episode k + τ + 1. A delay of 0 means the next episode.
    * ``"reward"`` - each reward arrives separately, and ``delay`` delays it by steps, counted over all episodes. It can
      be used for the action of step t' if and only if t + τ <= t' - 1: it arrives with ``step`` number t + τ. A delay
      of 0 means that it arrives with the step itself.

    Nothing arrives early or twice, and resets lose nothing: feedback stays in flight, in order, over any number of
    resets, seeded or not, and episodes continue to be counted. An episode that is interrupted by ``reset`` is sent as
    far as it was played. Feedback that never arrives (:class:`belated.Lossy`) is dropped at once. :meth:`flush` returns
    everything that is still in flight.

    ``reset(seed=...)`` seeds the delays together with the environment, from a separate stream: the environment draws
    the same numbers as without the wrapper. Delays are those of :func:`belated.simulate` under the same seed. Feedback
    in flight is not affected, so after a seeded reset ``arrived`` may still contain earlier steps.

    Rewards that the environment itself reports in ``info`` are not hidden, so wrap
    :class:`gymnasium.wrappers.RecordEpisodeStatistics` inside this wrapper only if its numbers are not learned from.
    Two consecutive transitions share the array of the observation between them.

    A vector version exists: :class:`LateFeedbackVector`.

    Example:
        >>> import gymnasium
        >>> from belated import Constant
        >>> from belated.gymnasium import LateFeedback
        >>> env = LateFeedback(gymnasium.make("FrozenLake-v1", is_slippery=False), Constant(1))
        >>> for episode in range(4):
        ...     observation, info = env.reset(seed=episode)
        ...     print(episode, [(late.episode, late.step, late.reward) for late in info["arrived"]])
        ...     for action in (2, 2, 1, 1, 1, 2):
        ...         observation, reward, terminated, truncated, info = env.step(action)
        ...         assert reward == 0.0 and info["arrived"] == []
        0 []
        1 []
        2 [(0, 0, 0.0), (0, 1, 0.0), (0, 2, 0.0), (0, 3, 0.0), (0, 4, 0.0), (0, 5, 1.0)]
        3 [(1, 0, 0.0), (1, 1, 0.0), (1, 2, 0.0), (1, 3, 0.0), (1, 4, 0.0), (1, 5, 1.0)]
        >>> [(late.episode, late.step) for late in env.flush() if late.terminated]
        [(2, 5), (3, 5)]

    Single rewards, late by two steps:
        >>> env = LateFeedback(gymnasium.make("CartPole-v1"), Constant(2), unit="reward")
        >>> _ = env.reset(seed=0)
        >>> for step in range(4):
        ...     observation, reward, terminated, truncated, info = env.step(step % 2)
        ...     print(step, [(late.step, late.action, late.reward) for late in info["arrived"]])
        0 []
        1 []
        2 [(0, 0, 1.0)]
        3 [(1, 1, 1.0)]
    """

    def __init__(
        self,
        env: gymnasium.Env[ObsType, ActType],
        delay: Distribution | Mapping[str, Any],
        unit: str = "trajectory",
    ) -> None:
        """Wrap an environment.

        Args:
            env: The environment to wrap
            delay: A delay distribution of :mod:`belated.delays`, or its plain values, such as ``{"distribution":
                "poisson", "mean": 10}``
            unit: What arrives together: ``"trajectory"`` or ``"reward"``
        """
        if not isinstance(env, gymnasium.Env):
            raise refuse("env", env, "a gymnasium.Env; LateFeedbackVector wraps a vector of them")
        delay, unit = checked(delay, unit, env.action_space)
        RecordConstructorArgs.__init__(self, delay=delay.to_dict(), unit=unit)
        gymnasium.Wrapper.__init__(self, env)
        self._feedback = InFlight(delay, unit)
        self._observation: Any = NOTHING
        self._name = str(env)

    @property
    def in_flight(self) -> int:
        """Number of steps whose feedback is in flight, without those whose feedback never arrives."""
        return self._feedback.in_flight

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict[str, Any]]:
        """Start the next episode; feedback in flight is not affected."""
        observation, info = checked_reset(self._name, self.env.reset(seed=seed, options=options))
        if seed is not None:
            self._feedback.seed(seed)
        self._observation = kept(observation)
        return observation, with_arrived(info, self._feedback.begin())

    def step(self, action: ActType) -> tuple[ObsType, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take a step; its reward is withheld."""
        if self._observation is NOTHING:
            raise gymnasium.error.ResetNeeded("call reset() before step(): no episode has been started")
        self._feedback.prepare()
        (observation, reward, terminated, truncated), info = checked_step(self._name, self.env.step(action))
        before, after = self._observation, kept(observation)
        self._observation = after
        arrived = self._feedback.add(before, kept(action), reward, after, terminated, truncated)
        return observation, 0.0, terminated, truncated, with_arrived(info, arrived)

    def flush(self) -> list[Transition]:
        """Return everything in flight, in the order of play, for instance at the end of training.

        This includes the steps so far of the current episode; later steps arrive as usual.
        """
        return self._feedback.flush()


def with_arrived(info: dict[str, Any], arrived: Any) -> dict[str, Any]:
    """Return `info` with what has arrived."""
    if not isinstance(info, dict):
        raise refuse("info", info, "a dictionary")
    if "arrived" in info:
        raise refuse("info", sorted(info), "without the key 'arrived', which the wrapper uses")
    info["arrived"] = arrived
    return info


class LateFeedbackVector(VectorWrapper[ObsType, ActType, ObsType, ActType, npt.NDArray[Any]], RecordConstructorArgs):
    """Withholds the rewards of a vector of environments; see :class:`LateFeedback` for what that means.

    Each sub-environment has its own episodes, steps and delays, exactly as if it were wrapped alone.
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
            delay: A delay distribution of :mod:`belated.delays`, or its plain values
            unit: What arrives together: ``"trajectory"`` or ``"reward"``
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
        """Number of steps whose feedback is in flight, without those whose feedback never arrives."""
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
        """Return everything in flight for each sub-environment, in the order of play."""
        return [feedback.flush() for feedback in self._feedback]

    def _with_arrived(self, infos: dict[str, Any], arrived: list[list[Transition]]) -> dict[str, Any]:
        """Return `infos` with what has arrived, and with the mask that Gymnasium adds to every entry."""
        lists = np.empty(self.num_envs, dtype=object)
        for i, each in enumerate(arrived):
            lists[i] = each
        return {**with_arrived(infos, lists), "_arrived": np.ones(self.num_envs, dtype=np.bool_)}

    def _final_observations(self, infos: dict[str, Any]) -> list[Any]:
        """Return the last observations of the episodes that have ended; None for the others."""
        final = infos.get("final_obs")
        if final is None:
            return [None] * self.num_envs
        if isinstance(final, np.ndarray) and final.dtype == object:
            return [kept(observation) for observation in final]
        return [kept(observation) for observation in iterate(self.observation_space, final)]
