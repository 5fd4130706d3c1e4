"""How the events of one decision are counted. Pure functions without state.

The *tally* of a decision is a function of its row, of its events in log order, of the settings and of whether its
window is over. The effect of an event is the difference between the tallies before and after it, so nothing is ever
counted twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from belated.decisions._operations import DecisionState, Entry, Event, Reward, Status
from belated.decisions._rows import ACTIVATE, CANCEL, DISCARD, END, REWARD, SEPARATOR, SIGNAL, DecisionRow, EventRow
from belated.decisions._settings import ModelSettings
from belated.decisions._silence import ByAge, DefaultAfter, Mature, Unknown


class Tally(NamedTuple):
    """The result of a decision and its events."""

    state: DecisionState
    reward: float | None
    """The aggregate of all rewards that arrived in time; None if there is none."""
    learned: float | None
    """The reward with which the decision is learned now; None if it is not."""
    slot: int
    """The index in the ranking that the reward is for."""
    parts: tuple[float, ...] = ()
    """What is learned: that reward or, with `ByAge`, the increment of each completed age, each followed by the
    increments of the signals, if there are any."""
    before: tuple[tuple[float, ...], ...] = ()
    """What had been observed before each of these ages: the reward so far, and the signals."""


#: Events after which a decision no longer counts.
_TAKEN_BACK = (CANCEL, DISCARD)

IN_FLIGHT = Tally(DecisionState.IN_FLIGHT, None, None, 0)

_AGGREGATES: dict[str, Callable[[list[float]], float]] = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "sum": sum,
    "mean": lambda values: sum(values) / len(values),
    "max": max,
    "min": min,
}


def rewards(events: Iterable[EventRow]) -> list[float]:
    """Return the rewards that count, the newest version of each event, in the order in which the events happened.

    An event happened at its `observed` time, or else when it was first received; a correction does not change that.
    """
    happened: dict[str, float] = {}
    newest: dict[str, EventRow] = {}
    for event in events:
        if event.kind == REWARD and event.counted:
            when = event.received if event.observed is None else event.observed
            happened[event.event] = min(when, happened.get(event.event, when))
            known = newest.get(event.event)
            if known is None or event.version > known.version:
                newest[event.event] = event
    ordered = sorted(newest, key=lambda name: (happened[name], name))
    return [value for name in ordered if (value := newest[name].reward) is not None]


def aggregate(events: Sequence[EventRow], settings: ModelSettings) -> float | None:
    """Return the aggregate of the rewards in `events`, or None if none counts."""
    if len(events) == 1:  # the usual case
        return events[0].reward if events[0].counted and events[0].kind == REWARD else None
    values = rewards(events)
    return _AGGREGATES[settings.aggregate](values) if values else None


def slot_of(events: Iterable[EventRow]) -> int | None:
    """Return the index in the ranking that the rewards are for, if one of them specifies it."""
    for event in events:
        if event.slot is not None and event.counted:
            return event.slot
    return None


def made_of(decision: DecisionRow, events: Sequence[EventRow]) -> float:
    """Return when a decision was made: at the latest when it was activated, even if a fast clock stamped it."""
    made = decision.made
    for event in events:
        if event.kind == ACTIVATE and event.received < made:
            made = event.received
    return made


def due_of(decision: DecisionRow, events: Sequence[EventRow]) -> float | None:
    """Return when a decision's window ends; None before it is activated or without a window."""
    due, opens = decision.due, ACTIVATE if decision.session is None else END
    for event in events:
        if event.kind == opens:
            due = event.due
    return due


