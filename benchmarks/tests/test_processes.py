"""Processes of their own: what they print, what they cost, and how they fail."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from benchmarks import processes
from benchmarks.problems import FULL, QUICK
from benchmarks.processes import Finished, ProcessError, finish, ten_lines


def test_the_cpu_time_is_that_of_the_process_alone() -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass\nprint('first')\nprint('last')"
    done = finish(["-c", busy])
    assert done.cpu >= 0.3
    assert done.last_line == "last"
    sleeping = finish(["-c", "import time; time.sleep(1.0); print('x')"])
    assert sleeping.cpu < sleeping.first_line  # sleep is not work


def test_the_first_line_counts_and_not_the_end() -> None:
    said = "import time, sys; sys.stderr.write('x\\n'); sys.stderr.flush(); time.sleep(1.0); print(time.time())"
    began = time.time()
    done = finish(["-c", said])
    assert done.first_line < float(done.last_line) - began


def test_a_process_sees_the_environment_that_is_given_and_the_project() -> None:
    program = "import benchmarks, os; print(os.environ['A_NAME'])"
    assert finish(["-c", program], {"A_NAME": "a value"}).last_line == "a value"


def test_a_process_that_fails_is_quoted() -> None:
    with pytest.raises(ProcessError, match="ValueError: it broke"):
        finish(["-c", "raise ValueError('it broke')"])
    with pytest.raises(ProcessError, match="exit code 3"):
        finish(["-c", "raise SystemExit(3)"])


def test_the_ten_lines_are_those_of_the_readme() -> None:
    program = ten_lines()
    compile(program, "README.md", "exec")
    assert program.startswith("import belated\n")
    assert "belated.run(" in program
    assert "plan(rng)" not in program  # the next example


class Fake:
    """Answers in the place of processes."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def finish(self, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> Finished:
        self.asked.append(arguments[-1])
        return Finished(0.55, 1.5, json.dumps([3.0 if len(self.asked) < 14 else 1.0, 120.0]))


def test_a_start_has_its_cpu_time_its_compilation_and_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake()
    monkeypatch.setattr(processes, "finish", fake.finish)
    found = {measure.name: measure for measure in processes.start(replace(FULL, repeats=2))}
    assert found["CPU time of `import belated`"].values == (0.55, 0.55)
    assert found["CPU time of `import belated`"].met is True
    assert found["CPU time of `import belated.decisions`"].met is False
    assert found["first line of the demo, no kernels in the cache"].values == (1.5,)
    assert found["compilation in a first start"].values == (3.0,)
    assert len(found["compilation in a second start"].values) == 2
    assert found["peak memory, ten seeds of 4000 episodes"].values == (120.0, 120.0)
    assert fake.asked.count("import belated") == 3  # the first is not counted


def test_a_quick_start_leaves_out_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "finish", Fake().finish)
    missing = [measure.name for measure in processes.start(QUICK) if not measure.values]
    assert [name.endswith("no kernels in the cache") for name in missing] == [True, True, True, False]


def test_a_start_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> Finished:
        if "belated" in arguments or "benchmarks.fresh" in arguments:
            raise ProcessError("it broke")
        return Finished(0.1, 0.1, "")

    monkeypatch.setattr(processes, "finish", fail)
    found = processes.start(QUICK)
    assert [each.note for each in found if each.note.endswith("it broke")] == ["not measured: it broke"] * 4
    (grown,) = processes.long_run(QUICK)
    assert grown.values == ()
