"""The version of belated and a digest of the code that determines results, for the headers of files."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

__version__ = "0.1.0"

#: Modules that cannot change results; excluded from the digest.
SURFACES = ("__main__", "_cli", "testing", "_util/plot_style")


@cache
def code_digest() -> str:
    """Return a digest of the package's sources, without `SURFACES`."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).with_suffix("").as_posix()
        if not name.startswith(SURFACES):
            content = path.read_bytes().replace(b"\r\n", b"\n")
            digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def stamp() -> dict[str, str]:
    """Return the version and the digest.

    >>> sorted(stamp())
    ['belated', 'code']
    """
    return {"belated": __version__, "code": code_digest()}
