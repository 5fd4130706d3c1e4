"""Statistics over tasks, against their definitions and against rliable."""

from __future__ import annotations

import importlib
import math
import sys
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from belated import InvalidInputError
from belated.evaluation import interquartile_mean, performance_profile, probability_of_improvement
from belated.types import Floats


@pytest.fixture
def scores() -> Floats:
    return np.random.default_rng(3).gamma(2.0, size=(7, 5)).round(1)  # rounded, so that there are ties


def test_the_interquartile_mean_is_scipys_trimmed_mean(
    scores: Floats,
) -> None:
    assert interquartile_mean(scores).value == pytest.approx(stats.trim_mean(scores, 0.25, axis=None), abs=1e-12)


def test_the_probability_of_improvement_is_mann_whitneys_u(
    scores: Floats,
) -> None:
    other = np.random.default_rng(4).gamma(2.5, size=(6, 5)).round(1)
    per_task = [stats.mannwhitneyu(a, b).statistic / (7 * 6) for a, b in zip(scores.T, other.T, strict=True)]
    assert probability_of_improvement(scores, other).value == pytest.approx(np.mean(per_task), abs=1e-12)


def test_a_profile_is_the_share_above_each_threshold() -> None:
    band = performance_profile([[1.0, 2.0], [3.0, 4.0]], [0.0, 1.0, 3.5, 4.0])
    assert band.value.tolist() == [1.0, 0.75, 0.25, 0.0]
    assert (band.low <= band.value).all()
    assert (band.value <= band.high).all()


@pytest.fixture(scope="module")
def rliable() -> Iterator[tuple[Any, Any]]:
    """Return its metrics and its library; what its own bootstrap builds on is not needed, and is not imported."""
    patch = pytest.MonkeyPatch()
    bases = SimpleNamespace(IIDBootstrap=object, IndependentSamplesBootstrap=object)
    patch.setitem(sys.modules, "arch", SimpleNamespace(bootstrap=bases))
    patch.setitem(sys.modules, "arch.bootstrap", bases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of what it imports
        yield importlib.import_module("rliable.metrics"), importlib.import_module("rliable.library")
    patch.undo()
    sys.modules.pop("rliable.library")


@pytest.mark.parametrize("shape", [(7, 5), (10, 1), (3, 11), (4, 4)])
def test_point_estimates_are_those_of_rliable(shape: tuple[int, int], rliable: tuple[Any, Any]) -> None:
    metrics, library = rliable
    scores = np.random.default_rng(3).gamma(2.0, size=shape).round(1)  # rounded, so that there are ties
    other = np.random.default_rng(4).gamma(2.0, size=shape).round(1)
    assert abs(interquartile_mean(scores).value - metrics.aggregate_iqm(scores)) <= 1e-12
    found = probability_of_improvement(scores, other).value
    assert abs(found - metrics.probability_of_improvement(scores, other)) <= 1e-12
    marks = np.linspace(0.0, 6.0, 25)
    theirs = [library.run_score_deviation(scores, mark) for mark in marks]
    np.testing.assert_allclose(performance_profile(scores, marks).value, theirs, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "tasks"), [(10, 3), (20, 5)])
def test_intervals_of_profiles_and_improvement_hold_their_level(runs: int, tasks: int) -> None:
    rng, tries, held = np.random.default_rng(1), 2000, np.zeros(2)
    for _ in range(tries):
        a, b = rng.normal(0.5, 1.0, (runs, tasks)), rng.standard_normal((runs, tasks))
        share = performance_profile(a, [0.5], resamples=400)
        better = probability_of_improvement(a, b, resamples=400)
        held += share.low[0] <= 0.5 <= share.high[0], better.low <= stats.norm.cdf(0.5 / math.sqrt(2)) <= better.high
    assert (held / tries >= 0.93).all(), held / tries
    assert (held / tries <= 0.97).all(), held / tries


@pytest.mark.parametrize(("runs", "tasks"), [(10, 1), (10, 5)])
def test_intervals_hold_their_level(runs: int, tasks: int) -> None:
    rng, held, tries = np.random.default_rng(0), 0, 1500
    for _ in range(tries):
        found = interquartile_mean(rng.standard_normal((runs, tasks)), resamples=200)
        held += found.low <= 0.0 <= found.high
    assert 0.93 <= held / tries <= 0.97


def test_one_run_has_no_interval() -> None:
    found = interquartile_mean([[1.0, 2.0, 3.0, 4.0]])
    assert found.value == 2.5
    assert np.isnan([found.low, found.high]).all()


@pytest.mark.parametrize("bad", [[], [[]], [1.0, 2.0], [[1.0, np.nan]]])
def test_what_is_no_table_of_scores_is_refused(bad: list[object]) -> None:
    with pytest.raises(InvalidInputError, match="scores"):
        interquartile_mean(bad)  # type: ignore[arg-type]


def test_other_tasks_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="b must"):
        probability_of_improvement([[1.0, 2.0]], [[1.0]])
