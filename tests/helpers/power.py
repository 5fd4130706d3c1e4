"""Power cuts: everything that SQLite writes and syncs is written down, and files are made as a cut may leave them."""

from __future__ import annotations

import ctypes
import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_void_p, cast
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

SECTOR = 512


class _Methods(ctypes.Structure):
    """The beginning of sqlite3_io_methods; the rest is copied as it is."""

    _fields_ = [("version", c_int), *[(name, c_void_p) for name in ("close", "read", "write", "truncate", "sync")],
                ("rest", c_void_p * 13)]  # fmt: skip


class _File(ctypes.Structure):
    _fields_ = [("methods", POINTER(_Methods))]


class _System(ctypes.Structure):
    """The beginning of sqlite3_vfs."""

    _fields_ = [("version", c_int), ("size", c_int), ("longest", c_int), ("next", c_void_p), ("name", c_char_p),
                ("data", c_void_p), ("open", c_void_p)]  # fmt: skip


_OPEN = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, POINTER(c_int))
_WRITE = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_TRUNCATE = ctypes.CFUNCTYPE(c_int, c_void_p, c_int64)
_SYNC = ctypes.CFUNCTYPE(c_int, c_void_p, c_int)


class Write(NamedTuple):
    """Bytes that were handed to the system."""

    file: str
    offset: int
    content: bytes


class Truncate(NamedTuple):
    """A file was cut."""

    file: str
    size: int


class Sync(NamedTuple):
    """From here on the disk has all that was written to a file before."""

    file: str


class Said(NamedTuple):
    """The caller was told something."""

    what: Any


@contextmanager
def recording(folder: Path) -> Iterator[list[Any]]:
    """Write down what SQLite does to the files of `folder` that are opened within."""
    import _sqlite3

    library = ctypes.CDLL(_sqlite3.__file__)
    try:
        library.sqlite3_vfs_find.restype = POINTER(_System)
        library.sqlite3_libversion.restype = c_char_p
    except AttributeError:
        pytest.skip("the SQLite of this Python cannot be reached from outside")
    assert library.sqlite3_libversion().decode() == sqlite3.sqlite_version
    system = library.sqlite3_vfs_find(None).contents
    found: list[Any] = []
    names: dict[int, str] = {}
    kept: list[Any] = []  # what C points at must not be collected
    before = system.open
    really_open = _OPEN(before)

    def watched(original: Any) -> Any:
        write, truncate, sync = _WRITE(original.write), _TRUNCATE(original.truncate), _SYNC(original.sync)

        def on_write(file: int, data: int, count: int, offset: int) -> int:
            found.append(Write(names[file], offset, ctypes.string_at(data, count)))
            return int(write(file, data, count, offset))

        def on_truncate(file: int, size: int) -> int:
            found.append(Truncate(names[file], size))
            return int(truncate(file, size))

        def on_sync(file: int, flags: int) -> int:
            code = int(sync(file, flags))
            found.append(Sync(names[file]))
            return code

        made = _Methods()
        ctypes.memmove(byref(made), byref(original), ctypes.sizeof(_Methods))
        for name, kind, function in (("write", _WRITE, on_write), ("truncate", _TRUNCATE, on_truncate),
                                     ("sync", _SYNC, on_sync)):  # fmt: skip
            kept.append(kind(function))
            setattr(made, name, cast(kept[-1], c_void_p).value)
        kept.append(made)
        return made

    def on_open(vfs: int, name: int | None, file: int, flags: int, out: Any) -> int:
        code = int(really_open(vfs, name, file, flags, out))  # it keeps the pointer itself: no copy of the name will do
        path = None if name is None else Path(ctypes.string_at(name).decode())
        if code == 0 and path is not None and path.parent == folder:
            names[file] = path.name
            opened = cast(file, POINTER(_File)).contents
            opened.methods = ctypes.pointer(watched(opened.methods.contents))
        return code

    kept.append(_OPEN(on_open))
    system.open = cast(kept[-1], c_void_p).value
    try:
        yield found
    finally:
        system.open = before


def after_cut(base: dict[str, bytes], happened: list[Any], folder: Path, rng: random.Random) -> None:
    """Write the files as a cut after `happened` may leave them: what was synced, and of the rest any sectors."""
    disk = {name: bytearray(content) for name, content in base.items()}
    open_writes: dict[str, list[Any]] = {}
    for each in happened:
        if isinstance(each, Write | Truncate):
            open_writes.setdefault(each.file, []).append(each)
        elif isinstance(each, Sync):
            for one in open_writes.pop(each.file, []):
                _apply(disk.setdefault(each.file, bytearray()), one)
    for name, writes in open_writes.items():
        share = rng.choice([0.0, 0.5, 1.0])
        for one in writes:
            for part in _sectors(one):
                if rng.random() < share:
                    _apply(disk.setdefault(name, bytearray()), part)
    for name, content in disk.items():
        (folder / name).write_bytes(content)


def _sectors(one: Write | Truncate) -> list[Write | Truncate]:
    if isinstance(one, Truncate):
        return [one]
    edges = [0, *range(SECTOR - one.offset % SECTOR, len(one.content), SECTOR), len(one.content)]
    return [Write(one.file, one.offset + low, one.content[low:high]) for low, high in pairwise(edges)]


def _apply(disk: bytearray, one: Write | Truncate) -> None:
    if isinstance(one, Truncate):
        del disk[one.size :]
        return
    end = one.offset + len(one.content)
    disk.extend(bytes(max(0, end - len(disk))))
    disk[one.offset : end] = one.content
