"""MDPs that are exactly linear in their features: `SyntheticLinearMDP` of the literature, and random ones."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np

from belated._kernels.streams import stream
from belated._util.validate import choice, flag, indices, integer
from belated.environments._finite import FiniteMDP, full_name, unit_features
from belated.types import Floats

#: The state that follows a good pair at each step; repeated if the horizon is longer.
ALPHA = (1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1, 0, 1)
BITS = 8
GOOD_REWARD, POOR_REWARD = 0.99, 0.01


class SyntheticLinearMDP(FiniteMDP):
    """The two-state benchmark of the linear-MDP literature, with 2 to 256 actions.

    The features are φ(s, a) = [a in 8 bits, most significant first; δ(s, a); 1 - δ(s, a)]. A pair with δ = 1 pays 0.99
    and leads to state α_h, any other pays 0.01 and leads to state 1 - α_h, without noise. The start is state 0.

    The source of this benchmark defines δ in two ways, and both make rewards and transitions linear in φ:

    - `variant="joint"` (its main text): δ = 1 only for action 0 in state 0. The optimal value with the default α is
      12 × 0.99 + 8 × 0.01 = 11.96, as published.
    - `variant="appendix"` (its appendix): δ = 1 when "the state is 0" and "the action is 0" are both true or both
      false. Every state then has a good action and the optimal value is 20 × 0.99 = 19.8.

    The raw features have norms up to 3, while most of the theory assumes at most 1; `normalise=True` divides them by
    the maximum norm. `alpha` is a sequence of H zeros and ones.

    >>> SyntheticLinearMDP(actions=50).optimal_value
    11.96
    >>> SyntheticLinearMDP(actions=50, variant="appendix").optimal_value
    19.8
    """

    def __init__(
        self,
        actions: int = 50,
        horizon: int = 20,
        alpha: Sequence[int] | None = None,
        variant: str = "joint",
        normalise: bool = False,
        bernoulli: bool = False,
    ) -> None:
        actions = integer("actions", actions, at_least=2, at_most=2**BITS)
        horizon = integer("horizon", horizon, at_least=1)
        variant = choice("variant", variant, ("joint", "appendix"))
        normalise = flag("normalise", normalise)
        bernoulli = flag("bernoulli", bernoulli)
        usual = tuple(np.resize(ALPHA, horizon).tolist())
        given = usual if alpha is None else tuple(indices("alpha", alpha, (horizon,), 2).tolist())
        self.alpha: tuple[int, ...] = given
        """The state that follows a good pair, for each step."""
        custom = given != usual

        good = _good_pairs(actions, variant)
        features = _features(good)
        after_good = np.eye(2)[list(given)][:, np.newaxis, np.newaxis, :]
        super().__init__(
            good[..., np.newaxis] * after_good + (1 - good[..., np.newaxis]) * (1 - after_good),
            GOOD_REWARD * good + POOR_REWARD * (1 - good),
            features=unit_features(features) if normalise else features,
            bernoulli=bernoulli,
            name=full_name(
                f"synthetic-a{actions}",
                f"h{horizon}" if horizon != len(ALPHA) else "",
                f"alpha{crc32(bytes(given)):08x}" if custom else "",
                variant if variant != "joint" else "",
                "normalised" if normalise else "",
                "bernoulli" if bernoulli else "",
            ),
        )
        self._specification = {
            "environment": "synthetic",
            "actions": self.actions,
            "horizon": self.horizon,
            **({"alpha": list(given)} if custom else {}),
            "variant": variant,
            "normalise": normalise,
            "bernoulli": self.bernoulli,
        }


def _good_pairs(actions: int, variant: str) -> Floats:
    """Return δ(s, a), shape (2, actions)."""
    in_first = np.arange(2)[:, np.newaxis] == 0
    takes_first = np.arange(actions)[np.newaxis, :] == 0
    good = in_first & takes_first if variant == "joint" else in_first == takes_first
    return np.where(good, 1.0, 0.0)


def _features(good: Floats) -> Floats:
    powers = np.arange(BITS - 1, -1, -1)
    bits = (np.arange(good.shape[1])[:, np.newaxis] >> powers) & 1
    table = np.empty((*good.shape, BITS + 2))
    table[..., :BITS] = bits
    table[..., BITS] = good
    table[..., BITS + 1] = 1 - good
    return table


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
