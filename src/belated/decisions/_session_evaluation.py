"""Off-policy evaluation of sessions: what a target policy would have earned in the sessions of a log.

With the logged actions a_t, their propensities p_t given all earlier steps, their rewards r_t and the target policy's
probabilities π, the importance weight of a session up to step t is ρ_t = Π_{i≤t} π(a_i)/p_i. There are three estimates
of the mean return of a session:

    PDIS    mean of Σ_t ρ_t r_t                                              unbiased
    WPDIS   Σ_t (Σ ρ_t r_t / Σ ρ_t), sums over all sessions                  slightly biased, with a smaller variance
    DR      mean of Σ_t ρ_{t−1} Σ_b π(b) q̂_t(b) + ρ_t (r_t − q̂_t(a_t))       unbiased, small variance if q̂ is good

After its end a session has rewards of 0 and keeps its weight. q̂_t is the target policy's value from step t on: a ridge
regression for each step, fitted backwards and to earlier sessions only, as in `_evaluation`. Sessions are the units of
the intervals, since the steps of a session are dependent. docs/math/sessions.md has the conditions for an interval.

Sessions that are still open, or whose rewards may still arrive, are left out together with all that began after the
first of them: among those, short sessions and quick rewards would be over-represented.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy

from belated._util.validate import real
from belated.decisions._evaluation import Policy, all_probabilities, target_of
from belated.decisions._intervals import UNITS, Estimate, Mean, carried, estimates, itself
from belated.decisions._model import Model
from belated.decisions._operations import DecisionState, SessionEntry
from belated.decisions._plans import encode_state
from belated.decisions._rows import DecisionRow
from belated.decisions._session_learner import SessionLearner
from belated.decisions._settings import ModelSettings
from belated.errors import InvalidInputError
from belated.types import Floats, Ints

#: Weights of whole sessions have mean 1 in expectation. If their mean is off by more than this, the log has not visited
#: the states that the policy would reach.
_OFF = 0.5
#: q̂ is refitted when the number of sessions has grown by this factor.
_GROWTH = 1.5
#: Ridge parameter λ of q̂.
_RIDGE = 1.0


class SessionEvaluation(NamedTuple):
    """What a log of sessions says about a policy."""

    estimates: tuple[Estimate, ...]
    """PDIS, WPDIS, DR."""
    logged: Estimate
    """The mean return of the log itself."""
    sessions: int
    """Number of sessions used."""
    effective: float
    """Effective sample size: (Σ ρ)²/Σ ρ² of the weights of whole sessions."""
    carrying: float
    """How many sessions carry the estimates; nan if unknown."""
    largest: float
    """The largest importance weight of a session, up to any of its steps."""
    young: int
    """Number of sessions left out because they, or sessions that began earlier, may still get rewards."""
    lost: int
    """Number of sessions left out because some of their rewards never arrived."""
    learned: bool = False
    """Whether the log learned: estimates with an interval are then computed from its last two thirds."""


class UsableSessions(NamedTuple):
    """The sessions of a log that can be used, in the order in which they began."""

    sessions: list[SessionEntry]
    young: int
    lost: int

    @property
    def learned(self) -> bool:
        """Whether they were drawn from more than one set of plans; what a caller has chosen was drawn from none."""
        own = (each for each in self.sessions if any(step.suggestion is None for step in each.steps))
        return len({each.plan for each in own}) > 1


def sessions_in(model: Model) -> Iterator[SessionEntry]:
    """Yield the sessions of a model's log in their current state, in the order in which they began."""
    for row in model.store.log(model.name):
        if isinstance(row, DecisionRow) and row.session is not None and row.step == 0:
            yield model.lookup_session(row.session)


def usable_sessions(sessions: Iterable[SessionEntry]) -> UsableSessions:
    """Return the sessions that have ended with known rewards, and that began before any session still awaiting rewards.

    Cancelled sessions, and those with an inactive step, are left out.
    """
    happened = [each for each in sessions if each.status != "cancelled" and _shown(each)]
    waiting = [each for each in happened if each.status == "open" or (each.due is not None and not _told(each))]
    since = min((each.steps[0].made for each in waiting), default=math.inf)
    old = [each for each in happened if each.steps[0].made < since]
    kept = [each for each in old if _told(each)]
    return UsableSessions(kept, len(happened) - len(old), len(old) - len(kept))


