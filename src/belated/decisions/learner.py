"""The learner: decides now, and learns whenever a reward comes. The simple face of the library, in one process."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from belated.decisions.encoding import Table, check_text
from belated.decisions.engine import Engine
from belated.decisions.ids import Clock, time_of
from belated.decisions.ledger import Rules
from belated.decisions.operations import Activate, Cancel, Decide, Operation, Reward
from belated.decisions.settings import Forgetting, ModelSettings
from belated.decisions.silence import Silence
from belated.decisions.store.memory import MemoryStore
from belated.decisions.store.rows import DecisionRow
from belated.decisions.values import (
    LARGEST,
    Choice,
    ConflictError,
    Decision,
    Entry,
    ForgottenError,
    Outcome,
    State,
    Status,
)
from belated.errors import BelatedError, InvalidInputError, UnknownNameError
from belated.types import Floats
from belated.validate import array, integer, real, refuse

_NAME = "learner"


class DecisionLearner:
    """A contextual linear bandit whose rewards come later: in any order, repeated, corrected or never.

    The features of every decision are kept, d numbers each, until `forget`: a late reward or a correction needs
    them. Several threads may call it; each call is done as a whole. The settings cannot be changed.

    Parameters
    ----------
    dimension
        Length d of a feature vector.
    silence
        What no reward means: `Unknown()`, `DefaultAfter(seconds, reward)` or `Mature(seconds, default)`.
    draws
        Posterior draws per decision: the shares of their winners are the probabilities the action is drawn from.
    floor
        Share of decisions taken at random: each of K actions has at least the probability floor/K.
    scale
        ν, multiplies the posterior's standard deviations.
    noise
        Standard deviation σ of the rewards; `"auto"`: estimated from the residuals.
    ridge
        Prior precision λ of the weights; if the noise is estimated, in units of 1/σ².
    aggregate
        How several rewards of one decision are put together: first, last, sum, mean, max or min.
    forgetting
        `Forgetting(seconds=...)` or `Forgetting(decisions=...)`: a half-life; None: nothing fades.
    seed
        Seed of the random numbers.
    clock
        Returns seconds since 1970.

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
        floor: float = 0.01,
        scale: float = 1.0,
        noise: float | str = "auto",
        ridge: float = 1.0,
        aggregate: str = "sum",
        forgetting: Forgetting | None = None,
        seed: int = 0,
        clock: Clock = time.time,
    ) -> None:
        settings = ModelSettings(
            silence=silence, draws=draws, floor=floor, scale=scale, noise=noise, ridge=ridge, aggregate=aggregate,
            forgetting=forgetting, seed=seed,
        )  # fmt: skip
        self._engine = _Engine(integer("dimension", dimension, at_least=1), settings, MemoryStore(), clock)

    @property
    def dimension(self) -> int:
        """Length of a feature vector."""
        return self._engine.dimension

    @property
    def settings(self) -> ModelSettings:
        """The settings, frozen; those about named actions are not used."""
        return self._engine.settings

    def decide(self, contexts: Floats | list[list[float]], *, key: str | None = None, active: bool = True) -> Decision:
        """Choose a row of `contexts`, the features of each possible action, shape (actions, d).

        With a `key` the decision has that id, and asking again with the same contexts returns it unchanged; other
        contexts raise `ConflictError`. A key is free again once its decision was forgotten. With `active=False` it
        counts only after `activate`.
        """
        return self._decide(Decide(context=_Contexts(contexts), key=_check_key(key), id=key, active=active))

    def record(
        self,
        features: Floats | list[float],
        reward: float | None = None,
        *,
        probability: float | None = None,
        made: float | None = None,
        key: str | None = None,
    ) -> Decision:
        """Learn from a decision that somebody else made: the features of what was chosen, and how it went.

        `made` is when, in seconds since 1970: windows and forgetting count from then. The reward may come later.
        """
        with self._engine.lock:
            if reward is not None:
                real("reward", reward, at_least=-LARGEST, at_most=LARGEST)
            contexts = _Contexts([array("features", features, (self.dimension,))])
            given = Decide(
                context=contexts, chosen="0", probability=probability, made=made, key=_check_key(key), id=key
            )
            decision = self._decide(given)
            if reward is not None:
                self.feedback(decision.id, reward)
            return decision

    def _decide(self, given: Decide) -> Decision:
        engine = self._engine
        with engine.lock:
            result = engine.run([given])[0]
            if isinstance(result, BelatedError):
                raise result
            assert isinstance(result, Choice)
            return engine.decision(result.id)

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
        """Report the reward of a decision, at any time and in any order; return what became of it.

        The same again changes nothing. Another reward raises `ConflictError`, unless it is a `correction`, which
        replaces the old one exactly, or another `event`: the sender's names of two purchases, say, which are then
        put together. A `version` orders the corrections of an event: the highest counts, whatever comes last.

        A reward for a key that has no decision yet is parked until it has one. `UnknownNameError` and its kind
        `ForgottenError` tell a decision that never was from one that is no longer kept. A reward that is late, its
        decision being expired or cancelled, is kept but not learned.
        """
        given = Reward(id=id, reward=reward, event=event, version=version, correction=correction, observed=observed)
        return self._event(given)

    def cancel(self, id: str) -> Status:  # noqa: A002
        """Take a decision back, and exactly what it taught: it was never shown, or its features were wrong."""
        return self._event(Cancel(id=id))

    def activate(self, id: str) -> Status:  # noqa: A002
        """Let a decision made with `active=False` count from now on."""
        return self._event(Activate(id=id))

    def _event(self, given: Operation) -> Status:
        outcome = self._engine.run([given])[0]
        assert isinstance(outcome, Outcome)
        if outcome.status is Status.INVALID:
            raise InvalidInputError(outcome.detail)
        if outcome.status is Status.CONFLICT:
            raise ConflictError(f"decision {outcome.id!r}: {outcome.detail}")
        if outcome.status is Status.UNKNOWN:
            raise self._engine.absent(outcome.id)
        return outcome.status

    def lookup(self, id: str) -> Entry:  # noqa: A002
        """Return all that is known of a decision: its state, its reward and its history."""
        return self._engine.lookup(id)

    def tick(self) -> int:
        """End the windows that are due and return how many did: for when no decision or reward comes to do it."""
        ended = 0
        while now := self._engine.tick():
            ended += now
        return ended

    def forget(self, before: int) -> int:
        """Drop the decisions with a number below `before` that are no longer in flight; return how many.

        What they taught stays. A reward or a correction for one of them raises `ForgottenError`.
        """
        return self._engine.forget(integer("before", before, at_least=1))

    def mean(self) -> Floats:
        """Return θ̂, the posterior mean of the weights."""
        with self._engine.lock:
            return self._engine.posterior.mean(0, self._engine.now())

    @property
    def noise(self) -> float:
        """σ, given or estimated so far."""
        with self._engine.lock:
            return self._engine.posterior.noise(self._engine.now())

    @property
    def in_flight(self) -> int:
        """How many decisions have neither a reward nor a window that is over."""
        return self._engine.count(State.IN_FLIGHT)

    @property
    def learned(self) -> int:
        """How many decisions count with a reward, their own or the default; forgotten ones included."""
        return self._engine.learned

    @property
    def counts(self) -> dict[Status, int]:
        """How many events ended as what, since this object was made."""
        return dict(self._engine.counts)

    @property
    def oldest(self) -> Decision | None:
        """The oldest decision in flight."""
        return self._engine.oldest()

    def save(self, path: str | Path) -> None:
        """Write everything, decisions in flight included, to one file: checked before it replaces an older one."""
        from belated.decisions.saving import save

        with self._engine.lock:
            save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, *, clock: Clock = time.time) -> DecisionLearner:
        """Return the learner that `save` wrote; it goes on as if it had never stopped."""
        from belated.decisions.saving import load

        return load(Path(path), clock)

    def __repr__(self) -> str:
        """Show the settings that matter most, the counts and the posterior mean."""
        head = ", ".join(f"{weight:.3g}" for weight in self.mean()[:6])
        more = ", ..." if self.dimension > 6 else ""
        return (
            f"DecisionLearner(dimension={self.dimension}, silence={self.settings.silence}, "
            f"in_flight={self.in_flight}, learned={self.learned}, mean=[{head}{more}])"
        )


