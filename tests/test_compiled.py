"""The compiled choice by record, and a cache that cannot go stale."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pytest
from numba import njit
from numba.core.errors import NumbaError, TypingError

from belated import compiled
from belated.algorithms.agent import learn, plan
from belated.compiled import by_record

Floats = npt.NDArray[np.float64]
F = TypeVar("F", bound=Callable[..., None])


class Single(NamedTuple):
    values: Floats


class Double(NamedTuple):
    values: Floats


class Unregistered(NamedTuple):
    values: Floats


def add(record: Any, amount: float) -> None:
    raise TypeError(f"no body is registered for {type(record).__name__}")


adds = by_record(add)


def compile_plainly(function: F) -> F:
    return cast(F, njit(function))


@adds(Single)
@compile_plainly
def add_once(record: Single, amount: float) -> None:
    record.values[0] += amount


@adds(Double)
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


def test_in_python_the_generic_function_says_what_is_missing() -> None:
    with pytest.raises(TypeError, match="no plan kernel is registered for object"):
        plan(object(), np.random.default_rng(0), np.zeros((1, 1), np.int64))
    with pytest.raises(TypeError, match="no learn kernel is registered for Unregistered"):
        learn(Unregistered(np.zeros(1)), 0, np.zeros(2, np.int64), np.zeros(1, np.int64), np.zeros(1))


def test_the_cache_folder_follows_every_file_with_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "kernels.py").write_text("from belated.compiled import kernel\n")
    (tmp_path / "plain.py").write_text("x = 1\n")
    monkeypatch.setattr(compiled, "PACKAGE", tmp_path)
    first = compiled._cache_folder()
    (tmp_path / "plain.py").write_text("x = 2\n")
    assert compiled._cache_folder() == first
    (tmp_path / "part" / "kernels.py").write_text("from belated.compiled import kernel  # edited\n")
    second = compiled._cache_folder()
    assert second != first
    (tmp_path / "more.py").write_text("from belated.compiled import fast_sums\n")
    assert compiled._cache_folder() not in (first, second)
    assert first.parent == tmp_path / "__pycache__"


def test_a_kernel_works_on_the_arrays_it_is_given_and_makes_none() -> None:
    def making(values: Floats) -> int:
        return np.zeros(values.size).size

    def also_making(values: Floats) -> int:
        return np.zeros(values.size).size

    assert compiled.allocating_kernel(making)(np.ones(3)) == 3
    with pytest.raises(NumbaError):
        compiled.kernel(also_making)(np.ones(3))


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
from belated.algorithms.agent import CompiledSettings, Nothing, learns, plans
from belated.compiled import kernel

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


def _planned(program: str, folder: Path) -> str:
    """Run `program` in a process of its own, with its kernels cached in `folder`."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(folder)}
    if "PYTHONPATH" in os.environ:
        environment["PYTHONPATH"] += os.pathsep + os.environ["PYTHONPATH"]
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
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
        assert _planned(plan_theirs, tmp_path) == action
    module.unlink()
    plan_ours = plan_theirs.replace(", theirs", "").replace("theirs.Theirs", "belated.RandomPolicy")
    assert _planned(plan_ours, tmp_path) == "1"
