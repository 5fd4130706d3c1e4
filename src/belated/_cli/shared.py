"""Shared by all commands: errors, interruption, and printing."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from belated.errors import BelatedError, InvalidInputError

MISTAKE, INTERRUPTED = 2, 130
"""Exit codes: invalid input; interrupted by Ctrl-C."""

Jobs = Annotated[int | None, typer.Option(help="Runs at a time.", show_default="one per core")]
Backend = Annotated[str | None, typer.Option(help="Backend: threads, processes or ray.", show_default="by the agents")]


class Commands(TyperGroup):
    """All commands; errors of belated become one line on stderr and an exit code."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the program; characters that the output encoding lacks become question marks."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        return super().main(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (BelatedError, OSError) as error:
            message = " ".join(str(error).split())
            Console(stderr=True).print(Text(f"error: {message}", style="red"), soft_wrap=True)
            raise typer.Exit(MISTAKE) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None


def say(console: Console, text: str, style: str = "") -> None:
    """Print a line without wrapping, even if it is longer than the window, as with a path."""
    console.print(Text(text, style=style), soft_wrap=True)


@contextmanager
def resumable() -> Iterator[None]:
    """On interruption, report that finished work is stored."""
    try:
        yield
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted; finished runs are kept, and the same command resumes")
        raise


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Name the missing extra if an import in this block fails."""
    try:
        yield
    except ImportError as error:
        missing = f"this needs {error.name}, which is not installed: pip install 'belated[{extra}]'"
        raise InvalidInputError(missing) from None
