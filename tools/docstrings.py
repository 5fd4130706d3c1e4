"""A Griffe extension for the docstrings of the reference, enabled in `mkdocs.yml`."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^|\n\n)(?=>>> )")


class Examples(griffe.Extension):  # type: ignore[misc, unused-ignore]  # not installed where types are checked
    """Adds a heading to examples without one in a docstring, so that they are rendered as code."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Process the docstring of every loaded object."""
        if obj.docstring and "\nExamples\n---" not in obj.docstring.value:
            obj.docstring.value = EXAMPLE.sub("\n\nExamples\n--------\n", obj.docstring.value, count=1)
