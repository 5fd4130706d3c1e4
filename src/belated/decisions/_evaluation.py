"""Off-policy evaluation: what a target policy would have earned on the decisions of a log.

With the logged action a, its propensity p and its reward r, and the target policy's probabilities π, there are three
estimates of the target policy's mean reward:

    IPS     mean of w r,  w = π(a)/p                     unbiased if the log could take every action of π
    SNIPS   Σ w r / Σ w                                  slightly biased, often with a much smaller variance
    DR      mean of Σ_b π(b) q̂(b) + w (r − q̂(a))         unbiased like IPS, with a small variance if q̂ is good

q̂ is a ridge regression of the rewards on the features, fitted to earlier decisions only: later actions were chosen by
a model that had learned this decision's reward, so fitting to them would bias the estimate.

**An interval is given only where it has its nominal coverage.** A rare action has a large importance weight. If it
happens not to occur in the log, neither the estimate nor its standard error shows it. But the log has the propensity of
every action of every decision, so the distribution of the weights is known in advance, and with it how many decisions
carry the estimate (`carrying`). `_intervals` decides whether there is an interval.

Decisions whose rewards may still arrive are left out together with all others as young as they are: among those, quick
rewards would be over-represented. If a model learns by age, each estimate is a sum over the ages, and the term of an
age uses all decisions that have reached it, so decisions in flight count with what is known so far. If the rewards of
one action are lost more often than those of another, the observed rewards of that action are weighted up. If whether a
reward is lost depends on its value, the estimates are biased, and the log cannot show it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._util.validate import real, refuse
from belated.decisions._encoding import SHARED, Encoding
from belated.decisions._intervals import UNITS, Estimate, Mean, carried, estimates, itself
from belated.decisions._members import SparsePosterior, digest, sparse_offer
from belated.decisions._operations import DecisionState, Entry
from belated.decisions._posterior import Posterior
from belated.decisions._rows import REWARD
from belated.decisions._settings import ModelSettings
from belated.errors import InvalidInputError
from belated.types import Floats, Ints

#: Maps a context and the actions on offer to the actions' probabilities.
Policy = Callable[[Any, Sequence[str]], Sequence[float]]

#: Quantile of the observed delays: decisions younger than this delay may still get their rewards.
_DELAYS = 0.99
#: Values of `floor` that the reason for a missing interval may suggest.
_FLOORS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class Evaluation(NamedTuple):
    """What a log says about a policy."""

    estimates: tuple[Estimate, ...]
    """IPS, SNIPS, DR."""
    logged: Estimate
    """The mean reward of the log itself."""
    decisions: int
    """Number of decisions used."""
    effective: float
    """Effective sample size: n²/Σ π²/p over all actions on offer, taken or not."""
    carrying: float
    """How many decisions carry the estimates; nan if unknown."""
    largest: float
    """The largest importance weight in the log."""
    possible: float
    """The largest importance weight that was possible; infinite if the log could not take an action of the policy, nan
    if unknown."""
    young: int
    """Number of decisions left out because their rewards may still arrive, or because they are as young as those."""
    lost: int
    """How many of `decisions` never got a reward; others with the same action are weighted up."""
    in_flight: int = 0
    """How many of `decisions` still have an open window and count with the ages they have reached."""
    learned: bool = False
    """Whether the log learned: estimates with an interval are then computed from its last two thirds."""


class Usable(NamedTuple):
    """The decisions of a log that can be used."""

    entries: list[Entry]
    rewards: Floats
    """The reward of each age, shape (entries, ages); one age unless the model learns by age. 0 where none was
    observed."""
    seen: Floats
    """1 where a reward was observed, else 0."""
    told: dict[str, float]
    """For each action, the fraction of its decisions that got a reward."""
    young: int
    aged: bool = False
    """Whether unobserved rewards are in flight rather than lost."""

    @property
    def learned(self) -> bool:
        """Whether some were drawn when a reward was there to learn from; those that a caller chose were not."""
        first = min(
            (event.received for entry in self.entries for event in entry.history if event.kind == REWARD),
            default=math.inf,
        )
        return any(entry.suggestion is None and entry.made > first for entry in self.entries)

    @property
    def sampled(self) -> Floats:
        """1 where a decision enters the mean of an age, else 0."""
        return self.seen if self.aged else np.ones_like(self.seen)


def uniform(context: Any, actions: Sequence[str]) -> Sequence[float]:
    """Choose uniformly among the actions on offer."""
    return [1.0 / len(actions)] * len(actions)


def always(action: str) -> Policy:
    """Return the policy that always chooses one action, or a random one if it is not on offer."""

    def policy(context: Any, actions: Sequence[str]) -> Sequence[float]:
        if action not in actions:
            return uniform(context, actions)
        return [float(each == action) for each in actions]

    return policy


def usable(entries: Iterable[Entry]) -> Usable:
    """Return the decisions for one action, with a known propensity, that are old enough to have their rewards.

    Cancelled and inactive decisions are left out.
    """
    happened = [
        entry
        for entry in entries
        if entry.probability is not None
        and len(entry.ranking) == 1
        and entry.status not in (DecisionState.CANCELLED, DecisionState.INACTIVE)
    ]
    ages = max((len(entry.parts) for entry in happened), default=0)
    if ages > 1 and any(entry.learned is not None for entry in happened):
        kept = [entry for entry in happened if entry.parts]
        reached = np.array([[b < len(entry.parts) for b in range(ages)] for entry in kept], np.float64)
        parts = np.array([(*entry.parts, *[0.0] * (ages - len(entry.parts))) for entry in kept], np.float64)
        shares = dict.fromkeys((entry.action for entry in kept), 1.0)
        return Usable(kept, parts, reached, shares, len(happened) - len(kept), aged=True)
    is_young = _young(happened)
    kept = [entry for entry in happened if not is_young(entry)]
    seen = np.array([[entry.learned is not None] for entry in kept], np.float64).reshape(-1, 1)
    rewards = np.array([[entry.learned or 0.0] for entry in kept], np.float64).reshape(-1, 1)
    made, told = (Counter(entry.action for entry in some) for some in (kept, _rewarded(kept)))
    shares = {action: told[action] / count for action, count in made.items()}
    return Usable(kept, rewards, seen, shares, len(happened) - len(kept))


def _rewarded(entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.learned is not None]


def _young(entries: Sequence[Entry]) -> Callable[[Entry], bool]:
    """Return a function that says whether an entry is as young as one whose reward may still arrive.

    With a window, that depends on when it ends; without one, on the delays observed so far. A decision that was
    recorded together with its reward has no delay.
    """
    waiting = [entry for entry in entries if entry.learned is None and entry.status != DecisionState.EXPIRED]
    open_at = min((entry.due for entry in waiting if entry.due is not None), default=math.inf)
    ours = [entry for entry in entries if entry.due is None and entry.suggestion is None]
    moments = [event.received for entry in ours for event in entry.history]
    first = {entry.id: event.received for entry in ours for event in reversed(entry.history) if event.kind == REWARD}
    delays = [first[entry.id] - entry.made for entry in ours if entry.id in first]
    now = max([*moments, *(entry.made for entry in ours)], default=0.0)
    since = now - float(np.quantile(delays, _DELAYS)) if delays else -math.inf
    if not any(entry.made >= since for entry in waiting if entry.due is None and entry.suggestion is None):
        since = math.inf

    def young(entry: Entry) -> bool:
        if entry.due is not None:
            return entry.due >= open_at
        return entry.suggestion is None and entry.made >= since

    return young


def target_of(policy: Policy, entries: Sequence[Entry]) -> list[Floats]:
    """Return the policy's probabilities for the actions of each decision, validated."""
    rows = []
    for entry in entries:
        names = tuple(entry.actions)
        row = np.array(policy(entry.context, names), np.float64)
        if row.shape != (len(names),) or not row.min(initial=0.0) >= 0.0 or not abs(row.sum() - 1.0) <= 1e-8:
            raise refuse("what the policy returns", row.tolist(), f"{len(names)} probabilities that sum to one")
        rows.append(row)
    return rows


