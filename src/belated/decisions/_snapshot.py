"""The state of a model as a row of the store, so that a restart need not replay the whole log."""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any

import numpy as np

from belated._util.validate import integer, real, refuse
from belated.decisions._core import State
from belated.decisions._operations import DecisionState
from belated.decisions._rows import SnapshotRow
from belated.decisions._sessions import Arrays
from belated.errors import BelatedError, DamagedFileError

#: Version of the layout. Snapshots with another version are rejected.
LAYOUT = 5
#: Attributes that are equal in equal states, besides the posterior.
_COMPARED = (
    "seq",
    "chain",
    "made",
    "version",
    "over",
    "latest",
    "learned",
    "parked",
    "lapsed",
    "parking",
    "counts",
    "blocks",
)


#: Prefix of the arrays of a planner's memory.
_LEARNED = "learned."


def take(state: State, made: float, memory: Arrays | None = None) -> SnapshotRow:
    """Return a snapshot; `memory` is what a model of sessions has learned, including from dropped rows."""
    header = {
        "layout": LAYOUT,
        "made": state.made,
        "version": state.version,
        "over": state.over,
        "latest": state.latest,
        "learned": state.learned,
        "parked": state.parked,
        "lapsed": state.lapsed,
        "parking": state.parking,
        "counts": {where.value: count for where, count in state.counts.items()},
        "blocks": state.blocks,
        "sessions": None if state.sessions is None else state.sessions.header(),
    }
    text, archive = json.dumps(header), io.BytesIO()
    arrays: dict[str, Any] = state.posterior.state()
    arrays |= {_LEARNED + name: each for name, each in (memory or {}).items()}
    np.savez(archive, **arrays)
    content = archive.getvalue()
    return SnapshotRow(state.model, state.seq, made, 0, text, content, _digest(text, content), state.chain)


def without_plans(row: SnapshotRow) -> SnapshotRow:
    """Return a snapshot without a set of plans."""
    header = json.loads(row.header)
    if header["sessions"] is None:
        return row
    header["sessions"] |= {"plan": None, "planned": 0.0, "seen": 0, "told": 0}
    text = json.dumps(header)
    return row._replace(header=text, digest=_digest(text, row.arrays))


def restore(state: State, row: SnapshotRow) -> None:
    """Restore a new state from a snapshot, after checking it."""
    try:
        if row.digest != _digest(row.header, row.arrays):
            raise refuse("its digest", row.digest.hex(), "that of its content")
        header = json.loads(row.header)
        integer("its layout", header["layout"], at_least=LAYOUT, at_most=LAYOUT)
        with np.load(io.BytesIO(row.arrays), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        learned = {name.removeprefix(_LEARNED): arrays.pop(name) for name in list(arrays) if name.startswith(_LEARNED)}
        state.posterior.restore(arrays)
        state.made = integer("made", header["made"], at_least=0)
        state.version = integer("version", header["version"], at_least=0)
        state.over = real("over", header["over"], at_least=0.0)
        state.latest = real("latest", header["latest"], at_least=0.0)
        state.learned = integer("learned", header["learned"], at_least=0)
        state.parked = integer("parked", header["parked"], at_least=0)
        state.lapsed = integer("lapsed", header["lapsed"], at_least=0)
        state.parking = {int(span): integer("parking", count, at_least=1) for span, count in header["parking"].items()}
        state.counts = {where: integer(where.value, header["counts"][where.value]) for where in DecisionState}
        if (header["sessions"] is None) != (state.sessions is None):
            raise refuse("its sessions", header["sessions"], "those of a model of the same kind")
        if state.sessions is not None:
            state.sessions.restore(header["sessions"])
            state.sessions.memory = learned or None
        state.blocks = {str(name): integer(name, block, at_least=0) for name, block in header["blocks"].items()}
    except (BelatedError, KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        raise DamagedFileError(f"the snapshot at position {row.seq} of {row.model!r} cannot be used: {error}") from None
    state.seq, state.chain = row.seq, row.chain
    state.cache.clear()
    state.look_ahead()


def differences(one: State, two: State) -> list[str]:
    """Return how two states differ, bit for bit; empty if they are equal."""
    found = [
        f"{name}: {getattr(one, name)!r} and {getattr(two, name)!r}"
        for name in _COMPARED
        if getattr(one, name) != getattr(two, name)
    ]
    if one.sessions is not None and two.sessions is not None and one.sessions.header() != two.sessions.header():
        found.append("the open sessions, or the set of plans")
    first, second = one.posterior.state(), two.posterior.state()
    return found + [f"the sums {name}" for name in first if first[name].tobytes() != second[name].tobytes()]


def _digest(header: str, arrays: bytes) -> bytes:
    return hashlib.sha256(header.encode() + b"\0" + arrays).digest()
