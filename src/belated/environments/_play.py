"""Playing one episode of a policy in any environment."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated._util.validate import refuse
from belated.errors import InvalidInputError
from belated.types import Environment, Policy, Step, TableProblem, Trajectory


def play(environment: Environment, policy: Policy, *, seed: int, episode: int) -> Trajectory:
    """Play `episode` of the run with `seed` until it terminates, is truncated, or has lasted H steps.

    >>> from belated import RiverSwim
    >>> river = RiverSwim()
    >>> played = play(river, river.optimal_policy(), seed=0, episode=3)
    >>> len(played.actions), played.terminated
    (20, False)
    """
    problem = environment.problem
    states: list[Any] = [environment.encode(environment.reset(seed=seed, episode=episode))]
    actions, rewards = list[int](), list[float]()
    terminated = truncated = False
    while not terminated and not truncated and len(actions) < problem.horizon:
        action = int(policy.act(len(actions), states[-1]))
        if not 0 <= action < problem.actions:
            raise refuse("the policy's action", action, f"an integer in 0..{problem.actions - 1}")
        found = environment.step(action)
        if not isinstance(found, tuple) or len(found) != len(Step._fields):
            raise refuse(f"what step of {environment.label} returns", found, "a belated.types.Step")
        observation, reward, terminated, truncated = found
        rewards.append(reward)
        actions.append(action)
        states.append(environment.encode(observation))
    visited = np.array(states) if isinstance(problem, TableProblem) else states
    try:
        return Trajectory(visited, np.array(actions), np.array(rewards), terminated).check(problem)
    except InvalidInputError as error:  # returned by a user's environment
        raise InvalidInputError(f"episode {episode} of {environment.label} cannot be learned: {error}") from None