def evaluate(entries: Iterable[Entry], policy: Policy, settings: ModelSettings, *, level: float = 0.95) -> Evaluation:
    """Estimate what `policy` would have earned on the decisions of a model's log (see `Model.log`), in their order.

    `settings` are the model's; their encoding gives the features for DR.
    """
    log = usable(entries)
    return assess(log, target_of(policy, log.entries), settings, level=level)


def assess(log: Usable, target: Sequence[Floats], settings: ModelSettings, *, level: float = 0.95) -> Evaluation:
    """Estimate what a policy with the probabilities `target`, one array for each decision, would have earned."""
    real("level", level, above=0.0, below=1.0)
    n, seen = len(log.entries), log.seen
    whole = seen[:, -1] > 0.0  # those with a complete reward
    if whole.sum() < 2:
        left = f" ({log.young} others are too young: their rewards may still arrive)" if log.young else ""
        raise InvalidInputError(
            f"entries must hold at least 2 decisions with a probability and a reward, got {whole.sum():.0f}{left}"
        )
    places = [tuple(entry.actions).index(entry.action) for entry in log.entries]
    told = np.array([log.told[entry.action] or 1.0 for entry in log.entries])
    chosen = np.array([row[place] for row, place in zip(target, places, strict=True)])
    drawn = np.array([entry.probability for entry in log.entries], np.float64)
    weights = seen * (chosen / drawn / told)[:, None]  # of each age
    law = Law.of(log, target)
    weighed = _Weighed(log, weights, *predictions(log, target, places, settings), law, settings.floor)
    found = estimates(weighed, learned=log.learned, level=level)
    count = int(log.sampled[:, -1].sum())
    logged = itself(Mean.of(seen / told[:, None] * log.rewards, log.sampled), count, "decisions", level)
    squares = float(weights[:, -1] @ weights[:, -1]) if law is None else law.squares()
    silent = n - int(whole.sum())
    lost, in_flight = (0, silent) if log.aged else (silent, 0)
    return Evaluation(
        found, logged, n, count**2 / squares if squares > 0.0 else 0.0, weighed.carrying(slice(None), np.ones(n)),
        float(weights.max()), weighed.possible, log.young, lost, in_flight, log.learned
    )  # fmt: skip


