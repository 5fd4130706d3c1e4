"""Classes and functions by name: the library's, those of installed packages, and your own as `module:Name`.

An algorithm, an environment, a delay distribution and a feature map are all found here, by one mechanism: the field of a
specification that names it is one of the library's names, an entry point of an installed package, or `module:Name`.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from belated._util.validate import choice, refuse
from belated.errors import BelatedError, InvalidInputError


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of things that a specification names: which there are, and what one of them must be."""

    field: str
    """The field that names one, such as `algorithm`."""
    group: str
    """The entry points of packages that bring some, such as `belated.agents`."""
    ours: Mapping[str, Any]
    """The library's classes by name."""
    expected: str
    """What one is, for the sentence that refuses something else."""
    fits: Callable[[Any], bool]
    """Tell whether something that was made is one."""
    fits_class: Callable[[type], bool]
    """Tell whether the objects of a class would be."""

    def names(self) -> list[str]:
        """Return all names: the library's, then those of installed packages."""
        return list(dict.fromkeys([*self.ours, *(point.name for point in self._points())]))

    def own(self, name: Any, also: Iterable[str] = ()) -> Any:
        """Return the class or function that is called `name`, or None if it is one of the library's.

        A name that nobody knows is refused with all that are known, those that are known elsewhere (`also`) included.
        """
        if isinstance(name, str) and name in self.ours:
            return None  # without looking through the metadata of all installed packages
        if not isinstance(name, str) or ":" not in name:
            point = next((point for point in self._points() if point.name == name), None)
            if point is not None:
                return self._checked(name, _loaded(self.field, name, point.value, point.load))
        if isinstance(name, str) and ":" in name:
            return self._checked(name, load(self.field, name))
        choice(self.field, name, [*self.names(), *also], other="a class of your own, as 'module:Name'")
        return None

    def make(self, name: str, found: Any, settings: Mapping[str, Any]) -> Any:
        """Return what the class or function `found`, called `name`, makes of its settings."""
        _check_settings(name, found, settings)
        try:
            made = found(**settings)
        except BelatedError:
            raise
        except Exception as error:  # code of the user's may raise anything
            raise InvalidInputError(f"{name} refuses its settings: {type(error).__name__}: {error}") from error
        if not self.fits(made):
            raise refuse(f"what {name} makes", made, self.expected)
        return made

    def _points(self) -> list[EntryPoint]:
        return sorted(entry_points(group=self.group))

    def _checked(self, name: str, found: Any) -> Any:
        good = self.fits_class(found) if isinstance(found, type) else callable(found)
        if not good:
            raise refuse(f"{self.field} {name!r}", found, f"{self.expected}: its class, or a function that makes one")
        return found


def _check_settings(name: str, found: Any, settings: Mapping[str, Any]) -> None:
    """Refuse settings that `found` does not have, and the lack of one that it needs."""
    try:
        parameters = inspect.signature(found).parameters
    except (TypeError, ValueError):  # made in C: it will say so itself
        return
    named = {key: one for key, one in parameters.items() if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    if not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        for key in settings:
            if key not in named:
                near = difflib.get_close_matches(key, named, n=1, cutoff=0.5)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                listed = ", ".join(named) or "none"
                raise InvalidInputError(f"{name} has no setting {key!r}; its settings are: {listed}{hint}")
    for key, one in named.items():
        if one.default is one.empty and key not in settings:
            raise InvalidInputError(f"{name} needs the setting {key!r}")


def load(what: str, name: Any) -> Any:
    """Return the object called `module:name`, of a module in the working folder or of an installed package.

    >>> load("function", "math:hypot")(3, 4)
    5.0
    """
    module, _, path = name.partition(":") if isinstance(name, str) else ("", "", "")
    parts = [*module.split("."), *path.split(".")]
    if not all(part.isidentifier() for part in parts) or module.endswith(".py"):
        raise refuse(what, name, "a name of the form 'package.module:name'")
    return _loaded(what, name, f"{module}:{path}", lambda: _found(module, path))


def _loaded(what: str, name: str, value: str, get: Callable[[], Any]) -> Any:
    """Return what `get` returns, the object `value`; say in words why it cannot."""
    here = _search_here()
    module = value.partition(":")[0].strip()
    try:
        return get()
    except ModuleNotFoundError as error:
        missing = f"{what} {name!r} cannot be imported: {error}"
        ours = error.name is not None and f"{module}.".startswith(f"{error.name}.")
        raise InvalidInputError(
            f"{missing}, neither in {here} nor among the installed packages" if ours else f"{missing}, which it imports"
        ) from None
    except AttributeError as error:
        if module in sys.modules and getattr(error, "obj", None) is sys.modules[module]:
            raise InvalidInputError(f"{what} {name!r} cannot be imported: {_lacking(error)}") from None
        raise InvalidInputError(f"{what} {name!r} cannot be imported: {error}") from error
    except (Exception, SystemExit) as error:  # importing runs code of the user's
        raise InvalidInputError(f"{what} {name!r} cannot be imported: {type(error).__name__}: {error}") from error


def _lacking(error: AttributeError) -> str:
    """Return which name a module does not have, and the nearest of those that it has."""
    names = [name for name in vars(error.obj) if not name.startswith("_")]
    near = difflib.get_close_matches(str(error.name), names, n=1, cutoff=0.5)
    where = getattr(error.obj, "__file__", None) or getattr(error.obj, "__name__", "it")
    return f"{where} has no {error.name!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def _search_here() -> str:
    """Let modules of the working folder be imported, after all others, so that none of theirs hides one of those."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
        importlib.invalidate_caches()
    return here


def _found(module: str, path: str) -> Any:
    found = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
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
        return f"{module}:{path}" if _found(module, path) is thing else None
    except (ImportError, AttributeError):
        return None


def spelled(kind: type, ours: str) -> str:
    """Return how a specification names a class: `ours` for one of the library, for any other `module:Name`.

    >>> from fractions import Fraction
    >>> spelled(Fraction, "fraction"), spelled(Kind, "kind")
    ('fractions:Fraction', 'kind')
    """
    return ours if kind.__module__.partition(".")[0] == "belated" else name_of(kind) or ours
