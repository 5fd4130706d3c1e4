"""Files that are whole or absent, and arrays with a JSON header that anyone can read.

An array file is an ordinary NumPy `.npz` archive without pickled objects. Its entry `header` holds JSON: what kind
of file it is, the version of its layout, and everything that is not an array. The archive's checksums show
damage.
"""

from __future__ import annotations

import io
import json
import os
import uuid
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from belated.errors import DamagedFileError


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that a reader, or a crash, sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def save_arrays(
    path: Path, kind: str, version: int, header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]
) -> None:
    """Write `arrays` with a header that names the `kind` of file and its `version`."""
    text = json.dumps({"format": kind, "version": version, **header})
    archive = io.BytesIO()
    entries: dict[str, Any] = {"header": np.frombuffer(text.encode(), np.uint8), **arrays}
    np.savez(archive, **entries)
    write_atomically(path, archive.getvalue())


def load_arrays(path: Path, kind: str, version: int) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read what `save_arrays` wrote; refuse a file that is damaged, of another kind, or newer than `version`."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if not zipfile.is_zipfile(path):  # NumPy would suggest to load it as a pickle, which nobody should
        raise DamagedFileError(f"{path} is not a whole {kind} file: it is not a NumPy archive, or cut short")
    try:
        # an open file of our own: NumPy leaves one that it opened itself dangling when the archive is damaged
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop("header").tobytes())
    except Exception as error:  # a damaged archive can make its readers raise almost anything
        raise DamagedFileError(f"{path} is not a whole {kind} file: {error}") from None
    if not isinstance(header, dict) or header.get("format") != kind:
        raise DamagedFileError(f"{path} is not a {kind} file")
    if not isinstance(header.get("version"), int) or header["version"] > version:
        raise DamagedFileError(
            f"{path} has version {header.get('version')!r} of the {kind} layout, this belated reads up to {version}"
        )
    return header, arrays
