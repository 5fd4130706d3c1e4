"""Each law against closed forms, SciPy's laws, its own samples and bad input."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import special, stats

from belated.delays import (
    LAWS,
    NEVER,
    Constant,
    DelayLaw,
    Empirical,
    Fixed,
    Geometric,
    Lossy,
    Mixture,
    Multinomial,
    NegativeBinomial,
    Pareto,
    Poisson,
    SubExponential,
    Uniform,
    law_from_dict,
)
from belated.errors import DamagedFileError, InvalidInputError, UnknownNameError
from belated.rng import stream

THREE = Multinomial([10, 20, 30], [0.2, 0.5, 0.3])
RANDOM_LAWS: list[DelayLaw] = [
    Constant(7),
    Uniform(3, 12),
    THREE,
    Poisson(0.3),
    Poisson(50),
    Geometric(0.5),
    Geometric(50),
    NegativeBinomial(50, 2),
    NegativeBinomial(3, 0.4),
    Pareto(1, 500),
    Pareto(2.5, 0.5),
    Pareto(3, 20.5),
    Pareto(1, 500, kind="lomax"),
    Pareto(3, 20, kind="lomax"),
    Empirical([3, 0, 7, 3]),
    Mixture([Constant(0), Poisson(50)], [0.25, 0.75]),
    Mixture([Geometric(5), Lossy(Uniform(0, 3), 0.5)], [0.5, 0.5]),
    Lossy(Poisson(50), 0.1),
]
EVERY_LAW = [*RANDOM_LAWS, Fixed([4, NEVER, 0]), Lossy(Constant(2), 0), Lossy(Constant(2), 1)]


def by_label(law: object) -> str:
    return law.label if isinstance(law, DelayLaw) else ""


def arriving(delays: Any) -> Any:
    return delays[delays < NEVER]


# --- closed forms ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("law", "mean"),
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
def test_mean_has_its_closed_form(law: DelayLaw, mean: float) -> None:
    assert law.mean == pytest.approx(mean, rel=1e-14)


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
    ("law", "reference"),
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
def test_cdf_agrees_with_an_independent_one(law: DelayLaw, reference: Callable[[Any], Any]) -> None:
    n = np.arange(200)
    np.testing.assert_allclose([law.cdf(int(k)) for k in n], reference(n), rtol=1e-12, atol=1e-15)


def test_cdf_is_zero_before_zero_and_leaves_out_what_never_arrives() -> None:
    assert Constant(0).cdf(-1) == 0.0
    assert Constant(0).cdf(0) == 1.0
    assert Lossy(Constant(0), 0.25).cdf(NEVER) == 0.75
    assert Fixed([0, NEVER]).cdf(NEVER) == 0.5


@pytest.mark.parametrize("law", EVERY_LAW, ids=by_label)
def test_quantile_is_the_first_delay_that_reaches_the_level(law: DelayLaw) -> None:
    for q in [1e-9, 0.01, 0.2, 0.25, 0.5, 0.7, 0.9, 0.95, 0.999, 1 - 1e-9]:
        n = law.quantile(q)
        if n == NEVER:
            assert law.cdf(NEVER) <= q  # equal for a lossy, unbounded law: reached only in the limit
        else:
            assert law.cdf(n - 1) < q <= law.cdf(n)


@pytest.mark.parametrize(
    ("law", "greatest"),
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
def test_the_last_quantile_is_the_greatest_delay(law: DelayLaw, greatest: int) -> None:
    assert law.quantile(1.0) == greatest


def test_lossy_has_no_quantile_beyond_what_arrives() -> None:
    assert Lossy(Constant(2), 0.1).quantile(0.9) == 2
    assert Lossy(Poisson(2), 0.1).quantile(0.9) == NEVER
    assert Lossy(Poisson(2), 0.1).quantile(0.89) < 20


def test_pareto_too_long_for_an_integer_never_arrives() -> None:
    assert Pareto(0.1, 1).quantile(0.99) == NEVER
    assert Pareto(0.1, 1).quantile(0.9) == pytest.approx(10**10, rel=1e-6)


# --- samples ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", RANDOM_LAWS, ids=by_label)
def test_samples_follow_the_law(law: DelayLaw) -> None:
    size = 20_000
    delays = law.sample(stream(3, "delay"), size)
    assert delays.dtype == np.int64
    assert delays.shape == (size,)
    seen, counts = np.unique(arriving(delays), return_counts=True)
    gaps = np.abs(np.cumsum(counts) / size - [law.cdf(int(n)) for n in seen])
    assert gaps.max() < 1.95 / math.sqrt(size)  # Kolmogorov's bound: exceeded once in a thousand seeds
    if law.mean < math.inf and law.label != "pareto-2.5-0.5":  # whose fourth moment is infinite
        assert abs(delays.mean() - law.mean) <= 4 * delays.std() / math.sqrt(size)


@pytest.mark.parametrize(
    ("law", "draw"),
    [
        (Poisson(50), lambda rng: rng.poisson(50, 20_000)),
        (Geometric(50), lambda rng: rng.geometric(1 / 51, 20_000) - 1),
        (NegativeBinomial(50, 2), lambda rng: rng.negative_binomial(2, 2 / 52, 20_000)),
        (Pareto(1, 500), lambda rng: np.floor(500 * (1 + rng.pareto(1, 20_000)))),
        (Pareto(1, 500, kind="lomax"), lambda rng: np.floor(500 * rng.pareto(1, 20_000))),
        (Uniform(3, 12), lambda rng: rng.integers(3, 13, 20_000)),
    ],
    ids=by_label,
)
def test_samples_match_numpys(law: DelayLaw, draw: Callable[[np.random.Generator], Any]) -> None:
    ours, theirs = np.sort(law.sample(stream(1, "delay"), 20_000)), np.sort(draw(stream(2, "delay")))
    both = np.concatenate([ours, theirs])
    gaps = np.searchsorted(ours, both, side="right") - np.searchsorted(theirs, both, side="right")
    assert np.abs(gaps).max() / 20_000 < 1.95 * math.sqrt(2 / 20_000)


@pytest.mark.parametrize("law", [*RANDOM_LAWS, Pareto(0.1, 3)], ids=by_label)
def test_each_delay_is_the_quantile_at_its_uniform_number(law: DelayLaw) -> None:
    levels = stream(6, "delay").random(200)
    assert law.sample(stream(6, "delay"), 200).tolist() == [law.quantile(q) for q in levels]


@pytest.mark.parametrize("law", EVERY_LAW, ids=by_label)
def test_a_longer_sample_only_adds_delays(law: DelayLaw) -> None:
    size = 3 if isinstance(law, Fixed) else 400
    whole = law.sample(stream(5, "delay"), size)
    for n in [0, 1, size // 2]:
        np.testing.assert_array_equal(law.sample(stream(5, "delay"), n), whole[:n])
    if not isinstance(law, Fixed):
        rng = stream(5, "delay")
        parts = [law.sample(rng, n) for n in (1, 99, 300)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_longer_law_draws_longer_delays_from_the_same_stream() -> None:
    short, long = (Poisson(mean).sample(stream(5, "delay"), 1000) for mean in (20, 25))
    assert (long >= short).all()
    assert (long > short).any()


def test_a_draw_of_zero_stays_within_the_law() -> None:
    class Zeros(np.random.Generator):
        def random(self, size: Any = None, dtype: Any = None, out: Any = None) -> Any:
            return np.zeros(size)

    rng = Zeros(np.random.PCG64())
    assert Uniform(3, 12).sample(rng, 1).tolist() == [3]
    assert Lossy(Constant(2), 1).sample(rng, 1).tolist() == [NEVER]


def test_lossy_loses_its_share() -> None:
    delays = Lossy(Poisson(50), 0.1).sample(stream(4, "delay"), 20_000)
    assert (delays == NEVER).mean() == pytest.approx(0.1, abs=0.008)
    assert arriving(delays).max() < 150


def test_fixed_gives_its_delays_in_order_and_no_more() -> None:
    law = Fixed(np.array([4, NEVER, 0]))
    rng = stream(0, "delay")
    before = rng.bit_generator.state
    assert law.sample(rng, 3).tolist() == [4, NEVER, 0]
    assert rng.bit_generator.state == before
    with pytest.raises(InvalidInputError, match="size must be at most 3, the number of fixed delays, got 4"):
        law.sample(rng, 4)


# --- sub-exponential tails -------------------------------------------------------------------------------


@cache
def masses(law: DelayLaw) -> Any:
    """P(τ = n) for each n up to the greatest delay."""
    return np.diff([law.cdf(n) for n in range(law.quantile(1.0) + 1)], prepend=0.0)


def log_mgf(law: DelayLaw, g: float) -> float:
    """log E exp(g (τ - E τ)) from its exact formula."""
    if isinstance(law, Poisson):
        raw = law.mean * math.expm1(g)
    elif isinstance(law, Geometric):
        raw = -math.log1p(-law.mean * math.expm1(g))
    elif isinstance(law, NegativeBinomial):
        raw = -law.dispersion * math.log1p(-law.mean / law.dispersion * math.expm1(g))
    elif isinstance(law, Mixture):
        parts = zip(law.weights, law.laws, strict=True)
        raw = float(special.logsumexp([log_mgf(part, g) + g * part.mean + math.log(w) for w, part in parts]))
    else:
        chances = masses(law)
        raw = float(special.logsumexp(g * np.arange(chances.size), b=chances))
    return raw - g * law.mean


@pytest.mark.parametrize(
    "law",
    [
        Constant(7),
        Uniform(0, 30),
        THREE,
        Multinomial([0, 1000], [0.999, 0.001]),
        Empirical([3, 0, 7, 3, 40]),
        *[Poisson(mean) for mean in (0.01, 1, 50, 1000)],
        *[Geometric(mean) for mean in (0.01, 0.3, 1, 50, 1000)],
        *[NegativeBinomial(mean, r) for mean in (0.01, 1, 50) for r in (0.1, 2, 40)],
        Mixture([Constant(0), Constant(10)], [0.3, 0.7]),
        Mixture([Uniform(0, 1), Uniform(10, 11)], [0.5, 0.5]),
        Mixture([Constant(0), Poisson(50)], [0.25, 0.75]),
        Mixture([Geometric(50), Poisson(5), Uniform(0, 300)], [0.2, 0.3, 0.5]),
        Mixture([Geometric(50), Geometric(500)], [0.99, 0.01]),
    ],
    ids=by_label,
)
def test_subexponential_parameters_bound_the_exact_mgf(law: DelayLaw) -> None:
    tail = law.subexponential()
    assert tail is not None
    limit = 1 / tail.b if tail.b else 5.0
    for g in np.linspace(-limit, limit, 401):
        assert log_mgf(law, float(g)) <= tail.v**2 * g**2 / 2 * (1 + 1e-12) + 1e-9


@pytest.mark.parametrize("law", [Poisson(50), Geometric(50), NegativeBinomial(50, 2)], ids=by_label)
def test_subexponential_parameters_are_of_the_right_size(law: DelayLaw) -> None:
    tail = law.subexponential()
    assert tail is not None
    variance = (log_mgf(law, 1e-4) + log_mgf(law, -1e-4)) / 1e-8
    assert variance <= tail.v**2 <= 4 * math.e * variance


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (Constant(7), SubExponential(0.0, 0.0)),
        (Uniform(3, 12), SubExponential(4.5, 0.0)),
        (Poisson(50), SubExponential(10.0, 1.0)),
        (Lossy(Poisson(50), 0), SubExponential(10.0, 1.0)),
        (Mixture([Constant(0), Poisson(50)], [0.5, 0.5]), SubExponential(math.hypot(10, 25), 1.0)),
        (Mixture([Uniform(0, 10), Uniform(2, 10)], [0.5, 0.5]), SubExponential(5.0, 0.0)),
        (Mixture([Constant(3), Pareto(1, 2)], [1.0, 0.0]), SubExponential(0.0, 0.0)),
        (Pareto(5, 2), None),
        (Pareto(5, 2, kind="lomax"), None),
        (Lossy(Constant(1), 0.1), None),
        (Mixture([Constant(1), Pareto(5, 2)], [0.9, 0.1]), None),
        (Mixture([Constant(1), Lossy(Constant(1), 0.1)], [0.9, 0.1]), None),
        (Fixed([1, 2]), None),
    ],
    ids=by_label,
)
def test_subexponential_parameters(law: DelayLaw, expected: SubExponential | None) -> None:
    assert law.subexponential() == expected


# --- names and plain values ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("law", "label"),
    [
        (Constant(0), "constant-0"),
        (Constant(1234567), "constant-1234567"),
        (Uniform(0, 9), "uniform-0-9"),
        (Multinomial([30, 10, 20], [0.3, 0.2, 0.5]), "multinomial-10-20-30"),
        (Poisson(50), "poisson-50"),
        (Geometric(2.5), "geometric-2.5"),
        (NegativeBinomial(50, 2), "negativebinomial-50-2"),
        (Pareto(1, 500), "pareto-1-500"),
        (Pareto(1, 500, kind="lomax"), "lomax-1-500"),
        (Empirical(range(1234)), "empirical-1234"),
        (Fixed([0] * 100), "fixed-100"),
        (Lossy(Poisson(50), 0.1), "lossy-0.1-poisson-50"),
        (Mixture([Constant(0), Poisson(50)], [0.25, 0.75]), "mixture-0.25-constant-0-0.75-poisson-50"),
    ],
)
def test_label(law: DelayLaw, label: str) -> None:
    assert law.label == label


@pytest.mark.parametrize("law", EVERY_LAW, ids=by_label)
def test_plain_values_bring_the_law_back(law: DelayLaw) -> None:
    back = law_from_dict(json.loads(json.dumps(law.to_dict())))
    assert back == law
    assert hash(back) == hash(law)


def test_every_law_is_registered_under_its_name() -> None:
    by_outcome = {"byaction", "byreward"}  # see test_outcome.py
    assert {law.to_dict()["law"] for law in EVERY_LAW} == set(LAWS) - by_outcome
    assert all(cls.__name__.removeprefix("Delay").lower() == name for name, cls in LAWS.items())


def test_law_from_toml() -> None:
    text = """
    law = "lossy"
    missing = 0.1
    of = { law = "mixture", weights = [0.5, 0.5], laws = [
        { law = "poisson", mean = 50 }, { law = "pareto", shape = 1, scale = 500 } ] }
    """
    assert law_from_dict(tomllib.loads(text)) == Lossy(Mixture([Poisson(50), Pareto(1, 500)], [0.5, 0.5]), 0.1)


def test_law_from_dict_suggests_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match="got 'posson'; did you mean 'poisson'"):
        law_from_dict({"law": "posson", "mean": 50})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"law": "poisson", "maen": 50}, "the law 'poisson' has no field 'maen', only 'mean'"),
        ({"law": "poisson"}, "mean must be given for the law 'poisson', got {'law': 'poisson'}"),
        ({"law": "lossy", "missing": 0.1}, "of must be given for the law 'lossy'"),
        ({"law": "lossy", "of": 3, "missing": 0.1}, "law must be a delay law, got 3"),
        ({"law": "lossy", "of": {"law": "poisson"}, "missing": 0.1}, "mean must be given"),
        ({"mean": 50}, "law must be a table such as .*, got {'mean': 50}"),
        ("poisson", "law must be a table such as .*, got 'poisson'"),
    ],
)
def test_law_from_dict_names_the_wrong_field(values: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        law_from_dict(values)


# --- bad input -------------------------------------------------------------------------------------------

BAD: list[tuple[type[DelayLaw], dict[str, Any], str]] = [
    (Constant, {"value": -1}, "value must be .*got -1"),
    (Constant, {"value": 2.5}, "value must be .*got 2.5"),
    (Constant, {"value": NEVER}, f"value must be .*got {NEVER}"),
    (Uniform, {"low": -1, "high": 3}, "low must be .*got -1"),
    (Uniform, {"low": 4, "high": 3}, "high must be .*>= 4.*got 3"),
    (Multinomial, {"categories": [1, -2], "probabilities": [0.5, 0.5]}, "categories must .*got -2"),
    (Multinomial, {"categories": [1, 1], "probabilities": [0.5, 0.5]}, r"categories must .*got \[1, 1\]"),
    (Multinomial, {"categories": [], "probabilities": []}, r"categories must .*at least one, got \[\]"),
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
    (Empirical, {"observed": []}, r"observed must be .*at least one, got \[\]"),
    (Empirical, {"observed": [1, -4]}, "observed must .*got -4"),
    (Empirical, {"observed": [1, 2.5]}, r"observed must be .*got \[1, 2.5\]"),
    (Empirical, {"observed": [1, NEVER]}, f"observed must .*got {NEVER}"),
    (Empirical, {"observed": [[1, 2]]}, r"observed must have shape .*got \(1, 2\)"),
    (Fixed, {"delays": [0, -1]}, "delays must .*got -1"),
    (Fixed, {"delays": "012"}, "delays must .*got '012'"),
    (Mixture, {"laws": [], "weights": []}, r"laws must be .*at least one, got \[\]"),
    (Mixture, {"laws": [Constant(1), 4], "weights": [0.5, 0.5]}, r"laws\[1\] must be a delay law, got 4"),
    (
        Mixture,
        {"laws": [Fixed([1])], "weights": [1.0]},
        r"laws\[0\] must be a law of independent draws.*Fixed",
    ),
    (Mixture, {"laws": [Constant(1)], "weights": [0.5]}, "weights must sum .*got 0.5"),
    (Mixture, {"laws": [Constant(1)], "weights": [0.5, 0.5]}, r"weights must have shape .*got \(2,\)"),
    (Lossy, {"law": Constant(1), "missing": 1.1}, "missing must be .*got 1.1"),
    (Lossy, {"law": Constant(1), "missing": -0.1}, "missing must be .*got -0.1"),
    (Lossy, {"law": "poisson", "missing": 0.1}, "law must be a delay law, got 'poisson'"),
    (Lossy, {"law": Fixed([1]), "missing": 0.1}, "law must be a law of independent draws.*Fixed"),
]


@pytest.mark.parametrize(("cls", "fields", "message"), BAD)
def test_wrong_fields_are_refused_by_name(cls: type[DelayLaw], fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        cls(**fields)


def test_every_law_refuses_something() -> None:
    assert {cls for cls, _, _ in BAD} == {cls for cls in LAWS.values() if issubclass(cls, DelayLaw)}


def test_pareto_suggests_a_kind() -> None:
    with pytest.raises(UnknownNameError, match=r"kind must be one of .*got 'lomx'; did you mean 'lomax'"):
        Pareto(1, 500, kind="lomx")


def test_wrong_arguments_are_refused() -> None:
    law = Poisson(5)
    for q in (0.0, 1.5, math.nan):
        with pytest.raises(InvalidInputError, match=f"q must be .*got {q}"):
            law.quantile(q)
    with pytest.raises(InvalidInputError, match=r"size must be .*got -1"):
        law.sample(stream(0, "delay"), -1)
    with pytest.raises(InvalidInputError, match=r"n must be .*got 2.5"):
        law.cdf(2.5)  # type: ignore[arg-type]


# --- files -----------------------------------------------------------------------------------------------


def write_csv(folder: Path, *values: object) -> Path:
    path = folder / "delays.csv"
    path.write_text("\n".join(["episode,delay", *(f"{i},{value}" for i, value in enumerate(values))]) + "\n")
    return path


def test_empirical_from_csv_and_parquet(tmp_path: Path) -> None:
    csv = write_csv(tmp_path, 3, 0, 7, 3)
    pl.read_csv(csv).write_parquet(tmp_path / "delays.parquet")
    for path in (csv, str(tmp_path / "delays.parquet")):
        assert Empirical.from_file(path, "delay") == Empirical([3, 0, 7, 3])


def test_empirical_takes_whole_numbers_written_with_a_point(tmp_path: Path) -> None:
    assert Empirical.from_file(write_csv(tmp_path, "3.0", "1e2"), column="delay") == Empirical([3, 100])


def test_empirical_reads_the_very_file_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    path = write_csv(tmp_path, 4).rename(tmp_path / "delays[1].csv")
    assert Empirical.from_file(path, "delay") == Empirical([4])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([3, -2], "column 'delay' of .*delays.csv must hold whole numbers >= 0, got -2 in row 2"),
        ([3, 4, 2.5], "must hold whole numbers >= 0, got 2.5 in row 3"),
        ([*range(500), 2.5], "got 2.5 in row 501"),
        ([3, "", 4], "got None in row 2"),
        ([3, "NaN"], "got nan in row 2"),
        (["3", "late"], "got values of type String"),
        ([NEVER], f"got {NEVER} in row 1"),
    ],
)
def test_empirical_says_which_row_is_wrong(tmp_path: Path, values: list[object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Empirical.from_file(write_csv(tmp_path, *values), "delay")


def test_empirical_refuses_files_it_cannot_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"path must be a file that exists, got "):
        Empirical.from_file(tmp_path / "none.csv", "delay")
    with pytest.raises(InvalidInputError, match=r"path must be a file called \.csv or \.parquet, got "):
        Empirical.from_file(tmp_path / "delays.xls", "delay")
    with pytest.raises(UnknownNameError, match="column must be one of 'episode', 'delay', got 'delays'"):
        Empirical.from_file(write_csv(tmp_path, 3), "delays")
    damaged = tmp_path / "delays.parquet"
    damaged.write_bytes(b"PAR1 not a table")
    with pytest.raises(DamagedFileError, match=r"delays\.parquet cannot be read"):
        Empirical.from_file(damaged, "delay")
    empty = tmp_path / "empty.csv"
    empty.touch()
    with pytest.raises(DamagedFileError, match=r"empty\.csv cannot be read"):
        Empirical.from_file(empty, "delay")
