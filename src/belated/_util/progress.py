"""Progress reporting on stderr: a bar on a terminal, else a plain line every few seconds."""

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
    """Receives the progress of some work."""

    def advance(self, done: int = 1) -> None:
        """Count `done` more units."""

    def say(self, what: str) -> None:
        """Describe the current step."""


class Silent:
    def advance(self, done: int = 1) -> None:
        pass

    def say(self, what: str) -> None:
        pass


class Lines:
    """Plain lines: one at the start, then one every few seconds, and one at the end of long work.

    `name: 1,200 of 4,000 episodes, 35 s so far, about 1 min 22 s left`
    """

    def __init__(self, name: str, total: int, unit: str, done: int, first: str) -> None:
        self._name, self._total, self._unit, self._what = name, total, unit, ""
        self._done = self._before = done
        self._began = time.monotonic()
        self._lock, self._ended = threading.Lock(), threading.Event()
        if done < total:
            self._write(f" ({first})" if first else "")
            threading.Thread(target=self._repeat, daemon=True).start()

    def advance(self, done: int = 1) -> None:
        with self._lock:
            self._done += done

    def say(self, what: str) -> None:
        self._what = f", {what}"

    def end(self) -> None:
        self._ended.set()
        passed = time.monotonic() - self._began
        if self._done >= self._total and passed >= EVERY:
            self._write(f", done in {duration(passed)}")

    def _repeat(self) -> None:
        while not self._ended.wait(EVERY):
            passed, more = time.monotonic() - self._began, self._done - self._before
            left = f", about {duration(passed * (self._total - self._done) / more)} left" if more else ""
            self._write(f"{self._what}, {duration(passed)} so far{left}")

    def _write(self, rest: str) -> None:
        if sys.stderr is None:  # closed; `print` would write to stdout
            return
        with suppress(OSError, ValueError):  # a full disk or a closed pipe must not stop the work
            print(f"{self._name}: {self._done:,} of {self._total:,} {self._unit}{rest}", file=sys.stderr, flush=True)


@contextmanager
def progress(
    name: str, total: int, unit: str, *, done: int = 0, first: str = "", show: bool = True
) -> Iterator[Progress]:
    """Report how much of `total` is done; `first` is shown until anything is.

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
    """Return a duration for humans.

    >>> duration(7.4), duration(200), duration(7300)
    ('7 s', '3 min 20 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
