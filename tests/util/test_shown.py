"""Text that is shown to people."""

import pytest

from belated._util.shown import escape, mask


@pytest.mark.parametrize(
    "address",
    ["postgresql://me:hunter2@host/db", "postgres://me:hunter2@host:5432/db?sslmode=require", "postgresql://:hunter2@/db",
     "postgresql://me:a@b/hunter2@host/db", "postgresql://host/db?user=me&password=hunter2",
     "postgresql://host/db?PASSWORD=hunter2&sslpassword=hunter2", 'bad port in "postgresql://me:hunter2@host:x/db"',
     "conninfo host=h password=hunter2 user=me"],
)  # fmt: skip
def test_passwords_are_left_out_wherever_they_stand(address: str) -> None:
    assert "hunter2" not in mask(address)
    assert "***" in mask(address)


@pytest.mark.parametrize("text", ["decisions.db", "postgresql://me@host/db", "postgresql:///db", "a: b@c", ""])
def test_what_is_no_password_stays(text: str) -> None:
    assert mask(text) == text


def test_only_what_cannot_be_seen_is_escaped() -> None:
    assert escape("é 中 'quoted' \\ back") == "é 中 'quoted' \\ back"
    assert escape("\x1b]0;x\x07\x9b\u200f\x00\n") == r"\x1b]0;x\x07\x9b\u200f\x00\n"
