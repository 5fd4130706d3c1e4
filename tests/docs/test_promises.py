"""The page of promises names every attack, and only tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

from attacks.listed import ATTACKS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "promises.md").read_text(encoding="utf-8")
PROMISES, WAYS = (part.split("\n## ")[0] for part in PAGE.split("## The promises")[1].split("## The attacks"))


def test_every_attack_has_a_promise_and_is_explained() -> None:
    for table, column in ((PROMISES, 2), (WAYS, 1)):
        rows = [line.split("|")[column].strip() for line in table.splitlines() if line.startswith("|")]
        assert [cell.strip("`") for cell in rows if cell.startswith("`")] == list(ATTACKS)


def test_the_tests_that_it_names_exist() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)`", PAGE)
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []
