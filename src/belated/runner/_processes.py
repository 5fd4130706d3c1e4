"""Workers that are processes of this machine, for agents written in Python.

A worker is a fresh interpreter that is sent one run at a time over a pipe. Runs travel by cloudpickle, so that agents
defined in a notebook or in a script without the usual guard can be sent, which the standard library's pools cannot do.
Each worker is a pool of one: when it is killed, it is known which run it was playing, and no other is disturbed.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Collection
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import IO, TYPE_CHECKING, Any

import cloudpickle

from belated.errors import BelatedError
from belated.runner._experiment import Run
from belated.runner._play import packed, play_packed
from belated.runner._store import Store

if TYPE_CHECKING:
    import polars as pl

IDLE_SECONDS = 300.0
"""After so long without work a process ends by itself."""
_CODE = """
import sys
parent, sys.path[:] = int(sys.argv[1]), sys.argv[2:]
del sys.argv[1:]
from belated.runner._orphans import end_with
end_with(parent)  # before the rest is imported, which takes seconds
from belated.runner._processes import serve
serve()
"""


class ProcessDiedError(BelatedError):
    """A worker ended without an answer."""


class Process:
    """One worker: a process that plays what it is sent."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", _CODE, str(os.getpid()), *sys.path]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @property
    def alive(self) -> bool:
        """Whether it can be sent a run."""
        return self._process.poll() is None

    def ask(self, task: bytes) -> bytes:
        """Send `task` and wait for the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            _write(self._process.stdin, task)
            return _read(self._process.stdout)
        except (EOFError, OSError, ValueError) as error:  # a ValueError if `end` has closed the pipes
            raise ProcessDiedError("a process ended without an answer") from error

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:  # what was to be sent can no longer be
                continue


_IDLE: list[Process] = []
"""Workers without work, with everything imported."""
_INHERITED: list[Process] = []
"""In a forked process: the workers of its parent, which it must not talk to."""


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
    """Processes of this machine, each playing one run."""

    deaths: tuple[type[Exception], ...] = (ProcessDiedError,)

    def __init__(self, at_once: int) -> None:
        self._threads = ThreadPoolExecutor(at_once)  # each waits for the answer of one process
        self._busy: dict[Future[bytes], Process] = {}

    def submit(self, run: Run, store: Store | None) -> Future[bytes]:
        """Begin a run in an idle process, or in a new one."""
        task = _pickled(packed(run, store))
        while _IDLE:
            process = _IDLE.pop()
            if process.alive:
                break
            process.end()
        else:
            process = Process()
        future = self._threads.submit(process.ask, task)
        self._busy[future] = process
        return future

    def finished(self, tickets: Collection[Future[bytes]]) -> Future[bytes]:
        """Wait for one of the runs."""
        return next(iter(wait(tickets, return_when=FIRST_COMPLETED).done))

    def result(self, ticket: Future[bytes]) -> pl.DataFrame | None:
        """Return what the process sent, and keep it for the next run."""
        process = self._busy.pop(ticket)
        try:
            well, answer = pickle.loads(ticket.result())
        except BaseException:
            process.end()
            raise
        _IDLE.append(process)
        if not well:
            raise answer
        rows: pl.DataFrame | None = answer
        return rows

    def close(self, tickets: Collection[Future[bytes]]) -> None:
        """Kill the processes that are still playing."""
        for ticket in tickets:
            self._busy.pop(ticket).end()
        self._threads.shutdown()


def serve() -> None:
    """Play what arrives on the standard input and answer on the standard output, until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    tasks, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what an agent prints must not get among the answers
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
    """Return what became of `task`, pickled: True and the rows, or False and the error."""
    answer: tuple[bool, Any]
    try:
        answer = True, play_packed(*pickle.loads(task))
    except Exception as error:
        error.add_note("".join(["in a worker:\n", *traceback.format_exception(error)]))
        answer = False, error
    try:
        return _pickled(answer)
    except Exception:  # an error of the user's with something in it that cannot travel
        return _pickled((False, BelatedError(f"{type(answer[1]).__name__}: {answer[1]}")))


def _pickled(value: Any) -> bytes:
    content: bytes = cloudpickle.dumps(value)
    return content


def _write(pipe: IO[bytes], content: bytes) -> None:
    pipe.write(len(content).to_bytes(8))
    pipe.write(content)
    pipe.flush()


def _read(pipe: IO[bytes]) -> bytes:
    """Return what the other side wrote; raise `EOFError` if it has ended."""
    size = pipe.read(8)
    content = pipe.read(int.from_bytes(size))
    if len(size) < 8 or len(content) < int.from_bytes(size):
        raise EOFError
    return content
