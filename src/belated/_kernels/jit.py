"""The one decorator of every hot function: `@kernel` compiles with Numba, caches, releases the GIL.

A kernel does not count references to arrays, which on a small problem costs as much as some of its arithmetic. Hence it
cannot allocate any, which no kernel should; the few that have to are an `@allocating_kernel`.

Machine code is kept in a folder that `belated._kernels.cache` finds. Two settings of the environment change what is compiled:

* `BELATED_STRICT=1`: sums are added in the order in which they are written, so that every processor gets the same bits;
* `NUMBA_DISABLE_JIT=1`: nothing is compiled, and all kernels run as the Python they are written in, slowly.
"""

from __future__ import annotations

import importlib
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import llvmlite.binding
import numba
import numpy as np
import numpy.typing as npt
from numba.extending import is_jitted, overload

from belated._kernels import cache

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = Path(__file__).parents[1]


def internal(module: str, name: str) -> Any:
    """Return a part of Numba that no promise of theirs covers; None if this version does not have it."""
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None


#: Numba's cache of a function; without it, two processes that compile at once are Numba's affair.
_FUNCTION_CACHE = internal("numba.core.caching", "FunctionCache")

#: A function's list of variables, and who may change how it is copied.
_SCOPE, _COPYING = internal("numba.core.ir", "Scope"), threading.RLock()

#: Whether kernels are compiled at all.
COMPILED = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
#: Whether every processor must get the same bits.
STRICT = os.environ.get("BELATED_STRICT", "0") not in ("", "0")

#: Reassociation lets a sum of products use vector instructions; results move by rounding only.
_FAST_SUMS = False if STRICT else {"reassoc", "contract", "nsz", "arcp"}

#: No counting of references, if this Numba has that option; without it all is the same, but slower.
_OPTIONS = internal("numba.core.options", "DefaultOptions")
_UNCOUNTED, _COUNTED = ({"_nrt": False}, {"_nrt": True}) if hasattr(_OPTIONS, "_nrt") else ({}, {})
#: No entrance for callers in C, which nobody uses and which takes time to compile.
_NO_ENTRANCE: dict[str, Any] = {"no_cfunc_wrapper": True} if hasattr(_OPTIONS, "no_cfunc_wrapper") else {}


def _facts() -> tuple[str, ...]:
    """Return what machine code depends on besides its source."""
    config: Any = numba.config
    processor = config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    features = config.CPU_FEATURES
    if features is None:
        features = llvmlite.binding.get_host_cpu_features().flatten()
    return numba.__version__, llvmlite.__version__, processor, features, f"strict: {STRICT}"


def _say_not_kept(error: OSError) -> None:
    warnings.warn(
        f"compiled code cannot be kept, so that every start compiles again: {error}; "
        "BELATED_CACHE can name a folder of your own",
        RuntimeWarning,
        stacklevel=2,
    )


def _find_folder() -> Path | None:
    """Return the folder of compiled code; None, and it is said why, if there cannot be one."""
    try:
        config: Any = numba.config
        return cache.kernel_folder(cache.digest_of(PACKAGE, *_facts()), config.CACHE_DIR)
    except OSError as error:
        _say_not_kept(error)
        return None


FOLDER = _find_folder() if COMPILED else None


class _KernelCache(_FUNCTION_CACHE or object):  # type: ignore[misc]
    """Numba's cache of one function: safe when two processes compile at once, and never in the way."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was kept; what is damaged is compiled again."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled; a full disk stops nobody."""
        assert FOLDER is not None
        try:
            with cache.locked(FOLDER):  # else two processes could give two signatures the same file
                super().save_overload(sig, data)
        except OSError as error:
            _say_not_kept(error)


@contextmanager
def _caching_in(folder: Path) -> Iterator[None]:
    """Let Numba keep what is decorated now in `folder` and nowhere else."""
    config: Any = numba.config
    wanted = {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": ""}
    before = {name: getattr(config, name) for name in wanted if hasattr(config, name)}
    try:
        for name in before:
            setattr(config, name, wanted[name])
        yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)


def _compile(function: F, *, keep: bool = True, **options: Any) -> F:
    if not COMPILED:
        return function
    dispatcher: Any = numba.njit(nogil=True, error_model="numpy", **_NO_ENTRANCE, **options)(function)
    if keep and FOLDER is not None:
        with _caching_in(FOLDER):
            try:
                _enable_caching(dispatcher)
            except RuntimeError:  # it has no file that could be looked at for changes
                return _compile(function, keep=False, **options)
        if FOLDER not in Path(dispatcher.stats.cache_path).parents:  # the disk is full, and Numba looked elsewhere
            return _compile(function, keep=False, **options)
    return cast(F, dispatcher)


def _enable_caching(dispatcher: Any) -> None:
    if _FUNCTION_CACHE is not None and hasattr(dispatcher, "_cache"):
        dispatcher._cache = _KernelCache(dispatcher.py_func)
    else:
        dispatcher.enable_caching()


def kernel(function: F) -> F:
    """Compile `function` with strict IEEE arithmetic. It works on the arrays that it is given and makes none."""
    return _compile(function, **_UNCOUNTED)


def inlined_kernel(function: F) -> F:
    """Compile `function` as a kernel whose calls are replaced by its body: on a small problem a call is not cheap."""
    return _compile(function, forceinline=True, **_UNCOUNTED)


def layer(function: F) -> F:
    """Make `function`, which has one caller, a part of it before anything is compiled.

    Numba optimises a kernel and all that it calls once for each layer of calls; a layer less is seconds less to wait.
    Called from Python it is a kernel like any other.
    """
    return _compile(function, inline="always", **_UNCOUNTED)


