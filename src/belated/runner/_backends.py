"""Backends for runs: threads of this process, processes of this machine, or a Ray cluster.

A worker process is a fresh interpreter that gets one run at a time over a pipe. Runs are pickled by cloudpickle, so
that agents defined in a notebook or in a script without a main guard can be sent, which the standard library's pools
cannot do. Each process is a pool of one: when it is killed, it is clear which run it was playing, and no other is
affected.
"""

from __future__ import annotations

import atexit
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

import cloudpickle
from threadpoolctl import threadpool_limits

from belated._util.plugins import needed
from belated._util.version import stamp
from belated.errors import BelatedError, InvalidInputError
from belated.runner._callbacks import Watchers
from belated.runner._experiment import MADE_BY, Run
from belated.runner._orphans import Guard, marking
from belated.runner._simulation import play
from belated.runner._store import Store

if TYPE_CHECKING:
    import polars as pl

Played = Future["pl.DataFrame | None"]

RAY_QUEUE = 1000
"""Runs submitted to Ray at a time: enough to keep every machine busy, including those that join later."""
IDLE_SECONDS = 300.0
"""Seconds after which an idle worker process ends."""
_CODE = """
import sys
parent, sys.path[:] = int(sys.argv[1]), sys.argv[2:]
del sys.argv[1:]
from belated.runner._orphans import end_with
end_with(parent)  # before the rest is imported, which takes seconds
from belated.runner._backends import serve
serve()
"""


class ProcessDiedError(BelatedError):
    """A worker process ended without returning a result."""


class Stopped(BaseException):
    """Raised inside a run to end it early; like KeyboardInterrupt, it is not an error."""


class Backend(Protocol):
    """Plays runs in parallel."""

    at_once: int
    """Number of runs submitted at a time."""
    live: bool
    """Whether progress and callbacks are updated during a run, not only after it."""
    deaths: tuple[type[Exception], ...]
    """Exceptions that mean that a worker has died; a run that fails raises its own error."""

    def submit(self, run: Run, store: Store | None) -> Played:
        """Start a run; its future has the rows, or None if a worker has written them to the store."""

    def close(self) -> None:
        """End the runs that are still being played."""


def play_run(
    run: Run, store: Store | None, watch: Callable[[int], None] | None = None, watchers: Watchers | None = None
) -> pl.DataFrame:
    """Play one run, resuming from its checkpoint if there is one, and store its rows; an error names the run."""
    try:
        return play(
            run,
            watch=watch,
            checkpoint=None if store is None else store.checkpoint(run),
            commit=None if store is None else lambda rows: store.write(run, rows),
            callbacks=watchers,
        )
    except BelatedError as error:
        raise type(error)(f"{run.id}: {error}") from error


class Threads:
    """Threads of this process, for agents whose kernels release the GIL."""

    live = True
    deaths: tuple[type[Exception], ...] = ()

    def __init__(self, jobs: int, advance: Callable[[int], None], watchers: Watchers | None = None) -> None:
        self.at_once = 2 * jobs  # so that no thread waits for its next run
        self._pool, self._stop = ThreadPoolExecutor(jobs), threading.Event()
        self._limits = threadpool_limits(1)  # BLAS threads would only compete with the runs
        self._advance, self._watchers = advance, watchers

    def _watch(self, played: int) -> None:
        if self._stop.is_set():
            raise Stopped
        self._advance(played)

    def submit(self, run: Run, store: Store | None) -> Played:
        return self._pool.submit(play_run, run, store, self._watch, self._watchers)

    def close(self) -> None:
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)
        self._limits.restore_original_limits()


def packed(run: Run, store: Store | None) -> tuple[list[str], bytes]:
    """Return a run pickled for a worker, and the folders from which its classes are imported."""
    run.describe()  # computed here and sent with the run
    there = None if store is None else store.absolute()  # a worker has its own working directory
    try:
        content: bytes = cloudpickle.dumps((run, there))
    except Exception as error:  # pickling runs user code
        raise InvalidInputError(
            f"{run.id} cannot be sent to another process: {error}; play it with backend='threads'"
        ) from error
    return [str(Path(entry).absolute()) for entry in sys.path], content


def play_packed(path: list[str], content: bytes) -> pl.DataFrame | None:
    """Play a run from `packed`, in a worker."""
    sys.path.extend(entry for entry in path if entry not in sys.path)
    try:
        run, store = pickle.loads(content)
    except ModuleNotFoundError as error:
        raise InvalidInputError(
            f"a worker cannot import the module {error.name!r}, which the submitting program has: install it on "
            "all machines, or start in a folder that all of them can access"
        ) from error
    return play_apart(run, store)


def play_apart(run: Run, store: Store | None) -> pl.DataFrame | None:
    """Play one run in a worker; rows written to a store are not sent back.

    A worker must have the same version of belated as the submitting program, since its rows record that version.
    """
    sender = run.describe()[MADE_BY]
    if sender != stamp():
        raise InvalidInputError(
            f"{run.id}: its worker has another version of belated, {stamp()}, than the submitting program, {sender}; "
            "install the same on all machines"
        )
    with threadpool_limits(1):  # BLAS threads would only compete with the other workers
        rows = play_run(run, store)
    return rows if store is None else None


