"""How Griffe reads the docstrings for the reference; `mkdocs.yml` names it an extension."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^|\n\n)(?=>>> )")


class Examples(griffe.Extension):  # type: ignore[misc, unused-ignore]  # not installed where types are checked
    """Puts a heading above examples that stand in a docstring without one, so that they are shown as code."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Look at the docstring of everything that is loaded."""
        if obj.docstring and "\nExamples\n---" not in obj.docstring.value:
            obj.docstring.value = EXAMPLE.sub("\n\nExamples\n--------\n", obj.docstring.value, count=1)
