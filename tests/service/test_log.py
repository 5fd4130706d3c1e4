"""The log of the service."""

from __future__ import annotations

import logging
import sys

from belated.service._log import Lines


def record(message: str, *given: object, failed: bool = False) -> str:
    found = sys.exc_info() if failed else None
    return Lines().format(logging.LogRecord("belated", logging.ERROR, "file", 1, message, given, found))


def test_a_record_is_one_line_without_passwords() -> None:
    told = record("%s failed at %s", "a\r\n2026 ERROR forged \x1b[2J", "postgresql://me:hunter2@host/db")
    assert "\n" not in told and "\x1b" not in told and "hunter2" not in told
    assert r"a\r\n2026 ERROR forged \x1b[2J failed at postgresql://me:***@host/db" in told


def test_a_traceback_is_indented_so_that_nothing_in_it_looks_like_a_record() -> None:
    try:
        raise ValueError("a\n2026 ERROR forged\x1b password=hunter2")
    except ValueError:
        first, *rest = record("it failed", failed=True).split("\n")
    assert first.endswith("it failed")
    assert all(line.startswith("    ") for line in rest)
    assert any(line.startswith("    2026 ERROR forged") and "\x1b" not in line for line in rest)
    assert "hunter2" not in "".join(rest)
