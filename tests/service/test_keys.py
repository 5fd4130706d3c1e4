"""Who may do what."""

import os
import stat
from pathlib import Path

import pytest

from belated.errors import InvalidInputError
from belated.service._keys import Key, Keyring, add_key, digest, load_keys, new_key


def test_a_new_key_opens_what_it_is_for_and_its_file_does_not_hold_it(tmp_path: Path) -> None:
    key, lines = new_key("site", ["decide", "feedback"])
    other, more = new_key("boss", ["admin"])
    assert key not in lines
    (tmp_path / "keys.toml").write_text(lines + more)
    ring = Keyring(load_keys(tmp_path / "keys.toml"))
    assert ring.scopes(key) == frozenset({"decide", "feedback"})
    assert ring.scopes(other) == frozenset({"admin"})
    assert [ring.scopes(wrong) for wrong in (None, "", key[:-1], key + " ", digest(key))] == [None] * 5


def test_without_keys_everything_is_open_and_an_empty_key_never_opens_a_ring() -> None:
    assert Keyring().scopes(None) == frozenset({"decide", "feedback", "read", "admin"})
    assert Keyring([Key("careless", digest(""), frozenset({"admin"}))]).scopes("") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "table"),
        ("[keys", "not a TOML file"),
        ('[keys.a]\nsha256 = "AB"\nscopes = ["read"]', "64 lower-case"),
        (f'[keys.a]\nsha256 = "{"a" * 64}"\nscopes = []', "scopes"),
        (f'[keys.a]\nsha256 = "{"a" * 64}"\nscopes = ["write"]', "'write'"),
        (f'[keys.a]\nsha256 = "{"a" * 64}"\nscopes = ["read"]\nkey = "x"', "no others"),
    ],
)
def test_a_bad_file_is_refused_in_a_sentence(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "keys.toml").write_text(text)
    with pytest.raises(InvalidInputError, match=words):
        load_keys(tmp_path / "keys.toml")


@pytest.mark.parametrize(
    ("name", "scopes"), [("site", ["write"]), ("site", []), ("two words", ["read"]), ("", ["read"])]
)
def test_a_key_that_could_not_be_read_again_is_not_made(name: str, scopes: list[str]) -> None:
    with pytest.raises(InvalidInputError):
        new_key(name, scopes)


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="keys must be a file that can be read"):
        load_keys(tmp_path / "none.toml")


def test_a_key_that_is_taken_out_of_the_file_ends_at_once_and_a_new_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    first = add_key(path, "first", ["read"])
    ring = Keyring(path=path)
    second = add_key(path, "second", ["admin"])
    assert (ring.scopes(first), ring.scopes(second)) == (frozenset({"read"}), frozenset({"admin"}))
    path.write_text(path.read_text().partition("[keys.second]")[2].join(["[keys.second]", ""]))
    assert (ring.scopes(first), ring.scopes(second)) == (None, frozenset({"admin"}))


@pytest.mark.parametrize("broken", ["", "[keys", None])
def test_a_file_that_cannot_be_used_changes_nothing_and_is_said(
    tmp_path: Path, broken: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "keys.toml"
    key = add_key(path, "site", ["read"])
    ring = Keyring(path=path)
    path.unlink() if broken is None else path.write_text(broken)
    assert (ring.scopes(key), ring.scopes("other"), bool(ring)) == (frozenset({"read"}), None, True)
    assert ["were not reloaded" in each for each in caplog.messages] == [True]  # once, not with every request


@pytest.mark.skipif(os.name != "posix", reason="rights of files are those of POSIX")
def test_a_file_of_keys_is_its_owners_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        add_key(tmp_path / "keys.toml", "site", ["read"])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "keys.toml").stat().st_mode) == 0o600


def test_a_name_that_is_taken_is_refused_and_a_line_without_an_end_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    add_key(path, "site", ["read"])
    path.write_text(path.read_text().rstrip())
    with pytest.raises(InvalidInputError, match="name must be a name that is not in"):
        add_key(path, "site", ["read"])
    add_key(path, "boss", ["admin"])
    assert [key.name for key in load_keys(path)] == ["site", "boss"]
