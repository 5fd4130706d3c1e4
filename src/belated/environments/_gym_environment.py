"""`GymEnvironment`: any Gymnasium environment with discrete actions, as a simulator."""

from __future__ import annotations

import hashlib
import pickle
import re
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from typing import Any
from zlib import crc32

import numpy as np

from belated._kernels.streams import stream
from belated._util.plugins import Kind, name_of
from belated._util.validate import LARGEST_NUMBER, REWARD_SLACK, array, choice, integer, moderate, refuse
from belated.environments._asked import asked, checked_reset, checked_step
from belated.environments._finite import FiniteMDP, full_name
from belated.environments._gym_bridge import IDS, from_gymnasium, load_gymnasium, register_all
from belated.environments._registry import environment_from_dict
from belated.errors import BelatedError, InvalidInputError
from belated.features import Adaptive, Features, Seen, automatic, features_from_dict
from belated.features._adaptive import CHOICES
from belated.features._base import Fault, check_space, fault_finder
from belated.types import (
    FeatureMap,
    Floats,
    SimulatorProblem,
    SparseRows,
    SparseVector,
    Step,
    Trajectory,
    checked_discount,
)

#: Random play, to infer what is not declared: number of episodes, and maximum number of steps.
RANDOM_EPISODES, RANDOM_STEPS = 20, 2_000


class RandomPlay:
    """Episodes of random actions with fixed seeds, played only when needed."""

    def __init__(self, environment: GymEnvironment, env: Any) -> None:
        self._environment, self._env, self.horizon = environment, env, environment.horizon

    @cached_property
    def _played(self) -> tuple[list[Any], list[float]]:
        observations: list[Any] = []
        rewards: list[float] = []
        asked, env, rng = self._environment, self._env, stream(0, "random play")
        for episode in range(RANDOM_EPISODES):
            observations.append(deepcopy(asked.inside(asked.asked_reset(env, seed=episode))))
            for _ in range(min(self.horizon, RANDOM_STEPS - len(rewards))):
                step = asked.asked_step(env, int(rng.integers(asked.actions)), " in random play")
                observations.append(deepcopy(asked.inside(step.observation)))  # it may be overwritten
                rewards.append(step.reward)
                if step.terminated or step.truncated:
                    break
        return observations, rewards

    @property
    def observations(self) -> list[Any]:
        return self._played[0]

    @property
    def rewards(self) -> list[float]:
        return self._played[1]


def spaces_of(env: Any) -> tuple[Any, Any]:
    """Return the action and observation spaces; None if the environment does not declare them."""
    return asked(
        f"the spaces of {type(env).__name__}",
        lambda: (getattr(env, "action_space", None), getattr(env, "observation_space", None)),
    )


def checked_actions(space: Any) -> tuple[int, int]:
    """Return the number of actions, and the number of the first action."""
    from gymnasium import spaces

    if not isinstance(space, spaces.Discrete):
        raise refuse("the action space", space, "Discrete: an agent chooses one of finitely many actions")
    return int(space.n), int(space.start)


def checked_features(features: Any, seen: Seen) -> tuple[FeatureMap | None, FeatureMap]:
    """Return the given feature map, None if it is chosen automatically, and the one to use."""
    seen.check()
    given = features_from_dict(features) if isinstance(features, Mapping) else features
    if isinstance(features, str):
        given = Adaptive(maps=choice("features", features, CHOICES, other="a feature map"))
    used = automatic(seen.space) if given is None else given
    if isinstance(used, Features):
        used = used.fitted(seen)
    if not hasattr(used, "size") or not hasattr(used, "encode"):
        raise refuse("features", features, "one of belated.features, or an object with size and encode")
    integer("the number of features", used.size, at_least=1)
    return given, used


def checked_range(reward_range: Any) -> tuple[float, float]:
    """Validate a given range: the minimum reward must be below the maximum."""
    given = array("reward_range", reward_range, (2,))
    low, high = moderate("reward_range", given, LARGEST_NUMBER).tolist()
    if not low < high:
        raise refuse("reward_range", reward_range, "a pair (low, high) with low < high")
    return low, high


