"""What is found out about a Gymnasium environment before it is played: actions, features, and the range of rewards."""

from __future__ import annotations

import hashlib
import pickle
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from belated._kernels.streams import stream
from belated._util.validate import array, integer, refuse
from belated.environments._finite import FiniteMDP
from belated.errors import BelatedError, InvalidInputError
from belated.features import Features, Seen, automatic, features_from_dict
from belated.types import FeatureMap

#: Random play, where something has to be learned beforehand: so many episodes, and so many steps at most.
RANDOM_EPISODES, RANDOM_STEPS = 20, 2_000


class RandomPlay:
    """Episodes of random actions, always with the same seeds; played only if somebody asks."""

    def __init__(self, env: Any, horizon: int) -> None:
        self._env, self._horizon = env, horizon

    @cached_property
    def _played(self) -> tuple[list[Any], list[float]]:
        observations: list[Any] = []
        rewards: list[float] = []
        space, rng = self._env.action_space, stream(0, "random play")
        for episode in range(RANDOM_EPISODES):
            observations.append(self._env.reset(seed=episode)[0])
            for _ in range(min(self._horizon, RANDOM_STEPS - len(rewards))):
                step = self._env.step(space.start + int(rng.integers(space.n)))
                observations.append(step[0])
                rewards.append(float(step[1]))
                if step[2] or step[3]:
                    break
        return observations, rewards

    @property
    def observations(self) -> list[Any]:
        return self._played[0]

    @property
    def rewards(self) -> list[float]:
        return self._played[1]


def checked_actions(space: Any) -> tuple[int, int]:
    """Return how many actions there are, and the number of the first."""
    from gymnasium import spaces

    if not isinstance(space, spaces.Discrete):
        raise refuse("the action space", space, "Discrete: an agent chooses one of finitely many actions")
    return int(space.n), int(space.start)


def checked_features(features: Any, seen: Seen) -> tuple[FeatureMap | None, FeatureMap]:
    """Return the feature map that was given, None if it is left to the library, and the one to be used."""
    seen.check()
    given = features_from_dict(features) if isinstance(features, Mapping) else features
    used = automatic(seen.space) if given is None else given
    if isinstance(used, Features):
        used = used.fitted(seen)
    if not hasattr(used, "size") or not hasattr(used, "encode"):
        raise refuse("features", features, "one of belated.features, or an object with size and encode")
    integer("the number of features", used.size, at_least=1)
    return given, used


def checked_range(reward_range: Any) -> tuple[float, float]:
    """Return a range that was given, the least reward below the largest."""
    low, high = array("reward_range", reward_range, (2,)).tolist()
    if not low < high:
        raise refuse("reward_range", reward_range, "a pair (low, high) with low < high")
    return low, high


def digest(thing: Any) -> str:
    """Return what tells one function or object from another that has no name either."""
    code = getattr(thing, "__code__", None)
    if code is not None:
        text = repr((code.co_code, code.co_consts, code.co_names)).encode()
    else:
        try:
            text = pickle.dumps(thing)
        except Exception:  # pickle raises nearly anything
            text = repr(thing).encode()
    return hashlib.sha256(re.sub(rb" at 0x[0-9a-f]+", b"", text)).hexdigest()


def described(features: FeatureMap) -> dict[str, Any]:
    """Return the plain values of a feature map, or a digest if it has none."""
    try:
        values: dict[str, Any] = features.to_dict()  # type: ignore[attr-defined]
        return values
    except (AttributeError, BelatedError):
        inner = getattr(features, "function", getattr(features, "transformer", features))
        return {"features": type(features).__name__, "size": features.size, "digest": digest(inner)}


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
