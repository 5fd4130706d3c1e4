"""The least and the largest reward of a step of a Gymnasium environment: known, or learned from random play."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from belated.environments._finite import FiniteMDP
from belated.errors import InvalidInputError

#: Of environments without a table, made with their usual settings. Zero is in each: that is what a terminal state pays.
KNOWN: dict[str, tuple[float, float]] = {
    "CartPole-v0": (0.0, 1.0),
    "CartPole-v1": (0.0, 1.0),
    "MountainCar-v0": (-1.0, 0.0),
    "Acrobot-v1": (-1.0, 0.0),
    "Blackjack-v1": (-1.0, 1.0),
}
#: Wrappers that leave rewards and observations alone.
_HARMLESS = ("OrderEnforcing", "PassiveEnvChecker", "TimeLimit")


def is_plain(env: Any) -> bool:
    """Tell whether nothing is wrapped around `env` that could change what it pays or shows."""
    while env is not env.unwrapped:
        if type(env).__name__ not in _HARMLESS or not type(env).__module__.startswith("gymnasium."):
            return False
        env = env.env
    return True


def is_ours(env: Any) -> bool:
    """Tell whether `env` is an environment of this library with nothing wrapped around it."""
    return type(env.unwrapped).__module__ == "belated.environments._finite_env" and is_plain(env)


def finite(env: Any) -> FiniteMDP | None:
    """Return the MDP behind an environment of this library, where it is small enough for tables."""
    mdp: FiniteMDP | None = env.unwrapped.mdp if is_ours(env) else None
    return mdp


def is_noisy(env: Any) -> bool:
    """Tell whether `env` adds noise of any size to its rewards."""
    return is_ours(env) and bool(env.unwrapped.noisy)


def known_range(env: Any) -> tuple[float, float] | None:
    """Return the range of the rewards if it is known, 0 included; else None."""
    core = env.unwrapped
    if not is_plain(env):
        return None
    if is_ours(env):
        return 0.0, 1.0
    if hasattr(core, "P"):
        paid = [reward for moves in core.P.values() for outcomes in moves.values() for _, _, reward, _ in outcomes]
        return _with_zero(paid)
    spec = env.spec
    if spec is None or spec.id not in KNOWN:
        return None
    from gymnasium import spec as registered

    usual = registered(spec.id).kwargs
    chosen = {key: value for key, value in spec.kwargs.items() if key != "render_mode"}
    return KNOWN[spec.id] if chosen == usual else None


def learned_range(rewards: Sequence[float]) -> tuple[float, float]:
    """Return the least and the largest of the rewards that were seen, 0 included."""
    if not np.isfinite(rewards).all():
        wrong = next(reward for reward in rewards if not np.isfinite(reward))
        raise InvalidInputError(f"rewards must be finite, got {wrong} in random play")
    low, high = _with_zero(rewards)
    if low == high:
        raise InvalidInputError(
            f"reward_range must be given, such as (0, 1): all {len(rewards)} rewards of random play were 0, got None"
        )
    return low, high


def _with_zero(rewards: Sequence[float]) -> tuple[float, float]:
    return float(min(0.0, *rewards)), float(max(0.0, *rewards))
