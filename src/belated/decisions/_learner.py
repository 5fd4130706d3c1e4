"""The learner: decides now, and learns whenever a reward arrives. The simple interface, for one process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from belated._kernels.jit import entry_point
from belated._kernels.sparse_ridge import Places, Singles
from belated._util.validate import array, integer, real, refuse
from belated.decisions._core import Forgotten, Offer, State, apply
from belated.decisions._encoding import MOST_DENSE, MOST_PLACES, check_text
from belated.decisions._engine import Engine
from belated.decisions._ids import Clock, time_of
from belated.decisions._members import SparseOffer, SparsePosterior, unpacked
from belated.decisions._operations import (
    LARGEST,
    Activate,
    Cancel,
    ConflictError,
    Decide,
    Decided,
    Decision,
    DecisionState,
    Entry,
    Operation,
    Outcome,
    Reward,
    Signal,
    Status,
)
from belated.decisions._rows import DecisionRow
from belated.decisions._saving import load, save
from belated.decisions._settings import Forgetting, ModelSettings, check_sparse_memory
from belated.decisions._silence import Silence
from belated.decisions._store.memory import MemoryStore
from belated.errors import BelatedError, InvalidInputError
from belated.types import Floats, Ints, SparseVector

_NAME = "learner"


class TableRequests:
    """Requests with the features of each action, shape (actions, d); all actions share one block of weights."""

    own_weights = False

    def __init__(self, dimension: int, *, sparse: bool = False) -> None:
        self.dimension, self.sparse = dimension, sparse
        self._names: dict[int, tuple[str, ...]] = {}

    def encode(self, given: Decide, settings: ModelSettings) -> Offer:
        table = self._sparse(given.context) if self.sparse else self._check(given.context)
        actions = len(table.begins) if isinstance(table, SparseOffer) else len(table)
        names = self._names.get(actions)
        if names is None:
            names = self._names[actions] = tuple(map(str, range(actions)))
        return Offer(names, table, "null", str(actions))

    def canonical(self, given: Decide) -> bytes:
        if self.sparse:
            offer = self._sparse(given.context)
            numbers = np.concatenate([offer.ends, offer.places, offer.values + np.float32(0.0)])
            return numbers.tobytes() + repr((given.active, given.chosen)).encode()
        table = self._check(given.context)
        return (table + 0.0).tobytes() + repr((table.shape, given.active, given.chosen)).encode()  # −0 becomes 0

    def may_appear(self, id: str, now: float) -> bool:  # noqa: A002
        """Whether an id is a caller's key, which may be used later."""
        return time_of(id) is None

    def _sparse(self, given: Any) -> SparseOffer:
        """Return the nonzero entries of a matrix, sparse in CSR form or dense."""
        if not hasattr(given, "indptr"):
            table = self._check(given)
            rows, columns = np.nonzero(table)
            given = csr(table[rows, columns], columns, np.searchsorted(rows, np.arange(len(table) + 1)))
        ends, places, values = given.indptr, given.indices, given.data
        if places.dtype != np.int32:
            places = np.minimum(places, self.dimension).astype(np.int32)
        ends, values = np.asarray(ends, np.int64), np.asarray(values, np.float32)
        if len(places) > ends[-1]:
            places, values = places[: ends[-1]], values[: ends[-1]]
        wrong = check_rows(ends, places, values, self.dimension, LARGEST)
        if wrong == UNSORTED:
            from scipy.sparse import csr_array

            whole = csr_array((values, places, ends), (len(ends) - 1, self.dimension), copy=True)
            whole.sum_duplicates()
            return self._sparse(whole)
        if wrong:
            raise refuse("contexts", given, WRONG[wrong].format(self.dimension, LARGEST))
        return SparseOffer(ends[:-1], ends[1:], places, values, np.zeros(len(ends) - 1, np.int64))

    def _check(self, given: Any) -> Floats:
        if type(given) is np.ndarray and given.dtype == np.float64 and given.ndim == 2:
            table: Floats = given  # the usual case; copied where it is stored
            flat = table.ravel()
            if table.shape[1] == self.dimension and len(flat) and flat.dot(flat) <= LARGEST:
                return table
        table = array("contexts", given, (None, self.dimension))
        integer("the number of actions in contexts", len(table), at_least=1)
        peak = float(np.abs(table).max())
        if peak > LARGEST:
            raise refuse("contexts", peak, f"of magnitude at most {LARGEST:g}")
        return table


