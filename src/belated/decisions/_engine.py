"""The engine of a model: turns operations into answers and rows, stores the rows, and folds them into the state.

Nothing changes before the rows are stored, and an answer is given only after that. If the store refuses, nothing has
happened. Operations of one batch see one another (a key or an event that comes twice in it counts once), but are all
drawn from the posterior before it.
"""

from __future__ import annotations

import hashlib
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from threading import RLock
from typing import Any, NamedTuple

import numpy as np

from belated._util.validate import flag, integer, real, refuse
from belated.decisions._drawing import Drawer, Drawn, Place
from belated.decisions._encoding import Table, check_text
from belated.decisions._fold import Fold
from belated.decisions._ids import Clock, new_id
from belated.decisions._intake import Batch, Intake, finished
from belated.decisions._ledger import History, Rules, Standing, counting
from belated.decisions._operations import Activate, Cancel, Decide, Operation, Reward
from belated.decisions._posterior import Posterior
from belated.decisions._settings import ModelSettings, check_noise
from belated.decisions._store.base import Store
from belated.decisions._store.rows import TICK, DecisionRow, EventRow
from belated.decisions._values import (
    ConflictError,
    Entry,
    ForgottenError,
    Happening,
    Status,
    StoreError,
)
from belated.errors import BelatedError, DamagedFileError, UnknownNameError
from belated.types import Floats

Result = Any  # an Outcome of an event; of a decision what `_answer` returns, or the error that refuses it

#: Windows that end in one tick, about; rows between two snapshots; places of the log that are searched at a time.
TICK_LIMIT, SNAPSHOT_EVERY, SEARCHED = 1_000, 10_000, 10_000
#: How often a batch is prepared again because another process was faster.
ATTEMPTS = 5

_log = logging.getLogger(__name__)


class _Undrawn(NamedTuple):
    """A decision that was written down, and what it needs to be drawn."""

    result: int
    """Place of its answer."""
    row: DecisionRow
    table: Table
    given: Decide


