"""Rows in a folder: one Parquet file per run, written atomically; present means done."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from belated._util.files import BLANK_SEAL, Folder, check_seal, seal
from belated.errors import DamagedFileError, InvalidInputError
from belated.runner._experiment import LABELS, MADE_BY, Run, check_description, file_name
from belated.runner._rows import COLUMNS, check_rows, from_frame, schema

KIND = "belated-rows"
DENSEST = 32
"""Maximum number of values per byte of a file: real rows have fewer than 12."""
# A minus sign after a word is a hyphen.
_NUMBER = re.compile(r"((?:(?<!\w)-)?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)", re.ASCII)


def to_parquet(frame: pl.DataFrame, about: dict[str, Any]) -> bytes:
    """Return `frame` as a sealed Parquet file with `about` as JSON in its metadata."""
    file = io.BytesIO()
    metadata = {"belated": json.dumps(about, sort_keys=True), "digest": BLANK_SEAL}
    frame.write_parquet(file, compression="zstd", metadata=metadata)
    return seal(file.getvalue())


def from_parquet(path: Path) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Read what `to_parquet` wrote; raise DamagedFileError if the file is damaged or foreign."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DamagedFileError(f"{path} is not an intact {KIND} file: {error}") from None
    return from_bytes(content, str(path))


def from_bytes(content: bytes, where: str) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Read what `to_parquet` returned; errors mention `where`."""
    check_seal(content, where, KIND)
    try:
        metadata = pl.read_parquet_metadata(io.BytesIO(content))
        about = json.loads(metadata["belated"]) if "belated" in metadata else None
        _check_size(content)
        frame = pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, RecursionError) as error:
        raise DamagedFileError(f"{where} is not an intact {KIND} file: {error}") from None
    if not isinstance(about, dict):
        raise DamagedFileError(f"{where} is a Parquet file, but not with rows of belated")
    if any(frame.schema.get(name) != kind for name, kind in schema().items()):
        raise DamagedFileError(f"{where} does not have the columns of rows: {', '.join(COLUMNS)}")
    return frame, about


def _check_size(content: bytes) -> None:
    """Raise ValueError if a small file claims to need much memory, before it is allocated."""
    columns = pl.read_parquet_schema(io.BytesIO(content))
    rows = pl.scan_parquet(io.BytesIO(content)).select(pl.len()).collect().item()
    if rows * len(columns) > DENSEST * len(content) or any(kind.is_nested() for kind in columns.values()):
        raise ValueError(f"{rows} rows of {len(columns)} columns cannot be in {len(content)} bytes")


class Store:
    """A folder of finished runs: on this machine, or at a URL such as s3://bucket/rows."""

    def __init__(self, folder: str | Path | Folder) -> None:
        self.folder = folder if isinstance(folder, Folder) else Folder(folder)

    def absolute(self) -> Store:
        """Return the same store with an absolute path."""
        return Store(self.folder.absolute())

    def path(self, run: Run) -> Path:
        """Return the file of `run`, in a folder on this machine."""
        if self.folder.path is None:
            raise InvalidInputError(f"{self.where(run)} is not a file on this machine")
        return self.folder.path / _name(run)

    def checkpoint(self, run: Run) -> Path | None:
        """Return the checkpoint file of an unfinished `run`; None if the folder is remote."""
        return None if self.folder.path is None else self.folder.path / f"{run.id}.checkpoint"

    def where(self, run: Run) -> str:
        """Return the path or URL of the rows of `run`, for messages."""
        return self.folder.where(_name(run))

    def write(self, run: Run, rows: pl.DataFrame) -> None:
        """Store the rows of a finished run."""
        labels = {"environment": run.environment_label, "agent": run.agent_label, "delay": run.delay_label}
        hidden = {part: label for part, label in labels.items() if file_name(label) != label}
        self.folder.write(_name(run), to_parquet(rows, run.describe() | ({LABELS: hidden} if hidden else {})))

    def read(self, run: Run) -> pl.DataFrame | None:
        """Return the rows of `run`, or None if it has not finished.

        Raises InvalidInputError for rows of other settings or of another version of belated.
        """
        wanted, content = run.describe(), self.folder.read(_name(run))  # described before the agent changes
        if content is None:
            return None
        where = self.where(run)
        rows, about = from_bytes(content, where)
        check_description(where, about, wanted)
        try:
            check_rows(from_frame(rows), run.environment, run.episodes, run.record_every)
        except InvalidInputError as error:
            raise DamagedFileError(f"{where} does not contain the rows of a run: {error}") from None
        return rows


