"""How functions are compiled: three decorators for kernels, and `entry_point` for what Python calls.

* `@kernel` compiles with Numba, strict IEEE arithmetic, without the GIL;
* `@fast_sums` is for small leaves with sums of products, which the compiler may reorder;
* `@inlined` is a kernel that becomes a part of its caller: on a small problem a call is not cheap.

The record of an agent is a `NamedTuple` with methods. Those that `record_methods` names can be called from kernels,
too; they are compiled as parts of their callers and need no decorator. Numba optimises a kernel and all that it calls
once for each layer of calls. So an entry point calls the methods of its record by `RecordMethod`: a layer less, and
seconds less to wait.

An `@entry_point` is called from Python. It alone is kept on disk, in a folder that `belated._kernels.cache` finds.
Two settings of the environment change what is compiled:

* `BELATED_STRICT=1`: sums are added in the order in which they are written, so that every processor gets the same bits;
* `NUMBA_DISABLE_JIT=1`: nothing is compiled, and all kernels run as the Python they are written in, slowly.
"""

from __future__ import annotations

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
from numba.extending import intrinsic, is_jitted, overload, overload_method, register_jitable

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
#: How everything is compiled: without the GIL, and a division by zero is no error; and parts of their callers.
_PLAIN: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_INLINED: dict[str, Any] = {**_PLAIN, "forceinline": True}


def kernel(function: F) -> F:
    """Let other kernels call `function`, compiled with strict IEEE arithmetic; Python calls it as it is written."""
    return register_jitable(**_PLAIN)(function)


def fast_sums(function: F) -> F:
    """Compile `function`, a small leaf with sums of products, inlined, letting the compiler reorder the sums."""
    return register_jitable(fastmath=_FAST_SUMS, **_INLINED)(function)


def inlined(function: F) -> F:
    """Make `function` a part of each kernel that calls it, before anything is compiled."""
    return cast(F, numba.njit(inline="always", **_PLAIN)(function)) if COMPILED else function


def record_methods(*methods: Callable[..., Any]) -> None:
    """Let kernels call methods named and with arguments like these of any `NamedTuple`.

    `record.plan(...)` is then the `plan` of its class, in kernels as in Python.
    """
    for method in methods:
        _let_call(method.__name__, inspect.signature(method))


def _let_call(name: str, signature: inspect.Signature) -> None:
    def choose(record, *rest):  # type: ignore[no-untyped-def]
        return getattr(record.instance_class, name, None)

    choose.__signature__ = signature  # type: ignore[attr-defined]
    overload_method(numba.types.BaseNamedTuple, name, strict=False, jit_options=_INLINED)(choose)  # type: ignore[call-arg]


class RecordMethod:
    """`plan = RecordMethod("plan")`: `plan(record, ...)` is `record.plan(...)`, in Python and in entry points.

    An entry point is compiled for one class of records, its first argument, whose method becomes a part of it before
    anything is compiled.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, record: Any, *arguments: Any) -> Any:
        return getattr(record, self.name)(*arguments)

    def of(self, kind: type) -> Callable[..., Any]:
        """Return the method of records of that class, for kernels."""
        method: Callable[..., Any] = getattr(kind, self.name)
        return inlined(method)


def borrowed(value: T) -> T:
    """Return the arrays of `value` for a call during which somebody else keeps them: nobody counts references to them.

    On a small problem the counting takes as long as some of the arithmetic. In Python it is `value` itself.
    """
    return value


@overload(borrowed)
def _borrowed(value):  # type: ignore[no-untyped-def]
    return lambda value: _without_owner(value)  # type: ignore[call-arg]


@intrinsic
def _without_owner(typing, value):  # type: ignore[no-untyped-def]
    return value(value), lambda context, builder, _, arguments: _strip(context, builder, value, arguments[0])


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
    """Return what machine code depends on besides its source."""
    processor = config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    features = config.CPU_FEATURES
    if features is None:
        features = llvmlite.binding.get_host_cpu_features().flatten()
    return numba.__version__, llvmlite.__version__, processor, features, f"strict: {STRICT}"


def _warn_not_kept(error: Exception) -> None:
    warnings.warn(
        f"compiled code cannot be kept, so that every start compiles again: {error}; "
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
    """Let Numba keep what is decorated now in `folder` and nowhere else."""
    wanted = {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": ""}
    before = {name: getattr(config, name) for name in wanted if hasattr(config, name)}
    try:
        for name in before:
            setattr(config, name, wanted[name])
        yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)


#: Which of an array's flags its compiled type depends on: contiguous in C, in Fortran, aligned, writeable.
_FLAGS = 0x1 | 0x2 | 0x100 | 0x400


def kind_of(value: Any) -> Hashable:
    """Return what the compiled type of `value` depends on, much faster than Numba's `typeof`."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.num & _FLAGS
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
        signature, function = tuple(map(typeof, arguments)), self._with_methods_of(type(arguments[0]))
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

    def _with_methods_of(self, kind: type) -> Callable[..., Any]:
        """Return the function with each `RecordMethod` that it calls standing for the method of that class."""
        function = self.__wrapped__
        named = {name: function.__globals__.get(name) for name in function.__code__.co_names}
        methods = {name: value.of(kind) for name, value in named.items() if isinstance(value, RecordMethod)}
        made = FunctionType(function.__code__, {**function.__globals__, **methods}, function.__name__)
        made.__qualname__, made.__module__ = function.__qualname__, function.__module__
        return made if methods else function


def _compile(function: Callable[..., Any], signature: tuple[Any, ...], **options: Any) -> Callable[..., Any]:
    made: Callable[..., Any] = numba.njit([signature], **_PLAIN, **options)(function)
    return made


def entry_point(function: F) -> F:
    """Compile `function`, called from Python, once for each kind of arguments, and keep it on disk.

    Of a kernel it is the entrance for Python.
    """
    return cast(F, EntryPoint(function))


@kernel
def copy(source: npt.NDArray[Any], target: npt.NDArray[Any]) -> None:
    """Set `target` to `source`, of the same shape.

    `target[:] = source` would have to allocate if they overlapped, and takes seconds to compile: it brings along the
    text of the error about shapes that do not fit.
    """
    for i in np.ndindex(source.shape):
        target[i] = source[i]