def digest(thing: Any) -> str:
    """Return a digest that identifies an unnamed function or object."""
    code = getattr(thing, "__code__", None)
    if code is not None:
        text = repr((code.co_code, code.co_consts, code.co_names)).encode()
    else:
        try:
            text = pickle.dumps(thing)
        except Exception:  # pickle may raise anything
            text = repr(thing).encode()
    return hashlib.sha256(re.sub(rb" at 0x[0-9a-f]+", b"", text)).hexdigest()


def described(features: FeatureMap) -> dict[str, Any]:
    """Return the plain values of a feature map, or a digest."""
    try:
        values: dict[str, Any] = features.to_dict()  # type: ignore[attr-defined]
        return values
    except (AttributeError, BelatedError):
        inner = getattr(features, "function", getattr(features, "transformer", features))
        return {"features": type(features).__name__, "size": features.size, "digest": digest(inner)}


#: Reward ranges of environments without a table, with default settings. Each includes zero, the value of a terminal
#: state.
KNOWN: dict[str, tuple[float, float]] = {
    "CartPole-v0": (0.0, 1.0),
    "CartPole-v1": (0.0, 1.0),
    "MountainCar-v0": (-1.0, 0.0),
    "Acrobot-v1": (-1.0, 0.0),
    "Blackjack-v1": (-1.0, 1.0),
}
#: Wrappers that do not change rewards and observations.
_HARMLESS = ("OrderEnforcing", "PassiveEnvChecker", "TimeLimit")


def is_plain(env: Any) -> bool:
    """Whether no wrapper of `env` could change rewards or observations."""
    while env is not env.unwrapped:
        if type(env).__name__ not in _HARMLESS or not type(env).__module__.startswith("gymnasium."):
            return False
        env = env.env
    return True


def is_ours(env: Any) -> bool:
    """Whether `env` is an unwrapped environment of this library."""
    return type(env.unwrapped).__module__ == "belated.environments._finite_env" and is_plain(env)


def finite(env: Any) -> FiniteMDP | None:
    """Return the MDP of an environment of this library, if it is small enough for tables."""
    mdp: FiniteMDP | None = env.unwrapped.mdp if is_ours(env) else None
    return mdp


def is_noisy(env: Any) -> bool:
    """Whether `env` adds unbounded noise to its rewards."""
    return is_ours(env) and bool(env.unwrapped.noisy)


def known_range(env: Any) -> tuple[float, float] | None:
    """Return the range of the rewards, including 0, if it is known; else None."""
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
    """Return the minimum and maximum of the observed rewards, including 0."""
    low, high = _with_zero(rewards)
    if low == high:
        raise InvalidInputError(
            f"reward_range must be given, such as (0, 1): all {len(rewards)} rewards of random play were 0, got None"
        )
    return low, high


def _with_zero(rewards: Sequence[float]) -> tuple[float, float]:
    return float(min(0.0, *rewards)), float(max(0.0, *rewards))


_PLAIN = bool | int | float | str | None

FACTORY = Kind(
    field="factory",
    group="belated.environments",
    ours={},
    expected="a gymnasium.Env",
    fits=lambda made: isinstance(made, load_gymnasium().Env),
    fits_class=lambda kind: issubclass(kind, load_gymnasium().Env),
)
"""Factories of Gymnasium environments, in the field `factory` of a specification."""