#: What a sparse matrix must be, by the code that `check_rows` returns.
UNSORTED = 1
WRONG = {
    2: "at least one row, each with its entries from indptr[i] to indptr[i + 1]",
    3: "columns from 0 to {0} − 1",
    4: "finite numbers of magnitude at most {1:g}",
}


class csr(NamedTuple):  # noqa: N801
    """A sparse matrix, like SciPy's."""

    data: Floats
    indices: Ints
    indptr: Ints


@entry_point
def check_rows(ends: Ints, places: Places, values: Singles, dimension: int, largest: float) -> int:
    """Return an error code for the rows of a sparse matrix; 0 if they are valid."""
    if ends.size < 2 or ends[0] != 0 or ends[-1] != places.size or places.size != values.size:
        return 2
    found = 0
    for row in range(ends.size - 1):
        if ends[row + 1] < ends[row]:
            return 2
        before = -1
        for k in range(ends[row], ends[row + 1]):
            if not 0 <= places[k] < dimension:
                return 3
            if not abs(values[k]) <= largest:
                return 4
            if places[k] <= before:
                found = UNSORTED
            before = places[k]
    return found


class DecisionLearner:
    """A contextual linear bandit whose rewards arrive later: in any order, repeated, corrected or never.

    The features of every decision are stored, d numbers each, until `forget`: a late reward or a correction needs them.
    Thread-safe; each call is atomic. The settings cannot be changed.

    Parameters
    ----------
    dimension
        Length d of a feature vector. Up to 256, draws are exact; more features are treated as sparse, with approximate
        draws whose cost grows with the number of nonzero features.
    silence
        What a missing reward means: `Unknown()`, `ByAge(seconds)`, `Mature(seconds, default)` or `DefaultAfter(seconds,
        reward)`.
    draws
        Posterior draws per decision: the action is drawn with the fraction of draws that it wins.
    floor
        Fraction of decisions drawn uniformly: each of K actions has at least the probability floor/K.
    scale
        ν, a factor on the posterior's standard deviations.
    noise
        Standard deviation σ of the rewards; with `"auto"` it is estimated from the residuals.
    ridge
        Prior precision λ of the weights; if the noise is estimated, relative to it and to the features' mean length.
    likelihood
        `"gaussian"`, or `"revenue"` for rewards that are mostly zero and otherwise skewed (up to 256 features).
    aggregate
        How several rewards of one decision are combined: first, last, sum, mean, max or min.
    signals
        Names of signals that may precede a reward, reported with `signal`; only with `ByAge`.
    forgetting
        `Forgetting(seconds=...)` or `Forgetting(decisions=...)`, a half-life; None for no forgetting.
    seed
        Seed of the random numbers.
    clock
        Returns seconds since 1970. None for this machine's clock; if it jumps by more than five minutes, calls raise
        `ClockError`.

    Examples
    --------
    >>> from belated.decisions import Unknown
    >>> learner = DecisionLearner(2, silence=Unknown())
    >>> decision = learner.decide([[1.0, 0.0], [0.0, 1.0]])
    >>> learner.in_flight
    1
    >>> learner.feedback(decision.id, 1.0)
    <Status.ACCEPTED: 'accepted'>
    >>> learner.feedback(decision.id, 1.0)  # delivered twice, counted once
    <Status.DUPLICATE: 'duplicate'>
    >>> learner.in_flight, learner.learned
    (0, 1)
    """

    def __init__(
        self,
        dimension: int,
        *,
        silence: Silence,
        draws: int = 32,
        floor: float = 0.002,
        scale: float = 1.0,
        noise: float | str = "auto",
        ridge: float = 1.0,
        likelihood: str = "gaussian",
        aggregate: str = "sum",
        signals: Sequence[str] = (),
        forgetting: Forgetting | None = None,
        seed: int = 0,
        clock: Clock | None = None,
    ) -> None:
        settings = ModelSettings(
            silence=silence, draws=draws, floor=floor, scale=scale, noise=noise, ridge=ridge, likelihood=likelihood,
            aggregate=aggregate, signals=tuple(signals), forgetting=forgetting, seed=seed,
        )  # fmt: skip
        self._engine = _engine(dimension, settings, clock)

    @property
    def dimension(self) -> int:
        return self._engine.state.requests.dimension

    @property
    def settings(self) -> ModelSettings:
        """The settings, immutable; those for named actions are not used."""
        return self._engine.state.settings

    def decide(self, contexts: Any, *, key: str | None = None, active: bool = True) -> Decision:
        """Choose a row of `contexts`, the features of each possible action, shape (actions, d).

        With more than 256 features, `contexts` should be a sparse matrix in CSR form, such as a
        `scipy.sparse.csr_array`.

        With a `key`, the decision has that id, and the same call returns the same decision; other contexts raise
        `ConflictError`. A key can be reused once its decision was forgotten. With `active=False`, the decision counts
        only after `activate`.
        """
        return self._decide(Decide(contexts, None, key if key is None else _check_key(key), active, 1, None, None, key))

    def record(
        self,
        features: Any,
        reward: float | None = None,
        *,
        probability: float | None = None,
        made: float | None = None,
        key: str | None = None,
    ) -> Decision:
        """Learn from a decision made elsewhere: the features of the chosen action and its reward.

        `made` is its time in seconds since 1970, from which windows and forgetting count. The reward may be reported
        later.
        """
        with self._engine.lock:
            if reward is not None:
                real("reward", reward, at_least=-LARGEST, at_most=LARGEST)
            row = features
            if not hasattr(row, "indptr"):
                row = array("features", features, (self.dimension,))[None]
            given = Decide(row, chosen="0", probability=probability, made=made, key=_check_key(key), id=key)
            decision = self._decide(given)
            if reward is not None:
                self.feedback(decision.id, reward)
            return decision

    def _decide(self, given: Decide) -> Decision:
        (answer,) = self._engine.answer([given])
        if isinstance(answer, Decided):
            return self._decision(answer.row)
        assert isinstance(answer, BelatedError)
        raise answer

    def feedback(
        self,
        id: str,  # noqa: A002
        reward: float,
        *,
        event: str = "",
        version: int = 0,
        correction: bool = False,
        observed: float | None = None,
    ) -> Status:
        """Report the reward of a decision, at any time and in any order; return its status.

        Repeating a report changes nothing. A different reward raises `ConflictError`, unless it is a `correction`,
        which replaces the old one exactly, or has another `event` name, for example of a second purchase; rewards of
        several events are aggregated. A `version` orders the corrections of an event: the highest counts, in whatever
        order they arrive.

        A reward for a key without a decision is parked until there is one. An id that never existed raises
        `UnknownNameError`, one that is no longer stored its subclass `ForgottenError`. A late reward, of an expired or
        cancelled decision, is stored but not learned.
        """
        return self._event(Reward(id, reward, event, version, correction, observed))

    def signal(
        self,
        id: str,  # noqa: A002
        signal: str,
        value: float = 1.0,
        *,
        version: int = 0,
        correction: bool = False,
        observed: float | None = None,
    ) -> Status:
        """Report a signal, which may precede a reward; return its status. See `feedback`."""
        return self._event(Signal(id, signal, value, version, correction, observed))

    def cancel(self, id: str) -> Status:  # noqa: A002
        """Cancel a decision and unlearn it exactly, if it was never shown or its features were wrong."""
        return self._event(Cancel(id))

    def activate(self, id: str) -> Status:  # noqa: A002
        """Activate a decision made with `active=False`: it counts from now on."""
        return self._event(Activate(id))

    def _decision(self, row: DecisionRow) -> Decision:
        features: Floats | SparseVector
        if self._engine.state.sparse:
            places, values = unpacked(row.features, 0)
            features = SparseVector(places.astype(np.int64), values.astype(np.float64))
        else:
            features = np.frombuffer(row.features)
        return Decision(row.id, row.number, int(row.ranking[0]), row.probability, features)

    def _event(self, given: Operation) -> Status:
        (outcome,) = self._engine.answer([given])
        assert isinstance(outcome, Outcome)
        if outcome.status is Status.ACCEPTED:
            return Status.ACCEPTED
        if outcome.status is Status.INVALID:
            raise InvalidInputError(outcome.detail)
        if outcome.status is Status.CONFLICT:
            raise ConflictError(f"decision {outcome.id!r}: {outcome.detail}")
        if outcome.status is Status.UNKNOWN:
            raise self._engine.absent(outcome.id)
        return outcome.status

    def lookup(self, id: str) -> Entry:  # noqa: A002
        """Return everything known about a decision: its state, its reward and its history."""
        return self._engine.lookup(id)

    def tick(self) -> int:
        """Close the windows that are due and return their number; decisions and rewards do so, too."""
        ended = 0
        while now := self._engine.tick():
            ended += now
        return ended

    def forget(self, before: int) -> int:
        """Drop the decisions with a number below `before` that are no longer in flight; return their number.

        What was learned from them stays. A reward or a correction for one of them raises `ForgottenError`.
        """
        integer("before", before, at_least=1)
        with self._engine.lock:
            gone = []
            store = self._engine.store
            assert isinstance(store, MemoryStore)
            for row in store.log(_NAME):
                if isinstance(row, DecisionRow) and row.number < before:
                    state = self.lookup(row.id).status
                    if state not in (DecisionState.IN_FLIGHT, DecisionState.INACTIVE):
                        gone.append((row.id, state))
            if gone:
                apply(self._engine.state, Forgotten(gone))
                store.forget(_NAME, [name for name, _ in gone])
                self._engine.whole = False
            return len(gone)

    def mean(self) -> Floats:
        """Return θ̂, the posterior mean of the weights."""
        with self._engine.lock:
            posterior = self._engine.state.posterior
            return posterior.mean() if isinstance(posterior, SparsePosterior) else posterior.mean(0, self._now())

    @property
    def noise(self) -> float:
        """σ, given or estimated so far."""
        with self._engine.lock:
            return self._engine.state.posterior.noise(self._now())

    def _now(self) -> float:
        return self._engine.state.time(self._engine.now(), self._engine.state.made)

    @property
    def in_flight(self) -> int:
        """Number of decisions without a reward whose window is open."""
        return self._engine.state.counts[DecisionState.IN_FLIGHT]

    @property
    def learned(self) -> int:
        """Number of decisions learned with a reward, their own or the default, including forgotten ones."""
        return self._engine.state.learned

    @property
    def counts(self) -> dict[Status, int]:
        """Number of events by status, since this object was created."""
        return dict(self._engine.counts)

    @property
    def oldest(self) -> Decision | None:
        """The oldest decision in flight."""
        found = self._engine.oldest_id()
        row = None if found is None else self._engine.store.decision(found)
        return None if row is None else self._decision(row)

    def save(self, path: str | Path) -> None:
        """Write everything, including decisions in flight, to a file; verified before it replaces an older one."""
        with self._engine.lock:
            save(self._engine, Path(path), _engine)

    @classmethod
    def load(cls, path: str | Path, *, clock: Clock | None = None) -> DecisionLearner:
        """Return the learner that `save` wrote; it continues as if it had never stopped."""
        learner = cls.__new__(cls)
        learner._engine = load(Path(path), lambda dimension, settings: _engine(dimension, settings, clock))
        learner._engine.whole = False
        return learner

    def __repr__(self) -> str:
        """Show the main settings, the counts and the posterior mean."""
        head = ", ".join(f"{weight:.3g}" for weight in self.mean()[:6])
        more = ", ..." if self.dimension > 6 else ""
        return (
            f"DecisionLearner(dimension={self.dimension}, silence={self.settings.silence}, "
            f"in_flight={self.in_flight}, learned={self.learned}, mean=[{head}{more}])"
        )


def _engine(dimension: int, settings: ModelSettings, clock: Clock | None = None) -> Engine:
    integer("dimension", dimension, at_least=1, at_most=MOST_PLACES if settings.ages == 1 else MOST_DENSE)
    settings.check_dense(dimension)
    sparse = settings.is_sparse(dimension)
    if sparse:
        check_sparse_memory(dimension, settings.draws)
    requests = TableRequests(dimension, sparse=sparse)
    store = MemoryStore()
    return Engine(_NAME, store, clock, lambda: State(_NAME, requests, {1: settings}, store))


def _check_key(key: Any) -> Any:
    if key is not None and time_of(check_text("key", key)) is not None:
        raise refuse("key", key, "a string that does not look like a generated id")
    return key
