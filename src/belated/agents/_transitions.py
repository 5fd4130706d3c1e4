"""The transitions that have arrived from a simulator: each distinct one once, with a count.

Transitions with equal features before and after and the same action share a row, so the store grows with the number of
distinct transitions, not with the number of steps. With one-hot features the rows are the counts of a table.
"""

from __future__ import annotations

import hashlib
from array import array
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import scipy

from belated.errors import InvalidInputError
from belated.types import Floats, Ints, SparseRows, SparseVector

#: The number of the state that follows a terminal step.
TERMINAL = -1

#: The store is thinned when it exceeds its limit by this factor, so that the work is amortised over many arrivals,
SLACK = 1.25
#: or when it has this many times its limit of states, since states of dropped rows accumulate.
STATES = 4


class Rows(NamedTuple):
    """The transitions of one regression, with statistics of their visits."""

    state: Ints
    action: Ints
    after: Ints
    """The state that followed, or `TERMINAL`."""
    visits: Floats
    rewarded: Floats
    """Number of visits whose reward has arrived."""
    rewards: Floats
    """The sum of the rewards."""
    squares: Floats
    """The sum of their squares."""
    least: Floats
    most: Floats


class Sparse(NamedTuple):
    """Rows of a sparse matrix: row i has the columns `indices[starts[i]:starts[i + 1]]`, with these `values`."""

    starts: Ints
    indices: Ints
    values: Floats


class Steps(NamedTuple):
    """Steps of many episodes, ordered by episode and step."""

    states: Sparse
    """The features of all states: one row per state, or one per action with joint features."""
    marks: npt.NDArray[np.uint64]
    """A hash of each state's features, by which a sample is chosen if there are too many."""
    episode: Ints
    step: Ints
    state: Ints
    action: Ints
    after: Ints
    """The state that followed, or `TERMINAL`."""
    rewards: Floats
    rewarded: npt.NDArray[np.bool_]
    """Whether the reward is known."""


class Arrived(Protocol):
    """The data that plans are made from."""

    def states(self) -> Sparse:
        """Return the features of all states: one row per state, or one per action."""

    def rows(self, slot: int | None = None) -> Rows:
        """Return the rows of regression `slot`, or of all."""

    def outcomes(self) -> Ints:
        """Return the number of pairs visited at least twice, and how many of those had different outcomes."""


class Gathered(NamedTuple):
    """Distinct transitions, in the order of their first visit."""

    features: Sparse
    slot: Ints
    columns: Rows

    def states(self) -> Sparse:
        return self.features

    def rows(self, slot: int | None = None) -> Rows:
        if slot is None:
            return self.columns
        return _taken(self.columns, np.flatnonzero(self.slot == slot))

    def outcomes(self) -> Ints:
        return count_outcomes(self.slot, self.columns)


def gathered(steps: Steps, slots: int, limit: int) -> Gathered:
    """Return the distinct transitions of many steps; beyond `limit`, a uniform sample independent of their order."""
    slot = steps.step if slots > 1 else np.zeros_like(steps.step)
    states, actions = max(len(steps.marks), 1), int(steps.action.max(initial=0)) + 1
    pair = np.unique((slot * states + steps.state) * actions + steps.action, return_inverse=True)[1]
    _, firsts, row = np.unique(pair * (states + 1) + steps.after + 1, return_index=True, return_inverse=True)
    order = np.argsort(firsts)  # numbered like the rows of a `Store`
    row, firsts, count = np.argsort(order)[row], firsts[order], len(order)
    rewards = np.where(steps.rewarded, steps.rewards, 0.0)
    least, most = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, row[steps.rewarded], rewards[steps.rewarded])
    np.maximum.at(most, row[steps.rewarded], rewards[steps.rewarded])
    rewarded = sums(row, steps.rewarded, count)
    columns = Rows(
        steps.state[firsts],
        steps.action[firsts],
        steps.after[firsts],
        sums(row, np.ones(len(row)), count),
        rewarded,
        sums(row, rewards, count),
        sums(row, rewards * rewards, count),
        np.where(rewarded > 0.0, least, 0.0),
        np.where(rewarded > 0.0, most, 0.0),
    )
    slot = slot[firsts]
    if count > SLACK * limit:
        kept = np.sort(np.argsort(_marks(steps.marks, slot, columns), kind="stable")[:limit])
        slot, columns = slot[kept], _taken(columns, kept)
    return Gathered(steps.states, slot, columns)


