"""Limiting the threads of BLAS."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  # SciPy has a BLAS of its own, which is found only once it is loaded

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keep BLAS to one thread inside a `with` block.

    With more threads results round differently. When other processes are busy, small matrices also take many times as
    long, because waiting threads spin.
    """
    limits: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limits