class _Contexts(dict[str, Any]):
    """The rows of a request, in the place of a JSON context."""

    def __init__(self, rows: Any) -> None:
        super().__init__()
        self.rows = rows


def _check_key(key: Any) -> Any:
    if key is not None and time_of(check_text("key", key)) is not None:
        raise refuse("key", key, "a string that does not look like the ids given without a key")
    return key


class _Engine(Engine):
    """The engine of a learner: contexts are tables of features, all actions share one block of weights."""

    def __init__(self, dimension: int, settings: ModelSettings, store: MemoryStore, clock: Clock) -> None:
        self.dimension, self.memory = dimension, store
        self._rules = settings.rules
        self._names: dict[int, tuple[str, ...]] = {}
        self._passed = 0  # up to here in the log nothing is in flight
        self.forgotten: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)  # digests of keys
        super().__init__(_NAME, settings, 1, store, clock)

    @property
    def posterior(self) -> Any:
        """What is known about the weights."""
        return self._fold.posterior

    @property
    def fold(self) -> Any:
        """The state, for saving."""
        return self._fold

    @property
    def learned(self) -> int:
        """How many decisions count with a reward."""
        return self._fold.learned

    def count(self, state: State) -> int:
        """Return how many decisions are in a state."""
        return self._fold.counts[state]

    def now(self) -> float:
        """Return the time in half-lives."""
        return self._fold.time(max(self._clock(), self._fold.latest), self._fold.made)

    def rules(self, version: int) -> Rules:
        """Return the rules: they never change."""
        return self._rules

    def _dimension(self) -> int:
        return self.dimension

    def _own_blocks(self) -> bool:
        return False

    def _parks(self, id: str, now: float) -> bool:  # noqa: A002
        return time_of(id) is None and not self._is_forgotten(id)

    def _describe(self, given: Decide) -> bytes:
        rows = self._table(given)
        return (rows + 0.0).tobytes() + repr((rows.shape, given.active, given.chosen)).encode()  # −0 becomes 0

    def _table(self, given: Decide) -> Floats:
        assert isinstance(given.context, _Contexts)
        table = array("contexts", given.context.rows, (None, self.dimension))
        integer("the number of actions in contexts", len(table), at_least=1)
        peak = max(float(table.max()), -float(table.min()))
        if peak > LARGEST:
            raise refuse("contexts", peak, f"of magnitude at most {LARGEST:g}")
        return table

    def _encode(self, given: Decide) -> tuple[Table, str, str]:
        rows = self._table(given)
        names = self._names.get(len(rows))
        if names is None:
            names = self._names[len(rows)] = tuple(map(str, range(len(rows))))
        return Table(names, rows, False), "null", str(len(rows))

    def decision(self, id: str) -> Decision:  # noqa: A002
        """Return a decision as the caller sees it."""
        known = self._fold.known(id)
        assert known is not None
        row = known.history.decision
        return Decision(row.id, row.number, int(known.names[0]), row.probability, known.rows[0])

    def oldest(self) -> Decision | None:
        """Return the oldest decision in flight."""
        with self.lock:
            advance = True
            for row in self.store.log(self.name, self._passed):
                if isinstance(row, DecisionRow):
                    known = self._fold.known(row.id)
                    assert known is not None and known.standing is not None
                    if known.standing.state is State.IN_FLIGHT:
                        return self.decision(row.id)
                    advance = advance and known.standing.state is not State.INACTIVE
                if advance:
                    self._passed = row.seq
            return None

    def forget(self, before: int) -> int:
        """Drop old decisions that are no longer in flight."""
        with self.lock:
            gone = []
            for row in self.store.log(self.name):
                if isinstance(row, DecisionRow) and row.number < before:
                    known = self._fold.known(row.id)
                    assert known is not None and known.standing is not None
                    state = known.standing.state
                    if state not in (State.IN_FLIGHT, State.INACTIVE):
                        gone.append((row, state))
            if gone:
                for row, state in gone:
                    self._fold.forget(row.id, state)
                keys = np.array([_short(row.key) for row, _ in gone if row.key is not None], np.uint64)
                self.forgotten = np.union1d(self.forgotten, keys)
                latest = max(row.made for row, _ in gone) + 1e-3  # ids hold whole milliseconds
                self.memory.drop(self.name, [row.id for row, _ in gone], latest)
            return len(gone)

    def absent(self, id: str) -> UnknownNameError:  # noqa: A002
        """Return the error that says why there is no such decision."""
        if self._is_forgotten(id) or self._intake.is_forgotten(id):
            return ForgottenError(f"id must be of a decision that is kept, got {id!r}, which was forgotten")
        return UnknownNameError(f"id must be of a decision that was made, got {id!r}, which never was")

    def _is_forgotten(self, id: str) -> bool:  # noqa: A002
        place = int(np.searchsorted(self.forgotten, _short(id)))
        return place < len(self.forgotten) and self.forgotten[place] == _short(id)


def _short(key: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little"))