class Process:
    """One worker process."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", _CODE, str(os.getpid()), *sys.path]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, task: bytes) -> bytes:
        """Send `task` and wait for the result."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            _write(self._process.stdin, task)
            return _read(self._process.stdout)
        except (EOFError, OSError, ValueError) as error:  # a ValueError if `end` has closed the pipes
            raise ProcessDiedError("a worker process ended without returning a result") from error

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:  # the pipe is broken
                continue


_IDLE: list[Process] = []
"""Idle workers, with everything imported."""
_INHERITED: list[Process] = []
"""In a forked process: the parent's workers, which must not be used."""


def _forget_after_fork() -> None:
    _INHERITED.extend(_IDLE)
    _IDLE.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


@atexit.register
def _end_idle() -> None:
    while _IDLE:
        _IDLE.pop().end()


class Processes:
    """Processes of this machine, for agents written in Python."""

    live = False
    deaths: tuple[type[Exception], ...] = (ProcessDiedError,)

    def __init__(self, jobs: int) -> None:
        self.at_once = jobs
        self._threads = ThreadPoolExecutor(jobs)  # each waits for the result of one process
        self._busy: set[Process] = set()

    def submit(self, run: Run, store: Store | None) -> Played:
        """Start a run in an idle process, or in a new one."""
        task = _pickled(packed(run, store))
        while _IDLE:
            process = _IDLE.pop()
            if process.alive:
                break
            process.end()
        else:
            process = Process()
        self._busy.add(process)
        return self._threads.submit(self._ask, process, task)

    def _ask(self, process: Process, task: bytes) -> pl.DataFrame | None:
        """Return the result of the process, and keep the process for the next run."""
        try:
            well, answer = pickle.loads(process.ask(task))
        except BaseException:
            process.end()
            raise
        finally:
            self._busy.discard(process)
        _IDLE.append(process)
        if not well:
            raise answer
        rows: pl.DataFrame | None = answer
        return rows

    def close(self) -> None:
        for process in list(self._busy):
            process.end()
        self._threads.shutdown()


def serve() -> None:
    """Play the runs received on standard input and write the results to standard output, until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    tasks, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # prints of an agent must not mix with the results
    while True:
        bored = threading.Timer(IDLE_SECONDS, os._exit, [0])
        bored.daemon = True
        bored.start()
        try:
            task = _read(tasks)
        except EOFError:
            return
        bored.cancel()
        _write(answers, _answer(task))


def _answer(task: bytes) -> bytes:
    """Run `task` and return the pickled result: True and the rows, or False and the error."""
    answer: tuple[bool, pl.DataFrame | Exception | None]
    try:
        answer = True, play_packed(*pickle.loads(task))
    except Exception as error:
        error.add_note("".join(["in a worker:\n", *traceback.format_exception(error)]))
        answer = False, error
    try:
        return _pickled(answer)
    except Exception:  # the error contains something that cannot be pickled
        return _pickled((False, BelatedError(f"{type(answer[1]).__name__}: {answer[1]}")))


def _pickled(value: object) -> bytes:
    content: bytes = cloudpickle.dumps(value)
    return content


def _write(pipe: IO[bytes], content: bytes) -> None:
    pipe.write(len(content).to_bytes(8))
    pipe.write(content)
    pipe.flush()


def _read(pipe: IO[bytes]) -> bytes:
    """Return one message from the pipe; raise `EOFError` if the other side has closed it."""
    size = pipe.read(8)
    content = pipe.read(int.from_bytes(size))
    if len(size) < 8 or len(content) < int.from_bytes(size):
        raise EOFError
    return content


class Ray:
    """Tasks on a Ray cluster: a running one, or one started here and shut down afterwards.

    Ray's own retries are off, since they would also repeat a finished run whose result was lost.
    """

    live = False

    def __init__(self, jobs: int | None) -> None:
        self.at_once = jobs or RAY_QUEUE
        self._ray = needed("ray", "ray")
        # after a kill some processes of a cluster would survive for a minute
        self._guard = None if self._ray.is_initialized() else Guard()
        if self._guard is not None:
            try:
                with marking(self._guard.mark):
                    self._ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
            except BaseException:
                self._guard.end()
                raise
        self._tasks: dict[Played, Any] = {}
        self._task = self._ray.remote(num_cpus=1, max_retries=0)(play_packed)
        errors = self._ray.exceptions
        self.deaths: tuple[type[Exception], ...] = (
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.OutOfMemoryError,
            errors.ObjectLostError,
            errors.LocalRayletDiedError,
        )

    def submit(self, run: Run, store: Store | None) -> Played:
        """Submit a run to Ray; errors of the task are unwrapped from Ray's own."""
        task, played = self._task.remote(*packed(run, store)), Played()

        def pass_on(done: Played) -> None:
            self._tasks.pop(played, None)
            error = done.exception()
            if isinstance(error, self._ray.exceptions.RayTaskError):
                error = error.cause
            if error is None:
                played.set_result(done.result())
            else:
                played.set_exception(error)

        self._tasks[played] = task
        task.future().add_done_callback(pass_on)
        return played

    def close(self) -> None:
        for task in list(self._tasks.values()):
            self._ray.cancel(task, force=True)
        if self._guard is not None:
            self._ray.shutdown()
            self._guard.end()
