"""Who may do what."""

from pathlib import Path

import pytest

from belated.errors import InvalidInputError
from belated.service._keys import Key, Keyring, digest, load_keys, new_key


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
