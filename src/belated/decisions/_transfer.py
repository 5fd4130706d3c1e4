"""The log for other programs: out to Parquet in the columns of the Open Bandit convention, in from it, and backups."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from belated._util.files import write_atomically
from belated._util.validate import real, refuse
from belated.decisions._model import Model
from belated.decisions._operations import Cancel, Decide, DecisionState, End, Entry, Operation, Reward
from belated.decisions._session_settings import CUT, TERMINAL
from belated.decisions._sessions import find
from belated.decisions._store.sqlite import SQLiteStore
from belated.errors import DamagedFileError, InvalidInputError
from belated.types import Floats

if TYPE_CHECKING:
    import polars as pl

#: Columns of an export. The first five are those of the Open Bandit convention; the rest is what it has no place for.
COLUMNS = (
    "timestamp", "item_id", "position", "click", "propensity_score", "id", "status", "reported", "context", "actions",
    "session", "step", "ended",
)  # fmt: skip

#: Rows of a file that are learned in one commit.
_AT_ONCE = 500


def to_frame(model: Model) -> pl.DataFrame:
    """Return every decision as it stands now, `context` and `actions` as JSON.

    `click` is the reward that the decision counts with, so its mean is that of the log: what was reported, or what
    silence means once the window is over; null as long as it does not count. `reported` is what came, null if nothing.
    The last step of a session says how it `ended`: terminal or cut, null if it is open.
    """
    import polars as pl

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    rows = [
        (
            entry.made, entry.action, entry.slot, entry.learned, entry.probability, entry.id, entry.status.value,
            entry.reward, text(entry.context), text(entry.actions), entry.session, entry.step, _ended(model, entry),
        )
        for entry in model.log()
    ]  # fmt: skip
    strings = ("item_id", "id", "status", "context", "actions", "session", "ended")
    kinds = {name: pl.String() if name in strings else pl.Float64() for name in COLUMNS}
    return pl.DataFrame(rows, schema={**kinds, "position": pl.Int64(), "step": pl.Int64()}, orient="row")


def _ended(model: Model, entry: Entry) -> str | None:
    """Return how the session of a step has ended, if it is its last."""
    session = None if entry.session is None else find(model.state, entry.session)
    if session is None or session.end is None or session.ids[-1] != entry.id:
        return None
    return TERMINAL if session.end.version % 2 else CUT


def export_log(model: Model, path: str | Path) -> int:
    """Write every decision to a Parquet file, atomically; return how many there are."""
    return _write(to_frame(model), path)


def write_replay(pairs: Iterable[tuple[Entry, Floats]], path: str | Path) -> int:
    """Write decisions with the probabilities of other settings (see `replay`); return how many there are."""
    import polars as pl

    rows = [
        (
            entry.id, entry.made, entry.action, entry.probability, entry.learned, list(entry.actions), drawn.tolist()
        )
        for entry, drawn in pairs
    ]  # fmt: skip
    schema = {
        "id": pl.String(),
        "timestamp": pl.Float64(),
        "item_id": pl.String(),
        "propensity_score": pl.Float64(),
        "learned": pl.Float64(),
        "actions": pl.List(pl.String()),
        "probabilities": pl.List(pl.Float64()),
    }
    return _write(pl.DataFrame(rows, schema=schema, orient="row"), path)


def _write(frame: pl.DataFrame, path: str | Path) -> int:
    from io import BytesIO

    content = BytesIO()
    frame.write_parquet(content)
    write_atomically(Path(path), content.getvalue())
    return frame.height


class Imported(NamedTuple):
    """What became of the rows of a file."""

    decisions: int
    """Stored now."""
    rewarded: int
    """Of these, with a reward."""
    known: int
    """Left out, since the store has a decision with this id: it was imported before, or is of another model there."""
    repeated: int
    """Left out, since their id is in the file before."""


def import_log(model: Model, path: str | Path) -> Imported:
    """Learn from the decisions of a Parquet file with at least `item_id` and `context`; say what became of the rows.

    Rows with an `id` that is known already are left out, so an interrupted import can be repeated. What an export says
    of offered actions, cancelled decisions, those that were never activated and sessions is taken over; the reward is
    `reported`, or `click` in a file without that column.
    """
    import polars as pl

    try:
        frame = pl.read_parquet(Path(path))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DamagedFileError(f"{path} cannot be read as Parquet: {error}") from None
    missing = {"item_id", "context"} - set(frame.columns)
    if missing:
        raise InvalidInputError(f"{path} must have the columns item_id and context, and has {frame.columns}")
    reward = "reported" if "reported" in frame.columns else "click"
    done, seen = Imported(0, 0, 0, 0), set[str]()
    for first in range(0, frame.height, _AT_ONCE):
        some = _import(model, path, frame.slice(first, _AT_ONCE).iter_rows(named=True), reward, seen)
        done = Imported._make(map(sum, zip(done, some, strict=True)))
    return done


def _import(model: Model, path: str | Path, rows: Iterable[dict[str, Any]], reward: str, seen: set[str]) -> Imported:
    """Learn from some decisions in one commit; `seen` are the ids so far."""
    operations: list[Operation] = []
    decisions = rewarded = known = repeated = 0
    for row in rows:
        options = _options(path, row)
        name = options.pop("id", None)
        name = model.new_id() if name is None else name
        if name in seen:
            repeated += 1
            continue
        seen.add(name)
        if model.store.decision(name) is not None:
            known += 1
            continue
        context = _json(f"context in {path}", row["context"])
        operations.append(Decide(context=context, chosen=row["item_id"], id=name, **options))
        decisions += 1
        if row.get(reward) is not None:
            operations.append(Reward(name, real(f"{reward} in {path}", row[reward])))
            rewarded += 1
        if row.get("status") == DecisionState.CANCELLED:
            operations.append(Cancel(name))
        if row.get("session") is not None and row.get("ended") is not None:
            operations.append(End(row["session"], row["ended"] == TERMINAL))
    model.answer(operations, all_or_none=True)
    model.tick()  # windows that are over already
    return Imported(decisions, rewarded, known, repeated)


def _json(name: str, text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        raise refuse(name, text, "JSON") from None


def _options(path: str | Path, row: dict[str, Any]) -> dict[str, Any]:
    """Return the other fields of a decision that are known."""
    names = {"propensity_score": "probability", "id": "id", "timestamp": "made", "session": "session"}
    options = {ours: row[theirs] for theirs, ours in names.items() if row.get(theirs) is not None}
    if row.get("actions") is not None:
        options["actions"] = _json(f"actions in {path}", row["actions"])
    if row.get("status") == DecisionState.INACTIVE:
        options["active"] = False
    return options


def back_up(path: str | Path, to: str | Path) -> None:
    """Copy a SQLite store atomically to a new file, also while a service uses it."""
    store = SQLiteStore(path, read_only=True)
    try:
        store.backup(to)
    finally:
        store.close()
