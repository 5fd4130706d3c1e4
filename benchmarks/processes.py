"""What only a new process shows: how long it starts and compiles, and how its memory grows."""

from __future__ import annotations

import doctest
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from belated.errors import BelatedError
from benchmarks.fresh import STATUS
from benchmarks.measure import Measure, at_most, below, unmeasured
from benchmarks.problems import Effort

ROOT = Path(__file__).parents[1]
LATER = "it takes long; run without --quick"


class ProcessError(BelatedError):
    """A process that failed, in its own last words."""


class Finished(NamedTuple):
    """A process that has ended."""

    cpu: float
    """User and system time, with that of its own processes."""
    first_line: float
    """Seconds until it had printed a line."""
    last_line: str


def finish(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> Finished:
    """Run Python with `arguments` from the root of the project, and wait for it."""
    where = {**os.environ, **(environment or {})}
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, env=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    with process.stdout as printed:
        lines = [printed.readline()]
        first = time.perf_counter() - began
        lines += printed.readlines()
    before = _cpu_of_ended()
    code = process.wait()
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if code:
        raise ProcessError(last or f"exit code {code}")
    return Finished(_cpu_of_ended() - before, first, last)


def _cpu_of_ended() -> float:
    """Return the user and system time of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def start(effort: Effort) -> list[Measure]:
    """CPU time of imports with warm caches, then time of compilation in a first and a second start, and peak memory."""
    return [*warm(effort), *cold(effort), *compilation(effort)]


def warm(effort: Effort) -> list[Measure]:
    """CPU time of what only imports; the first time, which may write byte code, is not counted."""
    found = []
    for name, arguments, bound in (
        ("import belated", ["-c", "import belated"], 0.6),
        ("belated --help", ["-m", "belated", "--help"], 0.8),
        ("import belated.decisions", ["-c", "import belated.decisions"], 0.5),
    ):
        measure = unmeasured(f"CPU time of `{name}`", "", target=at_most(bound))
        try:
            _, *taken = (finish(arguments).cpu for _ in range(effort.repeats + 1))
            found.append(replace(measure, values=tuple(taken), unit="s", note="all caches warm"))
        except ProcessError as error:
            found.append(replace(measure, note=f"not measured: {error}"))
    return found


def ten_lines() -> str:
    """Return the first example of the README as a program."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Ten lines")[2].partition("\n## ")[0]
    return "".join(example.source for example in doctest.DocTestParser().get_examples(text))


def cold(effort: Effort) -> list[Measure]:
    """The demo and the README's ten lines on an empty cache of kernels."""
    wanted = {
        "CPU time of the demo, no kernels in the cache": at_most(30),
        "first line of the demo, no kernels in the cache": at_most(2),
        "CPU time of the README's ten lines, no kernels in the cache": at_most(20),
    }
    if not effort.patient:
        return [unmeasured(name, LATER, target=target) for name, target in wanted.items()]
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        try:
            demo = finish(["-m", "belated"], _kernels_in(one))
            lines = finish(["-c", ten_lines()], _kernels_in(other))
        except ProcessError as error:
            return [unmeasured(name, str(error), target=target) for name, target in wanted.items()]
    found = (demo.cpu, demo.first_line, lines.cpu)
    return [
        Measure(name, (value,), unit="s", target=target)
        for (name, target), value in zip(wanted.items(), found, strict=True)
    ]


def _kernels_in(folder: str) -> dict[str, str]:
    return {"BELATED_CACHE": folder}


def compilation(effort: Effort) -> list[Measure]:
    """Time that a first and a second start spend on compilation, and peak memory."""
    first, again, memory = (
        unmeasured("compilation in a first start", LATER),
        unmeasured("compilation in a second start", "", target=below(2)),
        unmeasured("peak memory, ten seeds of 4000 episodes", "", target=below(500)),
    )
    program = ["-m", "benchmarks.fresh", "compiling"]
    with tempfile.TemporaryDirectory() as empty:
        where = _kernels_in(empty) if effort.patient else {}
        try:
            found = [json.loads(finish(program, where).last_line) for _ in range(effort.repeats + 1)]
        except ProcessError as error:
            return [replace(each, note=f"not measured: {error}") for each in (first, again, memory)]
    (compiling, _), *rest = found  # the first fills the cache
    seconds, peaks = zip(*rest, strict=True)
    if effort.patient:
        first = replace(first, values=(compiling,), unit="s", note="small problem, Delayed-PSVI")
    return [
        first,
        replace(again, values=seconds, unit="s", note="small problem"),
        replace(memory, values=peaks, unit="MB", note="small problem"),
    ]


def long_run(effort: Effort) -> list[Measure]:
    """Growth of resident memory over a long run of which every thousandth episode is recorded."""
    name, target = f"growth of memory over {effort.long_episodes:,} episodes", below(50)
    if not STATUS.is_file():
        return [unmeasured(name, "this system does not tell how much memory a process has", target=target)]
    try:
        grown = json.loads(finish(["-m", "benchmarks.fresh", "growth", str(effort.long_episodes)]).last_line)
    except ProcessError as error:
        return [unmeasured(name, str(error), target=target)]
    return [Measure(name, (float(grown),), unit="MB", target=target, note="small problem")]
