"""How far something has come: a bar on a terminal, else a plain line now and then, always on stderr.

A program whose output goes into a file or through a pipe is not silent for minutes, and never writes a line so often
that it is a burden to read.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

EVERY = 10.0
"""Seconds between two plain lines."""


class Progress(Protocol):
    """What is told of the work as it goes on."""

    def advance(self, done: int = 1) -> None:
        """Say that so much more is done."""

    def say(self, what: str) -> None:
        """Say what is being done now."""


class Silent:
    """Says nothing."""

    def advance(self, done: int = 1) -> None:
        """Say nothing."""

    def say(self, what: str) -> None:
        """Say nothing."""


class Lines:
    """Plain lines: one at the start, then one every few seconds, and one at the end if there were any in between.

    `name: 1,200 of 4,000 episodes, 35 s so far, about 1 min 22 s left`
    """

    def __init__(self, name: str, total: int, unit: str, done: int, first: str) -> None:
        self._name, self._total, self._unit, self._what = name, total, unit, ""
        self._done = self._before = done
        self._began = time.monotonic()
        self._lock, self._ended = threading.Lock(), threading.Event()
        if done < total:
            self._tell(f" ({first})" if first else "")
            threading.Thread(target=self._now_and_then, daemon=True).start()

    def advance(self, done: int = 1) -> None:
        """Count what is done; any thread may."""
        with self._lock:
            self._done += done

    def say(self, what: str) -> None:
        """Keep what is being done, to be told with the next lines."""
        self._what = f", {what}"

    def end(self) -> None:
        """Tell no more; say how long it took, if that was long."""
        self._ended.set()
        passed = time.monotonic() - self._began
        if self._done >= self._total and passed >= EVERY:
            self._tell(f", done in {duration(passed)}")

    def _now_and_then(self) -> None:
        while not self._ended.wait(EVERY):
            passed, more = time.monotonic() - self._began, self._done - self._before
            left = f", about {duration(passed * (self._total - self._done) / more)} left" if more else ""
            self._tell(f"{self._what}, {duration(passed)} so far{left}")

    def _tell(self, rest: str) -> None:
        if sys.stderr is None:  # it was closed; `print` would write among the results
            return
        with suppress(OSError, ValueError):  # a full disk, or a reader that has gone, stops no work
            print(f"{self._name}: {self._done:,} of {self._total:,} {self._unit}{rest}", file=sys.stderr, flush=True)


@contextmanager
def progress(
    name: str, total: int, unit: str, *, done: int = 0, first: str = "", show: bool = True
) -> Iterator[Progress]:
    """Tell on stderr how much of `total` is done of something called `name`; say `first` until anything is.

    >>> import sys
    >>> from contextlib import redirect_stderr
    >>> with redirect_stderr(sys.stdout), progress("count", 3, "numbers") as counted:
    ...     for _ in range(3):
    ...         counted.advance()
    count: 0 of 3 numbers
    """
    if not show:
        yield Silent()
    elif sys.stderr is not None and sys.stderr.isatty():
        with _bar(name, total, unit, done, first) as bar:
            yield bar
    else:
        lines = Lines(name, total, unit, done, first)
        try:
            yield lines
        finally:
            lines.end()


@contextmanager
def _bar(name: str, total: int, unit: str, done: int, first: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.completed:,.0f}}/{{task.total:,.0f}} {unit}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )

    class Bar:
        def advance(self, done: int = 1) -> None:
            bars.update(task, advance=done, description=self.shown)

        def say(self, what: str) -> None:
            self.shown = f"{name}: {what}"
            bars.update(task, description=self.shown)

        shown = name

    with Bars(*columns, console=Console(stderr=True)) as bars:
        task = bars.add_task(f"{name} ({first})" if first and done < total else name, total=total, completed=done)
        yield Bar()


def duration(seconds: float) -> str:
    """Return a length of time as one reads it.

    >>> duration(7.4), duration(200), duration(7300)
    ('7 s', '3 min 20 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
