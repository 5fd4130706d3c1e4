"""Compilation: three decorators for kernels, and `entry_point` for functions called from Python.

* `@kernel` compiles with Numba, strict IEEE arithmetic, without the GIL;
* `@fast_sums` is for small leaf functions with sums of products, which the compiler may reorder;
* `@inlined` inlines a kernel into its callers, since calls are not cheap on small problems.

The record of an agent is a `NamedTuple` with methods. Kernels can call those that have a `record_method`; the methods
themselves need no decorator. Numba optimises a kernel, with everything it calls, once for every level of calls. So an
entry point does not call the methods of its record: they are inlined, which saves seconds of compilation.

An `@entry_point` is called from Python. Only entry points are cached on disk, in the folder of
`belated._kernels.cache`. Two environment variables change what is compiled:

* `BELATED_STRICT=1`: sums are added in the order in which they are written, for identical bits on every processor;
* `NUMBA_DISABLE_JIT=1`: nothing is compiled, and all kernels run as plain Python, slowly.
"""

from __future__ import annotations

import dis
import hashlib
import inspect
import os
import shutil
import warnings
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from types import FunctionType
from typing import Any, TypeVar, cast

import llvmlite.binding
import numba
import numpy as np
import numpy.typing as npt
from numba.extending import intrinsic, is_jitted, overload_method, register_jitable

from belated._kernels import cache

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

PACKAGE = Path(__file__).parents[1]

#: Numba's settings, as documented for the environment: `NUMBA_CACHE_DIR` is `config.CACHE_DIR`.
config: Any = numba.config
#: Whether kernels are compiled at all.
COMPILED = not config.DISABLE_JIT
#: Whether results must be identical on every processor.
STRICT = os.environ.get("BELATED_STRICT", "0") not in ("", "0")
#: Reassociation lets a sum of products use vector instructions; results change by rounding only.
_FAST_SUMS = False if STRICT else {"reassoc", "contract", "nsz", "arcp"}
#: Compiler options of all kernels (no GIL, no error for division by zero, no C wrapper), and of those to be inlined.
_PLAIN: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INLINED: dict[str, Any] = {**_PLAIN, "forceinline": True}


def kernel(function: F) -> F:
    """Compile `function` for calls from other kernels, with strict IEEE arithmetic; Python calls run uncompiled."""
    return register_jitable(**_PLAIN)(function)


def fast_sums(function: F) -> F:
    """Compile `function`, a small sum of products, into its callers, and let the compiler reorder the sum."""
    return register_jitable(fastmath=_FAST_SUMS, **_INLINED)(function)


def inlined(function: F) -> F:
    """Inline `function` into each kernel that calls it, before compilation."""
    if not COMPILED:
        return function
    made = numba.njit(inline="always", **_PLAIN)(function)
    _pasted.add(made)
    return cast(F, made)


#: The functions made by `inlined`, and those of them made by `record_method` with the names of their methods.
_pasted: set[Any] = set()
_methods: dict[Any, str] = {}


def record_method(function: F) -> F:
    """Let kernels call a method of records: the one with the name of `function`, which calls it on its first argument.

    >>> @record_method
    ... def settle(record):
    ...     record.settle()

    Kernels can then call `record.settle()` on any `NamedTuple` with such a method, dispatched by its class as in
    Python. `settle(record)` does the same. In an entry point, or in code inlined into one, the latter is replaced by
    the method of the entry point's first argument, and must be called on that.
    """
    name = function.__name__

    def choose(record, *rest):  # type: ignore[no-untyped-def]
        return getattr(record.instance_class, name, None)

    choose.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    overload_method(numba.types.BaseNamedTuple, name, strict=False, jit_options=_INLINED)(choose)  # type: ignore[call-arg]
    made = inlined(function)
    _methods[made] = name
    return made


