"""`LateFeedback`: any Gymnasium environment, with feedback that arrives late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsFloat

import gymnasium
from gymnasium.core import ActType, ObsType
from gymnasium.utils import RecordConstructorArgs

from belated._util.validate import refuse
from belated.gymnasium._in_flight import Distribution, InFlight, Transition, checked, kept

NOTHING = object()


class LateFeedback(gymnasium.Wrapper[ObsType, ActType, ObsType, ActType], RecordConstructorArgs):
    """Withholds rewards and hands them out later, each with the step that it belongs to.

    Observations and the end of an episode are seen at once, since nobody could act without them. The reward that
    ``step`` returns is always 0.0. The true one arrives later in ``info["arrived"]``, which is there, perhaps empty,
    after every ``reset`` and ``step``: a list of :class:`Transition`, with the episode, the step, the observation, the
    action, the reward, the next observation, and whether the episode was terminated or truncated.

    What is handed out together, and how time is counted, depends on ``unit``:

    * ``"trajectory"`` - all steps of an episode arrive together, and ``delay`` delays them by whole episodes. What was
      played in episode k with the delay τ can be used from episode k' on if and only if k + τ <= k' - 1: it arrives
      with the ``reset`` that starts episode k + τ + 1. A delay of 0 means the next episode.
    * ``"reward"`` - each reward travels alone, and ``delay`` delays it by steps, counted over all episodes. It can be
      used for the action of step t' if and only if t + τ <= t' - 1: it arrives with ``step`` number t + τ. A delay
      of 0 means that it arrives with the step itself.

    Nothing arrives early or twice, and resets lose nothing: what is in flight stays in flight, in order, over any
    number of resets, seeded or not, and episodes go on being counted. An episode that a ``reset`` breaks off is sent as
    far as it was played. Feedback that never arrives (:class:`belated.Lossy`) is dropped at once. :meth:`flush` hands
    out all that is still in flight.

    ``reset(seed=...)`` seeds the delays together with the environment, from a stream of their own: the environment
    draws the same numbers as without the wrapper. Delays are those of :func:`belated.simulate` under the same seed.
    What is in flight stays there, so after a seeded reset ``arrived`` may still hold what was played before it.

    A reward that the environment itself shows in ``info`` is not hidden, so wrap
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
            delay: How late feedback is: a delay distribution of :mod:`belated.delays`, or its plain values, such as
                ``{"distribution": "poisson", "mean": 10}``
            unit: What travels together: ``"trajectory"`` or ``"reward"``
        """
        if not isinstance(env, gymnasium.Env):
            raise refuse("env", env, "a gymnasium.Env; LateFeedbackVector wraps a vector of them")
        delay, unit = checked(delay, unit, env.action_space)
        RecordConstructorArgs.__init__(self, delay=delay.to_dict(), unit=unit)
        gymnasium.Wrapper.__init__(self, env)
        self._feedback = InFlight(delay, unit)
        self._observation: Any = NOTHING

    @property
    def in_flight(self) -> int:
        """How many steps have been played whose feedback has not arrived; without those that never will."""
        return self._feedback.in_flight

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict[str, Any]]:
        """Start the next episode; what is in flight stays there."""
        observation, info = self.env.reset(seed=seed, options=options)
        if seed is not None:
            self._feedback.seed(seed)
        self._observation = kept(observation)
        return observation, with_arrived(info, self._feedback.begin())

    def step(self, action: ActType) -> tuple[ObsType, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take a step; its reward is withheld."""
        if self._observation is NOTHING:
            raise gymnasium.error.ResetNeeded("call reset() before step(): no episode has been started")
        self._feedback.prepare()
        observation, reward, terminated, truncated, info = self.env.step(action)
        before, after = self._observation, kept(observation)
        self._observation = after
        arrived = self._feedback.add(before, kept(action), float(reward), after, bool(terminated), bool(truncated))
        return observation, 0.0, terminated, truncated, with_arrived(info, arrived)

    def flush(self) -> list[Transition]:
        """Hand out, in the order in which it was played, all that is in flight, at the end of training for instance.

        This includes the steps so far of an episode that is being played; those that follow will arrive as ever.
        """
        return self._feedback.flush()


def with_arrived(info: dict[str, Any], arrived: Any) -> dict[str, Any]:
    """Return `info` with what has arrived."""
    if "arrived" in info:
        raise refuse("info", sorted(info), "without an entry 'arrived' of the environment's own")
    info["arrived"] = arrived
    return info
