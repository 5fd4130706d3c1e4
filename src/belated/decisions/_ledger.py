"""The ledger: what a decision and its events amount to. Pure functions; nothing here remembers anything.

A decision's *history* is its row and the events that came under its id, in the order of the log. What it counts for
follows from that, the rules of its model and whether its window is over; see `standing`. What an event does to the
model is the difference between the standing before and after it, so nothing is ever counted twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from belated._util.validate import choice
from belated.decisions._silence import DefaultAfter, Mature, Silence, Unknown
from belated.decisions._store.rows import ACTIVATE, CANCEL, REWARD, DecisionRow, EventRow
from belated.decisions._values import State, Status


class Rules(NamedTuple):
    """What a model makes of events and of their absence."""

    silence: Silence
    aggregate: str


class History(NamedTuple):
    """A decision and what came under its id."""

    decision: DecisionRow
    events: tuple[EventRow, ...] = ()

    @property
    def due(self) -> float | None:
        """When its window ends; None before it is activated, or if it has none."""
        if self.decision.active or not self.events:
            return self.decision.due
        return next((event.due for event in self.events if event.kind == ACTIVATE), None)


class Standing(NamedTuple):
    """What a history amounts to."""

    state: State
    reward: float | None
    """All rewards that arrived in time, together; None if there is none."""
    learned: float | None
    """The reward with which the decision counts now; None if it does not."""
    slot: int
    """The place in the ranking that it is for."""


AGGREGATES: dict[str, Callable[[list[float]], float]] = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "sum": sum,
    "mean": lambda values: sum(values) / len(values),
    "max": max,
    "min": min,
}


@lru_cache(maxsize=10_000)
def names_of(ranking: str) -> tuple[str, ...]:
    """Return the names of a ranking that is JSON."""
    return tuple(json.loads(ranking))


def check_aggregate(value: object) -> str:
    """Return `value` if it is a way to put several rewards together."""
    return choice("aggregate", value, AGGREGATES)


def rewards(events: Iterable[EventRow]) -> list[float]:
    """Return the rewards that count, of each event the newest version, in the order in which the events happened.

    That is when the sender says, else when the first news of it came; never when a correction did.
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


def counting(events: Sequence[EventRow]) -> list[bool]:
    """Return which events count: not those that came too late, and of each event's versions only the newest."""
    newest: dict[str, int] = {}
    for event in events:
        if event.kind == REWARD and event.counted:
            newest[event.event] = max(event.version, newest.get(event.event, 0))
    return [bool(each.counted) and (each.kind != REWARD or each.version == newest[each.event]) for each in events]


def aggregate(history: History, rules: Rules) -> float | None:
    """Return what the rewards of a history come to, or None if there is none."""
    events = history.events
    if not events:
        return None
    if len(events) == 1:  # nearly always
        return events[0].reward if events[0].counted else None
    values = rewards(events)
    return AGGREGATES[rules.aggregate](values) if values else None


def slot_of(history: History) -> int | None:
    """Return the place in the ranking that the rewards are for, if one of them says so."""
    for event in history.events:
        if event.slot is not None and event.counted:
            return event.slot
    return None


_INACTIVE = Standing(State.INACTIVE, None, None, 0)
IN_FLIGHT = Standing(State.IN_FLIGHT, None, None, 0)


def standing(history: History, rules: Rules, upto: float) -> Standing:
    """Return what a history amounts to, when all windows with an end up to `upto` are over."""
    decision, events = history
    active = decision.active
    reward, slot = None, 0
    if len(events) == 1 and events[0].kind == REWARD:  # nearly always
        if events[0].counted:
            reward, slot = events[0].reward, events[0].slot or 0
    elif events:
        reward, slot = aggregate(history, rules), slot_of(history) or 0
        for event in events:
            if event.kind == CANCEL:
                return Standing(State.CANCELLED, reward, None, slot)
            active = active or event.kind == ACTIVATE
    if not active:
        return Standing(State.INACTIVE, reward, None, slot) if events else _INACTIVE
    due, silence = history.due, rules.silence
    over = due is not None and due <= upto
    if reward is not None:
        held = not over and isinstance(silence, Mature)  # a yes counts no earlier than a no
        return Standing(State.REWARDED, reward, None if held else reward, slot)
    if not over:
        return IN_FLIGHT
    if isinstance(silence, DefaultAfter):
        return Standing(State.DEFAULTED, None, silence.reward, slot)
    if isinstance(silence, Mature):
        return Standing(State.DEFAULTED, None, silence.default, slot)
    return Standing(State.EXPIRED, None, None, slot)


class Verdict(NamedTuple):
    """What is to become of an event."""

    status: Status
    row: EventRow | None
    """What to write down; None if nothing is."""
    detail: str = ""


def judge(
    decision: DecisionRow | None, events: tuple[EventRow, ...], row: EventRow, rules: Rules, *, correction: bool
) -> Verdict:
    """Return what becomes of a reward, given its decision, if there is one, and what already came under its id.

    The row's version is 0 for an original; a `correction` without a version replaces whatever is newest.
    """
    if not events and decision is not None and row.slot is None and row.version == 0:  # nearly always
        return _place(History(decision), row, rules, False)
    versions = {event.version: event for event in events if event.kind == REWARD and event.event == row.event}
    last = max(versions, default=-1)
    if correction and row.version == 0:
        if versions and _says_the_same(row, versions[last]):
            return Verdict(Status.DUPLICATE, None)
        row.version = last + 1
    known = versions.get(row.version)
    replaced = f"version {last} of the event has replaced it" if row.version < last else ""
    if known is not None and not _says_the_same(row, known):
        hint = "" if row.version else ", and it is not said to be a correction"
        return Verdict(Status.CONFLICT, None, f"the reward is already {known.reward!r}, got {row.reward!r}{hint}")
    if known is not None or replaced:
        return Verdict(Status.DUPLICATE, None, replaced)
    if decision is None:
        return Verdict(Status.PARKED, row, "there is no such decision yet")
    corrects = any(event.counted for event in versions.values())
    return _place(History(decision, events), row, rules, corrects)


def _place(history: History, row: EventRow, rules: Rules, corrects: bool) -> Verdict:
    """Return what becomes of a reward that says something new."""
    if row.slot is not None:
        slots, chosen = len(names_of(history.decision.ranking)), slot_of(history)
        if row.slot >= slots:
            return Verdict(
                Status.INVALID, None, f"slot must be below {slots}, the length of the ranking, got {row.slot}"
            )
        if chosen is not None and chosen != row.slot:
            return Verdict(
                Status.CONFLICT, None, f"the reward is for slot {chosen} of the ranking, got slot {row.slot}"
            )
    late = ""
    if any(event.kind == CANCEL for event in history.events):
        late = "the decision was cancelled"
    elif isinstance(rules.silence, Unknown) and not corrects:
        due = history.due
        late = "the decision has expired" if due is not None and row.received > due else ""
    if late:
        row.counted = 0
        return Verdict(Status.LATE, row, late)
    return Verdict(Status.ACCEPTED, row)


def _says_the_same(one: EventRow, other: EventRow) -> bool:
    return one.reward == other.reward and (one.slot is None or other.slot is None or one.slot == other.slot)
