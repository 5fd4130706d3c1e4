"""Atomic files, local or remote, with a digest: NumPy archives with a JSON header, and JSON.

Every file that is read back is sealed: it contains `belated-sha256:` and 64 hexadecimal digits, the digest of all its
bytes with zeros in place of those digits. The seal is where other programs ignore it (a value of JSON, a field of
Parquet's metadata, the comment of a `.npz` archive), and is checked before the file is parsed.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import uuid
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from belated._util.validate import refuse
from belated._util.version import stamp
from belated.errors import DamagedFileError, InvalidInputError

_MARK = b"belated-sha256:"
BLANK_SEAL = (_MARK + b"0" * 64).decode()
"""The placeholder that `seal` replaces."""


def seal(content: bytes) -> bytes:
    """Return `content` with the digest in place of its last blank seal.

    >>> seal(BLANK_SEAL.encode())[:31]
    b'belated-sha256:e3889485076c462b'
    """
    at = content.rindex(BLANK_SEAL.encode()) + len(_MARK)
    return content[:at] + hashlib.sha256(content).hexdigest().encode() + content[at + 64 :]


def check_seal(content: bytes, where: str, kind: str) -> None:
    """Raise DamagedFileError if `content` was altered."""
    at = content.rfind(_MARK) + len(_MARK)
    if at < len(_MARK):
        raise DamagedFileError(
            f"{where} is not an intact {kind} file: it has no digest, so it is truncated, foreign or old"
        )
    digest = hashlib.sha256()
    for part in (memoryview(content)[:at], b"0" * 64, memoryview(content)[at + 64 :]):
        digest.update(part)
    if content[at : at + 64] != digest.hexdigest().encode():
        raise DamagedFileError(f"{where} is not an intact {kind} file: its content does not match its digest")


def check_maker(where: str, made_by: Any) -> None:
    """Raise InvalidInputError if another version of belated made the file."""
    ours = stamp()
    if made_by != ours:
        theirs = made_by if isinstance(made_by, dict) else {"belated": "of an unknown version"}
        raise InvalidInputError(
            f"{where} was made by belated {theirs.get('belated')} (code {theirs.get('code')}), this is belated "
            f"{ours['belated']} (code {ours['code']}), which may give different numbers; "
            "use another folder, or delete the file to run it again"
        )


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` to `path` atomically: readers, even after a crash, see either the old file or the new one."""
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
    """A folder of atomic files: local, or at any fsspec address, such as s3://bucket/rows.

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
        """The local folder, None if it is remote."""
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
        """Return the path or address of a file, for messages."""
        return f"{self._address}/{name}" if self.path is None else str(self.path / name)

    def absolute(self) -> Folder:
        return self if self.path is None else Folder(self.path.absolute())

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, None if it does not exist."""
        try:
            if self.path is not None:
                return (self.path / name).read_bytes()
            return bytes(self._files.cat_file(f"{self._root}/{name}"))
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write a file atomically; see `write_atomically`."""
        if self.path is not None:
            write_atomically(self.path / name, content)
            return
        from fsspec import AbstractFileSystem

        path = f"{self._root}/{name}"
        if type(self._files).mv is AbstractFileSystem.mv:  # an object store, where a put is atomic
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
    """Return the file system of an address, and the path of the folder in it."""
    from fsspec.core import url_to_fs

    try:
        files, root = url_to_fs(address)
    except (ImportError, ValueError) as error:  # a package such as s3fs is missing, or the protocol is unknown
        raise InvalidInputError(f"folder {address!r} cannot be used: {error}") from None
    return files, root.rstrip("/")


def save_arrays(
    path: Path, kind: str, version: int, header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]
) -> None:
    """Write `arrays` as a NumPy `.npz` archive without pickled objects, whose entry `header` is JSON.

    The header records the `kind` and `version` of the file and the version of belated.
    """
    text = json.dumps({"format": kind, "version": version, **header, "made_by": stamp()})
    write_atomically(path, sealed_archive({"header": np.frombuffer(text.encode(), np.uint8), **arrays}))


def sealed_archive(entries: dict[str, Any]) -> bytes:
    """Return a NumPy archive of `entries`, sealed in its comment."""
    archive = io.BytesIO()
    np.savez(archive, **entries)
    archive.seek(-2, io.SEEK_END)  # an archive ends with the length of its comment, and the comment
    archive.write(len(BLANK_SEAL).to_bytes(2, "little") + BLANK_SEAL.encode())
    return seal(archive.getvalue())


def load_arrays(path: Path, kind: str, version: int) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read what `save_arrays` wrote; raise if it is damaged, of another kind, or newer than `version`."""
    content = _content(path)
    check_seal(content, str(path), kind)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            arrays = {each.filename.removesuffix(".npy"): _array(archive, each) for each in archive.infolist()}
        header = json.loads(arrays.pop("header").tobytes())
    except Exception as error:  # a damaged archive can make its readers raise almost anything
        raise DamagedFileError(f"{path} is not an intact {kind} file: {error}") from None
    _check_kind(path, header, kind, version)
    return header, arrays


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> npt.NDArray[Any]:
    """Return one array; its size is checked before memory is allocated."""
    if entry.compress_type != zipfile.ZIP_STORED:  # a small compressed file could expand without bounds
        raise ValueError(f"{entry.filename} is compressed")
    stored = archive.read(entry)
    text = io.BytesIO(stored)
    layout = np.lib.format.read_magic(text)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, _, kind = read_header[layout](text)
    if kind.hasobject:
        raise ValueError(f"{entry.filename} contains Python objects")
    if math.prod(shape) * kind.itemsize != len(stored) - text.tell():
        raise ValueError(f"{entry.filename} does not have the length of its shape {shape}")
    array: npt.NDArray[Any] = np.lib.format.read_array(io.BytesIO(stored), allow_pickle=False)
    return array


def save_json(path: Path, kind: str, version: int, content: dict[str, Any]) -> None:
    """Write `content` as JSON with the `kind` and `version` of the file and the version of belated."""
    whole = {"format": kind, "version": version, "made_by": stamp(), **content, "digest": BLANK_SEAL}
    write_atomically(path, seal((json.dumps(whole, indent=2) + "\n").encode()))


def load_json(path: Path, kind: str, version: int) -> dict[str, Any]:
    """Read what `save_json` wrote; raise if it is damaged, of another kind, or newer than `version`."""
    content = _content(path)
    check_seal(content, str(path), kind)
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path} is not an intact {kind} file: {error}") from None
    _check_kind(path, whole, kind, version)
    found: dict[str, Any] = whole
    return found


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    return path.read_bytes()


def _check_kind(path: Path, header: Any, kind: str, version: int) -> None:
    if not isinstance(header, dict) or header.get("format") != kind:
        raise DamagedFileError(f"{path} is not a {kind} file")
    if not isinstance(header.get("version"), int) or header["version"] > version:
        raise DamagedFileError(
            f"{path} has version {header.get('version')!r} of the {kind} layout, this code reads up to {version}"
        )
