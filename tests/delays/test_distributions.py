"""Each distribution against closed forms, SciPy's distributions and bad input."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from delay_distributions import INDEPENDENT, THREE, by_label
from scipy import special, stats

from belated._kernels.streams import stream
from belated.delays import (
    DELAYS,
    NEVER,
    Backlog,
    Bursts,
    Constant,
    DelayDistribution,
    Drift,
    Empirical,
    Fixed,
    Geometric,
    IndependentDelays,
    Lossy,
    Mixture,
    Multinomial,
    NegativeBinomial,
    Outages,
    Pareto,
    Periodic,
    Poisson,
    Uniform,
)
from belated.errors import InvalidInputError, UnknownNameError


@pytest.mark.parametrize(
    ("distribution", "mean"),
    [
        (Constant(7), 7.0),
        (Uniform(3, 12), 7.5),
        (THREE, 21.0),
        (Poisson(50), 50.0),
        (Geometric(50), 50.0),
        (NegativeBinomial(50, 2), 50.0),
        (Empirical([3, 0, 7, 3]), 3.25),
        (Fixed([3, 0, 6]), 3.0),
        (Fixed([3, NEVER]), math.inf),
        (Pareto(1, 500), math.inf),
        (Pareto(0.5, 500, kind="lomax"), math.inf),
        (Mixture([Constant(4), Poisson(50)], [0.25, 0.75]), 38.5),
        (Mixture([Constant(4), Pareto(1, 2)], [1.0, 0.0]), 4.0),
        (Mixture([Constant(4), Pareto(1, 2)], [0.5, 0.5]), math.inf),
        (Lossy(Poisson(50), 0.1), math.inf),
        (Lossy(Poisson(50), 0), 50.0),
    ],
    ids=by_label,
)
def test_mean_has_its_closed_form(distribution: DelayDistribution, mean: float) -> None:
    assert distribution.mean == pytest.approx(mean, rel=1e-14)


@pytest.mark.parametrize("shape", [1.01, 1.5, 2.0, 7.0, 40.0])
@pytest.mark.parametrize("scale", [0.3, 1.0, 20.5, 500.0])
def test_mean_of_pareto_is_a_hurwitz_zeta(shape: float, scale: float) -> None:
    sure = math.floor(scale)
    power = scale**shape
    assert Pareto(shape, scale).mean == pytest.approx(sure + power * special.zeta(shape, sure + 1), rel=1e-13)
    lomax = power * special.zeta(shape, 1 + scale)
    assert Pareto(shape, scale, kind="lomax").mean == pytest.approx(lomax, rel=1e-12)


def test_mean_of_pareto_survives_the_overflow_of_its_closed_form() -> None:
    n = np.arange(501.0, 5000.0)
    assert Pareto(300, 500).mean == pytest.approx(500 + ((500 / n) ** 300).sum(), rel=1e-14)


@pytest.mark.parametrize(
    ("distribution", "reference"),
    [
        (Uniform(3, 12), stats.randint(3, 13).cdf),
        (Poisson(50), stats.poisson(50).cdf),
        (Geometric(50), stats.geom(1 / 51, loc=-1).cdf),
        (NegativeBinomial(50, 2), stats.nbinom(2, 2 / 52).cdf),
        (NegativeBinomial(3, 0.4), stats.nbinom(0.4, 0.4 / 3.4).cdf),
        (Pareto(1.5, 20.5), lambda n: stats.pareto(1.5, scale=20.5).cdf(n + 1)),
        (Pareto(1.5, 20, kind="lomax"), lambda n: stats.lomax(1.5, scale=20).cdf(n + 1)),
        (THREE, lambda n: 0.2 * (n >= 10) + 0.5 * (n >= 20) + 0.3 * (n >= 30)),
        (Empirical([3, 0, 7, 3]), lambda n: np.where(n < 3, 0.25, np.where(n < 7, 0.75, 1.0))),
        (
            Mixture([Constant(5), Poisson(9)], [0.25, 0.75]),
            lambda n: 0.25 * (n >= 5) + 0.75 * stats.poisson(9).cdf(n),
        ),
        (Lossy(Poisson(9), 0.1), lambda n: 0.9 * stats.poisson(9).cdf(n)),
    ],
    ids=by_label,
)
def test_cdf_agrees_with_an_independent_one(distribution: IndependentDelays, reference: Callable[[Any], Any]) -> None:
    n = np.arange(200)
    np.testing.assert_allclose([distribution.cdf(int(k)) for k in n], reference(n), rtol=1e-12, atol=1e-15)


def test_cdf_is_zero_before_zero_and_leaves_out_what_never_arrives() -> None:
    assert Constant(0).cdf(-1) == 0.0
    assert Constant(0).cdf(0) == 1.0
    assert Lossy(Constant(0), 0.25).cdf(NEVER) == 0.75


@pytest.mark.parametrize("distribution", INDEPENDENT, ids=by_label)
def test_quantile_is_the_first_delay_that_reaches_the_level(distribution: IndependentDelays) -> None:
    for q in [1e-9, 0.01, 0.2, 0.25, 0.5, 0.7, 0.9, 0.95, 0.999, 1 - 1e-9]:
        n = distribution.quantile(q)
        if n == NEVER:
            assert distribution.cdf(NEVER) <= q  # equal for a lossy, unbounded distribution: reached only in the limit
        else:
            assert distribution.cdf(n - 1) < q <= distribution.cdf(n)


@pytest.mark.parametrize(
    ("distribution", "greatest"),
    [
        (Constant(7), 7),
        (Uniform(3, 12), 12),
        (Multinomial([1, 5, 9], [0.5, 0.5, 0.0]), 5),
        (Empirical([3, 0, 7, 3]), 7),
        (Mixture([Constant(4), Uniform(0, 9)], [0.5, 0.5]), 9),
        (Mixture([Constant(4), Poisson(2)], [1.0, 0.0]), 4),
        (Lossy(Constant(2), 0), 2),
        (Lossy(Constant(2), 1), NEVER),
        (Poisson(0.001), NEVER),
        (Geometric(3), NEVER),
        (Pareto(9, 1), NEVER),
        (Mixture([Constant(4), Poisson(2)], [0.5, 0.5]), NEVER),
        (Mixture([Constant(4), Lossy(Constant(2), 0.5)], [0.5, 0.5]), NEVER),
    ],
    ids=by_label,
)
def test_the_last_quantile_is_the_greatest_delay(distribution: IndependentDelays, greatest: int) -> None:
    assert distribution.quantile(1.0) == greatest


def test_lossy_has_no_quantile_beyond_what_arrives() -> None:
    assert Lossy(Constant(2), 0.1).quantile(0.9) == 2
    assert Lossy(Poisson(2), 0.1).quantile(0.9) == NEVER
    assert Lossy(Poisson(2), 0.1).quantile(0.89) < 20


def test_pareto_too_long_for_an_integer_never_arrives() -> None:
    assert Pareto(0.1, 1).quantile(0.99) == NEVER
    assert Pareto(0.1, 1).quantile(0.9) == pytest.approx(10**10, rel=1e-6)


BAD: list[tuple[type[DelayDistribution], dict[str, Any], str]] = [
    (Constant, {"value": -1}, "value must be .*got -1"),
    (Constant, {"value": 2.5}, "value must be .*got 2.5"),
    (Constant, {"value": NEVER}, f"value must be .*got {NEVER}"),
    (Uniform, {"low": -1, "high": 3}, "low must be .*got -1"),
    (Uniform, {"low": 4, "high": 3}, "high must be .*>= 4.*got 3"),
    (Multinomial, {"categories": [1, -2], "probabilities": [0.5, 0.5]}, "categories must .*got -2"),
    (Multinomial, {"categories": [1, 1], "probabilities": [0.5, 0.5]}, r"categories must .*got \[1, 1\]"),
    (Multinomial, {"categories": [], "probabilities": []}, r"categories must .*at least one delay, got \[\]"),
    (Multinomial, {"categories": [1, 2], "probabilities": [0.5, 0.6]}, "probabilities must sum .*got 1.1"),
    (Multinomial, {"categories": [1, 2], "probabilities": [1.5, -0.5]}, "probabilities must .*got -0.5"),
    (Multinomial, {"categories": [1, 2], "probabilities": [1.0]}, r"probabilities must have .*got \(1,\)"),
    (Poisson, {"mean": 0}, "mean must be .*got 0"),
    (Poisson, {"mean": math.inf}, "mean must be .*got inf"),
    (Poisson, {"mean": "50"}, "mean must be .*got '50'"),
    (Geometric, {"mean": -2}, "mean must be .*got -2"),
    (NegativeBinomial, {"mean": -2, "dispersion": 1}, "mean must be .*got -2"),
    (NegativeBinomial, {"mean": 2, "dispersion": 0}, "dispersion must be .*got 0"),
    (Pareto, {"shape": 0, "scale": 1}, "shape must be .*got 0"),
    (Pareto, {"shape": 1, "scale": -3}, "scale must be .*got -3"),
    (Pareto, {"shape": 1, "scale": 1e30}, r"scale must be .*got 1e\+30"),
    (Empirical, {"observed": []}, r"observed must be .*at least one delay, got \[\]"),
    (Empirical, {"observed": [1, -4]}, "observed must .*got -4"),
    (Empirical, {"observed": [1, 2.5]}, r"observed must be .*got \[1, 2.5\]"),
    (Empirical, {"observed": [1, NEVER]}, f"observed must .*got {NEVER}"),
    (Empirical, {"observed": [[1, 2]]}, r"observed must have shape .*got \(1, 2\)"),
    (Fixed, {"delays": [0, -1]}, "delays must .*got -1"),
    (Fixed, {"delays": "012"}, "delays must .*got '012'"),
    (Mixture, {"components": [], "weights": []}, r"components must be .*at least one, got \[\]"),
    (
        Mixture,
        {"components": [Constant(1), 4], "weights": [0.5, 0.5]},
        r"components\[1\] must be a delay distribution, got 4",
    ),
    (
        Mixture,
        {"components": [Fixed([1])], "weights": [1.0]},
        r"components\[0\] must be a distribution of independent draws.*Fixed",
    ),
    (Mixture, {"components": [Constant(1)], "weights": [0.5]}, "weights must sum .*got 0.5"),
    (Mixture, {"components": [Constant(1)], "weights": [0.5, 0.5]}, r"weights must have shape .*got \(2,\)"),
    (Lossy, {"of": Constant(1), "missing": 1.1}, "missing must be .*got 1.1"),
    (Lossy, {"of": Constant(1), "missing": -0.1}, "missing must be .*got -0.1"),
    (Lossy, {"of": "poisson", "missing": 0.1}, "of must be a delay distribution, got 'poisson'"),
    (
        Lossy,
        {"of": Fixed([1]), "missing": 0.1},
        "of must be a distribution of independent draws.*Fixed",
    ),
]


@pytest.mark.parametrize(("cls", "fields", "message"), BAD)
def test_wrong_fields_are_refused_by_name(cls: type[DelayDistribution], fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        cls(**fields)


def test_every_distribution_refuses_something() -> None:
    in_time = {Periodic, Outages, Drift, Bursts, Backlog}  # see test_in_time.py
    assert {cls for cls, _, _ in BAD} | in_time == {
        cls for cls in DELAYS.values() if issubclass(cls, DelayDistribution)
    }


def test_pareto_suggests_a_kind() -> None:
    with pytest.raises(UnknownNameError, match=r"kind must be one of .*got 'lomx'; did you mean 'lomax'"):
        Pareto(1, 500, kind="lomx")


def test_wrong_arguments_are_refused() -> None:
    distribution = Poisson(5)
    for q in (0.0, 1.5, math.nan):
        with pytest.raises(InvalidInputError, match=f"q must be .*got {q}"):
            distribution.quantile(q)
    with pytest.raises(InvalidInputError, match=r"size must be .*got -1"):
        distribution.sample(stream(0, "delay"), -1)
    with pytest.raises(InvalidInputError, match=r"n must be .*got 2.5"):
        distribution.cdf(2.5)  # type: ignore[arg-type]
