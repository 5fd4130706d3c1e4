"""What a `GymEnvironment` finds out about an environment before it is played."""

from __future__ import annotations

import hashlib
import pickle
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from belated._kernels.streams import stream
from belated._util.validate import array, integer, refuse
from belated.errors import BelatedError
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
        """What was observed."""
        return self._played[0]

    @property
    def rewards(self) -> list[float]:
        """What was paid."""
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
