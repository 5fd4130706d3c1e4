"""`RandomLinearMDP`: a random MDP that is exactly linear in its features."""

from __future__ import annotations

import numpy as np

from belated._kernels.streams import stream
from belated._util.validate import flag, integer
from belated.environments._finite import FiniteMDP, full_name

#: Below one, so that features are close to a few corners of the simplex and actions differ.
FEATURE_CONCENTRATION = 0.5
#: Well below one, so that each corner leads to only a few states and actions matter.
TRANSITION_CONCENTRATION = 0.2


class RandomLinearMDP(FiniteMDP):
    """A random linear MDP, determined by its sizes and `seed`.

    φ(s, a) is a point of the d-simplex, so its norm is at most 1. At each step h, corner j of the simplex has its own
    mean reward θ_h[j] and distribution μ_h[j] of the next state; a pair (s, a) mixes the corners with weights φ(s, a).
    The start is state 0.

    >>> RandomLinearMDP(states=6, actions=3, dimension=4, horizon=5, seed=1)
    RandomLinearMDP('random-linear-s6-a3-d4-h5-1', states=6, actions=3, dimension=4, horizon=5)
    >>> max(RandomLinearMDP().linearity()) < 1e-12
    True
    """

    def __init__(
        self,
        states: int = 10,
        actions: int = 4,
        dimension: int = 5,
        horizon: int = 8,
        seed: int = 0,
        bernoulli: bool = False,
    ) -> None:
        states = integer("states", states, at_least=1)
        actions = integer("actions", actions, at_least=1)
        dimension = integer("dimension", dimension, at_least=1)
        horizon = integer("horizon", horizon, at_least=1)
        self.seed = integer("seed", seed, at_least=0)
        bernoulli = flag("bernoulli", bernoulli)
        rng = stream(self.seed, "random-linear")
        features = rng.dirichlet(np.full(dimension, FEATURE_CONCENTRATION), size=(states, actions))
        corners = rng.dirichlet(np.full(states, TRANSITION_CONCENTRATION), size=(horizon, dimension))
        corner_rewards = rng.random((horizon, dimension))
        super().__init__(
            np.einsum("sad,hdt->hsat", features, corners),
            np.einsum("sad,hd->hsa", features, corner_rewards),
            features=features,
            bernoulli=bernoulli,
            name=full_name(
                f"random-linear-s{states}-a{actions}-d{dimension}-h{horizon}-{self.seed}",
                "bernoulli" if bernoulli else "",
            ),
        )
        self._specification = {
            "environment": "random-linear",
            "states": self.states,
            "actions": self.actions,
            "dimension": self.dimension,
            "horizon": self.horizon,
            "seed": self.seed,
            "bernoulli": self.bernoulli,
        }
