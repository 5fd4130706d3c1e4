"""Written by tools/exports.py: which name comes from where."""

from ._app import make_app as make_app
from ._service import Service as Service

__all__ = [
    "Service",
    "make_app",
]
