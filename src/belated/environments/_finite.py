"""`FiniteMDP`: a finite-horizon MDP with finitely many states and actions, known exactly."""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from belated._kernels.streams import stream
from belated._util.validate import (
    array,
    check_generator,
    flag,
    indices,
    integer,
    moderate,
    probabilities,
    refuse,
)
from belated.environments import _kernels as kernels
from belated.environments._kernels import World, cumulated
from belated.errors import InvalidInputError
from belated.types import Dynamics, Floats, Ints, Step, TablePolicy, TableProblem, Trajectory, checked_discount

LONGEST = 10**6
"""The maximum number of steps in an episode."""


class FiniteMDP:
    """A finite-horizon MDP given by its tables, all of them read-only.

    Parameters
    ----------
    transitions
        P(s' | s, a), shape (S, A, S) with `horizon` given, or (H, S, A, S).
    rewards
        Mean rewards within [0, 1], shape (S, A) or (H, S, A).
    features
        φ(s, a), shape (S, A, d); one-hot by default.
    start
        The first state (default 0), or a distribution over the states.
    horizon
        Steps per episode; needed if no table depends on the step.
    bernoulli
        Draw rewards as 0 or 1 with these means.
    name
        Used in labels and file names.
    known_dynamics
        Whether the agent knows the transitions and the start; rewards are never known.
    discount
        γ, within (0, 1]: the reward of step h is weighted by γ^h in values and for agents. Only some agents support it.

    Examples
    --------
    >>> stay_or_swap = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]
    >>> mdp = FiniteMDP(stay_or_swap, rewards=[[0, 0], [1, 0]], horizon=3)
    >>> mdp
    FiniteMDP('finite', states=2, actions=2, dimension=4, horizon=3)
    >>> mdp.optimal_value
    2.0
    >>> mdp.optimal_policy().actions.tolist()
    [[1, 0], [1, 0], [0, 0]]
    """

    _discount = 1.0
    _in_turn = False
    """Whether episode k starts in state k mod S."""
    _noise = 0.0
    """Standard deviation of Gaussian noise on the rewards."""
    _specification: Mapping[str, Any] | None = None
    """The plain values of a named environment."""

    def __init__(
        self,
        transitions: Any,
        rewards: Any,
        features: Any = None,
        start: Any = None,
        horizon: int | None = None,
        bernoulli: bool = False,
        name: str = "finite",
        known_dynamics: bool = False,
        discount: float = 1.0,
    ) -> None:
        self._discount = checked_discount(discount)
        self._transitions, self._rewards, self._horizon = checked_tables(transitions, rewards, horizon)
        states, actions = self._rewards.shape[1:]
        self._features = checked_features(features, states, actions)
        self._start = checked_start(start, states)
        self._bernoulli = flag("bernoulli", bernoulli)
        self._known_dynamics = flag("known_dynamics", known_dynamics)
        if not isinstance(name, str) or not name:
            raise refuse("name", name, "a non-empty string")
        self._name = name

    def __repr__(self) -> str:
        sizes = ("states", "actions", "dimension", "horizon")
        shown = ", ".join(f"{size}={getattr(self, size)}" for size in sizes)
        return f"{type(self).__name__}({self._name!r}, {shown}{', bernoulli=True' if self._bernoulli else ''})"

    def __getstate__(self) -> dict[str, Any]:
        derived = ("world", "problem", "_optimum", "_playing")
        return {key: value for key, value in self.__dict__.items() if key not in derived}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # unpickled arrays are writable, a different type for the compiler
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        self.__dict__.update(state)

    @property
    def name(self) -> str:
        return self._name

    @property
    def label(self) -> str:
        """The name, safe to use in a file name.

        >>> FiniteMDP([[[1]]], [[0.5]], horizon=1, name="my model/2").label
        'my-model-2'
        """
        return re.sub(r"[^A-Za-z0-9._-]+", "-", self._name)

    @property
    def states(self) -> int:
        return int(self._rewards.shape[1])

    @property
    def actions(self) -> int:
        return int(self._rewards.shape[2])

    @property
    def dimension(self) -> int:
        """Feature dimension, d."""
        return int(self._features.shape[2])

    @property
    def horizon(self) -> int:
        """Steps per episode, H."""
        return self._horizon

    @property
    def discount(self) -> float:
        """γ; 1 by default."""
        return self._discount

    @property
    def bernoulli(self) -> bool:
        """Whether rewards are drawn as 0 or 1."""
        return self._bernoulli

    @property
    def transitions(self) -> Floats:
        """P_h(s' | s, a), shape (H, S, A, S)."""
        return np.broadcast_to(self._transitions, (self.horizon, *self._transitions.shape[1:]))

    @property
    def rewards(self) -> Floats:
        """Mean rewards r_h(s, a), shape (H, S, A)."""
        return np.broadcast_to(self._rewards, (self.horizon, *self._rewards.shape[1:]))

    @property
    def features(self) -> Floats:
        """φ(s, a), shape (S, A, d)."""
        return self._features

    @property
    def start(self) -> Floats:
        """Distribution of the first state, shape (S,)."""
        return self._start

    @cached_property
    def _playing(self) -> threading.local:
        return threading.local()

    @cached_property
    def problem(self) -> TableProblem:
        """What an agent knows about this MDP."""
        dynamics = Dynamics(self._transitions, self._start) if self._known_dynamics else None
        return TableProblem(
            self._features,
            self._horizon,
            dynamics,
            homogeneous=same_at_every_step(self._transitions, axis=0) and same_at_every_step(self._variants, axis=1),
            reward_range=self._reward_range,
            discount=self._discount,
        )

    @property
    def _reward_range(self) -> tuple[float, float]:
        """The minimum and the maximum reward, at least [0, 1]; Gaussian noise has no bounds."""
        if self._noise > 0.0:
            return (-math.inf, math.inf)
        return (min(0.0, float(self._variants.min())), max(1.0, float(self._variants.max())))

    @property
    def _spread(self) -> Floats:
        """Standard deviation of the noise on the rewards of each state, (S,); (0,) without noise."""
        return np.full(self.states if self._noise else 0, self._noise)

    @property
    def draws(self) -> int | None:
        """Random numbers per episode; None if that varies, as with Gaussian noise."""
        return None if self._spread.size else 1 + self._horizon * (2 if self._bernoulli else 1)

    @property
    def variants(self) -> int:
        """The period G after which the rewards repeat; 1 if they never change."""
        return len(self._variants)

    @property
    def _variants(self) -> Floats:
        """Rewards (G, T, S, A); episode k has those of variant k mod G."""
        return self._rewards[np.newaxis]

    @cached_property
    def world(self) -> World:
        """The tables for compiled code."""
        noise = self._spread
        noise.flags.writeable = False
        return World(
            transitions=self._transitions,
            cumulative=cumulated(self._transitions),
            rewards=self._variants,
            start=cumulated(self._start),
            in_turn=self._in_turn,
            bernoulli=self._bernoulli,
            noise=noise,
            horizon=self._horizon,
            discount=self._discount,
        )

    @cached_property
    def _optimum(self) -> tuple[Floats, TablePolicy]:
        return self._best(self._rewards)

    def _best(self, means: Floats) -> tuple[Floats, TablePolicy]:
        """Return the optimal values and policy under the rewards `means` (T, S, A)."""
        values = np.empty((self.horizon + 1, self.states))
        actions = np.empty((self.horizon, self.states), dtype=np.int64)
        kernels.optimal_values(self.world, means, values, actions)
        values.flags.writeable = actions.flags.writeable = False
        return values, TablePolicy(actions)

    def optimal_values(self) -> Floats:
        """Return V*_h(s), shape (H+1, S), read-only; row H is zero."""
        return self._optimum[0]

    def optimal_policy(self) -> TablePolicy:
        """Return an optimal policy: the first best action of each step and state."""
        return self._optimum[1]

    @property
    def optimal_value(self) -> float:
        """V*_0 averaged over the start."""
        return float(self._start @ self._optimum[0][0])

    def comparator(self, episodes: int) -> TablePolicy:
        """Return the fixed policy that defines the regret of the first `episodes` episodes."""
        integer("episodes", episodes, at_least=1)
        return self.optimal_policy()

    def values(self, policy: TablePolicy, *, episode: int = 0) -> Floats:
        """Return the exact values V_h(s) of `policy`, shape (H+1, S); `episode` matters where rewards change.

        >>> mdp = FiniteMDP([[[1], [1]]], [[0.25, 0.75]], horizon=2)
        >>> mdp.values(TablePolicy(np.array([[0], [1]]))).tolist()
        [[1.0], [0.75], [0.0]]
        """
        values = np.empty((self.horizon + 1, self.states))
        actions = self._checked(policy).copy()  # read-only arrays would be compiled separately
        kernels.policy_values(self.world, integer("episode", episode, at_least=0), actions, values)
        return values

    def value(self, policy: TablePolicy) -> float:
        """Return the exact value of `policy`, averaged over the start.

        >>> mdp = FiniteMDP([[[1], [1]]], [[0.25, 0.75]], horizon=2)
        >>> mdp.value(TablePolicy(np.array([[0], [1]])))
        1.0
        """
        return float(self._start @ self.values(policy)[0])

    def first_state(self, rng: np.random.Generator, *, episode: int = 0) -> int:
        """Return the first state of `episode`; takes one random number."""
        check_generator("rng", rng)
        return int(kernels.first_state(self.world, integer("episode", episode, at_least=0), rng))

    def rollout(
        self, policy: TablePolicy, rng: np.random.Generator, *, episode: int = 0, start: int | None = None
    ) -> Trajectory:
        """Play one episode of `policy`, from `start` if given; see `draws` for the number of random numbers.

        >>> mdp = FiniteMDP([[[0, 1]], [[1, 0]]], [[0.5], [1]], horizon=3)
        >>> mdp.rollout(mdp.optimal_policy(), np.random.default_rng(0)).rewards.tolist()
        [0.5, 1.0, 0.5]
        """
        check_generator("rng", rng)
        table, episode = self._checked(policy), integer("episode", episode, at_least=0)
        if start is not None:
            integer("start", start, at_least=0, at_most=self.states - 1)
        states = np.empty(self.horizon + 1, dtype=np.int64)
        actions = np.empty(self.horizon, dtype=np.int64)
        rewards = np.empty(self.horizon)
        states[0] = self.first_state(rng, episode=episode) if start is None else start
        kernels.rollout(self.world, episode, table, rng, states, actions, rewards)
        return Trajectory(states, actions, rewards)

    def transition(
        self, step: int, state: int, action: int, rng: np.random.Generator, *, episode: int = 0
    ) -> tuple[int, float]:
        """Draw the next state and the reward of one step, with the same random numbers as `rollout`."""
        world = self.world
        slot = step if len(world.transitions) > 1 else 0
        reward = float(world.rewards[episode % len(world.rewards)][slot, state, action])
        after = int(kernels.first_above(world.cumulative[slot, state, action], rng.random()))
        if world.bernoulli:
            reward = 1.0 if rng.random() < reward else 0.0
        if world.noise.size:
            reward += float(world.noise[state]) * float(rng.standard_normal())
        return after, reward

    def reset(self, *, seed: int, episode: int) -> int:
        """Begin `episode` of the run with `seed` and return its first state.

        If every episode draws the same number of random numbers, they are those of the same episode in a run.
        """
        rng = stream(seed, "environment")
        if self.draws is not None:
            rng.bit_generator.advance(episode * self.draws)  # type: ignore[attr-defined]
        elif episode:
            rng = stream(seed, f"environment {episode}")
        state = self.first_state(rng, episode=episode)
        self._playing.episode = episode, 0, state, rng
        return state

    def step(self, action: int) -> Step:
        """Take an action in this thread's episode."""
        if not hasattr(self._playing, "episode"):
            raise InvalidInputError("reset must be called before step: no episode has begun in this thread")
        episode, step, state, rng = self._playing.episode
        integer("action", action, at_least=0, at_most=self.actions - 1)
        if step == self._horizon:
            raise InvalidInputError(f"step must be called at most {self._horizon} times per episode: it is over")
        after, reward = self.transition(step, state, action, rng, episode=episode)
        self._playing.episode = episode, step + 1, after, rng
        return Step(after, reward, False, step + 1 == self._horizon)

    def encode(self, observation: int) -> int:
        """Return the observation: it is the state."""
        return int(observation)

    def linearity(self, policy: TablePolicy | None = None) -> Linearity:
        """Return how far rewards and transitions are from linear in the features, and the resulting loss of value.

        The weighted errors are those of the pairs that `policy` visits; an optimal one by default.

        >>> found = FiniteMDP([[[1], [1]]], [[0.25, 0.75]], features=[[[1], [1]]], horizon=2).linearity()
        >>> found.reward_error, found.transition_error, found.visited_reward_error, found.value_lost
        (0.25, 0.0, 0.25, 1.0)
        """
        return linearity(self, self._transitions, policy)

    def normalised(self) -> FiniteMDP:
        """Return the same MDP with features divided by their maximum norm.

        >>> FiniteMDP([[[1], [1]]], [[0, 1]], features=[[[3], [4]]], horizon=2).normalised().features.tolist()
        [[[0.75], [1.0]]]
        """
        return FiniteMDP(
            self._transitions if len(self._transitions) > 1 else self._transitions[0],
            self._rewards if len(self._rewards) > 1 else self._rewards[0],
            features=unit_features(self._features),
            start=self._start,
            horizon=self._horizon,
            bernoulli=self._bernoulli,
            name=f"{self._name}-normalised",
            discount=self._discount,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that `environment_from_dict` reads; only named environments have them."""
        if self._specification is None:
            raise InvalidInputError(
                f"an MDP built from arrays has no plain specification, got {self!r}; "
                "use one of the named environments, such as RiverSwim"
            )
        return dict(self._specification)

    def describe(self) -> dict[str, Any]:
        """Return `to_dict` of a named environment, or a digest of the tables of one built from arrays."""
        try:
            return self.to_dict()
        except InvalidInputError:
            flags = [self._horizon, self._bernoulli, self._known_dynamics, self._in_turn, self._noise, self._discount]
            digest = hashlib.sha256(json.dumps(flags).encode())
            for table in (self._transitions, self._variants, self._start, self._features):
                digest.update(np.ascontiguousarray(table).tobytes())
            return {"tables": digest.hexdigest()}

    def _checked(self, policy: TablePolicy) -> Ints:
        if not isinstance(policy, TablePolicy):
            raise refuse("policy", policy, "a belated.types.TablePolicy")
        return indices("policy.actions", policy.actions, (self.horizon, self.states), self.actions)


def full_name(base: str, *unusual: str) -> str:
    """Return `base` followed by the settings that are not the defaults; empty ones are skipped.

    >>> full_name("riverswim-5", "h40", "")
    'riverswim-5-h40'
    """
    return "-".join([base, *filter(None, unusual)])


def unit_features(features: Floats) -> Floats:
    """Return `features` (S, A, d) divided by their maximum norm."""
    maximum = float(np.linalg.norm(features, axis=-1).max())
    if maximum == 0.0:
        raise InvalidInputError("features must not all be zero to be normalised")
    return features / maximum


def checked_tables(transitions: Any, rewards: Any, horizon: int | None) -> tuple[Floats, Floats, int]:
    """Return transitions (T, S, A, S) and rewards (T, S, A), T being 1 or H, and H."""
    given = array("transitions", transitions, (None,) * (4 if _dimensions(transitions) == 4 else 3))
    states, actions = given.shape[-3:-1]
    if given.shape[-1] != states:
        raise InvalidInputError(f"transitions must have shape (S, A, S) or (H, S, A, S), got {given.shape}")
    kernel = probabilities("transitions", given, given.shape)
    leading = (None,) if _dimensions(rewards) == 3 else ()
    means = array("rewards", rewards, (*leading, states, actions))
    if means.size and (means.min() < 0 or means.max() > 1):
        where = tuple(int(i) for i in np.argwhere((means < 0) | (means > 1))[0])
        raise InvalidInputError(f"rewards must be within [0, 1], got {means[where]} at index {where}")
    steps = {"transitions": len(kernel)} if kernel.ndim == 4 else {}
    if means.ndim == 3:
        steps["rewards"] = len(means)
    if horizon is not None:
        steps["horizon"] = integer("horizon", horizon, at_least=1, at_most=LONGEST)
    if not steps:
        raise refuse("horizon", horizon, "given when neither transitions nor rewards depend on the step")
    if len(set(steps.values())) > 1:
        found = ", ".join(f"{count} from {source}" for source, count in steps.items())
        raise InvalidInputError(f"the number of steps must agree, got {found}")
    count = next(iter(steps.values()))
    slots = count if kernel.ndim == 4 or means.ndim == 3 else 1
    return _stacked(kernel, slots, states, actions, states), _stacked(means, slots, states, actions), count


def _stacked(table: Floats, *shape: int) -> Floats:
    stacked = np.ascontiguousarray(np.broadcast_to(table, shape))
    stacked.flags.writeable = False
    return stacked


def same_at_every_step(table: Floats, axis: int) -> bool:
    """Whether a table is constant along `axis`."""
    return bool((table == table.take([0], axis)).all())


def _dimensions(value: Any) -> int:
    try:
        return np.ndim(value)
    except ValueError:  # ragged lists, which `array` rejects with a clear message
        return -1


def checked_features(features: Any, states: int, actions: int) -> Floats:
    """Return the feature table, one-hot if none is given."""
    if features is None:
        features = np.eye(states * actions).reshape(states, actions, -1)
    table = moderate("features", array("features", features, (states, actions, None)))
    integer("the number d of features", table.shape[2], at_least=1)
    return table


def checked_start(start: Any, states: int) -> Floats:
    """Return the distribution of the first state; state 0 if none is given."""
    if start is None or np.isscalar(start):
        start = np.eye(states)[integer("start", 0 if start is None else start, at_least=0, at_most=states - 1)]
    return probabilities("start", start, (states,))


class Linearity(NamedTuple):
    """Errors of the least-squares fit in the features, all 0 up to rounding for a linear MDP."""

    reward_error: float
    """The maximum error of a mean reward."""
    transition_error: float
    """The maximum error of a transition probability."""
    visited_reward_error: float
    """The mean absolute error of the rewards, weighted by how often a policy visits each step, state and action."""
    visited_transition_error: float
    """The same for transitions, with the total variation (half the sum of absolute errors) of each pair."""
    value_lost: float
    """V* minus the value of the policy that is optimal for the fit: the cost of planning with these features, even with
    unlimited data."""


def linearity(mdp: FiniteMDP, transitions: Floats, policy: TablePolicy | None) -> Linearity:
    """Return the errors of fitting the rewards of `mdp` and `transitions`, weighted by the visits of `policy`."""
    fit = linear_fit(mdp.features, mdp._rewards, transitions)
    visits = visited(mdp, mdp.optimal_policy() if policy is None else TablePolicy(mdp._checked(policy)))
    planned = planned_with(mdp.features, fit, mdp.horizon, mdp._reward_range)
    # V^π = Σ_h γ^h Σ d_h(s, a) r_h(s, a), with the rewards that were fitted
    discounts = mdp.discount ** np.arange(mdp.horizon)[:, np.newaxis, np.newaxis]
    value_lost = mdp.optimal_value - float((discounts * visited(mdp, planned) * mdp.rewards).sum())
    weights = visits / len(visits)
    return Linearity(
        float(np.abs(fit.reward_errors).max()),
        float(np.abs(fit.transition_errors).max()),
        float((weights * np.abs(fit.reward_errors)).sum()),
        float((weights * np.abs(fit.transition_errors).sum(axis=-1) / 2).sum()),
        max(0.0, value_lost),
    )


class Fit(NamedTuple):
    """A least-squares fit of the rewards and transitions of each step, and its errors."""

    reward_weights: Floats
    """θ_h, shape (T, d); T is 1 if all steps are the same."""
    transition_weights: Floats
    """μ_h(s'), shape (T, d, S')."""
    reward_errors: Floats
    """φᵀθ_h − r_h, shape (T, S, A)."""
    transition_errors: Floats
    """φᵀμ_h − P_h, shape (T, S, A, S')."""


def linear_fit(features: Floats, rewards: Floats, transitions: Floats) -> Fit:
    """Fit `rewards` (T, S, A) and `transitions` (T, S, A, S') by `features` (S, A, d)."""
    flat = features.reshape(-1, features.shape[-1])

    def fitted(targets: Floats) -> tuple[Floats, Floats]:
        steps, pairs = len(targets), len(flat)
        columns = np.moveaxis(targets.reshape(steps, pairs, -1), 1, 0).reshape(pairs, -1)
        weights = np.asarray(np.linalg.lstsq(flat, columns, rcond=None)[0], np.float64)
        missed: Floats = flat @ weights - columns
        errors = np.moveaxis(missed.reshape(pairs, steps, -1), 1, 0).reshape(targets.shape)
        return np.moveaxis(weights.reshape(flat.shape[1], steps, -1), 1, 0), errors

    theta, reward_errors = fitted(rewards)
    mu, transition_errors = fitted(transitions)
    return Fit(theta[..., 0], mu, reward_errors, transition_errors)


def visited(mdp: FiniteMDP, policy: TablePolicy) -> Floats:
    """Return the occupancy of `policy`: P(s_h = s, a_h = a), shape (H, S, A)."""
    shares, states = np.zeros((mdp.horizon, mdp.states, mdp.actions)), mdp.start
    for h, actions in enumerate(policy.actions):
        shares[h, np.arange(mdp.states), actions] = states
        if h + 1 < mdp.horizon:
            states = np.einsum("sa,sat->t", shares[h], mdp.transitions[h])  # d_{h+1}(s') = Σ d_h(s, a) P_h(s' | s, a)
    return shares


def planned_with(features: Floats, fit: Fit, horizon: int, reward_range: tuple[float, float]) -> TablePolicy:
    """Return the optimal policy of `fit`: Q_h = φᵀ(θ_h + μ_h V_{h+1}), V clipped to the range of returns."""
    low, high = reward_range
    actions, values = np.zeros((horizon, len(features)), np.int64), np.zeros(len(features))
    for h in reversed(range(horizon)):
        theta = fit.reward_weights[min(h, len(fit.reward_weights) - 1)]
        mu = fit.transition_weights[min(h, len(fit.transition_weights) - 1)]
        q = features @ (theta + mu @ values if h + 1 < horizon else theta)
        actions[h] = q.argmax(axis=1)
        values = np.clip(q.max(axis=1), (horizon - h) * low, (horizon - h) * high)
    return TablePolicy(actions)
