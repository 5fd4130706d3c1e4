"""Logging of the service: one line per record, without passwords."""

from __future__ import annotations

import logging
from typing import Any

from belated._util.shown import escape, mask


class Lines(logging.Formatter):
    """Formats a record as one line, followed by its indented traceback."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        record.message = escape(mask(record.message))
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802
        told = super().formatException(ei)
        return "\n".join(f"    {escape(mask(line))}" for line in told.split("\n"))


def log_lines() -> None:
    """Log warnings and errors of this process to stderr, formatted by `Lines`."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
