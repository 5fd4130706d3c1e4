"""Bandits, environments of one step whose states are contexts: from arrays (`Bandit`) or random (`LinearBandit`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated._kernels.streams import stream
from belated._util.validate import array, choice, flag, integer, real, refuse
from belated.environments._finite import FiniteMDP, Linearity, full_name, linearity, unit_features
from belated.types import Floats, TablePolicy

#: Default number of action sets when they are not fixed.
CONTEXTS = 1000
#: Default standard deviation of the noise of linear rewards.
NOISE = 0.5
#: Norm of θ* for logistic rewards, whose means then lie between 0.047 and 0.953.
STEEPNESS = 3.0


class Bandit(FiniteMDP):
    """A contextual bandit: in each round a context, one action, one reward.

    Algorithms for MDPs cap action values at 1, so they cannot distinguish larger means.

    Parameters
    ----------
    features
        φ(context, action), shape (contexts, actions, d).
    rewards
        Mean rewards, shape (contexts, actions); within [0, 1] with `bernoulli`.
    in_turn
        Round k has context k mod contexts instead of a uniformly drawn one.
    bernoulli
        Draw rewards as 0 or 1.
    noise
        Standard deviation of Gaussian noise on the rewards.
    name
        Used in labels and file names.

    Examples
    --------
    >>> two_arms = Bandit(features=[[[1, 0], [0, 1]]], rewards=[[0.3, 0.6]], bernoulli=True)
    >>> two_arms
    Bandit('bandit', states=1, actions=2, dimension=2, horizon=1, bernoulli=True)
    >>> two_arms.optimal_value
    0.6
    """

    def __init__(
        self,
        features: Any,
        rewards: Any,
        in_turn: bool = False,
        bernoulli: bool = False,
        noise: float = 0.0,
        name: str = "bandit",
    ) -> None:
        self._features = array("features", features, (None, None, None))
        contexts, actions, dimension = self._features.shape
        integer("the number of contexts in features", contexts, at_least=1)
        integer("the number of actions in features", actions, at_least=1)
        integer("the number d of features", dimension, at_least=1)
        means = array("rewards", rewards, (contexts, actions))
        self._in_turn = flag("in_turn", in_turn)
        self._bernoulli = flag("bernoulli", bernoulli)
        self._noise = real("noise", noise, at_least=0)
        if self._bernoulli and (means.min() < 0 or means.max() > 1):
            where = tuple(int(i) for i in np.argwhere((means < 0) | (means > 1))[0])
            raise refuse(f"rewards[{where[0]}, {where[1]}]", float(means[where]), "within [0, 1] with bernoulli")
        if self._bernoulli and self._noise:
            raise refuse("noise", noise, "0 with bernoulli, whose rewards are 0 or 1")
        if not isinstance(name, str) or not name:
            raise refuse("name", name, "a non-empty string")
        self._name = name
        self._horizon, self._known_dynamics = 1, False
        self._rewards = means[np.newaxis]
        # The next state does not matter: "state 0" for all takes S·A numbers, not S·A·S.
        self._transitions = np.ones((1, contexts, actions, 1))
        self._transitions.flags.writeable = False
        self._start = array("start", np.full(contexts, 1.0 / contexts), (contexts,))

    @property
    def transitions(self) -> Floats:
        """Ones, shape (1, contexts, actions, 1): the only step has no next state."""
        return self._transitions

    @property
    def noise(self) -> float:
        return self._noise

    def linearity(self, policy: TablePolicy | None = None) -> Linearity:
        """Return how far the mean rewards are from linear in the features.

        >>> found = Bandit([[[1], [1]]], [[0.25, 0.75]]).linearity()
        >>> found.reward_error, found.transition_error, found.value_lost
        (0.25, 0.0, 0.5)
        """
        return linearity(self, np.zeros((1, self.states, self.actions, 1)), policy)

    def normalised(self) -> Bandit:
        """Return the same bandit with features divided by their maximum norm.

        >>> Bandit([[[3], [4]]], [[0, 1]]).normalised().features.tolist()
        [[[0.75], [1.0]]]
        """
        return Bandit(
            unit_features(self._features),
            self._rewards[0],
            in_turn=self._in_turn,
            bernoulli=self._bernoulli,
            noise=self._noise,
            name=f"{self._name}-normalised",
        )


class LinearBandit(Bandit):
    """Random actions in the unit ball, and rewards that depend only on xᵀθ*.

    θ* is uniform on the unit sphere and every action x uniform in the unit ball of `dimension` dimensions. There is
    one set of `actions` actions (`sets="fixed"`), or there are `contexts` of them (default 1000), of which each round
    draws one (`"random"`) or takes the next (`"changing"`). `reward` is the reward model:

    - `"linear"`: xᵀθ*, in [-1, 1], plus Gaussian noise of standard deviation `noise` (default 0.5);
    - `"logistic"`: 1 with probability 1 / (1 + exp(-xᵀθ*)), else 0; here θ* has norm 3, a bound that an algorithm for
      logistic rewards may assume;
    - `"conversion"`: 1 with probability xᵀθ*, else 0; x and θ* are replaced by their absolute values, so that xᵀθ* is a
      probability.

    >>> LinearBandit(dimension=3, actions=10, sets="random", contexts=50)
    LinearBandit('linear-bandit-d3-a10-0-random50', states=50, actions=10, dimension=3, horizon=1)
    >>> LinearBandit(reward="conversion").optimal_value
    0.94
    """

    def __init__(
        self,
        dimension: int = 5,
        actions: int = 100,
        sets: str = "fixed",
        contexts: int | None = None,
        reward: str = "linear",
        noise: float | None = None,
        seed: int = 0,
    ) -> None:
        dimension = integer("dimension", dimension, at_least=1)
        actions = integer("actions", actions, at_least=1)
        sets = choice("sets", sets, ("fixed", "random", "changing"))
        fixed = sets == "fixed"
        if fixed and contexts is not None:
            raise refuse("contexts", contexts, 'None with sets="fixed", where there is one set')
        count = 1 if fixed else integer("contexts", CONTEXTS if contexts is None else contexts, at_least=1)
        reward = choice("reward", reward, ("linear", "logistic", "conversion"))
        linear = reward == "linear"
        if not linear and noise is not None:
            raise refuse("noise", noise, f'None with reward="{reward}", whose rewards are 0 or 1')
        spread = real("noise", NOISE if noise is None else noise, at_least=0) if linear else 0.0
        self._seed = integer("seed", seed, at_least=0)

        rng = stream(self._seed, "linear-bandit")
        theta = _directions(rng, (dimension,))
        # In the ball P(|x| <= r) = r^d, so |x| = U^(1/d).
        x = _directions(rng, (count, actions, dimension)) * rng.random((count, actions, 1)) ** (1 / dimension)
        if reward == "conversion":
            theta, x = np.abs(theta), np.abs(x)
        if reward == "logistic":
            theta = STEEPNESS * theta
        means = x @ theta
        self._theta = array("theta", theta, (dimension,))
        super().__init__(
            x,
            1.0 / (1.0 + np.exp(-means)) if reward == "logistic" else means,
            in_turn=sets == "changing",
            bernoulli=not linear,
            noise=spread,
            name=full_name(
                f"linear-bandit-d{dimension}-a{actions}-{self._seed}",
                f"{sets}{count}" if not fixed else "",
                reward if not linear else "",
                f"noise{spread:g}" if linear and spread != NOISE else "",
            ),
        )
        self._specification = {
            "environment": "linear-bandit",
            "dimension": self.dimension,
            "actions": self.actions,
            "sets": sets,
            **({"contexts": self.states} if sets != "fixed" else {}),
            "reward": reward,
            **({"noise": self._noise} if reward == "linear" else {}),
            "seed": self._seed,
        }

    @property
    def theta(self) -> Floats:
        """The parameter θ*, shape (d,)."""
        return self._theta

    @property
    def seed(self) -> int:
        return self._seed


def _directions(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    normal = rng.standard_normal(shape)
    unit: Floats = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
    return unit
