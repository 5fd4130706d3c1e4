"""Files are whole or absent, readable by NumPy alone, and refused when they are not what they should be."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated._util.files import (
    BLANK_SEAL,
    check_maker,
    check_seal,
    load_arrays,
    load_json,
    save_arrays,
    save_json,
    seal,
    write_atomically,
)
from belated._util.version import stamp
from belated.errors import DamagedFileError, InvalidInputError


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
    own = {"format": "things", "version": 3, "note": "Grüße", "number": 2**100, "none": None}
    assert header == {**own, "made_by": stamp()}
    assert set(arrays) == set(ARRAYS)
    for name, values in ARRAYS.items():
        assert arrays[name].dtype == values.dtype
        assert arrays[name].tobytes() == values.tobytes()


def test_numpy_and_json_are_enough_to_read_a_file(tmp_path: Path) -> None:
    save_arrays(tmp_path / "file.npz", "things", 1, {"note": 5}, ARRAYS)
    with np.load(tmp_path / "file.npz", allow_pickle=False) as archive:
        assert json.loads(bytes(archive["header"]))["note"] == 5
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
    with pytest.raises(DamagedFileError, match=r"file\.npz is not an intact things file"):
        load_arrays(path, "things", 1)


def test_a_missing_file_is_no_damage(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*file\.npz$"):
        load_arrays(tmp_path / "file.npz", "things", 1)


# Seals.


def write_both(folder: Path) -> dict[Path, Any]:
    """Write a file of each kind, and return how each is read."""
    save_arrays(folder / "file.npz", "things", 1, {"note": 5}, {"numbers": np.arange(40.0)})
    save_json(folder / "file.json", "things", 1, {"note": 5, "list": [1.5, None, "ä"]})
    return {folder / "file.npz": load_arrays, folder / "file.json": load_json}


def test_the_digest_is_that_of_the_file_with_zeros_in_its_place(tmp_path: Path) -> None:
    for path in write_both(tmp_path):
        content = path.read_bytes()
        (digest,) = re.findall(rb"belated-sha256:([0-9a-f]{64})", content)
        assert hashlib.sha256(content.replace(digest, b"0" * 64)).hexdigest() == digest.decode()


def test_a_flipped_bit_anywhere_is_noticed(tmp_path: Path) -> None:
    for path, load in write_both(tmp_path).items():
        whole = path.read_bytes()
        load(path, "things", 1)
        for at in range(len(whole)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
            with pytest.raises(DamagedFileError, match=r"is not an intact things file: (it has no|its content)"):
                load(path, "things", 1)


def test_a_file_that_is_cut_short_or_longer_is_noticed(tmp_path: Path) -> None:
    for path, load in write_both(tmp_path).items():
        whole = path.read_bytes()
        for content in (*(whole[:length] for length in range(0, len(whole), 7)), whole + b" ", b"", b"\0" * 99):
            path.write_bytes(content)
            with pytest.raises(DamagedFileError, match="is not an intact things file"):
                load(path, "things", 1)


def test_a_file_without_a_digest_is_rejected(tmp_path: Path) -> None:
    header = np.frombuffer(b'{"format": "things", "version": 1}', np.uint8)
    np.savez(tmp_path / "old.npz", header=header, numbers=np.arange(3))
    (tmp_path / "old.json").write_text('{"format": "things", "version": 1}', encoding="utf-8")
    for name, load in (("old.npz", load_arrays), ("old.json", load_json)):
        with pytest.raises(DamagedFileError, match="has no digest"):
            load(tmp_path / name, "things", 1)


def test_a_wrong_digest_is_rejected(tmp_path: Path) -> None:
    for path, load in write_both(tmp_path).items():
        content = bytearray(path.read_bytes())
        content[5] ^= 1
        path.write_bytes(content)
        with pytest.raises(DamagedFileError, match="does not match its digest"):
            load(path, "things", 1)


def test_content_that_looks_like_a_seal_does_no_harm(tmp_path: Path) -> None:
    save_arrays(tmp_path / "file.npz", "things", 1, {"note": BLANK_SEAL}, {})
    save_json(tmp_path / "file.json", "things", 1, {"note": BLANK_SEAL})
    assert load_arrays(tmp_path / "file.npz", "things", 1)[0]["note"] == BLANK_SEAL
    assert load_json(tmp_path / "file.json", "things", 1)["note"] == BLANK_SEAL


def crafted_archive(path: Path, entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    """Write an archive of anybody's making with a digest that agrees."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
        archive.comment = BLANK_SEAL.encode()
    path.write_bytes(seal(file.getvalue()))


def as_npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


HEADER = as_npy(np.frombuffer(b'{"format": "things", "version": 1}', np.uint8))


def test_a_small_file_cannot_ask_for_much_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    crafted_archive(path, {"header.npy": HEADER, "zeros.npy": as_npy(np.zeros(10**6))}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 10**5
    with pytest.raises(DamagedFileError, match=r"header\.npy is compressed"):
        load_arrays(path, "things", 1)
    huge = as_npy(np.zeros(3)).replace(b"(3,), }" + b" " * 12, b"(3000000000000,), }")
    crafted_archive(path, {"header.npy": HEADER, "zeros.npy": huge})
    with pytest.raises(DamagedFileError, match=r"zeros.npy does not have the length of its shape \(3000000000000,\)"):
        load_arrays(path, "things", 1)
    crafted_archive(path, {"header.npy": HEADER, "zeros.npy": as_npy(np.zeros(3))})
    assert load_arrays(path, "things", 1)[1]["zeros"].tolist() == [0.0] * 3


@pytest.mark.parametrize("depth", [10, 100_000])
def test_json_of_any_depth_is_read_or_refused(tmp_path: Path, depth: int) -> None:
    text = '{"format": "others", "deep": ' + "[" * depth + "]" * depth + f', "digest": "{BLANK_SEAL}"}}'
    (tmp_path / "deep.json").write_bytes(seal(text.encode()))
    with pytest.raises(DamagedFileError):
        load_json(tmp_path / "deep.json", "things", 1)


def test_what_another_belated_made_is_rejected() -> None:
    check_maker("the file", stamp())
    for other in ({**stamp(), "code": "0"}, {**stamp(), "belated": "0.0.1"}, None, "0.0.1"):
        with pytest.raises(InvalidInputError, match=r"^the file was made by belated "):
            check_maker("the file", other)


def test_the_seal_of_nothing_is_refused() -> None:
    with pytest.raises(DamagedFileError, match=r"^here is not an intact things file: it has no digest"):
        check_seal(b"", "here", "things")
