"""The Gymnasium face of a `FiniteMDP`; importing this file needs gymnasium."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from belated.environments.finite import FiniteMDP
from belated.environments.kernels import first_above, first_state
from belated.validate import integer


class FiniteMDPEnv(gymnasium.Env[np.int64, np.int64]):
    """A `FiniteMDP` that is played through `reset` and `step`; made by `as_gymnasium`.

    The observation is the state and `info["step"]` the number of steps taken so far; an episode terminates
    after H steps. The draws are those of `FiniteMDP.rollout`, in the same order.
    """

    def __init__(self, mdp: FiniteMDP) -> None:
        """Wrap `mdp`."""
        self.mdp = mdp
        self.observation_space = gymnasium.spaces.Discrete(mdp.states)
        self.action_space = gymnasium.spaces.Discrete(mdp.actions)
        self._state = 0
        self._step = mdp.horizon
        self._episode = -1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        self._episode += 1
        self._state = int(first_state(self.mdp.world, self._episode, self.np_random))
        self._step = 0
        return np.int64(self._state), {"step": 0}

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Take `action`."""
        if self._step == self.mdp.horizon:
            raise gymnasium.error.ResetNeeded("call reset() before step(): no episode is under way")
        chosen = integer("action", action, at_least=0, at_most=self.mdp.actions - 1)
        world = self.mdp.world
        slot = self._step if len(world.transitions) > 1 else 0
        means = world.rewards[self._episode % len(world.rewards)]
        reward = float(means[slot, self._state, chosen])
        self._state = first_above(world.cumulative[slot, self._state, chosen], self.np_random.random())
        if world.bernoulli:
            reward = 1.0 if self.np_random.random() < reward else 0.0
        if world.noise > 0.0:
            reward += world.noise * float(self.np_random.standard_normal())
        self._step += 1
        return np.int64(self._state), reward, self._step == self.mdp.horizon, False, {"step": self._step}