def _taken(rows: Rows, places: Ints) -> Rows:
    columns: list[Any] = [column[places] for column in rows]
    return Rows(*columns)


def _marks(marks: npt.NDArray[np.uint64], slot: Ints, rows: Rows) -> npt.NDArray[np.uint64]:
    """Return a hash of each row, which depends neither on other rows nor on the order."""
    ends = np.append(marks, np.uint64(0))  # TERMINAL is the last one
    found = mixed(ends[rows.state] ^ mixed(slot.astype(np.uint64)))
    found = mixed(found ^ mixed(rows.action.astype(np.uint64)))
    return mixed(found ^ ends[rows.after])


def mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return a hash of each number: the finaliser of SplitMix64."""
    with np.errstate(over="ignore"):
        x = numbers + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed


def count_outcomes(slot: Ints, rows: Rows) -> Ints:
    """Return the number of pairs visited at least twice, and how many of those had different outcomes."""
    if not len(slot):
        return np.zeros(2, np.int64)
    pairs = (slot * (rows.state.max() + 1) + rows.state) * (rows.action.max() + 1) + rows.action
    pair = np.unique(pairs, return_inverse=True)[1]
    visits, kinds = np.bincount(pair, rows.visits), np.bincount(pair)
    differ = np.bincount(pair, rows.least < rows.most) > 0
    return np.array([np.sum(visits >= 2), np.sum((kinds > 1) | differ)])


_KINDS = {"slot": "q", "state": "q", "action": "q", "after": "q"}
_COLUMNS = ("slot", *Rows._fields)


def with_rewards_in_flight(rows: Rows, largest: float) -> Rows:
    """Return the rows with a substitute for each reward that has not arrived.

    The substitute is the mean reward of the same transition or, if none has arrived, the `largest` possible reward,
    which is optimistic.
    """
    if (rows.rewarded == rows.visits).all():
        return rows
    none = rows.rewarded == 0.0
    share = rows.visits / np.where(none, 1.0, rows.rewarded)
    return rows._replace(
        rewards=np.where(none, rows.visits * largest, rows.rewards * share),
        squares=np.where(none, rows.visits * largest**2, rows.squares * share),
    )


def sums(groups: Ints, values: npt.NDArray[Any], count: int) -> Floats:
    """Return the sum of the `values` in each of `count` groups."""
    return np.asarray(np.bincount(groups, values, count), np.float64)


class Store:
    """Distinct late transitions, independent of the order of arrival.

    Beyond `limit` rows it keeps those with the smallest hashes: a uniform sample of all distinct transitions that does
    not depend on the order of arrival, each with all its visits.
    """

    def __init__(self, limit: int, *, joint: int = 0) -> None:
        """`joint` is the number of actions if features are φ(s, a) of every action, 0 if they are ψ(s)."""
        self.limit = limit
        self._joint, self._rows_per_state = joint > 0, joint or 1
        self._bound = 2**64
        """Rows whose hash reaches this bound are dropped."""
        self._clear()

    def _clear(self) -> None:
        self._states: dict[bytes, int] = {}
        self._keys: list[bytes] = []
        self._starts = array("q", [0])
        self._indices, self._values = array("q"), array("d")
        self._places: dict[tuple[int, int, int, int], int] = {}
        self._rows: dict[str, Any] = {name: array(_KINDS.get(name, "d")) for name in _COLUMNS}
        self.steps = 0
        """Number of steps that the rows represent."""

    def __len__(self) -> int:
        return len(self._places)

    def state(self, state: SparseVector | SparseRows) -> int:
        """Return the number of a state, adding it if its features are new."""
        key = b"".join([part.tobytes() for part in state])
        number = self._states.get(key)
        if number is None:
            number = self._states[key] = len(self._keys)
            self._keys.append(key)
            begin = len(self._indices)
            self._indices.frombytes(state.indices.tobytes())
            self._values.frombytes(state.values.tobytes())
            if isinstance(state, SparseRows):
                self._starts.extend((begin + state.starts[1:]).tolist())
            else:
                self._starts.append(len(self._indices))
        return number

    def add(self, slot: int, state: int, action: int, after: int, reward: float) -> None:
        """Count one step of regression `slot` and its reward."""
        place = self.visit(slot, state, action, after)
        if place is not None:
            self._pay(place, reward)

    def visit(self, slot: int, state: int, action: int, after: int) -> int | None:
        """Count one step, whose reward may arrive later; return the index of its row, or None if the row is dropped."""
        key = slot, state, action, after
        place = self._places.get(key)
        if place is None:
            if self._hash(*key) >= self._bound:
                return None
            place = len(self._places)
            self._append(*key, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        self._rows["visits"][place] += 1.0
        self.steps += 1
        return place

    def pay(self, slot: int, state: int, action: int, after: int, reward: float) -> None:
        """Add the reward of a step that was counted before, unless its row was dropped."""
        place = self._places.get((slot, state, action, after))
        if place is not None:
            self._pay(place, reward)

    def _pay(self, place: int, reward: float) -> None:
        rows = self._rows
        known = rows["rewarded"][place] > 0.0
        rows["least"][place] = min(rows["least"][place], reward) if known else reward
        rows["most"][place] = max(rows["most"][place], reward) if known else reward
        rows["rewarded"][place] += 1.0
        rows["rewards"][place] += reward
        rows["squares"][place] += reward * reward

    def _append(self, *row: Any) -> None:
        self._places[row[:4]] = len(self._places)
        for column, value in zip(self._rows.values(), row, strict=True):
            column.append(value)

    def _hash(self, slot: int, state: int, action: int, after: int) -> int:
        """Return the hash of a row, which does not depend on the numbering of states."""
        if self._bound == 2**64 and len(self) <= SLACK * self.limit:
            return 0  # nothing has to be dropped yet
        follows = self._keys[after] if after != TERMINAL else b"terminal"
        key = b"|".join((self._keys[state], b"%d" % slot, b"%d" % action, follows))
        return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")

    def thin_out(self) -> None:
        """Drop rows if there are too many, and states without rows."""
        crowded = len(self) > SLACK * self.limit
        if not crowded and len(self._keys) <= STATES * self.limit:
            return
        kept = np.arange(len(self))
        if crowded:
            hashes = [self._hash(*key) for key in self._places]
            kept = np.argsort(np.array(hashes, np.uint64), kind="stable")[: self.limit]
            self._bound = hashes[kept[-1]] + 1
        columns = {name: np.array(column)[np.sort(kept)] for name, column in self._rows.items()}
        mentioned = np.stack([columns["state"], columns["after"]], axis=1).ravel()
        used, firsts = np.unique(mentioned[mentioned != TERMINAL], return_index=True)
        used = used[np.argsort(firsts)]  # numbered again in the order in which the rows mention them
        numbers = np.full(len(self._keys) + 1, TERMINAL)  # the last one is that of TERMINAL, −1
        numbers[used] = np.arange(len(used))
        self._keep_states(used)
        self._set_rows(columns, numbers)

    def _keep_states(self, used: Ints) -> None:
        """Keep only these states, in this order."""
        states, each = self.states(), np.arange(self._rows_per_state)
        width = int(states.indices.max(initial=0)) + 1
        matrix = scipy.sparse.csr_array((states.values, states.indices, states.starts), (len(states.starts) - 1, width))
        kept = matrix[(used[:, np.newaxis] * self._rows_per_state + each).ravel()]
        self._keys = [self._keys[number] for number in used.tolist()]
        self._states = {key: number for number, key in enumerate(self._keys)}
        self._starts = array("q", kept.indptr.astype(np.int64).tobytes())
        self._indices = array("q", kept.indices.astype(np.int64).tobytes())
        self._values = array("d", kept.data.tobytes())

    def _set_rows(self, columns: dict[str, npt.NDArray[Any]], numbers: Ints) -> None:
        """Replace the rows; `numbers` has the new number of each state in the columns."""
        columns = {**columns, "state": numbers[columns["state"]], "after": numbers[columns["after"]]}
        for name, column in columns.items():
            kind = _KINDS.get(name, "d")
            self._rows[name] = array(kind, column.astype(kind).tobytes())
        keys = zip(*(columns[name].tolist() for name in _KINDS), strict=True)
        self._places = {key: place for place, key in enumerate(keys)}
        self.steps = int(columns["visits"].sum())

    def _state_of(self, states: Sparse, number: int) -> SparseVector | SparseRows:
        first = number * self._rows_per_state
        starts = states.starts[first : first + self._rows_per_state + 1]
        entries = slice(starts[0], starts[-1])
        if not self._joint:
            return SparseVector(states.indices[entries], states.values[entries])
        return SparseRows(starts - starts[0], states.indices[entries], states.values[entries])

    def states(self) -> Sparse:
        """Return the features of all states: one row per state, or one per action."""
        return Sparse(np.array(self._starts), np.array(self._indices), np.array(self._values))

    def rows(self, slot: int | None = None) -> Rows:
        """Return the rows of regression `slot`, or of all."""
        columns = [np.array(self._rows[name]) for name in Rows._fields]
        if slot is not None:
            chosen = np.array(self._rows["slot"]) == slot
            columns = [column[chosen] for column in columns]
        return Rows(*columns)

    def outcomes(self) -> Ints:
        """Return the number of pairs visited at least twice, and how many of those had different outcomes."""
        return count_outcomes(np.array(self._rows["slot"]), self.rows())

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        """Return the store as named arrays."""
        states = {f"states.{name}": values for name, values in self.states()._asdict().items()}
        rows = {f"rows.{name}": np.array(column) for name, column in self._rows.items()}
        return {**states, **rows, "bound": np.array([self._bound - 1], np.uint64)}

    def restore(self, memory: dict[str, npt.NDArray[Any]], size: int, actions: int, slots: int) -> None:
        """Replace everything by what `memory` returned, after checking it."""
        states = Sparse(*(memory[f"states.{name}"] for name in Sparse._fields))
        columns = {name: memory[f"rows.{name}"] for name in _COLUMNS}
        count, left = divmod(len(states.starts) - 1, self._rows_per_state)
        limits = {"slot": (0, slots), "state": (0, count), "action": (0, actions), "after": (TERMINAL, count)}
        starts_fit = count >= 0 and left == 0 and states.starts[0] == 0 and states.starts[-1] == len(states.indices)
        fits = (
            starts_fit
            and bool((np.diff(states.starts) >= 0).all())
            and len(states.indices) == len(states.values)
            and _within(states.indices, 0, size)
            and len({len(column) for column in columns.values()}) == 1
            and all(_within(columns[name], *limit) for name, limit in limits.items())
            and len(memory["bound"]) == 1
        )
        if not fits:
            raise InvalidInputError("memory must hold states and rows that are consistent with the problem")
        self._clear()
        self._bound = int(memory["bound"][0]) + 1
        numbers = [self.state(self._state_of(states, number)) for number in range(count)]
        self._set_rows(columns, np.array([*numbers, TERMINAL]))


def _within(numbers: npt.NDArray[Any], low: int, high: int) -> bool:
    return not len(numbers) or bool(numbers.min() >= low and numbers.max() < high)