def tally(decision: DecisionRow, events: Sequence[EventRow], settings: ModelSettings, over: float) -> Tally:
    """Return the tally of a decision when all windows that end at or before `over` are closed."""
    active, due, reward, slot = decision.active, decision.due, None, 0
    if events:
        reward, slot = aggregate(events, settings), slot_of(events) or 0
        for event in events:
            if event.kind in _TAKEN_BACK:
                return Tally(DecisionState.CANCELLED, reward, None, slot)
            if event.kind == ACTIVATE:
                active, due = 1, event.due
        if decision.session is not None:
            due = due_of(decision, events)
    if not active:
        return Tally(DecisionState.INACTIVE, reward, None, slot)
    silence, ended = settings.silence, due is not None and due <= over
    if isinstance(silence, ByAge):
        if due is None:  # a session that has not ended
            return IN_FLIGHT if reward is None else Tally(DecisionState.REWARDED, reward, None, slot)
        passed = silence.passed(due, over)
        if not events:  # the usual case
            return silent(silence, len(settings.signals))[passed]
        parts = increments(decision, events, settings, silence, due, passed)
        known: tuple[tuple[float, ...], ...] = ()
        if settings.signals:
            parts, known = with_signals(parts, decision, events, settings, silence, due)
        elif silence.ages > 1:
            known = tuple((sum(parts[:b]),) for b in range(len(parts)))
        if reward is not None:
            return Tally(DecisionState.REWARDED, reward, reward if ended else None, slot, parts, known)
        if ended:
            return Tally(DecisionState.DEFAULTED, None, silence.default, slot, parts, known)
        return Tally(DecisionState.IN_FLIGHT, None, None, slot, parts, known)
    if reward is not None:
        if not ended and isinstance(silence, Mature):  # a reward counts no earlier than its absence
            return Tally(DecisionState.REWARDED, reward, None, slot)
        return Tally(DecisionState.REWARDED, reward, reward, slot, (reward,))
    if not ended:
        return IN_FLIGHT
    if isinstance(silence, Unknown):
        return Tally(DecisionState.EXPIRED, None, None, slot)
    default = silence.reward if isinstance(silence, DefaultAfter) else silence.default
    return Tally(DecisionState.DEFAULTED, None, default, slot, (default,))


@cache
def silent(silence: ByAge, signals: int) -> tuple[Tally, ...]:
    """Return the tallies of decisions without events, by the number of completed ages."""
    found = [IN_FLIGHT]
    for passed in range(1, silence.ages + 1):
        values = [silence.default, *[0.0] * (passed - 1)]
        before: tuple[tuple[float, ...], ...] = ()
        if silence.ages > 1:
            none = (0.0,) * signals
            before = ((0.0, *none), *[(silence.default, *none)] * (passed - 1))
        parts = tuple(each for value in values for each in (value, *(0.0,) * signals))
        if passed < silence.ages:
            found.append(Tally(DecisionState.IN_FLIGHT, None, None, 0, parts, before))
        else:  # signals of the last age predict nothing
            parts = parts[: len(parts) - signals]
            found.append(Tally(DecisionState.DEFAULTED, None, silence.default, 0, parts, before))
    return tuple(found)


def increments(
    decision: DecisionRow,
    events: Sequence[EventRow],
    settings: ModelSettings,
    silence: ByAge,
    due: float,
    passed: int,
) -> tuple[float, ...]:
    """Return the increment of a decision's reward at each of its `passed` completed ages.

    An increment is the change of the known reward from the end of one age to the end of the next, by new events and by
    corrections of old ones. So everything learned about an age was known when it ended, for every decision alike, and
    the increments sum to the reward. Events after the window belong to the last age.
    """
    found: list[float] = []
    before = 0.0
    for left in silence.left[:passed]:
        known = events if left == 0.0 else [event for event in events if came(decision, event) + left <= due]
        value = aggregate(known, settings) if known else None
        reached = silence.default if value is None else value
        found.append(reached - before)
        before = reached
    return tuple(found)


def with_signals(
    parts: tuple[float, ...],
    decision: DecisionRow,
    events: Sequence[EventRow],
    settings: ModelSettings,
    silence: ByAge,
    due: float,
) -> tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]:
    """Return increments, each but the last followed by those of the signals, and what was observed before each."""
    names, found, known = settings.signals, list[float](), list[tuple[float, ...]]()
    before, reward = (0.0,) * len(names), 0.0
    for part, left in zip(parts, silence.left, strict=False):
        known.append((reward, *before))
        found.append(part)
        reward += part
        if left == 0.0:
            break
        newest: dict[str, EventRow] = {}
        for event in events:
            if event.kind == SIGNAL and event.counted and came(decision, event) + left <= due:
                last = newest.get(event.event)
                if last is None or event.version > last.version:
                    newest[event.event] = event
        after = tuple((newest[name].reward or 0.0) if name in newest else 0.0 for name in names)
        found += [new - old for new, old in zip(after, before, strict=True)]
        before = after
    return tuple(found), tuple(known)