class GymEnvironment:
    """A Gymnasium environment, given by an id or a factory function, with `kwargs` for either.

    Actions must be `Discrete`; observations `Discrete`, `MultiDiscrete`, `MultiBinary`, `Box`, `Text`, or `Tuple` or
    `Dict` of these. For each episode the environment is reset with a seed derived from the run's seed and the episode
    number, so that episodes do not depend on earlier ones.

    Missing arguments are inferred when the object is created:

    - `horizon`: the step limit that the environment declares. Truncation at this limit is not termination. (For an
    environment of this library it is the setting of that name, if it has one.)
    - `features`: `belated.features.automatic`, which does not depend on the declared bounds of the space. With
    "learned" they are those of a network in any case. A map without ranges gets the bounds of the space or, if there
    are none, the minimum and maximum over 20 episodes of random play (at most 2 000 steps) with fixed seeds; values
    beyond are clipped.
    - `reward_range`: known for Gymnasium's classic control and toy text and for the environments of this library;
    otherwise the minimum and maximum reward of the same random play, including 0. If the range is given or known,
    rewards outside are rejected; if it was inferred, they are accepted.

    `discount` is γ, within (0, 1]: the reward of step h is weighted by γ^h for agents, and in exact values if there is
    a table. Only some agents support it. Returns in rows are undiscounted.

    >>> car = GymEnvironment("MountainCar-v0")
    >>> car
    GymEnvironment('MountainCar-v0', actions=3, horizon=200, features='automatic', reward_range=(-1.0, 0.0))
    """

    actions: int
    """Number of actions, A."""
    horizon: int
    """Steps after which an episode is truncated, H."""
    features: FeatureMap
    """The fitted feature map."""
    reward_range: tuple[float, float]
    """Minimum and maximum reward of one step."""
    discount: float
    """γ; 1 by default."""

    def __init__(
        self,
        id_or_factory: str | Callable[..., Any],
        *,
        horizon: int | None = None,
        features: FeatureMap | Mapping[str, Any] | str | None = None,
        reward_range: tuple[float, float] | None = None,
        discount: float = 1.0,
        **kwargs: Any,
    ) -> None:
        if not isinstance(id_or_factory, str) and not callable(id_or_factory):
            raise refuse("id_or_factory", id_or_factory, "an environment's id, or a function that makes it")
        self._source, self._kwargs = id_or_factory, kwargs
        self._given_horizon = None if horizon is None else integer("horizon", horizon, at_least=1)
        self.discount = checked_discount(discount)
        self._local = threading.local()
        self._told = False
        env = self._env
        mdp = finite(env)
        if mdp is not None and self.discount not in (1.0, mdp.discount):
            raise refuse("discount", discount, f"left out: {self.name} has its own, {mdp.discount:g}")
        self.horizon = self._find_horizon(env)
        self._spaces = spaces_of(env)
        try:
            self.actions, self._first_action = checked_actions(self._spaces[0])
            check_space(self._spaces[1])
        except InvalidInputError as error:
            raise InvalidInputError(f"{self.name} cannot be played: {error}") from None
        played = RandomPlay(self, env)
        seen = Seen(self._spaces[1], lambda: played.observations, self.actions)
        self._given_features, self.features = checked_features(features, seen)
        self._given_range = None if reward_range is None else checked_range(reward_range)
        stated = self._given_range or known_range(env)
        self.reward_range = learned_range(played.rewards) if stated is None else stated
        self._stated = stated is not None and not is_noisy(env)

    def __repr__(self) -> str:
        features = self.features.maps if isinstance(self.features, Adaptive) else self.features.size
        shown = f"actions={self.actions}, horizon={self.horizon}, features={features!r}"
        return f"GymEnvironment({self.name!r}, {shown}, reward_range={self.reward_range})"

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the created environments; raise an error if they cannot be recreated elsewhere."""
        try:
            pickle.dumps((self._source, self._kwargs))
        except Exception as error:  # pickle may raise anything
            raise InvalidInputError(
                f"id_or_factory must be an id, or a function that can be imported by name, to be copied to another "
                f"process, got {self._source!r}: {error}"
            ) from None
        left_out = ("_local", "table", "problem", "_fault")
        return {key: value for key, value in self.__dict__.items() if key not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _local=threading.local())

    @property
    def _env(self) -> Any:
        if not hasattr(self._local, "env"):
            self._local.env = self._make()
        return self._local.env

    def _make(self) -> Any:
        gymnasium = load_gymnasium()
        if not isinstance(self._source, str):
            make = self._source
            env = asked(f"id_or_factory {self.name}", lambda: make(**self._kwargs))
        else:
            register_all()
            limit = "horizon" if self._source in IDS else "max_episode_steps"
            given = {} if self._given_horizon is None else {limit: self._given_horizon}
            try:
                env = gymnasium.make(self._source, disable_env_checker=True, **given, **self._kwargs)
            except (gymnasium.error.Error, ImportError, TypeError) as error:
                raise InvalidInputError(f"id_or_factory {self._source!r} cannot be made: {error}") from None
        if not isinstance(env, gymnasium.Env):
            raise refuse("id_or_factory", env, "an id or function that makes a gymnasium.Env")
        if hasattr(self, "_spaces") and spaces_of(env) != self._spaces:
            raise refuse(f"the spaces of {self.name}", spaces_of(env), f"{self._spaces}, as when it was first made")
        return env

    def _find_horizon(self, env: Any) -> int:
        if is_ours(env):
            own = int(env.unwrapped.horizon)
            if self._given_horizon not in (None, own):
                raise refuse("horizon", self._given_horizon, f"left out: {self.name} has its own, {own}")
            return own
        stated = self._given_horizon or getattr(env.spec, "max_episode_steps", None)
        if stated is None:
            raise refuse(
                "horizon", None, f"given, since {self.name} has no limit of steps after which an episode is cut"
            )
        return int(stated)

    @property
    def name(self) -> str:
        """The id, or the name of the factory."""
        if isinstance(self._source, str):
            return self._source
        return str(getattr(self._source, "__name__", type(self._source).__name__))

    @property
    def label(self) -> str:
        """The name and the chosen settings, safe to use in a file name."""
        chosen = [f"{key}={value}" for key, value in sorted(self._kwargs.items())]
        cut = f"h{self._given_horizon}" if self._given_horizon is not None else ""
        features = self._given_features
        kind = "" if features is None else getattr(features, "kind", type(features).__name__)
        counts = f"discount={self.discount:g}" if self.discount < 1.0 else ""
        return re.sub(r"[^A-Za-z0-9._+=-]+", "-", full_name(self.name, *chosen, cut, counts, kind)).strip("-")

    @cached_property
    def problem(self) -> SimulatorProblem:
        """What an agent knows about this environment when it plays on features."""
        mdp = finite(self._env)
        return SimulatorProblem(
            self.features,
            self.horizon,
            actions=self.actions,
            reward_range=self.reward_range,
            discount=self.discount if mdp is None else mdp.discount,
            homogeneous=mdp is None or len(mdp.world.transitions) == mdp.variants == 1,
            learned_range=not self._stated,
        )

    @cached_property
    def _fault(self) -> Callable[[Any], Fault | None]:
        return fault_finder(self._spaces[1])

    def reset(self, *, seed: int, episode: int) -> Any:
        """Reset for `episode` of the run with `seed`, and return the first observation."""
        env, mdp = self._env, finite(self._env)
        seed, episode = integer("seed", seed, at_least=0), integer("episode", episode, at_least=0)
        self._local.place = episode, 0
        if mdp is not None and mdp.draws is not None:
            # the random numbers of `FiniteMDP.rollout` in a run with this seed: the same number for each episode
            rng = stream(seed, "environment")
            rng.bit_generator.advance(episode * mdp.draws)  # type: ignore[attr-defined]
            env.unwrapped.np_random = rng
            return self.asked_reset(env, options={"episode": episode})
        options = {"episode": episode} if is_ours(env) else None
        return self.asked_reset(env, seed=episode_seed(seed, episode), options=options)

    def step(self, action: int) -> Step:
        """Take an action; raise `InvalidInputError` for a reward that is not finite or outside a stated range."""
        env = self._env
        episode, step = getattr(self._local, "place", (None, -1))
        if step < 0:
            over = "the episode is over" if episode is not None else "there was no reset in this thread"
            raise InvalidInputError(f"step of {self.name} must come after a reset, but {over}")
        action = integer("the action", action, at_least=0, at_most=self.actions - 1)
        where = f" (episode {episode}, step {step})"
        found = self.asked_step(env, action, where)
        self._local.place = episode, -1 if found.terminated or found.truncated else step + 1
        low, high = self.reward_range
        slack = REWARD_SLACK * (high - low)
        if self._stated and not low - slack <= found.reward <= high + slack:
            raise refuse(f"a reward of {self.name}{where}", found.reward, f"within {self.reward_range}")
        if is_ours(env):  # it terminates at its step limit, which is a truncation here
            return found._replace(terminated=False, truncated=found.terminated or found.truncated)
        return found

    def encode(self, observation: Any) -> SparseVector | SparseRows:
        """Return the features of an observation; raise `InvalidInputError` if it is invalid."""
        return self.features.encode(self.inside(observation))

    def asked_reset(self, env: Any, **given: Any) -> Any:
        """Return the first observation, checked."""
        return checked_reset(self.name, asked(f"reset of {self.name}", lambda: env.reset(**given)))[0]

    def asked_step(self, env: Any, action: int, where: str) -> Step:
        """Return the answer to an action, checked."""
        taken = self._first_action + action
        return checked_step(self.name, asked(f"step of {self.name}", lambda: env.step(taken)), where)[0]

    def inside(self, observation: Any) -> Any:
        """Return a valid observation; raise `InvalidInputError` if it is invalid.

        Real numbers may be outside the bounds of their space, which is reported once by a warning.
        """
        fault = self._fault(observation)
        if fault is not None and (fault.fatal or not self._told):
            episode, step = getattr(self._local, "place", (None, -1))
            where = "in random play" if episode is None else f"episode {episode}, {_moment(step)}"
            said = f"an observation of {self.name} must be in its space, got {fault.message} ({where})"
            if fault.fatal:
                raise InvalidInputError(said)
            self._told = True
            warnings.warn(f"{said}; it is used as it is, and further ones are not reported", stacklevel=2)
        return observation

    @cached_property
    def table(self) -> FiniteMDP | None:
        """The same environment as a table, if it has one: for exact values, and for agents that need a table.

        Its rewards are (r - low) / (high - low) with the `reward_range`, unless that is (0, 1).
        """
        env = self._env
        mdp = finite(env)
        if mdp is not None:
            return mdp if self.reward_range == (0.0, 1.0) else None
        if not is_plain(env) or not hasattr(env.unwrapped, "P"):
            return None
        try:
            return from_gymnasium(env, self.horizon, self.reward_range, self.discount)
        except InvalidInputError:  # a table without consistent terminal states
            return None

    @property
    def own_table(self) -> FiniteMDP | None:
        """The `table` of an environment of this library, unless features were given; it is played directly."""
        return self.table if self._given_features is None and is_ours(self._env) else None

    @property
    def optimal_value(self) -> float | None:
        """The optimal value from the start, if there is a table."""
        return None if self.table is None else float(self.table.start @ self.in_rewards(self.table.optimal_values())[0])

    def in_rewards(self, values: Floats) -> Floats:
        """Convert values (H+1, S) of the `table` to the scale of this environment's own rewards."""
        low, high = self.reward_range
        weights = self.discount ** np.arange(self.horizon)
        left = np.append(np.cumsum(weights)[::-1], 0.0)[:, np.newaxis]  # Σγⁱ over the steps to go
        return values * (high - low) + low * left

    def tabulated(self, played: Trajectory) -> Trajectory:
        """Convert an episode to one of the `table`: extended to the horizon in its terminal state."""
        low, high = self.reward_range
        missing = self.horizon - len(played.actions)
        states = [int(state.indices[0]) for state in played.states]
        rewards = np.concatenate([played.rewards, np.zeros(missing)])
        return Trajectory(
            np.array([*states, *[states[-1]] * missing]),
            np.concatenate([played.actions, np.zeros(missing, np.int64)]),
            rewards if (low, high) == (0.0, 1.0) else (rewards - low) / (high - low),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values from which `from_dict` makes the same environment."""
        given: dict[str, Any] = {"environment": "gymnasium"}
        if isinstance(self._source, str):
            given["id"] = self._source
        else:
            given["factory"] = name_of(self._source)
            if given["factory"] is None:
                raise refuse("id_or_factory", self._source, "an id, or a function with a name to import, to be saved")
        if self._given_features is not None:
            if not isinstance(self._given_features, Features):
                raise refuse("features", self._given_features, "one of belated.features, to be saved")
            given["features"] = self._given_features.to_dict()
        return given | self._settings()

    def _settings(self) -> dict[str, Any]:
        for key, value in self._kwargs.items():
            if not isinstance(value, _PLAIN):
                raise refuse(key, value, "a number, a string, or True or False, to be saved")
        return {
            **({"horizon": self._given_horizon} if self._given_horizon is not None else {}),
            **({"reward_range": list(self._given_range)} if self._given_range is not None else {}),
            **({"discount": self.discount} if self.discount < 1.0 else {}),
            **({"kwargs": self._kwargs} if self._kwargs else {}),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GymEnvironment:
        """Return the environment described by plain values.

        The fields are `id` or `factory` ("package.module:name" of a class derived from `gymnasium.Env`, or of a
        function that is annotated with one), and `horizon`, `features`, `reward_range`, `discount` and `kwargs`, which
        may be left out.
        """
        settings = {key: value for key, value in values.items() if key != "environment"}
        known = ("id", "factory", "horizon", "features", "reward_range", "discount", "kwargs")
        unknown = sorted(set(settings) - set(known))
        if unknown:
            raise InvalidInputError(f"'gymnasium' has the fields {', '.join(known)}, got {unknown[0]!r}")
        if ("id" in settings) == ("factory" in settings):
            raise InvalidInputError("'gymnasium' needs either the field 'id' or the field 'factory'")
        kwargs = settings.pop("kwargs", {})
        if not isinstance(kwargs, Mapping):
            raise refuse("kwargs", kwargs, "a table")
        source = settings.pop("id", None)
        if source is None:
            source = FACTORY.imported(settings.pop("factory"))
        return cls(source, **settings, **kwargs)

    def describe(self) -> dict[str, Any]:
        """Return everything that the rows of a run depend on: arguments (or digests) and inferred settings."""
        try:
            given = self.to_dict()
        except InvalidInputError:
            given = {"environment": "gymnasium", "given": digest(self._source), **self._settings()}
        found = {"horizon": self.horizon, "reward_range": list(self.reward_range)}
        return {**given, "found": {**found, "features": described(self.features)}}


def _moment(step: int) -> str:
    return "at its end" if step < 0 else f"step {step}"


def episode_seed(seed: int, episode: int) -> int:
    """Return the seed with which an environment is reset for an episode of a run.

    >>> episode_seed(0, 1) == episode_seed(0, 1), episode_seed(0, 1) == episode_seed(1, 0)
    (True, False)
    """
    key = (crc32(b"environment"), episode)
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1)[0])


def any_environment_from_dict(specification: Mapping[str, Any]) -> FiniteMDP | GymEnvironment:
    """Return the environment described by `specification`: a table or a simulator.

    >>> any_environment_from_dict({"environment": "gymnasium", "id": "CartPole-v1", "horizon": 200}).horizon
    200
    """
    if isinstance(specification, Mapping) and specification.get("environment") == "gymnasium":
        return GymEnvironment.from_dict(specification)
    return environment_from_dict(specification, also=["gymnasium"])