def _shown(session: SessionEntry) -> bool:
    out = (DecisionState.CANCELLED, DecisionState.INACTIVE)
    return all(step.probability is not None and step.status not in out for step in session.steps)


def _told(session: SessionEntry) -> bool:
    return all(step.learned is not None for step in session.steps)


def evaluate_sessions(
    sessions: Iterable[SessionEntry], policy: Policy, settings: ModelSettings, *, level: float = 0.95
) -> SessionEvaluation:
    """Estimate the mean return per session of `policy` in the log of a model (see `sessions_in`)."""
    log = usable_sessions(sessions)
    target = [target_of(policy, session.steps) for session in log.sessions]
    return assess_sessions(log, target, settings, level=level)


def assess_sessions(
    log: UsableSessions, target: Sequence[Sequence[Floats]], settings: ModelSettings, *, level: float = 0.95
) -> SessionEvaluation:
    """Estimate the mean return per session of a policy with the probabilities `target`, one array for each step."""
    real("level", level, above=0.0, below=1.0)
    n = len(log.sessions)
    if n < 2:
        left = f" ({log.young} others may still get rewards)" if log.young else ""
        raise InvalidInputError(f"sessions must hold at least 2 that have ended and have their rewards, got {n}{left}")
    steps = _Steps.of(log.sessions, target)
    weights, before = steps.weights()
    values, expected = predictions(log.sessions, target, settings, steps)
    robust = steps.by_session(before * expected + weights * (steps.rewards - values))
    weighed = _Weighed(steps, weights, robust, _Law.of(log.sessions, target, steps, before), settings.floor)
    found = estimates(weighed, learned=log.learned, level=level)
    logged = itself(Mean.of(steps.by_session(steps.rewards)[:, None], np.ones((n, 1))), n, "sessions", level)
    whole = weights[steps.last]
    squares = float(whole @ whole)
    effective = float(whole.sum()) ** 2 / squares if squares > 0.0 else 0.0
    carrying = weighed.carrying(slice(None), np.ones(n))
    return SessionEvaluation(
        found, logged, n, effective, carrying, float(weights.max()), log.young, log.lost, log.learned
    )


class _Steps(NamedTuple):
    """The steps of all sessions, concatenated."""

    session: Ints
    step: Ints
    last: Ints
    """Index of the last step of each session."""
    ratios: Floats
    """π(a)/p."""
    rewards: Floats

    @classmethod
    def of(cls, sessions: Sequence[SessionEntry], target: Sequence[Sequence[Floats]]) -> _Steps:
        lengths = np.array([len(session.steps) for session in sessions])
        ratios, rewards = [], []
        for session, rows in zip(sessions, target, strict=True):
            for entry, row in zip(session.steps, rows, strict=True):
                assert entry.probability is not None
                assert entry.learned is not None
                ratios.append(row[tuple(entry.actions).index(entry.action)] / entry.probability)
                rewards.append(entry.learned)
        ends = np.cumsum(lengths)
        step = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
        return cls(np.repeat(np.arange(len(lengths)), lengths), step, ends - 1, np.array(ratios), np.array(rewards))

    def weights(self) -> tuple[Floats, Floats]:
        """Return ρ_t and ρ_{t−1} of each step."""
        weights, before = np.empty(len(self.ratios)), np.empty(len(self.ratios))
        so_far = 1.0
        for i, ratio in enumerate(self.ratios.tolist()):
            if self.step[i] == 0:
                so_far = 1.0
            before[i] = so_far
            so_far *= ratio
            weights[i] = so_far
        return weights, before

    def by_session(self, values: Floats) -> Floats:
        return np.bincount(self.session, values, len(self.last)).astype(np.float64)


