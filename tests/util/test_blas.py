"""BLAS has one thread inside the block, and as many as before after it."""

from __future__ import annotations

from threadpoolctl import threadpool_info, threadpool_limits

from belated._util.blas import one_blas_thread


def threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_has_one_thread_inside_the_block() -> None:
    with threadpool_limits(2):
        with one_blas_thread():
            assert threads() == {1}
        assert threads() == {2}
