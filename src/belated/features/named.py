"""Objects by the name under which they can be imported, so that plain values can stand for them."""

from __future__ import annotations

import importlib
from typing import Any

from belated.errors import InvalidInputError
from belated.validate import refuse


def load(what: str, name: Any) -> Any:
    """Return the object called `module:name`."""
    module, _, path = name.partition(":") if isinstance(name, str) else ("", "", "")
    if not module or not path:
        raise refuse(what, name, "a name of the form 'package.module:name'")
    try:
        found = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise InvalidInputError(f"{what} {name!r} cannot be imported: {error}") from None
    return found


def name_of(thing: Any) -> str | None:
    """Return the name under which `thing` can be imported, None if there is none.

    >>> import math
    >>> name_of(math.hypot), name_of(lambda: 0)
    ('math:hypot', None)
    """
    module, path = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not module or not path or module == "__main__" or "<" in path:
        return None
    try:
        return f"{module}:{path}" if load("object", f"{module}:{path}") is thing else None
    except InvalidInputError:
        return None
