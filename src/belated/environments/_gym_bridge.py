"""The bridge to Gymnasium, in both directions. Needs the extra `belated[gym]`, but only when called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from belated._util.plugins import needed
from belated._util.validate import array, integer, probabilities, refuse
from belated.environments._finite import FiniteMDP
from belated.environments._registry import ENVIRONMENTS
from belated.errors import InvalidInputError
from belated.types import Floats

if TYPE_CHECKING:
    from belated.environments._finite_env import FiniteMDPEnv


def as_gymnasium(mdp: FiniteMDP, render_mode: str | None = None) -> FiniteMDPEnv:
    """Return `mdp` as a Gymnasium environment: the observation is the state, `info["step"]` the step.

    The `render_mode` is "ansi", for text, "rgb_array", for a picture, or None.

    >>> from belated.environments import DeepSea
    >>> environment = as_gymnasium(DeepSea(size=4))
    >>> int(environment.reset(seed=0)[0]), int(environment.step(1)[0])
    (0, 5)
    """
    if not isinstance(mdp, FiniteMDP):
        raise refuse("mdp", mdp, "a FiniteMDP")
    load_gymnasium()
    from belated.environments._finite_env import FiniteMDPEnv

    return FiniteMDPEnv(mdp, render_mode)


def from_gymnasium(
    env_or_id: Any,
    horizon: int,
    reward_range: tuple[float, float] | None = None,
    discount: float = 1.0,
    **kwargs: Any,
) -> FiniteMDP:
    """Return a tabular Gymnasium environment, one with a table `P`, as a `FiniteMDP` of `horizon` steps.

    `kwargs` go to `gymnasium.make` when an id is given. States and actions keep their numbers, features are
    one-hot, and the start is the environment's `initial_state_distrib`, or state 0 without one. Terminal states become
    absorbing, with reward 0. Rewards that depend on the next state are replaced by their mean, which leaves all values
    unchanged.

    With `reward_range=(low, high)` each reward r, the absorbing zeros included, becomes
    (r - low) / (high - low); a policy worth V there is worth (V - horizon × low) / (high - low) here, so the
    order of policies is the same. Without it, rewards within [0, 1] are left alone, and others are rescaled
    with the smallest and the largest mean reward. With a `discount` γ the reward of step h is weighted by γ^h.

    >>> lake = from_gymnasium("FrozenLake-v1", horizon=20, is_slippery=False)
    >>> lake.optimal_value
    1.0
    """
    gymnasium = load_gymnasium()
    horizon = integer("horizon", horizon, at_least=1)
    made = isinstance(env_or_id, str)
    if not made and kwargs:
        raise refuse("kwargs", sorted(kwargs), "empty unless an environment id is given")
    try:
        env = gymnasium.make(env_or_id, **kwargs) if made else env_or_id
    except gymnasium.error.Error as error:
        raise InvalidInputError(f"env_or_id must be an environment that Gymnasium can make: {error}") from None
    try:
        core = getattr(env, "unwrapped", env)
        if not hasattr(core, "P"):
            raise refuse("env_or_id", env_or_id, "a tabular environment with a table P, such as FrozenLake-v1")
        transitions, rewards, ends = _table(core.P)
        given_start = getattr(core, "initial_state_distrib", np.eye(len(transitions))[0])
        start = probabilities("initial_state_distrib", given_start, (len(transitions),))
        name = env.spec.id if getattr(env, "spec", None) else type(core).__name__
    finally:
        if made:
            env.close()
    absorbing = _terminal_states(transitions, ends, start)
    transitions[absorbing] = np.eye(len(transitions))[absorbing][:, np.newaxis, :]
    rewards[absorbing] = 0.0
    return FiniteMDP(
        transitions,
        _rescaled(rewards, reward_range),
        start=start,
        horizon=horizon,
        discount=discount,
        name=f"{name}-h{horizon}",
    )


def load_gymnasium() -> Any:
    """Return the module `gymnasium`; the error names the extra if it is missing."""
    return needed("gymnasium", "gym")


def _table(table: Any) -> tuple[Floats, Floats, npt.NDArray[np.bool]]:
    """Return P(s' | s, a), the mean rewards, and which moves (s, a, s') end the episode."""
    states, actions = len(table), len(table[0])
    transitions = np.zeros((states, actions, states))
    rewards = np.zeros((states, actions))
    ends = np.zeros((states, actions, states), dtype=np.bool)
    goes_on = np.zeros_like(ends)
    for state in range(states):
        if len(table[state]) != actions:
            raise refuse(f"P[{state}]", table[state], f"a table of {actions} actions, as in state 0")
        for action in range(actions):
            for probability, after, reward, terminated in table[state][action]:
                transitions[state, action, after] += probability
                rewards[state, action] += probability * reward
                if probability > 0:
                    (ends if terminated else goes_on)[state, action, after] = True
    if (ends & goes_on).any():
        where = tuple(int(i) for i in np.argwhere(ends & goes_on)[0])
        raise InvalidInputError(f"a move of P must either end the episode or not, got both at {where}")
    return transitions, rewards, ends


def _terminal_states(transitions: Floats, ends: npt.NDArray[np.bool], start: Floats) -> npt.NDArray[np.bool]:
    """Return which of the reachable states are terminal."""
    going = start > 0
    ended = np.zeros_like(going)
    frontier = going
    while frontier.any():
        moves = transitions[frontier] > 0
        ended |= (moves & ends[frontier]).any(axis=(0, 1))
        reached = (moves & ~ends[frontier]).any(axis=(0, 1))
        frontier = reached & ~going
        going = going | reached
    if (going & ended).any():
        state = int(np.argmax(going & ended))
        raise InvalidInputError(
            f"the episode must always end in a terminal state, got state {state}, where it ends after "
            "some moves and goes on after others"
        )
    return ended


def _rescaled(rewards: Floats, reward_range: tuple[float, float] | None) -> Floats:
    if reward_range is not None:
        low, high = array("reward_range", reward_range, (2,)).tolist()
        if not low < high:
            raise refuse("reward_range", reward_range, "a pair (low, high) with low < high")
        if rewards.min() < low or rewards.max() > high:
            found = f"[{rewards.min():g}, {rewards.max():g}]"
            raise refuse("reward_range", reward_range, f"wide enough for the mean rewards, in {found}")
    elif rewards.min() >= 0.0 and rewards.max() <= 1.0:
        return rewards
    else:
        low, high = float(rewards.min()), float(rewards.max())
        high = high if high > low else low + 1.0  # a constant reward does not affect the choice
    scaled: Floats = np.clip((rewards - low) / (high - low), 0.0, 1.0)
    return scaled


IDS = {f"belated/{kind.__name__}-v0": name for name, kind in ENVIRONMENTS.items()}
"""The name of the environment behind each id. Keyword arguments of `gymnasium.make` are the settings of its class."""


def register_all() -> None:
    """Register every id that is not registered yet."""
    gymnasium = load_gymnasium()
    for id_, name in IDS.items():
        if id_ in gymnasium.registry:
            continue
        module = "belated.environments._finite_env"
        if name == "deepsea":
            gymnasium.register(id=id_, entry_point=f"{module}:DeepSeaEnv")
        else:
            gymnasium.register(id=id_, entry_point=f"{module}:NamedMDPEnv", kwargs={"environment": name})
