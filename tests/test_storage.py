"""Files are whole or absent, readable by NumPy alone, and refused when they are not what they should be."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated.errors import DamagedFileError
from belated.storage import load_arrays, save_arrays, write_atomically


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_write_makes_folders_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file.bin"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert names(path.parent) == ["file.bin"]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("existing", [None, b"old"])
def test_a_failed_write_leaves_what_was_there(
    error: BaseException, existing: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.bin"
    if existing is not None:
        path.write_bytes(existing)

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(type(error)):
        write_atomically(path, b"new")
    assert names(tmp_path) == ([] if existing is None else ["file.bin"])
    if existing is not None:
        assert path.read_bytes() == existing


def test_content_is_on_the_disk_before_the_name_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def watched_fsync(handle: int) -> None:
        order.append(f"fsync of {os.fstat(handle).st_size} bytes")
        fsync(handle)

    def watched_replace(self: Path, target: Path) -> Path:
        order.append("replace")
        assert self.parent == tmp_path  # on the same file system
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(Path, "replace", watched_replace)
    write_atomically(tmp_path / "file.bin", b"12345")
    assert order[:2] == ["fsync of 5 bytes", "replace"]


ARRAYS: dict[str, Any] = {
    "floats": np.array([[1.0, np.pi], [-0.0, 1e-300]]),
    "ints": np.array([1, -(2**62)]),
    "empty": np.zeros((0, 3)),
    "flags": np.array([True, False]),
}


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    save_arrays(path, "things", 3, {"note": "Grüße", "number": 2**100, "none": None}, ARRAYS)
    header, arrays = load_arrays(path, "things", 3)
    assert header == {"format": "things", "version": 3, "note": "Grüße", "number": 2**100, "none": None}
    assert set(arrays) == set(ARRAYS)
    for name, values in ARRAYS.items():
        assert arrays[name].dtype == values.dtype
        assert arrays[name].tobytes() == values.tobytes()


def test_numpy_and_json_are_enough_to_read_a_file(tmp_path: Path) -> None:
    save_arrays(tmp_path / "file.npz", "things", 1, {"note": 5}, ARRAYS)
    with np.load(tmp_path / "file.npz", allow_pickle=False) as archive:
        assert json.loads(bytes(archive["header"])) == {"format": "things", "version": 1, "note": 5}
        np.testing.assert_array_equal(archive["floats"], ARRAYS["floats"])


def test_the_same_content_gives_the_same_arrays_whatever_the_name(tmp_path: Path) -> None:
    save_arrays(tmp_path / "no-suffix", "things", 1, {}, ARRAYS)
    assert names(tmp_path) == ["no-suffix"]
    assert load_arrays(tmp_path / "no-suffix", "things", 1)[0]["version"] == 1


def test_older_versions_are_read_and_newer_ones_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    save_arrays(path, "things", 2, {}, ARRAYS)
    assert load_arrays(path, "things", 5)[0]["version"] == 2
    with pytest.raises(DamagedFileError, match=r"file\.npz has version 2 of the things layout, .* up to 1$"):
        load_arrays(path, "things", 1)
    with pytest.raises(DamagedFileError, match=r"file\.npz is not a others file"):
        load_arrays(path, "others", 2)


def test_arrays_of_objects_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    save_arrays(path, "things", 1, {}, {"objects": np.array([{}], dtype=object)})
    with pytest.raises(DamagedFileError, match=r"file\.npz is not a whole things file"):
        load_arrays(path, "things", 1)


def test_a_missing_file_is_no_damage(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*file\.npz$"):
        load_arrays(tmp_path / "file.npz", "things", 1)
