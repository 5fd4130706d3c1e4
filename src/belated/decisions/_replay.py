"""Play a log through other settings: the same decisions and rewards, at the same times."""

from __future__ import annotations

from collections.abc import Iterator

from belated.decisions._engine import entry_of
from belated.decisions._ledger import History, standing
from belated.decisions._model import Model
from belated.decisions._operations import Activate, Cancel, Decide, Operation, Reward
from belated.decisions._settings import ModelSettings
from belated.decisions._store.memory import MemoryStore
from belated.decisions._store.rows import ACTIVATE, CANCEL, DecisionRow, EventRow
from belated.decisions._values import Entry
from belated.errors import BelatedError
from belated.types import Floats


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def replay(model: Model, settings: ModelSettings) -> Iterator[tuple[Entry, Floats]]:
    """Yield each decision of a model's log, and the probabilities that other settings would have given its actions.

    A new model learns from the same decisions and rewards at the same times, and is asked before each decision. The
    decision is yielded as it stands at the end of the log. Hand both to `evaluation.assess` to estimate what the
    other settings would have earned.
    """
    clock = _Clock()
    other = Model(model.name, settings, MemoryStore(), clock=clock)
    events: dict[str, list[EventRow]] = {}
    upto = 0.0
    for row in model.store.log(model.name):
        if isinstance(row, EventRow):
            events.setdefault(row.id, []).append(row)
            upto = max(upto, row.due or 0.0) if not row.id else upto
    for row in model.store.log(model.name):
        if isinstance(row, DecisionRow):
            history = History(row, tuple(events.get(row.id, ())))
            entry = entry_of(history, standing(history, model.rules(row.settings), upto))
            clock.now = max(clock.now, row.made)
            yield entry, other.probabilities(entry.context, entry.actions)
            _do(other, _decision_again(row, entry))
        else:
            clock.now = max(clock.now, row.received)
            if row.id:
                _do(other, _event_again(row))
            else:
                other.tick()


def _decision_again(row: DecisionRow, entry: Entry) -> Decide:
    return Decide(
        context=entry.context, actions=entry.actions, active=bool(row.active), chosen=entry.ranking,
        probability=row.probability, id=row.id, made=row.made,
    )  # fmt: skip


def _event_again(row: EventRow) -> Operation:
    if row.kind in (ACTIVATE, CANCEL):
        return Activate(id=row.id) if row.kind == ACTIVATE else Cancel(id=row.id)
    assert row.reward is not None
    return Reward(
        id=row.id, reward=row.reward, event=row.event, version=row.version, observed=row.observed, slot=row.slot
    )


def _do(model: Model, operation: Operation) -> None:
    for result in model.run([operation]):
        if isinstance(result, BelatedError):
            raise result
