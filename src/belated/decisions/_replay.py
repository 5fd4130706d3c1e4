"""Replay a log under other settings: the same decisions and rewards, at the same times."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from belated.decisions._ledger import entry, tally
from belated.decisions._model import Model
from belated.decisions._operations import Activate, Cancel, Decide, Entry, Operation, Reward, SessionEntry, Signal
from belated.decisions._rows import ACTIVATE, CANCEL, CLOCK, SIGNAL, DecisionRow, EventRow
from belated.decisions._session_evaluation import sessions_in
from belated.decisions._sessions import mixed
from belated.decisions._settings import ModelSettings
from belated.decisions._store.memory import MemoryStore
from belated.types import Floats


def replay(model: Model, settings: ModelSettings) -> Iterator[tuple[Entry, Floats]]:
    """Yield each decision of a model's log with the probabilities that other settings would have given its actions.

    A new model learns from the same decisions and rewards at the same times, and is queried before each decision. The
    decision is yielded in its state at the end of the log. Pass both to `assess` to estimate what the other settings
    would have earned.
    """
    now = 0.0
    other = Model(model.name, settings, MemoryStore(), clock=lambda: now)
    events: dict[str, list[EventRow]] = {}
    over = 0.0
    for row in model.store.log(model.name):
        if isinstance(row, EventRow):
            events.setdefault(row.id, []).append(row)
            over = row.received if row.kind == CLOCK else max(over, row.due or 0.0) if not row.id else over
    for row in model.store.log(model.name):
        if isinstance(row, DecisionRow):
            past = events.get(row.id, [])
            found = entry(row, past, tally(row, past, model.state.settings_of(row.settings), over))
            now = max(now, row.made)
            yield found, other.probabilities(found.context, found.actions)
            again = Decide(
                found.context, found.actions, active=bool(row.active), chosen=row.ranking, probability=row.probability,
                id=row.id, made=row.made,
            )  # fmt: skip
            other.answer([again], all_or_none=True)
        elif row.kind == CLOCK:
            now = row.received
            other.repair_clock()
        else:
            now = max(now, row.received)
            if row.kind == SIGNAL and row.event not in settings.signals:
                continue
            if row.id:
                other.answer([_event(row)])
            else:
                other.tick()


def _event(row: EventRow) -> Operation:
    if row.kind in (ACTIVATE, CANCEL):
        return Activate(row.id) if row.kind == ACTIVATE else Cancel(row.id)
    assert row.reward is not None
    if row.kind == SIGNAL:
        return Signal(row.id, row.event, row.reward, row.version, observed=row.observed)
    return Reward(row.id, row.reward, row.event, row.version, observed=row.observed, slot=row.slot)


def replay_sessions(model: Model, settings: ModelSettings) -> Iterator[tuple[SessionEntry, list[Floats]]]:
    """Yield each session of a model's log with the probabilities of other settings for the actions of each step.

    Wherever the log has published a set of plans, another set is drawn from the same log prefix by the agent of the
    other settings. So a session's probabilities do not depend on later rows, and with the model's own settings they
    equal the logged ones. Pass both to `assess_sessions` to estimate what the other settings would have earned.
    """
    from belated.decisions._plans import Plans, encode_state, plans_from_bytes

    sets: dict[int, Plans] = {}
    planner = model.new_planner()
    for session in sorted(sessions_in(model), key=lambda each: -1 if each.plan is None else each.plan):
        place = session.plan
        if place is not None and place not in sets:
            planner.catch_up(place)
            made = planner.draw(settings, 0, 0.0)
            sets = {place: plans_from_bytes(settings, made.content)}
        weights: Floats | None = None
        rows: list[Floats] = []
        for h, step in enumerate(session.steps):
            names = tuple(step.actions)
            if place is None:  # actions are uniform before the first set
                rows.append(np.full(len(names), 1.0 / len(names)))
                continue
            shares = sets[place].distributions(h, encode_state(settings, step.context, names))
            likely = mixed(shares, settings.floor, len(names))
            rows.append(likely.mean(axis=0) if weights is None else weights @ likely)
            taken = likely[:, names.index(step.action)]  # w_j(t + 1) ∝ w_j(t)·m_j(a_t | s_t)
            weights = taken if weights is None else weights * taken
            weights = weights / weights.sum() if weights.any() else None
        yield session, rows