def _with_methods_of(kind: type, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with each `record_method`, at any depth of inlined calls, replaced by the method of `kind`."""
    replaced: dict[str, Callable[..., Any]] = {}
    for name in {each.argval for each in dis.get_instructions(function) if each.opname == "LOAD_GLOBAL"}:
        called: Any = function.__globals__.get(name)
        if is_jitted(called) and called in _pasted:
            body = getattr(kind, _methods[called], called.py_func) if called in _methods else called.py_func
            made = _with_methods_of(kind, body)
            if made is not called.py_func:
                replaced[name] = inlined(made)
    if not replaced:
        return function
    made = FunctionType(function.__code__, {**function.__globals__, **replaced}, function.__name__)
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    return made


@intrinsic
def _without_owner(typing, value):  # type: ignore[no-untyped-def]
    return value(value), lambda context, builder, _, arguments: _strip(context, builder, value, arguments[0])


def _as_intrinsic(function: F) -> F:
    return cast(F, _without_owner) if COMPILED else function


@_as_intrinsic
def borrowed(value: T) -> T:
    """Return `value` with arrays that are not reference-counted, for a call in which the caller keeps them alive.

    On small problems reference counting takes as long as some of the arithmetic. Only for entry points.
    """
    return value


def _strip(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return `value` with arrays without owner, in the compiler's representation."""
    if isinstance(kind, numba.types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = array.meminfo.type(None)
        return array._getvalue()
    if isinstance(kind, numba.types.BaseTuple):
        parts: Any = kind
        for i, part in enumerate(parts):
            value = builder.insert_value(value, _strip(context, builder, part, builder.extract_value(value, i)), i)
    return value


def _facts() -> tuple[str, ...]:
    """Return what machine code depends on besides its source: versions and processor."""
    processor = config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    features = config.CPU_FEATURES
    if features is None:
        features = llvmlite.binding.get_host_cpu_features().flatten()
    return numba.__version__, llvmlite.__version__, processor, features, f"strict: {STRICT}"


def _warn_not_kept(error: Exception) -> None:
    warnings.warn(
        f"compiled code cannot be cached, so every start compiles again: {error}; "
        "set BELATED_CACHE to a private folder",
        RuntimeWarning,
        stacklevel=2,
    )


def _find_folder() -> Path | None:
    """Return the folder of compiled code; None, with a warning, if there is none."""
    try:
        return cache.kernel_folder(cache.digest_of(PACKAGE, *_facts()), config.CACHE_DIR)
    except OSError as error:
        _warn_not_kept(error)
        return None


FOLDER = _find_folder() if COMPILED else None


#: Held during compilation, since Numba's cache folder is a setting of the whole process.
_making = RLock()


@contextmanager
def _caching_in(folder: Path) -> Iterator[None]:
    """Set Numba's cache folder to `folder` in this block."""
    wanted = {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": ""}
    before = {name: getattr(config, name) for name in wanted if hasattr(config, name)}
    try:
        for name in before:
            setattr(config, name, wanted[name])
        yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)


#: The array flags that the compiled type depends on: C-contiguous, Fortran-contiguous, aligned, writeable. Arrays that
#: are contiguous both ways, such as empty arrays or single rows, are C-contiguous to Numba.
_IN_C, _IN_FORTRAN, _OTHERS = 0x1, 0x2, 0x100 | 0x400


def kind_of(value: Any) -> Hashable:
    """Return a key for the compiled type of `value`, much faster than Numba's `typeof`."""
    if isinstance(value, np.ndarray):
        flags = value.flags.num
        return value.dtype, value.ndim, flags & (_IN_C if flags & _IN_C else _IN_FORTRAN), flags & _OTHERS
    if isinstance(value, tuple):
        return type(value), *map(kind_of, value)
    return cast(Hashable, type(value))


def _is_ours(value: Any) -> bool:
    """Whether `value` consists of arrays, numbers and tuples of this package."""
    if not isinstance(value, tuple):
        return True
    ours = type(value) is tuple or type(value).__module__.partition(".")[0] == __name__.partition(".")[0]
    return ours and all(map(_is_ours, value))


def _name(kind: Hashable) -> str:
    if isinstance(kind, tuple):
        return f"({','.join(map(_name, kind))})"
    return f"{kind.__module__}.{kind.__qualname__}" if isinstance(kind, type) else str(kind)


class EntryPoint:
    """A function called from Python, compiled once for each combination of argument types.

    Each combination of types has its own folder. So two processes that compile at the same time write the same files,
    and reading them does not import the records of other agents. Only records of this package are cached, since changes
    of other modules would go unnoticed.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if is_jitted(function):
            function = function.py_func
        self.__name__, self.__qualname__, self.__doc__ = function.__name__, function.__qualname__, function.__doc__
        self.__module__, self.__wrapped__ = function.__module__, function
        self._made: dict[Hashable, Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Compile for these arguments if necessary, and run."""
        return self.compiled_for(*arguments)(*arguments)

    def compiled_for(self, *arguments: Any) -> Callable[..., Any]:
        """Return the function compiled for these argument types."""
        if not COMPILED:
            return self.__wrapped__
        kind = kind_of(arguments)
        found = self._made.get(kind)
        if found is None:
            with _making:
                found = self._made.get(kind) or self._made.setdefault(kind, self._make(kind, arguments))
        return found

    def _make(self, kind: Hashable, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        typeof: Any = numba.typeof
        signature, function = tuple(map(typeof, arguments)), _with_methods_of(type(arguments[0]), self.__wrapped__)
        has_file = Path(self.__wrapped__.__code__.co_filename).is_file()  # to detect changes
        if FOLDER is None or not has_file or not _is_ours(arguments):
            return _compile(function, signature)
        digest = hashlib.sha256(_name(kind).encode()).hexdigest()[:16]
        folder = FOLDER / f"{self.__name__}-{digest}"
        try:
            with _caching_in(folder):
                return _compile(function, signature, cache=True)
        except numba.errors.NumbaError:
            raise
        except Exception:  # the cache is damaged, or the disk is full
            shutil.rmtree(folder, ignore_errors=True)
        try:
            with _caching_in(folder):
                return _compile(function, signature, cache=True)
        except (OSError, RuntimeError) as error:
            _warn_not_kept(error)
            return _compile(function, signature)


def _compile(function: Callable[..., Any], signature: tuple[Any, ...], **options: Any) -> Callable[..., Any]:
    made: Callable[..., Any] = numba.njit([signature], **_PLAIN, **options)(function)
    return made


def entry_point(function: F) -> F:
    """Compile `function`, or a kernel, for calls from Python: once per argument types, cached on disk."""
    return cast(F, EntryPoint(function))


@kernel
def copy(source: npt.NDArray[Any], target: npt.NDArray[Any]) -> None:
    """Set `target` to `source`, of the same shape.

    `target[:] = source` takes seconds to compile, since it handles overlapping and mismatched arrays.
    """
    for i in np.ndindex(source.shape):
        target[i] = source[i]
