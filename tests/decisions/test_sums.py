"""The sums are exact: compared with fractions, and with 200 digits through a learner."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attacks.undo import history, worst_error
from belated.decisions import _sums as module
from belated.decisions._sums import UNIT_BITS, Sums

Floats = npt.NDArray[np.float64]
#: Multiples of 2⁻¹⁴⁰: every float that is not smaller than 10⁻²⁶ in magnitude.
NUMBERS = st.floats(-1e24, 1e24, allow_nan=False).map(lambda value: 0.0 if abs(value) < 1e-23 else value)


def fractions(sums: Sums, block: int = 0) -> list[list[Fraction]]:
    return [[Fraction(int(value), 2**UNIT_BITS) for value in row] for row in sums.exact(block)]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=8), st.randoms())
@example([(1e24, -1e24, 1e12), (1e-23, 3e23, -1e-12), (1.0, 0.1, 0.3)], None)
def test_no_sum_is_rounded_and_nothing_is_left_of_what_is_taken_back(rows: list[tuple[float, ...]], rng: Any) -> None:
    sums = Sums(2)
    sums.grow(0)
    sums.learn(0, np.array([1.0, 1 / 3]), 1.0, 0.7)
    before = sums.state()
    wanted = fractions(sums)
    for *x, y in rows:
        sums.learn(0, np.array(x), 1.0, y)
        for i in range(2):
            for j, each in enumerate((*x, y)):
                wanted[i][j] += Fraction(x[i]) * Fraction(each)
    assert fractions(sums) == wanted
    np.testing.assert_allclose(sums.gram(0), [[float(v) for v in row[:2]] for row in wanted], rtol=2.0**-51)
    np.testing.assert_allclose(sums.moment(0), [float(row[2]) for row in wanted], rtol=2.0**-51)
    order = list(rows)
    if rng is not None:
        rng.shuffle(order)
    for *x, y in order:
        sums.correct(0, np.array(x), 1.0, y, y / 3)
        sums.unlearn(0, np.array(x), 1.0, y / 3)
    after = sums.state()
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)


@pytest.mark.parametrize("rows", [1, 7, 64])
@pytest.mark.parametrize("fading", [0.0, 1.0])
def test_neither_groups_nor_looks_matter(rows: int, fading: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((500, 3)) * 10.0 ** rng.integers(-9, 9, (500, 1)), rng.standard_normal(500)
    plain, other = Sums(3), Sums(3)
    plain.grow(0)
    other.grow(0)
    for i in range(500):
        plain.learn(0, x[i], plain.weight(0.3 * i * fading), y[i])
    monkeypatch.setattr(module, "_ROWS", rows)
    monkeypatch.setattr(module, "_ADDITIONS", 3)
    for i in range(500):
        other.learn(0, x[i], other.weight(0.3 * i * fading), y[i])
        if i % 97 == 0:
            other.gram(0)
    one, two = plain.state(), other.state()
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)


def test_a_row_is_taken_back_although_the_epoch_has_moved() -> None:
    rng = np.random.default_rng(1)
    clean, other = Sums(2), Sums(2)
    clean.grow(0)
    other.grow(0)
    wrong = 1e12 * rng.standard_normal(2)
    other.learn(0, wrong, other.weight(3.4), 1e12)
    for time in np.linspace(3.0, 150.0, 100):
        x, y = rng.standard_normal(2), float(rng.standard_normal())
        for sums in (clean, other):
            sums.learn(0, x, sums.weight(time), y)
    other.unlearn(0, wrong, other.weight(3.4), 1e12)
    assert clean.epoch == other.epoch == 144
    assert np.abs(clean.exact(0) - other.exact(0)).max() < 2**40  # in units of 2⁻²⁸⁰
    np.testing.assert_array_equal(clean.gram(0), other.gram(0))


def test_blocks_grow_by_doubling() -> None:
    sums = Sums(2)
    x = np.ones(2)
    rooms = set()
    for block in range(1000):
        sums.grow(block)
        sums.learn(block, x, 1.0, float(block))
        sums.gram(block)
        rooms.add(next(iter(sums._limbs.values())).ctypes.data)
    assert len(rooms) <= 11
    assert [sums.moment(block)[0] for block in range(1000)] == list(range(1000))


@pytest.mark.parametrize("seed", range(25))
def test_any_history_at_any_scale_is_that_of_200_digits(seed: int) -> None:
    assert worst_error(history(np.random.default_rng(seed))) <= 1.0


def test_rows_of_all_blocks_together_do_not_wait_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAITING", 10)
    sums, rng = Sums(2), np.random.default_rng(0)
    sums.grow(99)
    table = rng.standard_normal((100, 2))
    for block, x in enumerate(table):
        sums.learn(block, x, 1.0, 1.0)
        assert sum(map(len, sums._rows)) <= 10
    for block, x in enumerate(table):
        np.testing.assert_allclose(sums.gram(block), np.outer(x, x), rtol=1e-14)
    assert sums._waiting == 0


def test_limbs_that_nobody_reads_do_not_overflow() -> None:
    x = 8.0 - 2.0**-19  # a digit as large as it can be, in the sign of those below it
    x += (8.0 - 2.0**-19) * 2.0**-24
    sums, flushes, rows = Sums(1), 2_100, 128
    sums.grow(0)
    waiting = [(np.array([x]), x, 1.0, 1.0)] * rows
    for _ in range(flushes):
        sums._rows[0], sums._waiting = waiting, rows
        sums._flush(0)
    exact = flushes * rows * Fraction(x) ** 2 * 2**UNIT_BITS
    assert [Fraction(int(each)) for each in sums.exact(0)[0]] == [exact, exact]
