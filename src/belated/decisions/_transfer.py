"""The log for other programs: out to Parquet in the columns of the Open Bandit convention, in from it, and backups."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belated._util.files import write_atomically
from belated._util.validate import real, refuse
from belated.decisions._model import Model
from belated.decisions._operations import Decide, Entry, Reward
from belated.decisions._store.sqlite import SQLiteStore
from belated.errors import DamagedFileError, InvalidInputError
from belated.types import Floats

if TYPE_CHECKING:
    import polars as pl

#: Columns of an export. The first five are those of the Open Bandit convention; the rest is what it has no place for.
COLUMNS = (
    "timestamp", "item_id", "position", "click", "propensity_score", "id", "status", "learned", "context", "actions",
)  # fmt: skip

#: Rows of a file that are learned in one commit.
_AT_ONCE = 500


def to_frame(model: Model) -> pl.DataFrame:
    """Return every decision as it stands now: `click` is the reward (null: none came), `context` and `actions` JSON."""
    import polars as pl

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    rows = [
        (
            entry.made, entry.action, entry.slot, entry.reward, entry.probability, entry.id, entry.status.value,
            entry.learned, text(entry.context), text(entry.actions),
        )
        for entry in model.log()
    ]  # fmt: skip
    strings = ("item_id", "id", "status", "context", "actions")
    kinds = {name: pl.String() if name in strings else pl.Float64() for name in COLUMNS}
    return pl.DataFrame(rows, schema={**kinds, "position": pl.Int64()}, orient="row")


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


def import_log(model: Model, path: str | Path) -> int:
    """Learn from the decisions of a Parquet file with at least `item_id` and `context`; return how many they are.

    Rows with an `id` that is known already are left out, so an interrupted import can be repeated.
    """
    import polars as pl

    try:
        frame = pl.read_parquet(Path(path))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DamagedFileError(f"{path} cannot be read as Parquet: {error}") from None
    missing = {"item_id", "context"} - set(frame.columns)
    if missing:
        raise InvalidInputError(f"{path} must have the columns item_id and context, and has {frame.columns}")
    count = 0
    for first in range(0, frame.height, _AT_ONCE):
        count += _import(model, path, frame.slice(first, _AT_ONCE).iter_rows(named=True))
    return count


def _import(model: Model, path: str | Path, rows: Iterable[dict[str, Any]]) -> int:
    """Learn from some decisions in one commit; return how many are new."""
    decisions: dict[str, Decide] = {}
    rewards = []
    for row in rows:
        options = _options(row)
        name = options.pop("id", None)
        name = model.new_id() if name is None else name
        if name in decisions or model.store.decision(name) is not None:
            continue
        context = _context(path, row["context"])
        decisions[name] = Decide(context=context, chosen=row["item_id"], id=name, **options)
        if row.get("click") is not None:
            rewards.append(Reward(name, real(f"click in {path}", row["click"])))
    model.answer([*decisions.values(), *rewards], all_or_none=True)
    model.tick()  # windows that are over already
    return len(decisions)


def _context(path: str | Path, text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        raise refuse(f"context in {path}", text, "a JSON object") from None


def _options(row: dict[str, Any]) -> dict[str, Any]:
    """Return the other fields of a decision that are known."""
    names = {"propensity_score": "probability", "id": "id", "timestamp": "made"}
    return {ours: row[theirs] for theirs, ours in names.items() if row.get(theirs) is not None}


def back_up(path: str | Path, to: str | Path) -> None:
    """Copy a SQLite store atomically to a new file, also while a service uses it."""
    store = SQLiteStore(path, read_only=True)
    try:
        store.backup(to)
    finally:
        store.close()
