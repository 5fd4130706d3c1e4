"""Distributions by name and from plain values."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from delay_distributions import EVERY, by_label

from belated.delays import (
    DELAYS,
    Constant,
    DelayDistribution,
    Empirical,
    Fixed,
    Geometric,
    Lossy,
    Mixture,
    Multinomial,
    NegativeBinomial,
    Pareto,
    Poisson,
    Uniform,
    delay_from_dict,
)
from belated.errors import InvalidInputError, UnknownNameError


@pytest.mark.parametrize(
    ("distribution", "label"),
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
def test_label(distribution: DelayDistribution, label: str) -> None:
    assert distribution.label == label


@pytest.mark.parametrize("distribution", EVERY, ids=by_label)
def test_plain_values_bring_the_distribution_back(distribution: DelayDistribution) -> None:
    back = delay_from_dict(json.loads(json.dumps(distribution.to_dict())))
    assert back == distribution
    assert hash(back) == hash(distribution)


def test_every_distribution_is_registered_under_its_name() -> None:
    by_outcome = {"byaction", "byreward"}  # see test_outcome.py
    assert {distribution.to_dict()["distribution"] for distribution in EVERY} == set(DELAYS) - by_outcome
    assert all(cls.__name__.removeprefix("Delay").lower() == name for name, cls in DELAYS.items())


def test_distribution_from_toml() -> None:
    text = """
    distribution = "lossy"
    missing = 0.1
    of = { distribution = "mixture", weights = [0.5, 0.5], components = [
        { distribution = "poisson", mean = 50 }, { distribution = "pareto", shape = 1, scale = 500 } ] }
    """
    assert delay_from_dict(tomllib.loads(text)) == Lossy(Mixture([Poisson(50), Pareto(1, 500)], [0.5, 0.5]), 0.1)


def test_distribution_from_dict_suggests_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match="got 'posson'; did you mean 'poisson'"):
        delay_from_dict({"distribution": "posson", "mean": 50})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"distribution": "poisson", "maen": 50},
            "poisson has no setting 'maen'; its settings are: mean; did you mean 'mean'",
        ),
        (
            {"distribution": "poisson"},
            "poisson needs the setting 'mean'",
        ),
        ({"distribution": "lossy", "missing": 0.1}, "lossy needs the setting 'of'"),
        ({"distribution": "lossy", "of": 3, "missing": 0.1}, "of must be a delay distribution, got 3"),
        (
            {"distribution": "lossy", "of": {"distribution": "poisson"}, "missing": 0.1},
            "poisson needs the setting 'mean'",
        ),
        ({"mean": 50}, "the delay must be a table such as .*, got {'mean': 50}"),
        ("poisson", "the delay must be a table such as .*, got 'poisson'"),
    ],
)
def test_distribution_from_dict_names_the_wrong_field(values: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        delay_from_dict(values)
