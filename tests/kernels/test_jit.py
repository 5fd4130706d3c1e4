"""What kinds of kernels there are, the compiled choice by record, strict arithmetic, and no compilation at all."""

from __future__ import annotations

import copy
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pytest
from numba import njit
from numba.core import ir
from numba.core.errors import NumbaError, TypingError

from belated._kernels import jit as compiled
from belated._kernels.jit import by_record
from belated.agents._base import learn, plan, settle

Floats = npt.NDArray[np.float64]
F = TypeVar("F", bound=Callable[..., None])


class Single(NamedTuple):
    values: Floats


class Double(NamedTuple):
    values: Floats


class Unregistered(NamedTuple):
    values: Floats


@by_record()
def add(record: Any, amount: float) -> None:
    """Add `amount`."""


def compile_plainly(function: F) -> F:
    return cast(F, njit(function))


@add.register(Single)
@compile_plainly
def add_once(record: Single, amount: float) -> None:
    record.values[0] += amount


@add.register(Double)
@compile_plainly
def add_twice(record: Double, amount: float) -> None:
    record.values[0] += 2 * amount


@compile_plainly
def call(record: Any, amount: float) -> None:
    add(record, amount)


def test_the_body_is_chosen_by_the_type_of_the_record() -> None:
    single, double = Single(np.zeros(1)), Double(np.zeros(1))
    for _ in range(2):
        call(single, 1.5)
        call(double, 1.5)
    assert single.values.tolist() == [3.0]
    assert double.values.tolist() == [6.0]


def test_the_registered_body_is_handed_back_unchanged() -> None:
    single = Single(np.zeros(1))
    add_once(single, 4.0)
    assert single.values.tolist() == [4.0]


@pytest.mark.parametrize("record", [Unregistered(np.zeros(1)), (np.zeros(1),), 3.0])
def test_a_record_that_is_not_registered_cannot_be_compiled(record: Any) -> None:
    with pytest.raises(TypingError):
        call(record, 1.0)


def test_in_python_the_body_is_called_or_said_to_be_missing() -> None:
    single, double = Single(np.zeros(1)), Double(np.zeros(1))
    add(single, 1.5)
    add(double, 1.5)
    assert (single.values.tolist(), double.values.tolist()) == ([1.5], [3.0])
    assert (add.__name__, add.__doc__) == ("add", "Add `amount`.")
    settle(single)  # most have nothing to settle
    with pytest.raises(TypeError, match="no plan kernel is registered for object"):
        plan(object(), np.random.default_rng(0), np.zeros((1, 1), np.int64))
    with pytest.raises(TypeError, match="no learn kernel is registered for Unregistered"):
        learn(Unregistered(np.zeros(1)), 0, np.zeros(2, np.int64), np.zeros(1, np.int64), np.zeros(1))


def test_a_kernel_works_on_the_arrays_it_is_given_and_makes_none() -> None:
    def making(values: Floats) -> int:
        return np.zeros(values.size).size

    def also_making(values: Floats) -> int:
        return np.zeros(values.size).size

    assert compiled.allocating_kernel(making)(np.ones(3)) == 3
    with pytest.raises(NumbaError):
        compiled.kernel(also_making)(np.ones(3))


def test_without_internals_of_numba_kernels_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def making(values: Floats) -> int:
        return np.zeros(values.size).size

    assert compiled.internal("numba.core.nowhere", "x") is None
    assert compiled.internal("numba.core.options", "nothing") is None
    monkeypatch.setattr(compiled, "_UNCOUNTED", {})
    monkeypatch.setattr(compiled, "_FUNCTION_CACHE", None)
    made = compiled.kernel(making)
    assert made(np.ones(3)) == 3
    assert str(compiled.FOLDER) in cast(Any, made).stats.cache_path


