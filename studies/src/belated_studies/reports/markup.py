"""The little markup that a report's text may carry: `code` in backticks and **bold**. All else is plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

Kind = Literal["text", "code", "bold"]

_MARKS = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*", re.DOTALL)


def spans(text: str) -> Iterator[tuple[Kind, str]]:
    """Yield the parts of `text` in order, each with what it is.

    >>> list(spans("run `belated` **twice**"))
    [('text', 'run '), ('code', 'belated'), ('text', ' '), ('bold', 'twice')]
    """
    end = 0
    for match in _MARKS.finditer(text):
        if match.start() > end:
            yield "text", text[end : match.start()]
        code, bold = match.groups()
        yield ("code", code) if code is not None else ("bold", bold)
        end = match.end()
    if end < len(text):
        yield "text", text[end:]


def plain(text: str) -> str:
    """Return `text` without its marks, for places that can show none."""
    return "".join(part for _, part in spans(text))
