"""The engine of a learner: contexts are tables of features, and all actions share one block of weights."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from belated._util.validate import array, integer, refuse
from belated.decisions._drawing import Place
from belated.decisions._encoding import Table
from belated.decisions._engine import Engine
from belated.decisions._fold import Fold
from belated.decisions._ids import Clock, new_id, time_of
from belated.decisions._ledger import Rules
from belated.decisions._operations import Decide
from belated.decisions._posterior import Posterior
from belated.decisions._settings import ModelSettings
from belated.decisions._silence import Unknown
from belated.decisions._store.memory import MemoryStore
from belated.decisions._store.rows import REWARD, DecisionRow, EventRow
from belated.decisions._values import LARGEST, Decision, ForgottenError, State, Status
from belated.errors import UnknownNameError
from belated.types import Floats

_NAME = "learner"


class Contexts(dict[str, Any]):
    """The rows of a request, in the place of a JSON context."""

    def __init__(self, rows: Any) -> None:
        super().__init__()
        self.rows = rows


class TableEngine(Engine):
    """The engine of a learner: contexts are tables of features, all actions share one block of weights."""

    def __init__(self, dimension: int, settings: ModelSettings, store: MemoryStore, clock: Clock) -> None:
        self.dimension, self.memory = dimension, store
        self._rules = settings.rules
        self._names: dict[int, tuple[str, ...]] = {}
        self.forgotten: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)  # digests of keys
        super().__init__(_NAME, settings, 1, store, clock)

    @property
    def posterior(self) -> Posterior:
        """What is known about the weights."""
        return self._fold.posterior

    @property
    def fold(self) -> Fold:
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
        assert isinstance(given.context, Contexts)
        return self._check_rows(given.context.rows)

    def _check_rows(self, given: Any) -> Floats:
        if type(given) is np.ndarray and given.dtype == np.float64 and given.ndim == 2:
            table: Floats = given  # nearly always; what is kept of it is copied
            if table.shape[1] == self.dimension and len(table) and float(np.vdot(table, table)) <= LARGEST:
                return table
        table = array("contexts", given, (None, self.dimension))
        integer("the number of actions in contexts", len(table), at_least=1)
        peak = float(np.abs(table).max())
        if peak > LARGEST:
            raise refuse("contexts", peak, f"of magnitude at most {LARGEST:g}")
        return table

    def _names_of(self, actions: int) -> tuple[str, ...]:
        names = self._names.get(actions)
        if names is None:
            names = self._names[actions] = tuple(map(str, range(actions)))
        return names

    def _encode(self, given: Decide) -> tuple[Table, str, str]:
        rows = self._table(given)
        return Table(self._names_of(len(rows)), rows, False), "null", str(len(rows))

    def decide_plainly(self, contexts: Any) -> Decision | None:
        """Do at once what `run` does with a `Decide` that has no options; None if there is more to do than that."""
        with self.lock:
            fold = self._fold
            now = max(self._clock(), fold.latest)
            if fold.parked or (fold.next_due is not None and fold.next_due <= now):
                return None
            rows = self._check_rows(contexts)
            number = fold.made + 1
            place = Place(number, "", 1)
            order, drawn = self._drawer.joint(fold, self.settings, rows, fold.time(now, number), place)
            action = order[0]
            probability = None if drawn is None else float(drawn[action])
            features, window = rows[action].tobytes(), self.settings.silence.seconds
            row = DecisionRow(
                0, self.name, new_id(now), number, now, None, None, 1, fold.version, "null", str(len(rows)),
                f'["{action}"]', None if drawn is None else drawn.tobytes(), probability, None, features, 1,
                None if window is None else now + window,
            )  # fmt: skip
            self.memory.keep(row)
            fold.add(row)
            return Decision(row.id, number, action, probability, np.frombuffer(features))

    def reward_plainly(self, id: str, reward: float) -> bool:  # noqa: A002
        """Do at once what `run` does with the first, plain `Reward` of a decision at hand; False if there is more."""
        with self.lock:
            fold = self._fold
            known = fold.at_hand(id)
            now = max(self._clock(), fold.latest)
            over = fold.next_due is not None and fold.next_due <= now
            if known is None or over or reward.__class__ is not float or not -LARGEST <= reward <= LARGEST:
                return False
            if known.history.events or not known.history.decision.active:
                return False
            if known.history.due is not None and isinstance(self.settings.silence, Unknown):
                return False
            row = EventRow(0, self.name, id, REWARD, "", 0, reward, None, now, None, 1, None)
            self.memory.keep(row)
            fold.add(row)
            self.counts[Status.ACCEPTED] += 1
            return True

    def _answer(self, row: DecisionRow, ranking: tuple[str, ...]) -> Decision:
        return Decision(row.id, row.number, int(ranking[0]), row.probability, np.frombuffer(row.features))

    def oldest(self) -> Decision | None:
        """Return the oldest decision in flight."""
        row = self._oldest()
        return None if row is None else self._answer(row, tuple(json.loads(row.ranking)))

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
