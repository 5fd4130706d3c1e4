"""Rewards, activations and cancellations, as they come in: what becomes of each, and what is written down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from belated._util.validate import flag, integer, real, refuse
from belated.decisions._encoding import LONGEST, check_text
from belated.decisions._ids import time_of
from belated.decisions._ledger import History, Rules, aggregate, judge
from belated.decisions._operations import Activate, Cancel, Reward
from belated.decisions._store.base import Store
from belated.decisions._store.rows import ACTIVATE, CANCEL, REWARD, DecisionRow, EventRow, Row
from belated.decisions._values import LARGEST, Outcome, Status
from belated.errors import InvalidInputError

#: A reward is parked if its id was made within so many seconds, up to so many rewards.
PARKING, MOST_PARKED = 3600.0, 10_000
#: Clocks of different machines may differ by so many seconds.
SKEW = 60.0


class Batch:
    """Operations whose answers are known and whose rows are not stored yet. Nothing has changed."""

    def __init__(self, owner: Any, now: float) -> None:
        self.owner = owner
        self.now = now
        self.rows: list[Row] = []
        self.results: list[Any] = []
        """One for each operation: what a decision is answered with or the error that refuses it, or an `Outcome`."""
        self.decided = 0
        self.undrawn: list[Any] = []
        """Decisions that are in `rows`, but not drawn yet: many are drawn together."""
        self.keys: dict[str, DecisionRow] = {}
        self.histories: dict[str, tuple[DecisionRow | None, tuple[EventRow, ...]]] = {}
        """What this batch adds to, as it will be."""

    def add_event(self, decision: DecisionRow | None, events: tuple[EventRow, ...], row: EventRow) -> None:
        """Write down an event."""
        self.rows.append(row)
        self.histories[row.id] = (decision, (*events, row))


class Intake:
    """Takes events in for one model.

    Parameters
    ----------
    find
        Returns the history of a decision of this model, or None.
    rules
        Returns the rules of a version of the settings.
    parks
        Tells whether an unknown id may be of a decision that will still appear, given the time.
    """

    def __init__(
        self,
        model: str,
        store: Store,
        find: Callable[[str], History | None],
        rules: Callable[[int], Rules],
        parks: Callable[[str, float], bool],
    ) -> None:
        self._model, self._store, self._find, self._rules, self._parks = model, store, find, rules, parks
        self.parked = 0
        """How many are parked already, as far as the owner knows."""

    def reward(self, batch: Batch, given: Reward) -> Outcome:
        """Return what becomes of a reward, and write it down in the batch if that is due."""
        try:
            row = self._row(batch, given)
        except InvalidInputError as error:
            return Outcome(Status.INVALID, str(given.id)[:LONGEST], str(error))
        decision, events = self._history(batch, row.id)
        if decision is None and not events and not self._may_park(row.id, batch):
            return self.absent(row.id)
        rules = self._rules(decision.settings if decision is not None else 0)
        verdict = judge(decision, events, row, rules, correction=given.correction)
        if verdict.row is not None:
            batch.add_event(decision, events, verdict.row)
            events = (*events, verdict.row)
        known = None if decision is None else aggregate(History(decision, events), rules)
        return Outcome(verdict.status, row.id, verdict.detail, known)

    def activate(self, batch: Batch, given: Activate) -> Outcome:
        """Return what becomes of an activation."""
        return self._close(batch, given.id, ACTIVATE)

    def cancel(self, batch: Batch, given: Cancel) -> Outcome:
        """Return what becomes of a cancellation."""
        return self._close(batch, given.id, CANCEL)

    def _close(self, batch: Batch, id: str, kind: str) -> Outcome:  # noqa: A002
        try:
            check_text("id", id)
        except InvalidInputError as error:
            return Outcome(Status.INVALID, str(id)[:LONGEST], str(error))
        decision, events = self._history(batch, id)
        if decision is None:
            return self.absent(id)
        kinds = {event.kind for event in events}
        if kind in kinds or (kind == ACTIVATE and decision.active):
            return Outcome(Status.DUPLICATE, id)
        if CANCEL in kinds:
            return Outcome(Status.CONFLICT, id, "the decision was cancelled")
        seconds = self._rules(decision.settings).silence.seconds
        due = batch.now + seconds if kind == ACTIVATE and seconds is not None else None
        row = EventRow(0, self._model, id, kind, "", 0, None, None, batch.now, None, 1, due)
        batch.add_event(decision, events, row)
        return Outcome(Status.ACCEPTED, id, "", aggregate(History(decision, events), self._rules(decision.settings)))

    def _row(self, batch: Batch, given: Reward) -> EventRow:
        value, name, event, version, observed, slot = (
            given.reward, given.id, given.event, given.version, given.observed, given.slot
        )  # fmt: skip
        if value.__class__ is not float or not -LARGEST <= value <= LARGEST:
            value = real("reward", value, at_least=-LARGEST, at_most=LARGEST)
        check_text("id", name)
        if event != "":
            check_text("event", event)
        if version.__class__ is not int or version or given.correction is not False:
            version = integer("version", version, at_least=0, at_most=2**53)
            if flag("correction", given.correction) and version:
                raise refuse("correction", True, "left out if a version is given")
        if observed is not None:
            observed = real("observed", observed, at_least=0.0, at_most=LARGEST)
        if slot is not None:
            slot = integer("slot", slot, at_least=0, at_most=2**31)
        return EventRow(0, self._model, name, REWARD, event, version, value, slot, batch.now, observed, 1, None)

    def _history(self, batch: Batch, id: str) -> tuple[DecisionRow | None, tuple[EventRow, ...]]:  # noqa: A002
        known = batch.histories.get(id)
        if known is not None:
            return known
        history = self._find(id)
        if history is not None:
            return history
        return None, self._store.events(id) if self.parked and self._store.decision(id) is None else ()

    def _may_park(self, id: str, batch: Batch) -> bool:  # noqa: A002
        if self._store.decision(id) is not None or self.is_forgotten(id):  # of another model, or purged
            return False
        room = self.parked + len(batch.rows) < MOST_PARKED
        return room and self._parks(id, batch.now) and not self.is_forgotten(id)

    def is_forgotten(self, id: str) -> bool:  # noqa: A002
        """Tell whether an unknown id is of the time from which decisions are no longer kept."""
        made = time_of(id)
        return made is not None and made < self._store.purged(self._model)

    def absent(self, id: str) -> Outcome:  # noqa: A002
        """Return the outcome of an event for a decision that is not there."""
        if self.is_forgotten(id):
            return Outcome(Status.UNKNOWN, id, "the decision was forgotten", forgotten=True)
        other = self._store.decision(id) is not None
        return Outcome(Status.UNKNOWN, id, f"there is no such decision{' of this model' if other else ''}")


def parks_young(id: str, now: float) -> bool:  # noqa: A002
    """Tell whether an id is one of ours and so young that its decision may still appear."""
    made = time_of(id)
    return made is not None and now - PARKING <= made <= now + SKEW


def finished(results: Sequence[Any], counts: dict[Status, int]) -> None:
    """Count the outcomes of events."""
    for result in results:
        if isinstance(result, Outcome):
            counts[result.status] += 1