def came(decision: DecisionRow, event: EventRow) -> float:
    """Return when an event arrived: the time at which it was received.

    A decision made elsewhere may be recorded long after its events; then it is when they happened, if known.
    """
    if decision.suggestion is not None and event.observed is not None:
        return event.observed
    return event.received


#: No event, by version.
_NONE: dict[int, EventRow] = {}


def judge(
    decision: DecisionRow | None,
    events: tuple[EventRow, ...],
    given: Reward,
    now: float,
    settings: ModelSettings,
    kind: str = REWARD,
) -> tuple[Status, str, int]:
    """Return the status of a reward or signal, the reason, and the version under which it is stored.

    `events` are those already stored under its id. The version is 0 for an original; a `correction` without a version
    replaces the newest.
    """
    version, known = given.version, _NONE
    if events:
        known = {each.version: each for each in events if each.kind == kind and each.event == given.event}
    if known:
        last = max(known)
        if given.correction:
            if _says_the_same(given, known[last]):
                return Status.DUPLICATE, "", 0
            version = last + 1
        same = known.get(version)
        if same is not None and not _says_the_same(given, same):
            hint = "" if version else ", which is not marked as a correction"
            return Status.CONFLICT, f"the {kind} is already {same.reward!r}, got {given.reward!r}{hint}", 0
        if same is not None or version < last:
            replaced = f"it was replaced by version {last} of the event" if version < last else ""
            return Status.DUPLICATE, replaced, 0
    if decision is None:
        return Status.PARKED, "there is no such decision yet", version
    if given.slot is not None:
        slots, slot = len(decision.ranking), slot_of(events)
        if given.slot >= slots:
            return Status.INVALID, f"slot must be below {slots}, the length of the ranking, got {given.slot}", 0
        if slot is not None and slot != given.slot:
            return Status.CONFLICT, f"the reward is for slot {slot} of the ranking, got slot {given.slot}", 0
    for event in events:
        if event.kind in _TAKEN_BACK:
            return Status.LATE, f"the {'decision' if event.kind == CANCEL else 'session'} was cancelled", version
    due = due_of(decision, events) if isinstance(settings.silence, Unknown) else None
    if due is not None and now > due and not any(event.counted for event in known.values()):
        return Status.LATE, "the decision has expired", version
    return Status.ACCEPTED, "", version


def _says_the_same(given: Reward, known: EventRow) -> bool:
    return given.reward == known.reward and (given.slot is None or known.slot is None or given.slot == known.slot)


def entry(row: DecisionRow, events: Sequence[EventRow], found: Tally) -> Entry:
    """Return the public view of a decision with its events."""
    newest: dict[str, int] = {}
    if row.session is not None:  # events of the session follow its own
        events = sorted(events, key=lambda event: event.seq)
    for event in events:
        if event.kind == REWARD and event.counted:
            newest[event.event] = max(event.version, newest.get(event.event, 0))
    past = tuple(
        Event(
            each.kind, each.received, each.reward, *(("", 0) if each.kind == END else
            (each.event.lstrip(SEPARATOR), each.version)),
            bool(each.counted) and (each.kind != REWARD or each.version == newest[each.event]), each.observed,
        )
        for each in events
    )  # fmt: skip
    drawn = None if row.probabilities is None else tuple(np.frombuffer(row.probabilities).tolist())
    return Entry(
        row.id, row.number, row.made, row.ranking[0], row.probability, found.state, found.reward, found.learned,
        found.slot, due_of(row, events), row.ranking, json.loads(row.context), json.loads(row.actions), drawn,
        row.suggestion, past, found.parts[:: len(found.before[0])] if found.before else found.parts,
        row.session, row.step,
    )  # fmt: skip
