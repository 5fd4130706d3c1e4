from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from belated._kernels import normals as normal
from belated._kernels.jit import entry_point
from belated._kernels.normals import TAIL, standard_normal, standard_normals
from belated.types import Floats


@entry_point
def fill(rng: np.random.Generator, out: Floats) -> None:
    for i in range(out.size):
        out[i] = standard_normal(rng)


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_the_numbers_are_those_of_numpy(bits: type[np.random.BitGenerator]) -> None:
    ours, theirs = np.random.Generator(bits(7)), np.random.Generator(bits(7))
    found = np.zeros(200_000)
    fill(ours, found)
    expected = theirs.standard_normal(found.size)
    assert np.abs(expected).max() > TAIL  # all three ways out of the ziggurat were taken
    assert np.array_equal(found, expected)
    assert ours.random() == theirs.random()  # and as many bits were used


def _without(monkeypatch: pytest.MonkeyPatch, missing: str) -> ModuleType:
    """Load the module again as if Numba had no module `missing`."""
    monkeypatch.setitem(sys.modules, missing, None)
    spec = importlib.util.spec_from_file_location("normal_again", normal.__file__)
    assert spec is not None
    assert spec.loader is not None
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)
    return again


@pytest.mark.parametrize("missing", ["numba.np.random._constants", "numba.np.random.generator_core"])
def test_a_numba_that_keeps_its_numbers_elsewhere_gives_the_same(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    again: Any = _without(monkeypatch, missing)
    assert again.standard_normal is again.numba_normal
    assert normal.standard_normal is normal.our_normal
    rng = np.random.default_rng(3)
    found = [again.standard_normal(rng) for _ in range(2000)]
    assert np.array_equal(found, np.random.default_rng(3).standard_normal(2000))


def test_many_are_those_of_numpy_and_leave_the_generator_where_numpy_does() -> None:
    ours, theirs = np.random.default_rng(7), np.random.default_rng(7)
    np.testing.assert_array_equal(standard_normals(ours, (300, 40)), theirs.standard_normal((300, 40)))
    assert ours.random() == theirs.random()