class _Weighed(NamedTuple):
    """Decisions with their weights, as the rule for intervals needs them."""

    log: Usable
    weights: Floats
    values: Floats
    expected: Floats
    law: Law | None
    floor: float

    @property
    def size(self) -> int:
        return int(self.log.sampled[:, -1].sum())

    @property
    def possible(self) -> float:
        """The largest possible weight."""
        return math.nan if self.law is None else float(self.law.weights().max())

    def means(self, part: slice, counts: Floats) -> dict[str, Mean]:
        log, weights, rewards = self.log, self.weights[part], self.log.rewards[part]
        counted = counts[part, None] * log.sampled[part]
        shares = counts[part, None] * weights
        robust = log.sampled[part] * self.expected[part] + weights * (rewards - self.values[part])
        if shares.sum(axis=0).min() > 0.0:
            ratio = Mean.of(rewards, shares)
        else:
            ratio = Mean(math.nan, np.full(len(weights), math.nan))
        return {"IPS": Mean.of(weights * rewards, counted), "SNIPS": ratio, "DR": Mean.of(robust, counted)}

    def carrying(self, part: slice, counts: Floats) -> float:
        return math.nan if self.law is None else self.law.part(part, counts).carrying()

    def precisions(self) -> Floats:
        n = len(self.weights)
        return np.ones(n) if self.law is None else self.law.precisions(n)

    def promised(self, part: slice) -> float:
        assert self.law is not None
        return self.law.part(part, np.ones(len(self.weights))).by_floor(self.floor).carrying()

    def too_few(self, part: slice, carrying: float, *, learned: bool) -> str:
        """Return why `carrying` decisions cannot support an interval; empty if they can."""
        law, floor = self.law, self.floor
        if law is None:
            return (
                "some decisions were made by the caller among more than two actions, and only the propensity of the "
                "chosen action is known; an interval needs that of every action"
            )
        if carrying >= UNITS:
            return ""
        if learned:
            law = law.part(slice(self.size // 3, None), np.ones(len(self.weights)))
            wide = [each for each in _FLOORS if each > floor and law.by_floor(each).carrying() >= UNITS]
        else:
            more = [(each, (each - floor) / (1.0 - floor)) for each in _FLOORS if each > floor]
            wide = [each for each, share in more if law.with_floor(share).carrying() >= UNITS]
        advice = (
            f"as many decisions with a floor of {wide[0]:g} instead of {floor:g} would suffice"
            if wide
            else f"with so few decisions no floor would suffice (the floor is {floor:g})"
        )
        if learned:
            return (
                "this log has learned, so its first third decides whether the rest gives an interval: judging by how "
                f"often it took the policy's actions then, about {carrying:.1f} decisions of the rest would carry the "
                f"estimate, and an interval needs {UNITS}; {advice}"
            )
        if math.isinf(self.possible):
            limit = "some of which it could never take"
        else:
            limit = (
                f"with weights up to {self.possible:.0f}, while the largest weight in the log is "
                f"{self.weights.max():.0f}"
            )
        return (
            f"the policy takes actions that this log hardly ever takes, {limit}: about {carrying:.1f} decisions carry "
            f"the estimate, and an interval needs {UNITS}; {advice}"
        )


class Law(NamedTuple):
    """The distribution of the importance weights, over every action that the target policy may take."""

    masses: Floats
    """The target policy's probability of the action."""
    chances: Floats
    """The probability that the log takes the action and observes its reward."""
    even: Floats
    """The same for a log that chooses uniformly."""
    place: Ints
    """The number of the decision."""
    whole: npt.NDArray[np.bool_]
    """Whether its reward is known up to the last age, which has the fewest observations."""

    @classmethod
    def of(cls, log: Usable, target: Sequence[Floats]) -> Law | None:
        """Return the distribution; None if some of the log's propensities are unknown."""
        parts, lengths = [], []
        for entry, row in zip(log.entries, target, strict=True):
            drawn = all_probabilities(entry)
            if drawn is None:
                return None
            told = np.array([log.told.get(action, 1.0) for action in entry.actions])
            parts.append(np.stack([row, told * drawn, told / len(row)])[:, row > 0.0])
            lengths.append(parts[-1].shape[1])
        place = np.repeat(np.arange(len(parts)), lengths)
        masses, chances, even = np.concatenate(parts, axis=1)
        return cls(masses, chances, even, place, log.sampled[place, -1] > 0.0)

    def weights(self) -> Floats:
        """Return the importance weight of each action; infinite if the log cannot take it."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.masses / self.chances)

    def carrying(self) -> float:
        """Return how many decisions carry the estimates."""
        return carried(self.masses[self.whole], self.weights()[self.whole])

    def squares(self) -> float:
        """Return Σ π²/p."""
        return float(self.masses[self.whole] @ self.weights()[self.whole])

    def precisions(self, count: int) -> Floats:
        """Return 1/√Σ_a π²/p of each decision; 0 if the log could not take an action of the policy."""
        return np.asarray(1.0 / np.sqrt(np.bincount(self.place, self.masses * self.weights(), count)))

    def part(self, part: slice, counts: Floats) -> Law:
        """Return what is known of some decisions, in whose estimates they count so much."""
        begin, end, _ = part.indices(len(counts))
        kept = (self.place >= begin) & (self.place < end)
        place = self.place[kept]
        masses = counts[place] * self.masses[kept]  # of a term c·w, π and π/p are multiplied alike
        return Law(masses, self.chances[kept], self.even[kept], place, self.whole[kept])

    def with_floor(self, more: float) -> Law:
        """Return the distribution if this fraction of the decisions had been uniform instead."""
        return self._replace(chances=(1.0 - more) * self.chances + more * self.even)

    def by_floor(self, floor: float) -> Law:
        """Return what is known if a policy's actions were taken only when all are taken at random."""
        return self._replace(chances=floor * self.even)


def all_probabilities(entry: Entry) -> Floats | None:
    """Return the propensities of all actions on offer; None if only that of the logged action is known.

    If the caller chose between two actions, the other one has the remaining probability.
    """
    if entry.suggestion is None and entry.probabilities is not None:
        return np.asarray(entry.probabilities, np.float64)
    if entry.probability is None or len(entry.actions) != 2:
        return None
    taken = np.array([action == entry.action for action in entry.actions])
    return np.where(taken, entry.probability, 1.0 - entry.probability)


def predictions(
    log: Usable, target: Sequence[Floats], places: Sequence[int], settings: ModelSettings
) -> tuple[Floats, Floats]:
    """Return q̂ of each logged action and age, and its mean under the target policy, from fits to earlier decisions."""
    if settings.is_sparse(settings.encoding.dimension):
        return sparse_predictions(log, target, places, settings)
    encoding, shape, nothing = settings.encoding, log.rewards.shape, np.zeros(settings.encoding.dimension)
    values, expected = np.zeros(shape), np.zeros(shape)
    posteriors = [Posterior(encoding.dimension, noise=1.0, ridge=1.0, blocks=0) for _ in range(shape[1])]
    blocks: dict[str, int] = {}
    means: list[dict[str, Floats]] = [{} for _ in posteriors]
    fitted = 0
    for i, entry in enumerate(log.entries):
        if i >= 1.2 * fitted:  # a fit to five sixths of the data is nearly as good as one to all of it
            means = [{name: each.mean(block) for name, block in blocks.items()} for each in posteriors]
            fitted = i
        keys = [""] * len(target[i]) if encoding.weights == SHARED else list(entry.actions)
        table = features_of(entry, encoding, settings.actions)
        key = keys[places[i]]
        for age, posterior in enumerate(posteriors):
            if log.sampled[i, age]:
                known = means[age]
                guessed = np.einsum("ij,ij->i", table, np.array([known.get(each, nothing) for each in keys]))
                values[i, age], expected[i, age] = guessed[places[i]], float(target[i] @ guessed)
            if log.seen[i, age]:
                posterior.learn(blocks.setdefault(key, len(blocks)), table[places[i]], log.rewards[i, age])
    return values, expected


def sparse_predictions(
    log: Usable, target: Sequence[Floats], places: Sequence[int], settings: ModelSettings
) -> tuple[Floats, Floats]:
    """Return what `predictions` does, for many features and one age."""
    values, expected = np.zeros(log.rewards.shape), np.zeros(log.rewards.shape)
    posterior = SparsePosterior(settings.encoding.dimension, draws=1)
    for i, entry in enumerate(log.entries):
        offer = sparse_offer(settings.encoding, entry.context, _offered(entry, settings.actions))
        if log.sampled[i, 0]:
            guessed = posterior.means(offer)
            values[i, 0], expected[i, 0] = guessed[places[i]], float(target[i] @ guessed)
        if log.seen[i, 0]:
            posterior.learn(0, offer.row(places[i], digest(entry.id), i), log.rewards[i, 0])
    return values, expected


def features_of(entry: Entry, encoding: Encoding, known: Mapping[str, Mapping[str, Any]]) -> Floats:
    offer = _offered(entry, known)
    return np.broadcast_to(encoding.matrix(entry.context, offer), (len(offer), encoding.dimension))


def _offered(entry: Entry, known: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    given = entry.actions
    return given if isinstance(given, Mapping) else {name: known.get(name, {}) for name in given}
