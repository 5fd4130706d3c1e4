"""Methods of records in kernels, borrowed arrays, strict arithmetic, and no compilation at all."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import pytest

from belated._kernels import jit
from belated._kernels.jit import borrowed, copy, entry_point, inlined, kind_of, record_method

Floats = npt.NDArray[np.float64]

typeof: Any = numba.typeof


class Single(NamedTuple):
    values: Floats

    def add(self, amount: float) -> None:
        self.values[0] += amount


class Double(NamedTuple):
    values: Floats

    def add(self, amount: float) -> None:
        add_once(self.values, 2 * amount)


class Outer(NamedTuple):
    inner: Double
    """Its method is chosen by its own type."""

    def add(self, amount: float) -> None:
        self.inner.add(amount)


class Other(NamedTuple):
    values: Floats


@record_method
def add(record: Any, amount: float) -> None:
    record.add(amount)


@inlined
def add_once(values: Floats, amount: float) -> None:
    values[0] += amount


@inlined
def add_twice(record: Any, amount: float) -> None:
    for _ in range(2):
        add(record, 0.5 * amount)


@entry_point
def call(record: Any, amount: float) -> None:
    borrowed(record).add(amount)


@entry_point
def call_inlined(record: Any, amount: float) -> None:
    add_twice(borrowed(record), amount)


@pytest.mark.parametrize("call", [call, call_inlined], ids=["method", "inlined"])
def test_the_method_is_that_of_the_record(call: Any) -> None:
    single, double, outer = Single(np.zeros(1)), Double(np.zeros(1)), Outer(Double(np.zeros(1)))
    for record in (single, double, outer):
        call(record, 1.5)
        record.add(1.5)  # the same in Python
    assert (single.values[0], double.values[0], outer.inner.values[0]) == (3.0, 6.0, 6.0)


def test_threads_that_compile_at_once_keep_it_all_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, before = list[bool](), numba.config.CACHE_DIR  # type: ignore[attr-defined]

    def compile_slowly(function: Any, signature: Any, **options: Any) -> Any:
        folder = Path(numba.config.CACHE_DIR)  # type: ignore[attr-defined]
        time.sleep(0.02)
        seen.append(folder.parent == jit.FOLDER and folder == Path(numba.config.CACHE_DIR))  # type: ignore[attr-defined]
        return function

    monkeypatch.setattr(jit, "_compile", compile_slowly)
    fresh = [jit.EntryPoint(add_once) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda each: each.compiled_for(np.zeros(1), 1.0), fresh))
    assert seen == [True] * 8 and before == numba.config.CACHE_DIR  # type: ignore[attr-defined]


@pytest.mark.parametrize("call", [call, call_inlined], ids=["method", "inlined"])
def test_a_record_without_the_method_cannot_be_compiled(call: Any) -> None:
    with pytest.raises(numba.errors.TypingError, match="add"):
        call(Other(np.zeros(1)), 1.0)


@entry_point
def fill_through(record: Other, part: Floats) -> float:
    other = borrowed(record)
    made = np.ones(part.size)  # what is made here is owned here
    for i in range(part.size):
        borrowed(part)[i] = other.values[i] + made[i]
    return float(made.sum())


def test_borrowed_arrays_are_the_same_arrays_and_nobody_frees_them() -> None:
    record, part = Other(np.arange(3.0)), np.zeros(6)[::2]
    for _ in range(1000):
        assert fill_through(record, part) == 3.0
    np.testing.assert_array_equal(part, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(record.values, np.arange(3.0))


def test_whatever_a_compiled_type_depends_on_makes_another_kind() -> None:
    array = np.zeros((2, 3))
    read_only = array.view()
    read_only.flags.writeable = False
    different = [
        1, 1.0, True, array, array.T, array[:, ::2], array[0], array.astype(np.float32), read_only,
        Single(array), Double(array), (array,), (array, 1),
    ]  # fmt: skip
    kinds = [kind_of(value) for value in different]
    assert len(set(kinds)) == len(different)
    assert len({str(typeof(value)) for value in different}) == len(different)
    assert kind_of(np.ones((5, 7))) == kind_of(array)


@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (1, 7), (5, 1), (0, 7)], ids=str)
def test_an_array_that_is_contiguous_both_ways_is_no_other_kind(shape: tuple[int, int]) -> None:
    """Nothing is compiled again for a problem of one state, one step or one feature."""
    array, other = np.ones(shape), np.ones((5, 7))
    assert array.flags.c_contiguous and array.flags.f_contiguous
    assert kind_of(array) == kind_of(other)
    assert typeof(array) == typeof(other)


def test_copy() -> None:
    compiled = entry_point(copy)
    for shape in ((3,), (2, 3), (2, 0)):
        source, target = np.arange(np.prod(shape)).reshape(shape), np.full(shape, -1)
        compiled(source, target)
        np.testing.assert_array_equal(target, source)


THEIRS = """
from dataclasses import dataclass
from typing import ClassVar, NamedTuple
import numpy as np
from numba import njit
from belated.agents import CompiledSettings
from belated.agents._base import Nothing

@njit  # plain Numba, and it allocates
def fill(policy):
    policy[:] = np.full(policy.shape, ACTION)