def allocating_kernel(function: F) -> F:
    """Compile `function` with strict IEEE arithmetic, for the rare case that it makes arrays."""
    return _compile(function, **_COUNTED)


def fast_sums(function: F) -> F:
    """Compile `function`, a small leaf with sums of products, inlined, letting the compiler reorder the sums."""
    return _compile(function, fastmath=_FAST_SUMS, forceinline=True, **_UNCOUNTED)


def is_layer(function: Any) -> bool:
    """Tell whether `function` is a compiled `layer`."""
    return is_jitted(function) and function.targetoptions.get("inline") == "always"


def is_ours(record: Any) -> bool:
    """Tell whether the type of `record` is defined in this package."""
    return type(record).__module__.partition(".")[0] == __name__.partition(".")[0]


def _copy_scope(scope: Any, memo: dict[int, Any]) -> Any:
    """Return a copy of a list of variables that shares the variables themselves, which nobody changes."""
    found = memo[id(scope)] = type(scope)(scope.parent, scope.loc)
    found.localvars._con = dict(scope.localvars._con)
    found.redefined.update(scope.redefined)
    for name, versions in scope.var_redefinitions.items():
        found.var_redefinitions[name] = set(versions)
    return found


@contextmanager
def _quick_copies() -> Iterator[None]:
    """Let Numba copy a function that becomes a part of its caller in less time: a tenth of all compiling.

    It copies block by block, and with each block anew every variable of the function.
    """
    with _COPYING:
        if _SCOPE is None or hasattr(_SCOPE, "__deepcopy__"):
            yield
            return
        _SCOPE.__deepcopy__ = _copy_scope
        try:
            yield
        finally:
            del _SCOPE.__deepcopy__


def entry_point(function: F) -> F:
    """Compile `function`, called from Python with a record first, once for each type of record.

    What goes by that record is looked up before anything is compiled, so that bodies can be put in the place of calls.

    Only records of this package are cached on disk. The cache of a record defined elsewhere would name a module that
    another program cannot import, and would not notice when that module changes. And functions that are plain Numba
    inherit from their caller whether they may allocate; those of a record defined elsewhere may.
    """
    made: dict[type, Callable[..., Any]] = {}

    @wraps(function)
    def call(record: Any, *rest: Any) -> Any:
        kind = type(record)
        if kind not in made:
            options: Any = {"keep": True, **_UNCOUNTED} if is_ours(record) else {"keep": False, **_COUNTED}
            made[kind] = _compile(_for_record(function, kind), **options)
            with _quick_copies():
                return made[kind](record, *rest)
        return made[kind](record, *rest)

    return cast(F, call)


def _for_record(function: F, kind: type) -> F:
    """Return `function` with each name that goes by the record standing for the body of that kind of record."""
    named = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    bodies = {name: part.body(kind) for name, part in named.items() if isinstance(part, ByRecord)}
    namespace = {**function.__globals__, **{name: body for name, body in bodies.items() if body is not None}}
    found = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__)
    found.__qualname__, found.__module__ = function.__qualname__, function.__module__
    return cast(F, found)


class ByRecord:
    """A function of kernels that picks its body by the record type of its first argument.

    An algorithm keeps its arrays in a `NamedTuple` of its own and registers its body for that type. The choice is made
    when the caller is compiled, so it costs nothing at run time. Records that have registered nothing get the body
    `otherwise`. A body that is no kernel yet is compiled as a part of its caller.
    """

    def __init__(self, generic: Callable[..., None], otherwise: Callable[..., None] | None) -> None:
        self.__name__, self.__doc__ = generic.__name__, generic.__doc__
        self._bodies: dict[type | None, Callable[..., None]] = {}
        self._otherwise = otherwise

        def choose(first, *rest):  # type: ignore[no-untyped-def]
            body = self._bodies.get(getattr(first, "instance_class", None), otherwise)
            if is_layer(body):
                return body.py_func  # type: ignore[union-attr]
            if body is None or not is_jitted(body):
                return body
            return lambda first, *rest: body(first, *rest)

        overload(self, strict=False)(choose)  # strict would compare the names of the arguments

    def register(self, record: type) -> Callable[[F], F]:
        """Return the decorator of the body for `record`."""

        def decorate(body: F) -> F:
            self._bodies[record] = body
            return body

        return decorate

    def body(self, kind: type) -> Callable[..., None] | None:
        """Return the body for that kind of record, None without one: compiled, or to be put in the place of a call."""
        found = self._bodies.get(kind, self._otherwise)
        if found is None or is_jitted(found) or not COMPILED:
            return found
        return _compile(_for_record(found, kind), keep=False, inline="always", **_UNCOUNTED)

    def __call__(self, record: Any, *rest: Any) -> None:
        """Call the body from Python."""
        body = self._bodies.get(type(record), self._otherwise)
        if body is None:
            raise TypeError(f"no {self.__name__} kernel is registered for {type(record).__name__}")
        body(record, *rest)


def by_record(otherwise: Callable[..., None] | None = None) -> Callable[[Callable[..., None]], ByRecord]:
    """Turn a function, of which only name, arguments and documentation count, into one that goes by its record."""
    return lambda generic: ByRecord(generic, otherwise)


@kernel
def copy(source: npt.NDArray[Any], target: npt.NDArray[Any]) -> None:
    """Set `target` to `source`, of the same shape.

    `target[:] = source` would have to allocate if they overlapped, and takes seconds to compile: it brings along the
    text of the error about shapes that do not fit.
    """
    for i in np.ndindex(source.shape):
        target[i] = source[i]
