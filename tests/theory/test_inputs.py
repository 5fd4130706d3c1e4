"""What every bound refuses."""

from __future__ import annotations

from typing import Any

import pytest

from belated import Bursts, DelayDistribution, Fixed, InvalidInputError, Lossy, Pareto, Periodic, Poisson, theory


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dimension": 0}, "dimension must be an integer >= 1"),
        ({"horizon": 2.5}, "horizon must be an integer"),
        ({"episodes": 2**60}, "episodes must be an integer >= 1 and <= 9007199254740992"),
        ({"delta": 0.0}, "delta must be a finite number > 0 and < 1"),
        ({"delta": 1.0}, "delta must be a finite number > 0 and < 1"),
    ],
)
def test_bad_sizes_are_refused(change: dict[str, Any], message: str) -> None:
    sizes: dict[str, Any] = {"dimension": 2, "horizon": 2, "episodes": 2, "delta": 0.1, **change}
    quantities = (theory.psvi_concentration, theory.psvi_beta, theory.temperature, theory.chain_length)
    for quantity in quantities:
        with pytest.raises(InvalidInputError, match=message):
            quantity(**sizes)


@pytest.mark.parametrize("distribution", [Pareto(shape=1, scale=5), Pareto(3, 5), Lossy(Poisson(3), 0.1)])
def test_distributions_without_sub_exponential_tails_are_refused(distribution: DelayDistribution) -> None:
    for refused in (
        lambda: theory.delay_bound(distribution, 10, 0.1),
        lambda: theory.missing_bound(distribution, 10, 0.1),
        lambda: theory.delayed_error_bound(2, 2, 10, 0.1, distribution),
        lambda: theory.bounds(2, 2, 10, 0.1, distribution),
    ):
        with pytest.raises(InvalidInputError, match=f"sub-exponential tails.*{distribution.label} does not"):
            refused()


@pytest.mark.parametrize(
    "distribution", [Fixed([1, 2]), Periodic(24, Poisson(3)), Bursts(Poisson(3), Poisson(9), 0.1, 0.1)]
)
def test_distributions_whose_draws_are_not_alike_and_independent_are_refused(distribution: DelayDistribution) -> None:
    for refused in (
        lambda: theory.missing_bound(distribution, 10, 0.1),
        lambda: theory.bounds(2, 2, 10, 0.1, distribution),
    ):
        with pytest.raises(
            InvalidInputError, match=f"independent and identically distributed.*{distribution.label} is not"
        ):
            refused()


def test_what_is_no_distribution_is_refused() -> None:
    no_distribution: Any = 5
    for refused in (
        lambda: theory.delay_bound(no_distribution, 10, 0.1),
        lambda: theory.bandit_regret_bound(2, 10, 0.1, no_distribution),
    ):
        with pytest.raises(InvalidInputError, match="delay must be a delay distribution, got 5"):
            refused()
