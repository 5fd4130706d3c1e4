"""How functions are compiled: three decorators for kernels, and `entry_point` for what Python calls.

* `@kernel` compiles with Numba, strict IEEE arithmetic, without the GIL;
* `@fast_sums` is for small leaf functions with sums of products, which the compiler may reorder;
* `@inlined` pastes a kernel into its callers: on a small problem a call is not cheap.

The record of an agent is a `NamedTuple` with methods. Kernels can call those that have a `record_method`; the methods
themselves need no decorator. Numba optimises a kernel, with all that it calls, once for every level of calls. So an
entry point does not call the methods of its record: they are pasted into it, which saves seconds of compilation.

An `@entry_point` is called from Python. Entry points alone are cached on disk, in the folder that
`belated._kernels.cache` finds. Two environment variables change what is compiled:

* `BELATED_STRICT=1`: sums are added in the order in which they are written, so that every processor gets the same bits;
* `NUMBA_DISABLE_JIT=1`: nothing is compiled, and all kernels run as the Python they are written in, slowly.
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
#: Whether every processor must get the same bits.
STRICT = os.environ.get("BELATED_STRICT", "0") not in ("", "0")
#: Reassociation lets a sum of products use vector instructions; results move by rounding only.
_FAST_SUMS = False if STRICT else {"reassoc", "contract", "nsz", "arcp"}
#: Compiler options of all kernels: no GIL, a division by zero is no error, and nothing that only C could call. And of
#: those that are to become parts of their callers.
_PLAIN: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INLINED: dict[str, Any] = {**_PLAIN, "forceinline": True}


def kernel(function: F) -> F:
    """Compile `function` for calls from other kernels, with strict IEEE arithmetic; Python runs it as it is."""
    return register_jitable(**_PLAIN)(function)


def fast_sums(function: F) -> F:
    """Compile `function`, a small sum of products, into its callers, and let the compiler reorder the sum."""
    return register_jitable(fastmath=_FAST_SUMS, **_INLINED)(function)


def inlined(function: F) -> F:
    """Paste `function` into each kernel that calls it, before anything is compiled."""
    if not COMPILED:
        return function
    made = numba.njit(inline="always", **_PLAIN)(function)
    _pasted.add(made)
    return cast(F, made)


#: The functions made by `inlined`, and those of them made by `record_method` with the names of their methods.
_pasted: set[Any] = set()
_methods: dict[Any, str] = {}


def record_method(function: F) -> F:
    """Let kernels call a method of records: that which `function`, of the same name, calls on its first argument.

    >>> @record_method
    ... def settle(record):
    ...     record.settle()

    Kernels can then call `record.settle()` on any `NamedTuple` with such a method, and it is that of its class, as in
    Python. `settle(record)` does the same. In an entry point, or in what is inlined into one, the latter is replaced by
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
    """Return `value` with arrays that are not reference-counted, for a call during which the caller keeps them alive.

    On a small problem the counting takes as long as some of the arithmetic. Only entry points call this.
    """
    return value


def _strip(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return `value` with arrays that have no owner, in the compiler's own representation."""
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
    """Return what machine code depends on besides its source: versions and the processor."""
    processor = config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    features = config.CPU_FEATURES
    if features is None:
        features = llvmlite.binding.get_host_cpu_features().flatten()
    return numba.__version__, llvmlite.__version__, processor, features, f"strict: {STRICT}"


def _warn_not_kept(error: Exception) -> None:
    warnings.warn(
        f"compiled code cannot be cached, so every start compiles again: {error}; "
        "BELATED_CACHE can name a folder of your own",
        RuntimeWarning,
        stacklevel=2,
    )


def _find_folder() -> Path | None:
    """Return the folder of compiled code; None, with a warning, if there cannot be one."""
    try:
        return cache.kernel_folder(cache.digest_of(PACKAGE, *_facts()), config.CACHE_DIR)
    except OSError as error:
        _warn_not_kept(error)
        return None


FOLDER = _find_folder() if COMPILED else None


#: Held while something is compiled: where Numba keeps it is a setting of the whole process.
_making = RLock()


@contextmanager
def _caching_in(folder: Path) -> Iterator[None]:
    """Let Numba cache what is compiled in this block in `folder`."""
    wanted = {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": ""}
    before = {name: getattr(config, name) for name in wanted if hasattr(config, name)}
    try:
        for name in before:
            setattr(config, name, wanted[name])
        yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)


#: Which of an array's flags its compiled type depends on: contiguous in C, in Fortran, aligned, writeable. What is
#: contiguous both ways, such as an empty array or a single row, is C to Numba.
_IN_C, _IN_FORTRAN, _OTHERS = 0x1, 0x2, 0x100 | 0x400


def kind_of(value: Any) -> Hashable:
    """Return what the compiled type of `value` depends on, much faster than Numba's `typeof`."""
    if isinstance(value, np.ndarray):
        flags = value.flags.num
        return value.dtype, value.ndim, flags & (_IN_C if flags & _IN_C else _IN_FORTRAN), flags & _OTHERS
    if isinstance(value, tuple):
        return type(value), *map(kind_of, value)
    return cast(Hashable, type(value))


def _is_ours(value: Any) -> bool:
    """Whether `value` and all that it holds are arrays, numbers and tuples of this package."""
    if not isinstance(value, tuple):
        return True
    ours = type(value) is tuple or type(value).__module__.partition(".")[0] == __name__.partition(".")[0]
    return ours and all(map(_is_ours, value))


def _name(kind: Hashable) -> str:
    if isinstance(kind, tuple):
        return f"({','.join(map(_name, kind))})"
    return f"{kind.__module__}.{kind.__qualname__}" if isinstance(kind, type) else str(kind)


class EntryPoint:
    """A function that Python calls, compiled once for each kind of arguments.

    What is compiled for one kind of arguments has a folder of its own. So two processes that compile at once write the
    same, and nobody has to import the records of other agents to read it. Only records of this package are kept: a file
    about a record defined elsewhere would not notice when that module changes.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if is_jitted(function):
            function = function.py_func
        self.__name__, self.__qualname__, self.__doc__ = function.__name__, function.__qualname__, function.__doc__
        self.__module__, self.__wrapped__ = function.__module__, function
        self._made: dict[Hashable, Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Compile for these arguments if need be, and run."""
        return self.compiled_for(*arguments)(*arguments)

    def compiled_for(self, *arguments: Any) -> Callable[..., Any]:
        """Return the function for arguments of these kinds."""
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
        has_file = Path(self.__wrapped__.__code__.co_filename).is_file()  # which could be looked at for changes
        if FOLDER is None or not has_file or not _is_ours(arguments):
            return _compile(function, signature)
        digest = hashlib.sha256(_name(kind).encode()).hexdigest()[:16]
        folder = FOLDER / f"{self.__name__}-{digest}"
        try:
            with _caching_in(folder):
                return _compile(function, signature, cache=True)
        except numba.errors.NumbaError:
            raise
        except Exception:  # what was kept is damaged, or the disk is full
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
    """Compile `function`, or a kernel, for calls from Python: once for each kind of arguments, cached on disk."""
    return cast(F, EntryPoint(function))


@kernel
def copy(source: npt.NDArray[Any], target: npt.NDArray[Any]) -> None:
    """Set `target` to `source`, of the same shape.

    `target[:] = source` would have to allocate if they overlapped, and takes seconds to compile: it brings along the
    text of the error about shapes that do not fit.
    """
    for i in np.ndindex(source.shape):
        target[i] = source[i]
