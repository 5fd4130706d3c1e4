"""Off-policy evaluation: what another policy would have earned on the decisions of a log.

With the logged action a of probability p, its reward r, and the other policy's probabilities π, three estimates of its
mean reward, each with a standard error and an interval:

    IPS     mean of w r,  w = π(a)/p                     unbiased if every action of π can occur in the log
    SNIPS   Σ w r / Σ w                                  a little biased, often of much smaller variance
    DR      mean of Σ_b π(b) q̂(b) + w (r − q̂(a))         unbiased as IPS, and of small variance if q̂ is good

q̂ is a ridge regression of the rewards on the features, fitted to the other half of the log each time, so that no
decision is judged by a fit that has seen its reward. Only decisions with a known probability that count with a reward
can be used; if what counts is chosen by its reward (`Unknown` with rewards that go missing because they are small), so
are the estimates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from belated._util.validate import real, refuse
from belated.decisions._encoding import SHARED, Encoding
from belated.decisions._operations import Entry
from belated.decisions._posterior import Posterior
from belated.decisions._settings import ModelSettings
from belated.errors import InvalidInputError
from belated.types import Floats

#: Returns the probabilities of the actions on offer, in a context.
Policy = Callable[[Any, Sequence[str]], Sequence[float]]


class Estimate(NamedTuple):
    """An estimate of a policy's mean reward."""

    method: str
    value: float
    error: float
    """Standard error."""
    low: float
    high: float
    """Ends of the interval."""


class Evaluation(NamedTuple):
    """What a log says about a policy."""

    estimates: tuple[Estimate, ...]
    """IPS, SNIPS, DR."""
    logged: Estimate
    """The mean reward of the log itself."""
    decisions: int
    """How many could be used."""
    effective: float
    """How many decisions of the policy itself they are worth: (Σw)²/Σw²."""
    largest: float
    """The largest weight: one decision counts for so many."""


class Usable(NamedTuple):
    """The decisions of a log that can be used."""

    entries: list[Entry]
    rewards: Floats
    probabilities: Floats


def uniform(context: Any, actions: Sequence[str]) -> Sequence[float]:
    """Choose each action as often as any other."""
    return [1.0 / len(actions)] * len(actions)


def always(action: str) -> Policy:
    """Return the policy that chooses one action, or a random one where it is not on offer."""

    def policy(context: Any, actions: Sequence[str]) -> Sequence[float]:
        if action not in actions:
            return uniform(context, actions)
        return [float(each == action) for each in actions]

    return policy


def usable(entries: Iterable[Entry]) -> Usable:
    """Return the decisions with one action of known probability that count with a reward."""
    kept = [
        entry
        for entry in entries
        if entry.learned is not None and entry.probability is not None and len(entry.ranking) == 1
    ]
    rewards = np.array([entry.learned for entry in kept], np.float64)
    return Usable(kept, rewards, np.array([entry.probability for entry in kept], np.float64))


def target_of(policy: Policy, entries: Sequence[Entry]) -> list[Floats]:
    """Return the policy's probabilities of the actions of each decision, after checking them."""
    rows = []
    for entry in entries:
        names = tuple(entry.actions)
        row = np.array(policy(entry.context, names), np.float64)
        if row.shape != (len(names),) or not row.min(initial=0.0) >= 0.0 or not abs(row.sum() - 1.0) <= 1e-8:
            raise refuse("what the policy returns", row.tolist(), f"{len(names)} probabilities that sum to one")
        rows.append(row)
    return rows


def evaluate(entries: Iterable[Entry], policy: Policy, settings: ModelSettings, *, level: float = 0.95) -> Evaluation:
    """Estimate what `policy` would have earned on the decisions of a model's log (see `Model.log`).

    `settings` are those of the model, of which the encoding gives the features for DR.
    """
    log = usable(entries)
    return assess(log, target_of(policy, log.entries), settings, level=level)


def assess(log: Usable, target: Sequence[Floats], settings: ModelSettings, *, level: float = 0.95) -> Evaluation:
    """Estimate what a policy with the probabilities `target`, one array for each decision, would have earned."""
    real("level", level, above=0.0, below=1.0)
    n = len(log.entries)
    if n < 2:
        raise InvalidInputError(f"entries must hold at least 2 decisions with a probability and a reward, got {n}")
    places = [tuple(entry.actions).index(entry.action) for entry in log.entries]
    chosen = np.array([row[place] for row, place in zip(target, places, strict=True)])
    weights = chosen / log.probabilities
    z = NormalDist().inv_cdf(0.5 + level / 2)
    values, expected = predictions(log, target, places, settings)
    robust = expected + weights * (log.rewards - values)
    total = float(weights.sum())
    normed = float(weights @ log.rewards) / total if total > 0.0 else math.nan
    spread = weights * (log.rewards - normed) * (n / total) if total > 0.0 else np.full(n, math.nan)
    estimates = (
        _mean("IPS", weights * log.rewards, z),
        _around("SNIPS", normed, float(np.sqrt(np.mean(spread**2) / n)), z),
        _mean("DR", robust, z),
    )
    effective = total**2 / float(weights @ weights) if total > 0.0 else 0.0
    return Evaluation(estimates, _mean("logged", log.rewards, z), n, effective, float(weights.max()))


def predictions(
    log: Usable, target: Sequence[Floats], places: Sequence[int], settings: ModelSettings
) -> tuple[Floats, Floats]:
    """Return q̂ of each logged action, and its mean under the target, each from a fit to the other half of the log."""
    encoding, n = settings.encoding, len(log.entries)
    tables = [features_of(entry, encoding, settings.actions) for entry in log.entries]
    values, expected, nothing = np.zeros(n), np.zeros(n), np.zeros(encoding.dimension)

    def fit(rows: range) -> Callable[[str], Floats]:
        """Return the ridge regression on some of the decisions: the weights of an action."""
        blocks: dict[str, int] = {}
        posterior = Posterior(encoding.dimension, noise=1.0, ridge=1.0, blocks=0)
        for i in rows:
            name = "" if encoding.weights == SHARED else log.entries[i].action
            posterior.learn(blocks.setdefault(name, len(blocks)), tables[i][places[i]], log.rewards[i])
        means = {name: posterior.mean(block) for name, block in blocks.items()}
        return lambda action: means.get("" if encoding.weights == SHARED else action, nothing)

    for half in (0, 1):
        weights = fit(range(1 - half, n, 2))
        for i in range(half, n, 2):
            names = tuple(log.entries[i].actions)
            guessed = np.array([float(row @ weights(name)) for name, row in zip(names, tables[i], strict=True)])
            values[i], expected[i] = guessed[places[i]], float(target[i] @ guessed)
    return values, expected


def features_of(entry: Entry, encoding: Encoding, known: Mapping[str, Mapping[str, Any]]) -> Floats:
    given = entry.actions
    offer = given if isinstance(given, Mapping) else {name: known.get(name, {}) for name in given}
    return np.broadcast_to(encoding.matrix(entry.context, offer), (len(offer), encoding.dimension))


def _mean(method: str, terms: Floats, z: float) -> Estimate:
    return _around(method, float(terms.mean()), float(terms.std(ddof=1) / math.sqrt(len(terms))), z)


def _around(method: str, value: float, error: float, z: float) -> Estimate:
    return Estimate(method, value, error, value - z * error, value + z * error)
