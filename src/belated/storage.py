"""Files that are whole or absent, here or at an address, and arrays with a JSON header that anyone can read.

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

from belated.errors import DamagedFileError, InvalidInputError
from belated.validate import refuse


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


class Folder:
    """A folder of whole files: on this machine, or at any address that fsspec knows, such as s3://bucket/rows.

    >>> folder = Folder("memory://example")
    >>> folder.read("river/seed-00") is None
    True
    >>> folder.write("river/seed-00", b"rows")
    >>> folder.read("river/seed-00")
    b'rows'
    >>> folder.where("river/seed-00")
    'memory://example/river/seed-00'
    """

    def __init__(self, address: str | Path) -> None:
        if not isinstance(address, str | Path):
            raise refuse("folder", address, "a path or an address such as s3://bucket/folder")
        self.path: Path | None = None
        """The folder itself, if it is on this machine."""
        if isinstance(address, Path) or "://" not in address:
            self.path = Path(address)
            return
        self._files, self._root = _connect(address)
        self._address = address.rstrip("/")
        if type(self._files).__name__ == "LocalFileSystem":
            self.path = Path(self._root)

    @property
    def in_memory(self) -> bool:
        """Whether only this process sees the files."""
        return self.path is None and "memory" in self._files.protocol

    def where(self, name: str) -> str:
        """Return the path or address of a file, to be shown."""
        return f"{self._address}/{name}" if self.path is None else str(self.path / name)

    def absolute(self) -> Folder:
        """Return the same folder, to be found from any working folder."""
        return self if self.path is None else Folder(self.path.absolute())

    def read(self, name: str) -> bytes | None:
        """Return what the file holds, or None if there is none."""
        try:
            if self.path is not None:
                return (self.path / name).read_bytes()
            return bytes(self._files.cat_file(f"{self._root}/{name}"))
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write a file so that a reader, or a crash, sees the old one or the new one, never a part."""
        if self.path is not None:
            write_atomically(self.path / name, content)
            return
        from fsspec import AbstractFileSystem

        path = f"{self._root}/{name}"
        if type(self._files).mv is AbstractFileSystem.mv:  # an object store, where a put is whole or absent
            self._files.pipe_file(path, content)
            return
        parent, _, last = path.rpartition("/")
        temporary = f"{parent}/.{last}.{uuid.uuid4().hex}"
        self._files.makedirs(parent, exist_ok=True)
        try:
            self._files.pipe_file(temporary, content)
            self._files.mv(temporary, path)
        except BaseException:
            if self._files.exists(temporary):
                self._files.rm_file(temporary)
            raise


def _connect(address: str) -> tuple[Any, str]:
    """Return the file system behind an address, and the folder's name in it."""
    from fsspec.core import url_to_fs

    try:
        files, root = url_to_fs(address)
    except (ImportError, ValueError) as error:  # a package such as s3fs is missing, or nobody knows the protocol
        raise InvalidInputError(f"folder {address!r} cannot be used: {error}") from None
    return files, root.rstrip("/")


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
