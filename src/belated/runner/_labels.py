"""Labels are any text; the names of files and folders are made of them, safely and each its own."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Any

from belated._util.validate import refuse

LONGEST_NAME, SHOWN = 150, 60
"""The longest label that is its own file name, and how much is shown of one that is not."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=-]*")
_LIKE_A_FILE = re.compile(
    r".*(\.[a-z]+|\.)", re.ASCII
)  # summary.csv stands in the same folder; Windows drops a last dot
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def check_label(name: str, value: Any) -> str:
    """Return a label, any text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise refuse(name, value, "a text that is not empty")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise refuse(name, value, "a text that can be written as UTF-8") from None
    return value


def file_name(label: str) -> str:
    """Return the name of the file or folder of `label`: itself if it is a safe one, else a part of it and a digest.

    Names of labels that differ differ: `~` is in no label that is its own name, and digests are of the whole label.

    >>> file_name("psvi-0.1"), file_name("posterior sampling, σ = 0.1")
    ('psvi-0.1', 'posterior-sampling-=-0.1~187a39ef889d890f')
    """
    plain = _PLAIN.fullmatch(label) and not _LIKE_A_FILE.fullmatch(label) and not _RESERVED.fullmatch(label)
    if plain and len(label) <= LONGEST_NAME:
        return label
    letters = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()  # é is shown as e
    shown = re.sub(r"[^A-Za-z0-9.+=]+", "-", letters)[:SHOWN].strip("-.")
    return f"{shown}~{hashlib.sha256(label.encode()).hexdigest()[:16]}"