class Engine(ABC):
    """What `Model` and `DecisionLearner` share. Safe to call from several threads."""

    def __init__(self, name: str, settings: ModelSettings, version: int, store: Store, clock: Clock) -> None:
        self.name, self.store, self.lock = name, store, RLock()
        self._clock = clock
        self._adopt(settings, version)
        self._fold = self._new_fold()
        self._restore(self._fold)
        self._intake = Intake(name, store, self._find, self.rules, self._parks)
        self.counts = dict.fromkeys(Status, 0)
        """How many events ended as what, since the process started."""
        self._saved = self._fold.seq
        self._passed = (0, 0)  # up to this place nothing is in flight, unless there were more activations
        self._texts: dict[tuple[str, ...], str] = {}
        self._drawer = Drawer(name, settings.seed, shared=store.shared)

    @abstractmethod
    def rules(self, version: int) -> Rules:
        """Return the rules of a version of the settings; of 0, the latest."""

    @abstractmethod
    def _describe(self, given: Decide) -> bytes:
        """Return what tells one request from another."""

    @abstractmethod
    def _encode(self, given: Decide) -> tuple[Table, str, str]:
        """Return the features of the actions on offer, and the context and the actions as JSON."""

    @abstractmethod
    def _parks(self, id: str, now: float) -> bool:  # noqa: A002
        """Tell whether an unknown id may be of a decision that will still appear."""

    def _adopt(self, settings: ModelSettings, version: int) -> None:
        self.settings, self.settings_version = settings, version

    def _new_fold(self) -> Fold:
        settings = self.settings
        noise = check_noise(settings.noise)
        own = self._own_blocks()
        posterior = Posterior(
            self._dimension(), scale=settings.scale, noise=noise, ridge=settings.ridge, blocks=0 if own else 1
        )
        return Fold(self.name, self.store, posterior, self.rules, settings.forgetting, own)

    def _configure_posterior(self) -> None:
        settings = self.settings
        noise = check_noise(settings.noise)
        self._fold.posterior.configure(scale=settings.scale, noise=noise, ridge=settings.ridge)

    def _dimension(self) -> int:
        return self.settings.encoding.dimension

    def _own_blocks(self) -> bool:
        return self.settings.encoding.weights == "per action"

    def _restore(self, fold: Fold) -> None:
        """Bring a new fold up to date: the latest snapshot that is whole, and the log after it."""
        for row in self.store.snapshots(self.name):
            try:
                fold.restore(row)
                break
            except DamagedFileError as error:
                if row.base:
                    raise
                _log.warning("%s; going back to an earlier one", error)
        for each in self.store.log(self.name, fold.seq):
            fold.add(each)

    def prepare(self, operations: Sequence[Operation]) -> Batch:
        """Return the answers to `operations`, and the rows to store before giving them."""
        if self.store.shared:
            self.catch_up()
        batch = Batch(self, max(self._clock(), self._fold.latest))
        self._add_tick(batch, TICK_LIMIT)
        self._intake.parked = self._fold.parked
        for each in operations:
            batch.results.append(self._prepare(batch, each))
        self._draw_all(batch)
        return batch

    def _prepare(self, batch: Batch, given: Operation) -> Result:
        if isinstance(given, Decide):
            try:
                return self._decide(batch, given)
            except BelatedError as error:
                return error
        if not isinstance(given, (Reward, Activate, Cancel)):
            raise refuse("each operation", given, "a Decide, Reward, Activate or Cancel")
        if batch.undrawn and isinstance(given.id, str) and given.id in batch.histories:
            self._draw_all(batch)
        if isinstance(given, Reward):
            return self._intake.reward(batch, given)
        if isinstance(given, Activate):
            return self._intake.activate(batch, given)
        return self._intake.cancel(batch, given)

    def finish(self, batch: Batch) -> None:
        """Fold the rows of a batch, now that they are stored, into the state."""
        if self.store.shared:
            self.catch_up()
        else:
            for row in batch.rows:
                self._fold.add(row)
        finished(batch.results, self.counts)
        if self._fold.seq - self._saved >= SNAPSHOT_EVERY:
            self._saved = self._fold.seq
            self._save_if_possible()

    def catch_up(self) -> int:
        """Fold what other processes have stored, and return how many rows that were."""
        with self.lock:
            before = self._fold.rows
            for row in self.store.log(self.name, self._fold.seq):
                self._fold.add(row)
            return self._fold.rows - before

    def _save_if_possible(self) -> None:
        try:
            self.store.save_snapshot(self._fold.snapshot(self._clock()))
        except StoreError as error:  # what was decided is safe all the same; a restart takes longer
            _log.warning("no snapshot of %s could be stored: %s", self.name, error)

    def run(self, operations: Sequence[Operation], *, all_or_none: bool = False) -> list[Result]:
        """Do `operations` in one commit; with `all_or_none` raise the first error of a decision, and do nothing."""
        with self.lock:
            for attempt in range(ATTEMPTS):
                batch = self.prepare(operations)
                if all_or_none:
                    for result in batch.results:
                        if isinstance(result, BelatedError):
                            raise result
                try:
                    commit(self.store, [batch])
                    break
                except ConflictError:  # another process was faster with the same key or event: see what it says
                    if not self.store.shared or attempt == ATTEMPTS - 1:
                        raise
            return batch.results

    def tick(self, limit: int = TICK_LIMIT) -> int:
        """End the windows that are due, at most about `limit`, and return how many did. Call it when traffic stops."""
        with self.lock:
            batch = Batch(self, max(self._clock(), self._fold.latest))
            ended = self._add_tick(batch, integer("limit", limit, at_least=1))
            commit(self.store, [batch])
            return ended

    def _add_tick(self, batch: Batch, limit: int) -> int:
        due = self._fold.next_due
        if due is None or due > batch.now:
            return 0
        ended = self.store.due(self.name, self._fold.over, batch.now, None, limit)
        upto = ended[-1][0] if len(ended) >= limit else batch.now
        batch.rows.append(EventRow(0, self.name, "", TICK, "", 0, None, None, batch.now, None, 1, upto))
        return len(ended)

    def _find(self, id: str) -> History | None:  # noqa: A002
        known = self._fold.known(id)
        return None if known is None else known.history

    @abstractmethod
    def _answer(self, row: DecisionRow, ranking: tuple[str, ...]) -> Any:
        """Return a decision as the caller sees it."""

    def _answer_again(self, row: DecisionRow, ranking: tuple[str, ...]) -> Any:
        """Return a decision that a repeated key has found."""
        return self._answer(row, ranking)

    def _decide(self, batch: Batch, given: Decide) -> Any:
        """Write a decision down in the batch, to be drawn and answered later; return the answer if there is one."""
        digest = None
        if given.key is not None:
            check_text("key", given.key)
            digest = hashlib.blake2b(self._describe(given), digest_size=16).digest()
            if given.key in batch.keys:
                self._draw_all(batch)
            known = batch.keys.get(given.key) or self.store.keyed(self.name, given.key)
            if known is not None:
                if known.digest != digest:
                    raise ConflictError(f"key {given.key!r} already has a decision, made for another request")
                return self._answer_again(known, tuple(json.loads(known.ranking)))
        table, context, actions = self._encode(given)
        made, name = self._check(batch, given, table)
        fold, window = self._fold, self.settings.silence.seconds
        number = fold.made + batch.decided + 1
        row = DecisionRow(
            0, self.name, name, number, made, given.key, digest, self.settings_version, fold.version, context, actions,
            "", None, None, None, b"", int(given.active),
            None if window is None or not given.active else made + window,
        )  # fmt: skip
        batch.rows.append(row)
        batch.decided += 1
        batch.undrawn.append(_Undrawn(len(batch.results), row, table, given))
        if given.id is not None:  # nobody knows a new id yet
            batch.histories[name] = (row, self.store.events(name) if fold.parked else ())
        if given.key is not None:
            batch.keys[given.key] = row
        return None

    def _draw_all(self, batch: Batch) -> None:
        """Draw the decisions of a batch that are not drawn yet, those of the same actions and time together."""
        undrawn, batch.undrawn = batch.undrawn, []
        groups: dict[tuple[float, tuple[str, ...]], list[_Undrawn]] = {}
        for each in undrawn:
            groups.setdefault((self._fold.time(batch.now, each.row.number), each.table.names), []).append(each)
        for (when, _), group in groups.items():
            places = [Place(each.row.number, each.row.id, each.given.size) for each in group]
            drawn = self._draw([each.table for each in group], when, places)
            for each, (order, probabilities) in zip(group, drawn, strict=True):
                batch.results[each.result] = self._complete(each, order, probabilities)

    def _draw(self, tables: Sequence[Table], when: float, places: Sequence[Place]) -> list[Drawn]:
        """Draw decisions among the same actions at the same time."""
        drawer, fold, settings = self._drawer, self._fold, self.settings
        if tables[0].own_blocks:
            x = tables[0].rows if len(tables) == 1 else np.concatenate([table.rows for table in tables])
            return drawer.separate(fold, settings, tables[0].names, x, when, places)
        return [
            drawer.joint(fold, settings, table.rows, when, place) for table, place in zip(tables, places, strict=True)
        ]

    def _complete(self, undrawn: _Undrawn, order: list[int], drawn: Floats | None) -> Any:
        """Write down what was drawn, and return the answer."""
        _, row, table, given = undrawn
        names = table.names
        row.probability = None if drawn is None else float(drawn[order[0]])
        if given.chosen is not None:
            chosen = (given.chosen,) if isinstance(given.chosen, str) else given.chosen
            row.suggestion, row.probability = names[order[0]], given.probability
            order = [names.index(each) for each in chosen]
        ranking = tuple([names[i] for i in order])
        row.ranking = self._text(ranking)
        row.features = b"".join([table.features(i) for i in order])
        row.probabilities = None if drawn is None else drawn.tobytes()
        return self._answer(row, ranking)

    def _text(self, ranking: tuple[str, ...]) -> str:
        """Return a ranking as JSON."""
        text = self._texts.get(ranking)
        if text is None:
            text = json.dumps(ranking, ensure_ascii=False)
            if len(self._texts) < 10_000:
                self._texts[ranking] = text
        return text

    def _check(self, batch: Batch, given: Decide, table: Table) -> tuple[float, str]:
        """Return when a decision is made and its id, after checking the rest of the request."""
        plain = given.id is None and given.chosen is None and given.made is None and given.probability is None
        if plain and given.size.__class__ is int and 1 <= given.size <= len(table.names) and given.active is True:
            return batch.now, new_id(batch.now)  # nearly always
        flag("active", given.active)
        if given.chosen is not None:
            chosen = given.chosen if isinstance(given.chosen, list | tuple) else [given.chosen]
            if not chosen or len(set(chosen)) < len(chosen) or not set(chosen) <= set(table.names):
                raise refuse("chosen", given.chosen, "one of the actions on offer, or a ranking of some")
        integer("size", given.size, at_least=1, at_most=1 if given.chosen is not None else len(table.names))
        if given.probability is not None:
            if given.chosen is None:
                raise refuse("probability", given.probability, "left out, unless the choice is the caller's")
            real("probability", given.probability, above=0.0, at_most=1.0)
        made = batch.now if given.made is None else real("made", given.made, at_least=0.0, at_most=batch.now)
        if given.id is None:
            return made, new_id(batch.now)
        name = check_text("id", given.id)
        known = batch.histories.get(name)
        if (known is not None and known[0] is not None) or self.store.decision(name) is not None:
            raise ConflictError(f"there already is a decision with the id {name!r}")
        return made, name

    def _probabilities(self, given: Decide) -> Floats:
        """Return what a decision would be drawn from now, without making it."""
        with self.lock:
            table, _, _ = self._encode(given)
            now = max(self._clock(), self._fold.latest)
            number = self._fold.made + 1
            ((_, drawn),) = self._draw([table], self._fold.time(now, number), [Place(number, "", 1)])
            if drawn is None:
                raise refuse(
                    "draws", self.settings.draws, "more than 1, or floor positive, if probabilities are wanted"
                )
            return drawn

    def lookup(self, id: str) -> Entry:  # noqa: A002
        """Return all that is known of a decision; an error says whether it was forgotten or never existed."""
        with self.lock:
            known = self._fold.known(check_text("id", id))
            if known is None:
                raise self.absent(id)
            assert known.standing is not None
            return entry_of(known.history, known.standing)

    def _oldest(self) -> DecisionRow | None:
        """Return the oldest decision in flight; a long log is searched in parts, so that others need not wait."""
        while True:
            with self.lock:
                fold = self._fold
                if self._passed[1] != fold.activations:  # an older one may be in flight now
                    self._passed = (0, fold.activations)
                first = self._passed[0]
                last = min(first + SEARCHED, fold.seq)
                found = self.store.silent(self.name, first, last, fold.over)
                self._passed = (last if found is None else found[0] - 1, fold.activations)
                if found is not None:
                    return self.store.decision(found[1])
                if last == fold.seq:
                    return None

    def absent(self, id: str) -> UnknownNameError:  # noqa: A002
        """Return the error that says why there is no such decision."""
        if self._intake.is_forgotten(id):
            return ForgottenError(f"id must be of a decision that is kept, got {id!r}, which was forgotten")
        return UnknownNameError(f"id must be of a decision that was made, got {id!r}, which never was")


def commit(store: Store, batches: Sequence[Batch]) -> None:
    """Store the rows of all `batches` in one commit, and then let each model learn its own."""
    rows = batches[0].rows if len(batches) == 1 else [row for batch in batches for row in batch.rows]
    if rows:
        store.append(rows)
    for batch in batches:
        batch.owner.finish(batch)


def entry_of(history: History, standing: Standing) -> Entry:
    """Return a decision with all that came of it."""
    row = history.decision
    ranking = tuple(json.loads(row.ranking))
    drawn = None if row.probabilities is None else tuple(np.frombuffer(row.probabilities).tolist())
    events = tuple(
        Happening(event.kind, event.received, event.reward, event.event, event.version, counts)
        for event, counts in zip(history.events, counting(history.events), strict=True)
    )
    return Entry(
        row.id, row.number, row.made, ranking[0], row.probability, standing.state, standing.reward, standing.learned,
        standing.slot, history.due, ranking, json.loads(row.context), json.loads(row.actions), drawn, row.suggestion,
        events,
    )  # fmt: skip
