"""Rows on disk: one Parquet file a run, written atomically; present means done."""

from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl

from belated.errors import DamagedFileError, InvalidInputError
from belated.runner.experiment import Run
from belated.storage import write_atomically

SCHEMA = {
    "episode": pl.Int64,
    "start": pl.Int64,
    "delay": pl.Int64,
    "arrived": pl.Int64,
    "value": pl.Float64,
    "optimal": pl.Float64,
    "sampled_return": pl.Float64,
}


def to_parquet(frame: pl.DataFrame, about: dict[str, object]) -> bytes:
    """Return `frame` as a Parquet file that carries `about` as JSON."""
    file = io.BytesIO()
    frame.write_parquet(file, compression="zstd", metadata={"belated": json.dumps(about, sort_keys=True)})
    return file.getvalue()


def from_parquet(path: Path) -> tuple[pl.DataFrame, dict[str, object]]:
    """Read what `to_parquet` wrote; refuse a file that is damaged or foreign."""
    try:
        about = json.loads(pl.read_parquet_metadata(path)["belated"])
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError, KeyError, ValueError) as error:
        if not path.exists():
            raise FileNotFoundError(f"there is no file {path}") from None
        raise DamagedFileError(f"{path} is not a whole file of belated rows: {error}") from None
    if not isinstance(about, dict) or any(frame.schema.get(name) != dtype for name, dtype in SCHEMA.items()):
        raise DamagedFileError(f"{path} does not have the columns of belated rows: {', '.join(SCHEMA)}")
    return frame, about


class Store:
    """A folder of finished runs."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, run: Run) -> Path:
        """Return where the rows of `run` belong."""
        return self.folder / f"{run.id}.parquet"

    def write(self, run: Run, rows: pl.DataFrame) -> None:
        """Keep the rows of a finished run."""
        write_atomically(self.path(run), to_parquet(rows, run.describe()))

    def read(self, run: Run) -> pl.DataFrame | None:
        """Return the rows of `run`, or None if it has not finished; refuse rows that other settings gave."""
        path = self.path(run)
        if not path.exists():
            return None
        rows, about = from_parquet(path)
        wanted = json.loads(json.dumps(run.describe()))
        if about != wanted:
            name = next(name for name in wanted if about.get(name) != wanted[name])
            raise InvalidInputError(
                f"{path} holds rows of other settings: {name} was {about.get(name)!r}, now it is {wanted[name]!r}; "
                "use another folder, or delete the file to run it again"
            )
        if rows.height != run.episodes:
            raise DamagedFileError(f"{path} must have {run.episodes} rows, got {rows.height}")
        return rows
