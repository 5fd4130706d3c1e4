"""The one decorator of every hot function: `@kernel` compiles with Numba, caches, releases the GIL.

A kernel does not count references to arrays, which on a small problem costs as much as some of its arithmetic. Hence it
cannot allocate any, which no kernel should; the few that have to are an `@allocating_kernel`.

Numba's cache of a function looks only at that function's own file, so a kernel that calls a kernel of
another file could go on running old machine code after an edit or an upgrade. Here the cache folder's name
holds a digest of every file that has kernels, which makes that impossible.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from numba.extending import is_jitted, overload

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = Path(__file__).parent


def _cache_folder() -> Path:
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_bytes()
        if b"belated.compiled" in source or path.name == "compiled.py":
            digest.update(source)
    wanted = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    return Path(wanted or PACKAGE / "__pycache__") / f"belated-kernels-{digest.hexdigest()[:16]}"


_CACHE = str(_cache_folder())

#: Reassociation lets a sum of products use vector instructions; results move by rounding only.
_FAST_SUMS = {"reassoc", "contract", "nsz", "arcp"}


def _compile(function: F, *, cache: bool = True, **options: Any) -> F:
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = _CACHE
    try:
        return cast(F, numba.njit(cache=cache, nogil=True, error_model="numpy", **options)(function))
    finally:
        config.CACHE_DIR = before


def kernel(function: F) -> F:
    """Compile `function` with strict IEEE arithmetic. It works on the arrays that it is given and makes none."""
    return _compile(function, _nrt=False)


def inlined_kernel(function: F) -> F:
    """Compile `function` as a kernel whose calls are replaced by its body: on a small problem a call is not cheap."""
    return _compile(function, _nrt=False, forceinline=True)


def allocating_kernel(function: F) -> F:
    """Compile `function` with strict IEEE arithmetic, for the rare case that it makes arrays."""
    return _compile(function, _nrt=True)


def fast_sums(function: F) -> F:
    """Compile `function`, a small leaf with sums of products, inlined, letting the compiler reorder the sums."""
    return _compile(function, fastmath=_FAST_SUMS, _nrt=False, forceinline=True)


def is_ours(record: Any) -> bool:
    """Tell whether the type of `record` is defined in this package."""
    return type(record).__module__.partition(".")[0] == __name__.partition(".")[0]


def entry_point(function: F) -> F:
    """Compile `function`, called from Python with a record first, whose calls are resolved by that record's type.

    Only records of this package are cached on disk. The cache of a record defined elsewhere would name a module that
    another program cannot import, and would not notice when that module changes. And functions that are plain Numba
    inherit from their caller whether they may allocate; those of a record defined elsewhere may.
    """
    cached, fresh = _compile(function, _nrt=False), _compile(function, cache=False, _nrt=True)

    @wraps(function)
    def call(record: Any, *rest: Any) -> Any:
        return (cached if is_ours(record) else fresh)(record, *rest)

    return cast(F, call)


def by_record(
    generic: Callable[..., None], otherwise: Callable[..., None] | None = None
) -> Callable[[type], Callable[[F], F]]:
    """Make `generic` a compiled function that picks its body by the record type of its first argument.

    An algorithm keeps its arrays in a `NamedTuple` of its own. `generic` is the name under which other
    kernels call it; each algorithm registers its body for its record, and the choice is made when the caller
    is compiled, so it costs nothing at run time. Records that have registered nothing get the body `otherwise`.
    A body that is no kernel yet is compiled as a part of its caller. Returns the registering decorator.
    """
    bodies: dict[type | None, Callable[..., None]] = {}

    def choose(first, *rest):  # type: ignore[no-untyped-def]
        body = bodies.get(getattr(first, "instance_class", None), otherwise)
        if body is None or not is_jitted(body):
            return body
        return lambda first, *rest: body(first, *rest)

    overload(generic, strict=False)(choose)  # strict would compare the names of the arguments

    def register(record: type) -> Callable[[F], F]:
        def decorate(body: F) -> F:
            bodies[record] = body
            return body

        return decorate

    return register


@kernel
def copy(source: npt.NDArray[Any], target: npt.NDArray[Any]) -> None:
    """Set `target` to `source`, of the same shape.

    `target[:] = source` would have to allocate if they overlapped, and takes seconds to compile: it brings along the
    text of the error about shapes that do not fit.
    """
    for i in np.ndindex(source.shape):
        target[i] = source[i]
