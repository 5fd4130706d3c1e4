"""Text that is safe to show: without passwords and without terminal control sequences."""

from __future__ import annotations

import re

_PASSWORDS = (re.compile(r"(://[^/:@\s]*):.*@"), re.compile(r"([?&\s](?:ssl)?password=)[^&\s\"']*", re.IGNORECASE))


def mask(text: str) -> str:
    """Return `text` with the passwords of its URLs masked; in doubt, more is masked.

    >>> mask("postgresql://me:se/c@ret@host/name?sslpassword=x&connect_timeout=3")
    'postgresql://me:***@host/name?sslpassword=***&connect_timeout=3'
    """
    text = _PASSWORDS[0].sub(r"\1:***@", text)
    return _PASSWORDS[1].sub(r"\1***", text)


def escape(text: str) -> str:
    r"""Return `text` with control and invisible characters escaped as Python escapes them.

    >>> escape("a\x1b[2J\r\nb\u202ec é")
    'a\\x1b[2J\\r\\nb\\u202ec é'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
