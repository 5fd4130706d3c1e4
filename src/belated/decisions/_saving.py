"""A learner in one file: an ordinary NumPy archive with a JSON header, without pickled objects."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from belated._util.files import load_arrays, save_arrays
from belated._util.validate import array, indices, integer, refuse
from belated.decisions._engine import Engine
from belated.decisions._rows import DecisionRow, EventRow, Row, SnapshotRow
from belated.decisions._settings import ModelSettings
from belated.decisions._snapshot import differences, restore, take
from belated.decisions._store.memory import MemoryStore
from belated.errors import BelatedError, DamagedFileError

KIND, VERSION = "belated-decisions", 6

Arrays = dict[str, npt.NDArray[Any]]
#: Fields of a row that hold numbers, some of them with NaN for None.
_DECISION = ("number", "made", "version", "probability", "active", "due")
_EVENT = ("version", "reward", "received", "observed", "counted", "due")
_MAY_BE_NONE = ("probability", "due", "reward", "observed")


#: Creates a learner without decisions from a dimension and settings.
Make = Callable[[int, ModelSettings], Engine]


def save(learner: Engine, path: Path, make: Make) -> None:
    """Write a learner to a temporary file, read it back, and only then replace `path`."""
    store, state = _store(learner), learner.state
    rows = [row for row in store.log(learner.name) if row.id]
    decisions = [row for row in rows if isinstance(row, DecisionRow)]
    events = [row for row in rows if isinstance(row, EventRow)]
    snapshot = take(state, state.latest)
    header = {
        "dimension": state.requests.dimension,
        "settings": state.settings.to_table(),
        "snapshot": snapshot.header,
        "purged": store.purged(learner.name),
        "order": [isinstance(row, DecisionRow) for row in rows],
        "decisions": [[row.id, row.key, row.ranking, row.actions, row.suggestion] for row in decisions],
        "events": [[row.id, row.kind, row.event] for row in events],
    }
    arrays: Arrays = {
        "posterior": np.frombuffer(snapshot.arrays, np.uint8),
        "snapshot digest": np.frombuffer(snapshot.digest, np.uint8),
        "forgotten": store.forgotten_keys,
        "digests": np.frombuffer(b"".join(row.digest or bytes(16) for row in decisions), np.uint8),
        "features": np.frombuffer(
            b"".join(row.features for row in decisions), np.uint8 if state.sparse else np.float64
        ),
        "sizes": np.array([len(row.features) for row in decisions], np.int64),
        "probabilities": np.frombuffer(b"".join(row.probabilities or b"" for row in decisions)),
        "lengths": np.array([len(row.probabilities or b"") // 8 for row in decisions], np.int64),
        **({} if state.settings.forgetting else state.posterior.cached()),
        **_numbers("decision", _DECISION, decisions),
        **_numbers("event", _EVENT, events),
    }
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        save_arrays(beside, KIND, VERSION, header, arrays)
        differ = [text for text in differences(state, load(beside, make).state) if not text.startswith("seq")]
        if differ:
            raise DamagedFileError(f"{path} was not replaced: the written file differs in {', '.join(differ)}")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _numbers(kind: str, names: Sequence[str], rows: Sequence[Row]) -> Arrays:
    def value(given: Any) -> float:
        return math.nan if given is None else float(given)

    return {f"{kind} {name}": np.array([value(getattr(row, name)) for row in rows]) for name in names}


def _store(learner: Engine) -> MemoryStore:
    assert isinstance(learner.store, MemoryStore)
    return learner.store


def load(path: Path, make: Make) -> Engine:
    """Return the learner that `save` wrote."""
    header, arrays = load_arrays(path, KIND, VERSION)
    if header["version"] < VERSION:
        raise DamagedFileError(f"{path} was written by an older version of belated, whose learners cannot be loaded")
    try:
        settings = ModelSettings.from_table(header["settings"])
        learner = make(header["dimension"], settings)
        name, store, state = learner.name, _store(learner), learner.state
        rows = _rows(name, header, arrays, None if state.sparse else state.requests.dimension)
        store.append(rows)
        purged = float(array("purged", header["purged"], ()))
        store.set_forgotten(name, purged, arrays["forgotten"].astype(np.uint64))
        digest, content = arrays["snapshot digest"].tobytes(), arrays["posterior"].tobytes()
        restore(state, SnapshotRow(name, len(rows), 0.0, 1, header["snapshot"], content, digest))
        if settings.forgetting is None:
            state.posterior.restore_cached(arrays)
        _check_counts(learner)
    except (BelatedError, KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise DamagedFileError(f"{path} does not contain a valid learner: {error}") from error
    return learner


def _rows(model: str, header: dict[str, Any], arrays: Arrays, d: int | None) -> list[Row]:
    """Return the rows of a file; their features have the length d, or are sparse."""
    n, m = len(header["decisions"]), len(header["events"])
    order = header["order"]
    if len(order) != n + m or sum(order) != n:
        raise refuse("order", order, "one position for each decision and event")
    if d is not None:
        array("features", arrays["features"], (n * d,))
    features, sizes = arrays["features"].tobytes(), indices("sizes", arrays["sizes"], (n,), 2**31)
    limits = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    if limits[-1] != len(features):
        raise refuse("features", len(features), f"{limits[-1]} bytes, the sum of its sizes")
    probabilities, lengths = arrays["probabilities"], arrays["lengths"]
    if lengths.shape != (n,) or lengths.min(initial=0) < 0 or lengths.sum() != len(probabilities):
        raise refuse("lengths", lengths, "those of the probabilities")
    ends = np.cumsum(lengths)
    digests = arrays["digests"].tobytes()
    column = {name: _column(arrays, f"decision {name}", name, n) for name in _DECISION}
    other = {name: _column(arrays, f"event {name}", name, m) for name in _EVENT}

    def decision(i: int) -> DecisionRow:
        name, key, ranking, actions, suggestion = header["decisions"][i]
        part = probabilities[ends[i] - lengths[i] : ends[i]].tobytes()
        values: dict[str, Any] = {field: each(i) for field, each in column.items()}
        return DecisionRow(
            seq=0, model=model, id=name, key=key, digest=None if key is None else digests[16 * i : 16 * i + 16],
            settings=1, context="null", actions=actions, ranking=tuple(map(str, ranking)), probabilities=part or None,
            suggestion=suggestion, features=features[limits[i] : limits[i + 1]], **values,
        )  # fmt: skip

    def event(i: int) -> EventRow:
        name, kind, title = header["events"][i]
        values: dict[str, Any] = {field: each(i) for field, each in other.items()}
        return EventRow(seq=0, model=model, id=name, kind=kind, event=title, slot=None, **values)

    places = {True: iter(range(n)), False: iter(range(m))}
    return [decision(next(places[True])) if each else event(next(places[False])) for each in order]


def _column(arrays: Arrays, title: str, name: str, length: int) -> Callable[[int], Any]:
    values = arrays[title]
    if values.shape != (length,) or values.dtype != np.float64:
        raise refuse(title, values, f"{length} numbers")
    if name not in _MAY_BE_NONE and not np.isfinite(values).all():
        raise refuse(title, values, "finite")
    whole = name in ("number", "version", "active", "counted")

    def value(i: int) -> Any:
        number = float(values[i])
        return None if math.isnan(number) else int(number) if whole else number

    return value


def _check_counts(learner: Engine) -> None:
    """Raise InvalidInputError unless the decisions are consistent with what was learned from them."""
    state = learner.state
    counts, last = dict.fromkeys(state.counts, 0), 0
    for row in learner.store.log(learner.name):
        if isinstance(row, DecisionRow):
            counts[learner.lookup(row.id).status] += 1
            last = integer("number", row.number, at_least=last + 1, at_most=state.made)
    if counts != state.counts:
        raise refuse("counts", {where.value: n for where, n in state.counts.items()}, "those of the decisions")