class _Law(NamedTuple):
    """The possible weights of each step, for every action that the policy would take; known without any reward.

    A step's weight is ρ_{t−1}·π(a)/p(a) with probability p(a), whatever was drawn.
    """

    masses: Floats
    """ρ_{t−1}·π(a)."""
    weights: Floats
    """ρ_{t−1}·π(a)/p(a)."""
    session: Ints
    precisions: Floats
    """Of each session, 1/s: s² = Π_t Σ_a π(a)²/p(a) over its steps."""

    @classmethod
    def of(
        cls, sessions: Sequence[SessionEntry], target: Sequence[Sequence[Floats]], steps: _Steps, before: Floats
    ) -> _Law | None:
        """Return all of them; None if some probabilities of the log are not known."""
        masses, weights, lengths, precisions = [], [], [], []
        pairs = zip(
            (step for each in sessions for step in each.steps), (row for rows in target for row in rows), strict=True
        )
        for so_far, (entry, row) in zip(before.tolist(), pairs, strict=True):
            drawn = all_probabilities(entry)
            if drawn is None:
                return None
            taken = row > 0.0
            with np.errstate(divide="ignore"):
                ratios = row[taken] / drawn[taken]
            masses.append(so_far * row[taken])
            weights.append(so_far * ratios if so_far > 0.0 else np.zeros_like(ratios))
            lengths.append(len(ratios))
            precisions.append(1.0 / math.sqrt(float(row[taken] @ ratios)))
        begins = np.append(0, steps.last[:-1] + 1)
        product = np.multiply.reduceat(np.array(precisions), begins)
        return cls(np.concatenate(masses), np.concatenate(weights), np.repeat(steps.session, lengths), product)


class _Weighed(NamedTuple):
    """Sessions with their weights, as the rule for intervals needs them."""

    steps: _Steps
    weights: Floats
    robust: Floats
    """Contribution of each session to the doubly robust estimate."""
    law: _Law | None
    floor: float

    @property
    def size(self) -> int:
        return len(self.steps.last)

    def means(self, part: slice, counts: Floats) -> dict[str, Mean]:
        paid, counted = self.steps.by_session(self.weights * self.steps.rewards), counts[part, None]
        return {
            "PDIS": Mean.of(paid[part, None], counted),
            "WPDIS": self._weighted(part, counts),
            "DR": Mean.of(self.robust[part, None], counted),
        }

    def _weighted(self, part: slice, counts: Floats) -> Mean:
        """Return Σ_t Σρ_t r_t / Σρ_t: for each step a ratio, as if steps were ages."""
        steps, shape = self.steps, (self.size, int(self.steps.step.max()) + 1)
        rewards, running = np.zeros(shape), np.zeros(shape)
        rewards[steps.session, steps.step] = steps.rewards
        running[steps.session, steps.step] = self.weights
        over = np.arange(shape[1]) > steps.step[steps.last][:, None]
        final = np.broadcast_to(self.weights[steps.last][:, None], shape)
        running[over] = final[over]  # sessions that have ended keep their weights
        shares = counts[part, None] * running[part]
        if shares.size == 0 or shares.sum(axis=0).min() <= 0.0:
            return Mean(math.nan, np.full(len(shares), math.nan))
        return Mean.of(rewards[part], shares)

    def carrying(self, part: slice, counts: Floats) -> float:
        """Return how many sessions carry the estimates.

        Steps of a session are dependent, so the number of steps that do is divided by the mean length of a session.
        """
        if self.law is None:
            return math.nan
        begin, end, _ = part.indices(self.size)
        of = self.law.session
        kept = (of >= begin) & (of < end) & (self.law.masses > 0.0)
        counted = counts[of[kept]]
        if not kept.any():
            return 0.0
        steps = np.count_nonzero((self.steps.session >= begin) & (self.steps.session < end))
        return carried(counted * self.law.masses[kept], counted * self.law.weights[kept]) * (end - begin) / steps

    def precisions(self) -> Floats:
        return np.ones(self.size) if self.law is None else self.law.precisions

    def promised(self, part: slice) -> float:
        """Return 0: a floor hardly ever takes a whole sequence of actions."""
        return 0.0

    def too_few(self, part: slice, carrying: float, *, learned: bool) -> str:
        """Return why `carrying` sessions cannot support an interval; empty if they can."""
        if self.law is None:
            return (
                "some steps were chosen by the caller among more than two actions, and only the propensity of the "
                "chosen action is known; an interval needs that of every action"
            )
        if carrying < UNITS and learned:
            return (
                "this log has learned, so its first third decides whether the rest gives an interval: judging by how "
                f"often it took the policy's actions then, about {carrying:.1f} sessions of the rest would carry the "
                f"estimate, and an interval needs {UNITS}; more sessions or a floor above {self.floor:g} would help"
            )
        if carrying < UNITS:
            return (
                "the policy takes sequences of actions that are rare in this log, and the largest weight of a "
                f"session is {self.weights.max():.0f}: about {carrying:.1f} sessions carry the estimate, and an "
                f"interval needs {UNITS}; more sessions or a floor above {self.floor:g} would help"
            )
        mean = float(self.weights[self.steps.last][part].mean())
        if not abs(mean - 1.0) <= _OFF:
            return (
                f"the weights of sessions have mean {mean:.2f} instead of 1: the log has hardly visited the states "
                "that the policy would reach; more sessions are needed"
            )
        return ""


