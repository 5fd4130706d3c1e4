"""Looking up classes and functions by name: built-in, from installed packages (entry points), or `module:Name`.

Algorithms, environments, delay distributions and feature maps in files are all looked up here, and only `load` imports
what a file names. An experiment file may name anything, which is checked before it is called. A data file may only name
what the caller has allowed: see `reading`.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import UnionType
from typing import Any

from belated._util.validate import choice, refuse
from belated.errors import BelatedError, InvalidInputError, MissingExtraError

_GIVEN: ContextVar[Mapping[str, Any] | None] = ContextVar("given", default=None)
"""While a data file is read, the objects by name that it may use besides built-ins and plugins; None for anything."""


@contextmanager
def reading(classes: Iterable[Any]) -> Iterator[None]:
    """Forbid imports by name in this block, which reads a data file.

    `classes` are the exceptions: classes and functions, or their names, `module:Name`, which are imported now. This is
    a context, not an argument, since names occur at any depth, also in third-party classes.

    >>> with reading([]):
    ...     load("function", "math:hypot")
    Traceback (most recent call last):
    belated.errors.InvalidInputError: function 'math:hypot' is neither built-in nor from a plugin, and data files ...
    """
    if isinstance(classes, str | Mapping) or not isinstance(classes, Iterable):
        raise refuse("classes", classes, "a list of classes and functions, or of their names, 'module:Name'")
    given: dict[str, Any] = {}
    for each in classes:
        found = load("one of classes", each) if isinstance(each, str) else each
        if not callable(found):
            raise refuse("one of classes", each, "a class or function, or its name, 'module:Name'")
        names = (each, name_of(found), getattr(found, "kind", None))
        given |= {name: found for name in names if isinstance(name, str)}
    token = _GIVEN.set(given)
    try:
        yield
    finally:
        _GIVEN.reset(token)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of component that configuration files can name: the known ones, and how to validate one."""

    field: str
    """The field that holds the name, such as `algorithm`."""
    group: str
    """The entry point group of plugins, such as `belated.agents`."""
    ours: Mapping[str, Any]
    """The library's classes by name."""
    expected: str
    """A description for error messages."""
    fits: Callable[[Any], bool]
    """Whether an object is of this kind."""
    fits_class: Callable[[type], bool]
    """Whether instances of a class fit."""

    def names(self) -> list[str]:
        """Return all names: the library's, then those of installed packages."""
        return list(dict.fromkeys([*self.ours, *(point.name for point in self._points())]))

    def own(self, name: Any, also: Iterable[str] = ()) -> Any:
        """Return the class or function called `name`, or None if it is one of the library's.

        Unknown names are rejected; the error lists the valid ones, including `also`.
        """
        given = _GIVEN.get()
        if isinstance(name, str) and given is not None and name in given:
            return self._checked(name, given[name])
        if isinstance(name, str) and name in self.ours:
            return None  # avoids scanning the metadata of all installed packages
        if not isinstance(name, str) or ":" not in name:
            point = next((point for point in self._points() if point.name == name), None)
            if point is not None:
                return self._checked(name, _loaded(self.field, name, point.value, point.load))
        if isinstance(name, str) and ":" in name:
            return self.imported(name)
        other = "a class of your own, as 'module:Name'" if given is None else "one of classes, if you pass it"
        choice(self.field, name, [*self.names(), *also], other=other)
        return None

    def imported(self, name: Any) -> Any:
        """Return the class or function `module:Name`, after checking that it makes this kind of component."""
        return self._checked(name, load(self.field, name))

    def make(self, name: str, found: Any, settings: Mapping[str, Any]) -> Any:
        """Return `found(**settings)`; raise InvalidInputError if the settings or the result are invalid."""
        _check_settings(name, found, settings)
        return self.made(name, lambda: found(**settings))

    def made(self, name: str, make: Callable[[], Any]) -> Any:
        """Return `make()`, the object called `name`; raise InvalidInputError if that fails or it is of another kind."""
        try:
            made = make()
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
        made = [found] if isinstance(found, type) else returned(found)
        if not made or not all(self.fits_class(each) for each in made):
            wanted = f"{self.expected}: its class, or a function annotated with the class that it returns"
            raise refuse(f"{self.field} {name!r}", found, wanted)
        return found


def returned(function: Any) -> list[type]:
    """Return the classes in a function's return annotation, without calling it; empty without an annotation.

    >>> def half(x: float) -> float | None: ...
    >>> returned(half), returned(len)
    ([<class 'float'>, <class 'NoneType'>], [])
    """
    function = inspect.unwrap(getattr(function, "__func__", function)) if callable(function) else None
    if not inspect.isfunction(function):
        return []

    def only_what_it_returns() -> None: ...

    try:
        only_what_it_returns.__annotations__ = {"return": function.__annotations__["return"]}
        said = typing.get_type_hints(only_what_it_returns, function.__globals__)["return"]
    except Exception:  # no annotation, or one that cannot be evaluated
        return []
    several = typing.get_args(said) if typing.get_origin(said) in (typing.Union, UnionType) else (said,)
    plain = [typing.get_origin(each) or each for each in several]
    return plain if all(isinstance(each, type) for each in plain) else []


def has_method(kind: type, name: str) -> bool:
    """Whether instances of a class have a method `name` that can be called with one argument.

    >>> from threading import Thread
    >>> has_method(list, "append"), has_method(Thread, "start")
    (True, False)
    """
    try:
        inspect.signature(getattr(kind, name)).bind("self", "argument")
    except (AttributeError, TypeError, ValueError):
        return False
    return True


def _check_settings(name: str, found: Any, settings: Mapping[str, Any]) -> None:
    """Raise InvalidInputError for a setting that `found` does not have, or a missing one."""
    try:
        parameters = inspect.signature(found).parameters
    except (TypeError, ValueError):  # no signature, as for some C functions: the call raises its own errors
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
    """Import the object `module:name` from an installed package or the working directory; forbidden while `reading`.

    >>> load("function", "math:hypot")(3, 4)
    5.0
    """
    module, _, path = name.partition(":") if isinstance(name, str) else ("", "", "")
    parts = [*module.split("."), *path.split(".")]
    if not all(part.isidentifier() for part in parts) or module.endswith(".py"):
        raise refuse(what, name, "a name of the form 'package.module:name'")
    given = _GIVEN.get()
    if given is not None:
        if name not in given:
            raise InvalidInputError(
                f"{what} {name!r} is neither built-in nor from a plugin, and data files may not import anything else: "
                f"if you trust it, pass classes=[{name!r}]"
            )
        return given[name]
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
    """Return which name a module lacks, with the nearest one it has."""
    names = [name for name in vars(error.obj) if not name.startswith("_")]
    near = difflib.get_close_matches(str(error.name), names, n=1, cutoff=0.5)
    where = getattr(error.obj, "__file__", None) or getattr(error.obj, "__name__", "it")
    return f"{where} has no {error.name!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def _search_here() -> str:
    """Append the working directory to `sys.path`, last so that it does not shadow installed modules."""
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