def test_how_numba_copies_is_changed_only_while_an_entry_point_is_compiled() -> None:
    Scope, Loc = cast(Any, ir.Scope), cast(Any, ir.Loc)
    copies = []
    scope = Scope(None, Loc("file", 1))
    for name in ("x", "y"):
        scope.define(name, Loc("file", 2))
    scope.redefine("x", Loc("file", 3))
    copies.append(copy.deepcopy(scope))
    with compiled._quick_copies(), compiled._quick_copies():
        assert hasattr(Scope, "__deepcopy__")
        copies.append(copy.deepcopy(scope))
    assert not hasattr(Scope, "__deepcopy__")
    plain, quick = copies
    assert plain.localvars._con.keys() == quick.localvars._con.keys() == {"x", "y", "x.1"}
    assert plain.redefined == quick.redefined
    assert plain.var_redefinitions == quick.var_redefinitions
    quick.redefine("y", Loc("file", 4))
    assert "y.1" not in scope.localvars._con, "the original stays as it was"


def test_copy() -> None:
    for shape in ((3,), (2, 3), (2, 0)):
        source, target = np.arange(np.prod(shape)).reshape(shape), np.full(shape, -1)
        compiled.copy(source, target)
        np.testing.assert_array_equal(target, source)


THEIRS = """
from dataclasses import dataclass
from typing import ClassVar, NamedTuple
import numpy as np
from numba import njit
from belated.agents._base import CompiledSettings, Nothing, learns, plans
from belated._kernels.jit import kernel

class TheirRecord(NamedTuple):
    learned: Nothing

@dataclass(frozen=True, kw_only=True)
class Theirs(CompiledSettings):
    kind: ClassVar[str] = "theirs"
    def record(self, problem):
        return TheirRecord(Nothing(np.zeros(0)))

@plans(TheirRecord)
@njit  # plain Numba, and it allocates
def plan(agent, rng, policy):
    policy[:] = np.full(policy.shape, ACTION)

@learns(TheirRecord)
@kernel
def learn(agent, episode, states, actions, rewards):
    pass
"""


def _printed(program: str, folder: Path | None, environment: Mapping[str, str] | None = None) -> str:
    """Run `program` in a process of its own, its kernels kept in `folder`, if given, and return what it printed."""
    where = {**os.environ, **(environment or {})}
    if folder is not None:
        where |= {"BELATED_CACHE": str(folder / "cache")}
        where["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], env=where, capture_output=True, text=True)
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
from belated._kernels.jit import kernel
from belated._kernels.exp_log import exp, log
from belated._kernels.normals import standard_normal
from belated._kernels.gaussian import dot, rank_one_update

@kernel
def functions(rng, x, out):
    for i in range(x.size):
        out[0] += exp(5.0 * x[i]) + log(0.1 + x[i] * x[i])
    for _ in range(1_000_000):
        out[1] += standard_normal(rng)

rng, out, factor = np.random.default_rng(0), np.zeros(3), np.eye(40)
x, y = rng.standard_normal((2, 20_000))
functions(rng, x, out)
out[2] = dot(x, y)
rank_one_update(factor, x[:40].copy())
rank_one_update(factor, x[40:80].copy())
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
from belated.runner._simulation import Simulation
for delay in (belated.Poisson(50), belated.Multinomial([0, 100, 200], [0.4, 0.3, 0.3])):
    agent = belated.DelayedPSVI(scale=5.0, noise=0.1)
    run = Simulation(belated.SyntheticLinearMDP(actions=20), agent, delay, episodes=3000, seed=0)
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


def test_without_compilation_everything_runs_as_python(tmp_path: Path) -> None:
    agents = "[belated.DelayedPSVI(), belated.RandomPolicy()]"
    several = f"{agents} + [belated.DelayedLPSVI(steps=2), belated.DelayedUCBVI(), belated.EpsilonGreedy()]"
    plain = _printed(UNCOMPILED.replace("AGENTS", several), tmp_path, {"NUMBA_DISABLE_JIT": "1"})
    assert not (tmp_path / "cache").exists()
    compiled = _printed(UNCOMPILED.replace("AGENTS", agents), None)
    expected = [float(line) for line in compiled.split()]
    assert [float(line) for line in plain.split()[:2]] == pytest.approx(expected, rel=1e-9)
    assert len(plain.split()) == 5