def _name(run: Run) -> str:
    return f"{run.id}.parquet"


def labelled(rows: pl.DataFrame, environment: str, agent: str, delay: str, seed: int) -> pl.DataFrame:
    """Return the rows of a run with its labels as leading columns."""
    return rows.select(
        pl.lit(environment).alias("environment"),
        pl.lit(delay).alias("delay_distribution"),
        pl.lit(agent).alias("agent"),
        pl.lit(seed, dtype=pl.Int64).alias("seed"),
        pl.all(),
    )


def run_files(folder: Path) -> dict[Path, tuple[tuple[str, str, str], int]]:
    """Return the files of all runs of the experiment in `folder`, each with its folder names and its seed.

    The folders are named by environment, agent and delay.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    found: dict[str, dict[Path, tuple[tuple[str, str, str], int]]] = {}
    for path in sorted(folder.rglob("seed-*.parquet")):
        *before, environment, agent, delay, name = path.relative_to(folder).parts
        number = name.removeprefix("seed-").removesuffix(".parquet")
        if number.isdecimal():
            found.setdefault("/".join(before), {})[path] = (environment, agent, delay), int(number)
    if not found:
        raise InvalidInputError(f"{folder} must be a folder with finished runs of an experiment, but it has none")
    if len(found) > 1:
        raise InvalidInputError(f"{folder} has several experiments, choose one of them: {', '.join(sorted(found))}")
    (files,) = found.values()
    return files


def read_runs(folder: Path) -> list[pl.DataFrame]:
    """Return the labelled rows of each run in `folder`; raise InvalidInputError if they are inconsistent.

    The runs of a label must have the same settings, each with the seed of its file, and all the same version of
    belated. A folder does not record the order of labels, so they are sorted by the numbers in them.
    """
    found: list[tuple[tuple[str, str, str], int, pl.DataFrame]] = []
    first: dict[tuple[str, ...], dict[str, Any]] = {}
    made: tuple[Path, Any] | None = None
    for path, (names, seed) in run_files(folder).items():
        frame, about = from_parquet(path)
        if about.get("seed") != seed:
            raise DamagedFileError(f"{path} has the rows of seed {about.get('seed')!r}, but its name says {seed}")
        maker = about.get(MADE_BY)
        made = made or (path, maker)
        if maker != made[1]:
            raise InvalidInputError(
                f"{path} and {made[0]} were made by different versions of belated, whose numbers may differ; "
                "play them again with one version, in another folder"
            )
        check_description(str(path), about, {**first.setdefault(names, about), "seed": seed})
        found.append((_labels(path, names, about.get(LABELS, {})), seed, frame.select(*COLUMNS)))
    found.sort(key=lambda each: ([by_number(label) for label in each[0]], *each[:2]))
    return [labelled(frame, *labels, seed) for labels, seed, frame in found]


def by_number(label: str) -> list[tuple[str, float]]:
    """Return a key that sorts labels by the numbers in them, and otherwise as text.

    >>> sorted(["200", "10", "0.1", "1e-3", "-5"], key=by_number)
    ['-5', '1e-3', '0.1', '10', '200']
    >>> sorted(["poisson-50, x=-1", "poisson-5", "poisson-50, x=-3"], key=by_number)
    ['poisson-5', 'poisson-50, x=-3', 'poisson-50, x=-1']
    """
    *parts, end = _NUMBER.split(label)
    texts, numbers = parts[::2], parts[1::2]
    return [*((text, float(number)) for text, number in zip(texts, numbers, strict=True)), (end, -math.inf)]


def _labels(path: Path, names: Sequence[str], told: Any) -> tuple[str, str, str]:
    """Return the labels of environment, agent and delay: the `names` of folders, or the labels they stand for."""
    labels = dict(zip(("environment", "agent", "delay"), names, strict=True))
    if not isinstance(told, dict) or any(file_name(str(told[part])) != labels.get(part) for part in told):
        raise DamagedFileError(f"{path} does not have the rows of the labels in its name, but of {told!r}")
    environment, agent, delay = (labels | told).values()
    return environment, agent, delay
