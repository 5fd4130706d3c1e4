"""Classes and functions by name: the library's, those of installed packages (entry points), and `module:Name`.

Algorithms, environments, delay distributions and feature maps in configuration files are all looked up here.
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
from belated.errors import BelatedError, InvalidInputError, MissingExtraError


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of component that configuration files name: which there are, and what one must be."""

    field: str
    """The field that holds the name, such as `algorithm`."""
    group: str
    """The entry point group of plugins, such as `belated.agents`."""
    ours: Mapping[str, Any]
    """The library's classes by name."""
    expected: str
    """A description for error messages."""
    fits: Callable[[Any], bool]
    """Whether an object is one."""
    fits_class: Callable[[type], bool]
    """Whether the objects of a class are."""

    def names(self) -> list[str]:
        """Return all names: the library's, then those of installed packages."""
        return list(dict.fromkeys([*self.ours, *(point.name for point in self._points())]))

    def own(self, name: Any, also: Iterable[str] = ()) -> Any:
        """Return the class or function called `name`, or None if it is one of the library's.

        Unknown names are rejected; the error lists the valid ones, including `also`.
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
        """Return `found(**settings)`; raise InvalidInputError if the settings or the result do not fit."""
        _check_settings(name, found, settings)
        try:
            made = found(**settings)
        except BelatedError:
            raise
        except Exception as error:  # user code may raise anything
            raise InvalidInputError(f"{name} rejects its settings: {type(error).__name__}: {error}") from error
        if not self.fits(made):
            raise refuse(f"what {name} returns", made, self.expected)
        return made

    def _points(self) -> list[EntryPoint]:
        return sorted(entry_points(group=self.group))

    def _checked(self, name: str, found: Any) -> Any:
        good = self.fits_class(found) if isinstance(found, type) else callable(found)
        if not good:
            raise refuse(f"{self.field} {name!r}", found, f"{self.expected}: its class, or a function that returns one")
        return found


def _check_settings(name: str, found: Any, settings: Mapping[str, Any]) -> None:
    """Raise InvalidInputError for a setting that `found` does not have, or a missing one."""
    try:
        parameters = inspect.signature(found).parameters
    except (TypeError, ValueError):  # written in C: it raises its own errors
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
    """Return the object `module:name`, from an installed package or the working directory.

    >>> load("function", "math:hypot")(3, 4)
    5.0
    """
    module, _, path = name.partition(":") if isinstance(name, str) else ("", "", "")
    parts = [*module.split("."), *path.split(".")]
    if not all(part.isidentifier() for part in parts) or module.endswith(".py"):
        raise refuse(what, name, "a name of the form 'package.module:name'")
    return _loaded(what, name, f"{module}:{path}", lambda: _found(module, path))


def _loaded(what: str, name: str, value: str, get: Callable[[], Any]) -> Any:
    """Return `get()`, which imports `value`; raise InvalidInputError if that fails."""
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
    except (Exception, SystemExit) as error:  # importing runs user code
        raise InvalidInputError(f"{what} {name!r} cannot be imported: {type(error).__name__}: {error}") from error


def _lacking(error: AttributeError) -> str:
    """Say which name a module lacks, and the nearest one it has."""
    names = [name for name in vars(error.obj) if not name.startswith("_")]
    near = difflib.get_close_matches(str(error.name), names, n=1, cutoff=0.5)
    where = getattr(error.obj, "__file__", None) or getattr(error.obj, "__name__", "it")
    return f"{where} has no {error.name!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def _search_here() -> str:
    """Append the working directory to `sys.path`, last, so that it hides no installed module."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
        importlib.invalidate_caches()
    return here


def needed(module: str, extra: str) -> Any:
    """Return the imported `module`; raise MissingExtraError, which names the `extra`, if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"this needs {package}, which is not installed: pip install 'belated[{extra}]'"
        ) from None


def _found(module: str, path: str) -> Any:
    found = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def name_of(thing: Any) -> str | None:
    """Return `module:name` if `thing` can be imported by it, else None.

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
    """Return the name of a class in configuration files: `ours` for the library's, else `module:Name`.

    >>> from fractions import Fraction
    >>> spelled(Fraction, "fraction"), spelled(Kind, "kind")
    ('fractions:Fraction', 'kind')
    """
    return ours if kind.__module__.partition(".")[0] == "belated" else name_of(kind) or ours