def predictions(
    sessions: Sequence[SessionEntry], target: Sequence[Sequence[Floats]], settings: ModelSettings, steps: _Steps
) -> tuple[Floats, Floats]:
    """Return q̂ of each logged action, and its mean under the target policy, from fits to earlier sessions."""
    learner, actions = SessionLearner(settings), len(settings.actions)
    names, chances = settings.action_numbers, np.zeros((len(steps.step), actions))
    at = 0
    for number, (session, rows) in enumerate(zip(sessions, target, strict=True)):
        for h, (entry, row) in enumerate(zip(session.steps, rows, strict=True)):
            state = encode_state(settings, entry.context, entry.actions)
            learner.step(number, h, state, names[entry.action])
            chances[at, state.offered] = row
            at += 1
        learner.end(number, terminal=True)
    table = learner.steps(joint=False)
    size = int(table.states.indices.max(initial=0)) + 1
    shape = (len(table.marks), size)
    psi = scipy.sparse.csr_array((table.states.values, table.states.indices, table.states.starts), shape=shape)
    x = psi[table.state]
    values, expected = np.zeros(at), np.zeros(at)
    begins = np.append(0, steps.last + 1)
    first = 1
    while first < len(sessions):
        upto = min(len(sessions), max(first + 1, math.ceil(_GROWTH * first)))
        known, these = slice(0, begins[first]), slice(begins[first], begins[upto])
        fit = _fit(x[known], table.action[known], chances[known], steps.step[known], steps.rewards[known], actions)
        guessed = _values(x[these], fit, steps.step[these])
        values[these] = guessed[np.arange(len(guessed)), table.action[these]]
        expected[these] = (guessed * chances[these]).sum(axis=1)
        first = upto
    return values, expected


def _fit(
    x: scipy.sparse.csr_array, action: Ints, chances: Floats, step: Ints, rewards: Floats, actions: int
) -> list[Floats]:
    """Return the weights of q̂ at each step, shape (A, k), fitted to r + Σ_b π(b) q̂(b) of the next step."""
    longest = int(step.max()) + 1
    fit: list[Floats] = [np.zeros((actions, x.shape[1])) for _ in range(longest)]
    targets = rewards.copy()
    for h in range(longest - 1, -1, -1):
        here = np.flatnonzero(step == h)
        for a in np.unique(action[here]):
            rows = here[action[here] == a]
            part = x[rows]
            gram = (part.T @ part).toarray() + _RIDGE * np.eye(x.shape[1])
            fit[h][a] = scipy.linalg.solve(gram, part.T @ targets[rows], assume_a="pos", check_finite=False)
        if h > 0:
            targets[here - 1] += ((x[here] @ fit[h].T) * chances[here]).sum(axis=1)
    return fit


def _values(x: scipy.sparse.csr_array, fit: list[Floats], step: Ints) -> Floats:
    """Return q̂ of every action at each step; 0 beyond the longest fitted session."""
    found = np.zeros((x.shape[0], fit[0].shape[0]))
    for h, weights in enumerate(fit):
        here = np.flatnonzero(step == h)
        found[here] = x[here] @ weights.T
    return found
