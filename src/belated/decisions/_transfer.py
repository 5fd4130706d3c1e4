"""Exporting logs to Parquet in the columns of the Open Bandit convention, importing them, and backups."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from belated._util.files import write_atomically
from belated._util.validate import real, refuse
from belated.decisions._model import Model
from belated.decisions._operations import Cancel, Decide, DecisionState, End, Entry, Operation, Reward, Signal
from belated.decisions._rows import REWARD, SIGNAL
from belated.decisions._session_settings import CUT, TERMINAL
from belated.decisions._sessions import find
from belated.decisions._store.sqlite import SQLiteStore
from belated.errors import DamagedFileError, InvalidInputError
from belated.types import Floats

if TYPE_CHECKING:
    import polars as pl

#: Columns of an export. The first five are those of the Open Bandit convention; the rest are extensions.
COLUMNS = (
    "timestamp", "item_id", "position", "click", "propensity_score", "id", "status", "reported", "context", "actions",
    "rewards", "signals", "session", "step", "ended",
)  # fmt: skip

#: Rows of a file that are imported in one commit.
_AT_ONCE = 500


def to_frame(model: Model) -> pl.DataFrame:
    """Return every decision in its current state, with `context` and `actions` as JSON.

    `click` is the reward that the decision counts with, so that its mean is the mean reward of the log: the reported
    reward, or the meaning of silence once the window is over; null while the decision does not count. `reported` is the
    reported reward, null if there is none; `rewards` has [time, event, version, reward] of each report as JSON;
    `signals` is the same for signals. For the last step of a session `ended` is terminal or cut, or null while it is
    open.
    """
    import polars as pl

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    rows = [
        (
            entry.made, entry.action, entry.slot, entry.learned, entry.probability, entry.id, entry.status.value,
            entry.reward, text(entry.context), text(entry.actions), *[
                text(found) if (found := _reports(entry, kind)) else None for kind in (REWARD, SIGNAL)
            ], entry.session, entry.step, _ended(model, entry),
        )
        for entry in model.log()
    ]  # fmt: skip
    strings = ("item_id", "id", "status", "context", "actions", "rewards", "signals", "session", "ended")
    kinds = {name: pl.String() if name in strings else pl.Float64() for name in COLUMNS}
    return pl.DataFrame(rows, schema={**kinds, "position": pl.Int64(), "step": pl.Int64()}, orient="row")


def _ended(model: Model, entry: Entry) -> str | None:
    """Return how the session of a step has ended, if it is the last step."""
    session = None if entry.session is None else find(model.state, entry.session)
    if session is None or session.end is None or session.ids[-1] != entry.id:
        return None
    return TERMINAL if session.end.version % 2 else CUT


def _reports(entry: Entry, kind: str) -> list[tuple[float, str, int, float | None]]:
    """Return time and content of every report that counts, including replaced versions."""
    counted = {event.event for event in entry.history if event.kind == kind and event.counted}
    recorded = entry.suggestion is not None
    return [
        (
            event.observed if recorded and event.observed is not None else event.received,
            event.event, event.version, event.reward,
        )
        for event in entry.history
        if event.kind == kind and event.event in counted
    ]  # fmt: skip


def export_log(model: Model, path: str | Path) -> int:
    """Write every decision to a Parquet file, atomically; return the number of decisions."""
    return _write(to_frame(model), path)


def write_replay(pairs: Iterable[tuple[Entry, Floats]], path: str | Path) -> int:
    """Write decisions with the probabilities of other settings (see `replay`); return the number of decisions."""
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
    """The result of an import, in numbers of rows."""

    decisions: int
    """Decisions that were stored."""
    rewarded: int
    """Stored decisions with a reward."""
    known: int
    """Skipped, since the store already has a decision with this id, imported before or of another model."""
    repeated: int
    """Skipped, since the id occurs earlier in the file."""


def import_log(model: Model, path: str | Path) -> Imported:
    """Learn from the decisions of a Parquet file, which needs at least the columns `item_id` and `context`.

    Rows with a known `id` are skipped, so an interrupted import can be repeated. Offered actions, cancellations,
    inactive decisions and sessions are imported as exported. The rewards are those of the column `rewards`, with their
    times; without that column, `reported` or else `click`.
    """
    import polars as pl

    try:
        frame = pl.read_parquet(Path(path))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DamagedFileError(f"{path} cannot be read as Parquet: {error}") from None
    missing = {"item_id", "context"} - set(frame.columns)
    if missing:
        raise InvalidInputError(f"{path} must have the columns item_id and context, got {frame.columns}")
    reward = "reported" if "reported" in frame.columns else "click"
    done, seen = Imported(0, 0, 0, 0), set[str]()
    for first in range(0, frame.height, _AT_ONCE):
        some = _import(model, path, frame.slice(first, _AT_ONCE).iter_rows(named=True), reward, seen)
        done = Imported._make(map(sum, zip(done, some, strict=True)))
    return done


def _import(model: Model, path: str | Path, rows: Iterable[dict[str, Any]], reward: str, seen: set[str]) -> Imported:
    """Import some decisions in one commit; `seen` are the ids so far."""
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
        if row.get("rewards") is not None:
            reports = _json(f"rewards in {path}", row["rewards"])
            operations += [_reward(path, name, each) for each in reports]
            rewarded += bool(reports)
        elif row.get(reward) is not None:
            operations.append(Reward(name, real(f"{reward} in {path}", row[reward])))
            rewarded += 1
        if row.get("signals") is not None and model.settings.signals:
            signals = [_signal(path, name, each) for each in _json(f"signals in {path}", row["signals"])]
            operations += [each for each in signals if each.signal in model.settings.signals]
        if row.get("status") == DecisionState.CANCELLED:
            operations.append(Cancel(name))
        if row.get("session") is not None and row.get("ended") is not None:
            operations.append(End(row["session"], row["ended"] == TERMINAL))
    model.answer(operations, all_or_none=True)
    model.tick()  # close windows that are already over
    return Imported(decisions, rewarded, known, repeated)


def _reward(path: str | Path, name: str, report: Any) -> Reward:
    if not isinstance(report, list) or len(report) != 4:
        raise refuse(f"each of rewards in {path}", report, "a time, an event, a version and a reward")
    when, event, version, reward = report
    return Reward(name, real(f"rewards in {path}", reward), event, version, observed=when)


def _signal(path: str | Path, name: str, report: Any) -> Signal:
    if not isinstance(report, list) or len(report) != 4:
        raise refuse(f"each of signals in {path}", report, "a time, a signal, a version and a value")
    when, signal, version, value = report
    return Signal(name, signal, real(f"signals in {path}", value), version, observed=when)


def _json(name: str, text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        raise refuse(name, text, "JSON") from None


def _options(path: str | Path, row: dict[str, Any]) -> dict[str, Any]:
    """Return the optional fields of a decision that are present."""
    names = {"propensity_score": "probability", "id": "id", "timestamp": "made", "session": "session"}
    options = {ours: row[theirs] for theirs, ours in names.items() if row.get(theirs) is not None}
    if row.get("actions") is not None:
        options["actions"] = _json(f"actions in {path}", row["actions"])
    if row.get("status") == DecisionState.INACTIVE:
        options["active"] = False
    return options


def back_up(path: str | Path, to: str | Path) -> None:
    """Copy a SQLite store atomically to a new file, even while a service uses it."""
    store = SQLiteStore(path, read_only=True)
    try:
        store.backup(to)
    finally:
        store.close()
