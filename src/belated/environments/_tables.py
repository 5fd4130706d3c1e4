"""The tables of a finite MDP, checked and brought into one shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated._util.validate import array, integer, moderate, probabilities, refuse
from belated.errors import InvalidInputError
from belated.types import Floats

LONGEST = 10**6
"""Steps that an episode may have."""


def checked_tables(transitions: Any, rewards: Any, horizon: int | None) -> tuple[Floats, Floats, int]:
    """Return transitions (T, S, A, S) and rewards (T, S, A), T being 1 or H, and H."""
    given = array("transitions", transitions, (None,) * (4 if _dimensions(transitions) == 4 else 3))
    states, actions = given.shape[-3:-1]
    if given.shape[-1] != states:
        raise InvalidInputError(f"transitions must have shape (S, A, S) or (H, S, A, S), got {given.shape}")
    distribution = probabilities("transitions", given, given.shape)
    leading = (None,) if _dimensions(rewards) == 3 else ()
    means = array("rewards", rewards, (*leading, states, actions))
    if means.size and (means.min() < 0 or means.max() > 1):
        where = tuple(int(i) for i in np.argwhere((means < 0) | (means > 1))[0])
        raise InvalidInputError(f"rewards must be within [0, 1], got {means[where]} at index {where}")
    steps = {"transitions": len(distribution)} if distribution.ndim == 4 else {}
    if means.ndim == 3:
        steps["rewards"] = len(means)
    if horizon is not None:
        steps["horizon"] = integer("horizon", integer("horizon", horizon, at_least=1), at_most=LONGEST)
    if not steps:
        raise refuse("horizon", horizon, "given when neither transitions nor rewards depend on the step")
    if len(set(steps.values())) > 1:
        found = ", ".join(f"{count} from {source}" for source, count in steps.items())
        raise InvalidInputError(f"the number of steps must agree, got {found}")
    count = next(iter(steps.values()))
    slots = count if distribution.ndim == 4 or means.ndim == 3 else 1
    return _stacked(distribution, slots, states, actions, states), _stacked(means, slots, states, actions), count


def _stacked(table: Floats, *shape: int) -> Floats:
    stacked = np.ascontiguousarray(np.broadcast_to(table, shape))
    stacked.flags.writeable = False
    return stacked


def same_at_every_step(table: Floats, axis: int) -> bool:
    """Tell whether a table is the same all along one of its axes."""
    return bool((table == table.take([0], axis)).all())


def _dimensions(value: Any) -> int:
    try:
        return np.ndim(value)
    except ValueError:  # ragged lists, which the array check refuses with a clear message
        return -1


def checked_features(features: Any, states: int, actions: int) -> Floats:
    """Return the features of all pairs, one-hot if none are given."""
    if features is None:
        features = np.eye(states * actions).reshape(states, actions, -1)
    table = moderate("features", array("features", features, (states, actions, None)))
    integer("the number d of features", table.shape[2], at_least=1)
    return table


def checked_start(start: Any, states: int) -> Floats:
    """Return where episodes start as a distribution; the first state if nothing is given."""
    if start is None or np.isscalar(start):
        start = np.eye(states)[integer("start", 0 if start is None else start, at_least=0, at_most=states - 1)]
    return probabilities("start", start, (states,))