class TheirRecord(NamedTuple):
    learned: Nothing

    def plan(self, rng, start, policy):
        fill(policy)

    def learn(self, arrival):
        pass

    def settle(self):
        pass

@dataclass(frozen=True, kw_only=True)
class Theirs(CompiledSettings):
    kind: ClassVar[str] = "theirs"
    def record(self, problem):
        return TheirRecord(Nothing(np.zeros(0)))
"""


def _printed(program: str, folder: Path | None, environment: Mapping[str, str] | None = None) -> str:
    """Run `program` in a process of its own, its kernels kept in `folder`, if given, and return what it printed."""
    where = {**os.environ, **(environment or {})}
    if folder is not None:
        where |= {"BELATED_CACHE": str(folder / "cache")}
        where["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-B", "-W", "error", "-c", program], env=where, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_compiled_algorithm_from_elsewhere_is_neither_stale_nor_in_the_way(tmp_path: Path) -> None:
    module = tmp_path / "theirs.py"
    plan_theirs = (
        "import numpy as np, belated, theirs\n"
        "agent = theirs.Theirs().start(belated.RiverSwim().problem)\n"
        "print(agent.plan(np.random.default_rng(0)).actions.max())"
    )
    for action in ("0", "1"):
        module.write_text(THEIRS.replace("ACTION", action), encoding="utf-8")
        assert _printed(plan_theirs, tmp_path) == action
    module.unlink()
    plan_ours = plan_theirs.replace(", theirs", "").replace("theirs.Theirs", "belated.RandomPolicy")
    assert _printed(plan_ours, tmp_path) == "1"


#: Sums, functions and normal numbers whose last bits depend on the order and the processor, unless it is strict.
SUMS = """
import numpy as np
from belated._kernels.jit import entry_point
from belated._kernels.exp_log import exp, log
from belated._kernels.normals import standard_normal
from belated._kernels.gaussian import dot, rank_one_update

@entry_point
def functions(rng, x, y, out, factor):
    for i in range(x.size):
        out[0] += exp(5.0 * x[i]) + log(0.1 + x[i] * x[i])
    for _ in range(1_000_000):
        out[1] += standard_normal(rng)
    out[2] = dot(x, y)
    rank_one_update(factor, x[:40].copy())
    rank_one_update(factor, x[40:80].copy())

rng, out, factor = np.random.default_rng(0), np.zeros(3), np.eye(40)
x, y = rng.standard_normal((2, 20_000))
functions(rng, x, y, out, factor)
print([value.hex() for value in out.tolist()], factor.tobytes().hex())
"""

#: An old processor on this one: for compiled code, and for the C library, where that can be told.
OLD = {
    "NUMBA_CPU_NAME": "nocona" if platform.machine() in ("x86_64", "AMD64") else "generic",
    "NUMBA_CPU_FEATURES": "",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4",
    "OPENBLAS_CORETYPE": "Prescott",
}


def test_strictly_another_processor_gives_the_same_bits(tmp_path: Path) -> None:
    new, old = (_printed(SUMS, tmp_path, {"BELATED_STRICT": "1", **more}) for more in ({}, OLD))
    assert new == old
    kept = list((tmp_path / "cache").iterdir())
    assert len(kept) == 2  # one for each processor


WHOLE = """
import belated
from belated.runner._experiment import Run
from belated.runner._simulation import Simulation
for delay in (belated.Poisson(50), belated.Multinomial([0, 100, 200], [0.4, 0.3, 0.3])):
    agent = belated.DelayedPSVI(scale=5.0, noise=0.1)
    run = Simulation(Run(belated.SyntheticLinearMDP(actions=20), agent, delay, episodes=3000, seed=0))
    while run.played < run.episodes:
        run.advance()
    print(run.regret.hex(), {name: values.tobytes().hex() for name, values in run.agent.memory().items()})
"""


@pytest.mark.slow  # everything is compiled twice
def test_strictly_a_whole_run_has_the_same_bits_on_another_processor(tmp_path: Path) -> None:
    new, old = (_printed(WHOLE, tmp_path, {"BELATED_STRICT": "1", **more}) for more in ({}, OLD))
    assert new == old


UNCOMPILED = """
import belated, numpy as np
world, agents = belated.RiverSwim(), AGENTS
for agent in agents:
    rows = belated.simulate(world, agent, belated.Poisson(2), episodes=5, seed=0)
    print(rows["regret"][-1])
"""


@pytest.mark.slow
def test_without_compilation_everything_runs_as_python(tmp_path: Path) -> None:
    agents = "[belated.DelayedPSVI(), belated.RandomPolicy()]"
    several = f"{agents} + [belated.DelayedLPSVI(steps=2), belated.DelayedUCBVI(), belated.EpsilonGreedy()]"
    plain = _printed(UNCOMPILED.replace("AGENTS", several), tmp_path, {"NUMBA_DISABLE_JIT": "1"})
    assert not (tmp_path / "cache").exists()
    compiled = _printed(UNCOMPILED.replace("AGENTS", agents), None)
    expected = [float(line) for line in compiled.split()]
    assert [float(line) for line in plain.split()[:2]] == pytest.approx(expected, rel=1e-9)
    assert len(plain.split()) == 5
