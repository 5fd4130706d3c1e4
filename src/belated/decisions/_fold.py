"""The state of a model: a pure function of a prefix of its log.

`Fold.add` brings in one row. The live model, a restart, the rebuilding that checks it and a learner that follows other
processes' writing all use it, so they agree to the last bit.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from belated._util.validate import integer, real, refuse
from belated.decisions._ledger import IN_FLIGHT, History, Rules, Standing, names_of, standing
from belated.decisions._posterior import Posterior
from belated.decisions._settings import Forgetting
from belated.decisions._store.base import Store
from belated.decisions._store.rows import ACTIVATE, REWARD, TICK, DecisionRow, EventRow, Row, SnapshotRow
from belated.decisions._values import State
from belated.errors import BelatedError, DamagedFileError
from belated.types import Floats

#: Of a snapshot's layout.
VERSION = 2
#: Histories that are kept at hand; others are read from the store when an event comes.
CACHED = 10_000


class Known:
    """A history, with what is computed from it once."""

    __slots__ = ("history", "standing", "time")

    def __init__(self, history: History, time: float) -> None:
        self.history = history
        self.time = time
        """When it was made, in half-lives."""
        self.standing: Standing | None = None
        """What it amounts to; None while it is new."""


class Fold:
    """What a model has learned from the first `seq` places of the log."""

    def __init__(
        self,
        model: str,
        store: Store,
        posterior: Posterior,
        rules: Callable[[int], Rules],
        forgetting: Forgetting | None,
        own_blocks: bool,
    ) -> None:
        self.model, self.posterior = model, posterior
        self._store, self._rules, self._forgetting, self._own_blocks = store, rules, forgetting, own_blocks
        self.seq = 0
        self.activations = 0
        """How many there were since this object was made."""
        self.rows = 0
        """How many rows were added since this object was made."""
        self.made = 0
        """The number of the latest decision."""
        self.version = 0
        """How often the posterior has changed."""
        self.over = 0.0
        """Windows with an end up to this are over."""
        self.latest = 0.0
        """The time of the latest row: the log's time never runs backwards."""
        self.learned = 0
        """How many decisions count with a reward."""
        self.parked = 0
        """Events whose decision is not known yet."""
        self.rewarded = 0.0
        """When the latest reward came, since this object was made."""
        self.counts = dict.fromkeys(State, 0)
        self.blocks: dict[str, int] = {}
        self.next_due: float | None = None
        self._cache: dict[str, Known] = {}

    def add(self, row: Row) -> None:
        """Bring in the next row of the log."""
        self.seq = row.seq
        self.rows += 1
        if isinstance(row, DecisionRow):
            self._decide(row)
        elif row.kind == TICK:
            self._tick(row)
        else:
            self._event(row)

    def time(self, made: float, number: int) -> float:
        """Return a moment in half-lives; 0 if nothing is forgotten."""
        return 0.0 if self._forgetting is None else self._forgetting.time(made, number)

    def known(self, id: str, before: int | None = None) -> Known | None:  # noqa: A002
        """Return a decision of this model with its events, as of place `before`."""
        known = self._cache.get(id)
        if known is None:
            row = self._store.decision(id, before)
            if row is None or row.model != self.model:
                return None
            known = self._keep(History(row, self._store.events(id, before)))
            known.standing = self._standing(known.history)
        return known

    def at_hand(self, id: Any) -> Known | None:  # noqa: A002
        """Return a decision of this model if it need not be read from the store."""
        return self._cache.get(id) if id.__class__ is str else None

    def forget(self, id: str, state: State) -> None:  # noqa: A002
        """Let go of a decision in this state that is no longer kept; what it taught stays."""
        self._cache.pop(id, None)
        self.counts[state] -= 1

    def _decide(self, row: DecisionRow) -> None:
        self.made = max(self.made, row.number)
        self.latest = max(self.latest, row.made)
        self._expect(row.due)
        if self._own_blocks:
            for name in names_of(row.ranking):
                self.posterior.grow(self.blocks.setdefault(name, len(self.blocks)))
        early = self._store.events(row.id, row.seq) if self.parked else ()
        self.parked -= len(early)
        known = self._keep(History(row, early))
        if row.active and not early and (row.due is None or row.due > self.over):  # nearly always
            self._rules(row.settings)  # so that settings of another process are noticed
            known.standing = IN_FLIGHT
            self.counts[State.IN_FLIGHT] += 1
        else:
            self._move(known)

    def _event(self, row: EventRow) -> None:
        self.latest = max(self.latest, row.received)
        if row.kind == REWARD:
            self.rewarded = row.received
        known = self.known(row.id, row.seq)
        if known is None:
            self.parked += 1
            return
        known.history = History(known.history.decision, (*known.history.events, row))
        if row.kind == ACTIVATE:
            self.activations += 1
            self._expect(row.due)
        self._move(known)

    def _tick(self, row: EventRow) -> None:
        assert row.due is not None
        self.latest = max(self.latest, row.received)
        upto, over = row.due, self.over
        while over < upto:
            ended = self._store.due(self.model, over, upto, row.seq, CACHED)
            touched = [self.known(name, row.seq) for _, name in ended]  # with their standing before
            self.over = over = ended[-1][0] if len(ended) >= CACHED else upto
            for known in touched:
                assert known is not None
                self._move(known)
        self.next_due = self._store.next_due(self.model, self.over)

    def _keep(self, history: History) -> Known:
        decision = history.decision
        time = 0.0 if self._forgetting is None else self._forgetting.time(decision.made, decision.number)
        known = Known(history, time)
        if len(self._cache) >= CACHED:
            del self._cache[next(iter(self._cache))]
        self._cache[decision.id] = known
        return known

    def _standing(self, history: History) -> Standing:
        return standing(history, self._rules(history.decision.settings), self.over)

    def _expect(self, due: float | None) -> None:
        if due is not None and due > self.over and (self.next_due is None or due < self.next_due):
            self.next_due = due

    def _move(self, known: Known) -> None:
        """Change the posterior by the difference between what a decision counted for and what it counts for now."""
        before, after = known.standing, self._standing(known.history)
        known.standing = after
        self.counts[after.state] += 1
        old, slot, new = None, 0, after.learned
        if before is not None:
            self.counts[before.state] -= 1
            old, slot = before.learned, before.slot
        if old is None and new is None:
            return
        if old is None or new is None:
            self.learned += 1 if old is None else -1
        elif slot == after.slot:
            if old != new:
                self.version += 1
                self.posterior.correct(*self._place(known, slot), old, new, known.time)
            return
        self.version += 1
        if old is not None:
            self.posterior.unlearn(*self._place(known, slot), old, known.time)
        if new is not None:
            self.posterior.learn(*self._place(known, after.slot), new, known.time)

    def _place(self, known: Known, slot: int) -> tuple[int, Floats]:
        """Return the block and the features that a decision is about."""
        row, d = known.history.decision, self.posterior.dimension
        x = np.frombuffer(row.features, np.float64, d, 8 * d * slot)
        return (self.blocks[names_of(row.ranking)[slot]] if self._own_blocks else 0), x

    def snapshot(self, made: float, *, base: bool = False) -> SnapshotRow:
        """Return the state as a row for the store."""
        header = {
            "layout": VERSION,
            "made": self.made,
            "version": self.version,
            "over": self.over,
            "latest": self.latest,
            "learned": self.learned,
            "parked": self.parked,
            "counts": {state.value: count for state, count in self.counts.items()},
            "blocks": self.blocks,
        }
        text, archive = json.dumps(header), io.BytesIO()
        arrays: dict[str, Any] = self.posterior.state()
        np.savez(archive, **arrays)
        content = archive.getvalue()
        return SnapshotRow(self.model, self.seq, made, int(base), text, content, _digest(text, content))

    def restore(self, row: SnapshotRow) -> None:
        """Go on from a snapshot, after checking it."""
        try:
            if row.digest != _digest(row.header, row.arrays):
                raise refuse("its digest", row.digest.hex(), "that of its content")
            header = json.loads(row.header)
            layout = integer("its layout", header["layout"], at_least=1, at_most=VERSION)
            with np.load(io.BytesIO(row.arrays), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            if layout == 1:  # it has no Σw², which is Σw as long as nothing fades
                if self._forgetting is not None:
                    raise refuse("its layout", layout, f"{VERSION}, since decisions fade")
                arrays["totals"] = arrays["totals"][[0, 1, 2, 2]]
            self.posterior.restore(arrays)
            self.made = integer("made", header["made"], at_least=0)
            self.version = integer("version", header["version"], at_least=0)
            self.over = real("over", header["over"], at_least=0.0)
            self.latest = real("latest", header["latest"], at_least=0.0)
            self.learned = integer("learned", header["learned"], at_least=0)
            self.parked = integer("parked", header["parked"], at_least=0)
            self.counts = {state: integer(state.value, header["counts"][state.value]) for state in State}
            self.blocks = {str(name): integer(name, place, at_least=0) for name, place in header["blocks"].items()}
        except (BelatedError, KeyError, TypeError, ValueError, AttributeError, OSError) as error:
            raise DamagedFileError(
                f"the snapshot at place {row.seq} of {row.model!r} cannot be used: {error}"
            ) from None
        self.seq = row.seq
        self._cache.clear()
        self.next_due = self._store.next_due(self.model, self.over)

    def differences(self, other: Fold) -> list[str]:
        """Return in what two states differ, bit for bit: nothing, if they are equal."""
        found = [
            f"{name}: {getattr(self, name)!r} and {getattr(other, name)!r}"
            for name in ("seq", "made", "version", "over", "latest", "learned", "parked", "counts", "blocks")
            if getattr(self, name) != getattr(other, name)
        ]
        one, two = self.posterior.state(), other.posterior.state()
        found += [f"the sums {name}" for name in one if one[name].tobytes() != two[name].tobytes()]
        return found


def _digest(header: str, arrays: bytes) -> bytes:
    return hashlib.sha256(header.encode() + b"\0" + arrays).digest()
