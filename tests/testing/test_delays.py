"""Every distribution of the registry keeps the contract, and each check finds a distribution that breaks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from delay_distributions import EVERY

from belated.delays import (
    DELAYS,
    NEVER,
    Constant,
    DelayByAction,
    DelayByReward,
    DelayDistribution,
    Fixed,
    Geometric,
    IndependentDelays,
    Lossy,
    OutcomeDelays,
    Poisson,
    SubExponential,
)
from belated.testing import _delays as testing
from belated.types import Floats, Ints

BY_OUTCOME: list[OutcomeDelays] = [
    DelayByAction([Constant(3), Lossy(Geometric(5), 0.25)]),
    DelayByReward(zero=Constant(20), positive=Poisson(4)),
]


@pytest.mark.parametrize("check", testing.DELAY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("distribution", [*EVERY, *BY_OUTCOME], ids=lambda distribution: distribution.label)
def test_every_distribution_conforms(distribution: DelayDistribution | OutcomeDelays, check: testing.Check) -> None:
    check(distribution)


def test_every_distribution_is_checked() -> None:
    assert {type(distribution) for distribution in [*EVERY, *BY_OUTCOME]} == set(DELAYS.values())


@dataclass(frozen=True)
class Good(DelayDistribution):
    """Two in three episodes are late."""

    late: int = 5
    mean: float = 10 / 3

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        rng.random(count)
        return np.where((first + np.arange(count)) % 3 == 0, 0, self.late).astype(np.int64), None


class Halves(Good):
    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        return rng.random(count), None  # type: ignore[return-value]


class Bare(Good):
    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        return np.zeros(count, np.int64)  # type: ignore[return-value]


class Negative(Good):
    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        return np.full(count, -1), None


class TooMany(Good):
    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        return np.zeros(count + 1, np.int64), None


class RemembersAnArray(Good):
    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        return np.zeros(count, np.int64), np.zeros(3)


class Secretive(Good):
    asked: ClassVar[list[int]] = [0]

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        self.asked[0] += count
        return np.full(count, self.asked[0]), None


class Unseeded(Good):
    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        return np.random.default_rng().integers(0, 1000, count), None


class ForgetsTheTime(Good):
    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        return np.arange(count), None


class ForgetsTheState(Good):
    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        return np.cumsum(rng.integers(0, 3, count)), None


class TakesNumbersAsItLikes(Good):
    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        rng.random(4096)
        return rng.integers(0, 100, count), None


class Nameless(Good):
    label = " "


class ClaimsTheory(Good):
    def subexponential(self) -> SubExponential:
        return SubExponential(1.0, 1.0)


@dataclass(frozen=True)
class WithoutMean(DelayDistribution):
    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        return np.zeros(count, np.int64), None


class LosesAField(Good):
    def to_dict(self) -> dict[str, Any]:
        return {"distribution": super().to_dict()["distribution"]}


@dataclass(frozen=True)
class Coin(IndependentDelays):
    """0 or 1, alike."""

    mean: float = 0.5

    @property
    def support(self) -> tuple[int, int]:
        return 0, 1

    def cdfs(self, n: Ints) -> Floats:
        return np.where(n >= 1, 1.0, 0.5)


class Falling(Coin):
    def cdfs(self, n: Ints) -> Floats:
        return np.where(n > 5, 0.9, 1.0)


class BeyondOne(Coin):
    def cdfs(self, n: Ints) -> Floats:
        return np.where(n >= 1, 1.5, 0.5)


class ShortSupport(Coin):
    @property
    def support(self) -> tuple[int, int]:
        return 0, 0


class LateSupport(Coin):
    @property
    def support(self) -> tuple[int, int]:
        return 1, 1


class OwnQuantiles(Coin):
    def quantiles(self, q: Floats) -> Ints:
        return np.full(q.shape, 1)


class OwnDraws(Coin):
    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        return rng.integers(0, 2, count), None


class LightTail(Coin):
    def subexponential(self) -> SubExponential:
        return SubExponential(0.1, 0.0)


@pytest.mark.parametrize(
    "distribution", [Good(), Coin(), Fixed([3, NEVER])], ids=lambda distribution: distribution.label
)
def test_good_distributions_of_ones_own_pass(distribution: DelayDistribution) -> None:
    testing.check_delay(distribution)


@pytest.mark.parametrize(
    ("distribution", "check", "message"),
    [
        (Halves(), testing.draws_integer_delays, "delays must be 64-bit integers, got float64"),
        (Bare(), testing.draws_integer_delays, "draw must return a pair of delays and state, got ndarray"),
        (Negative(), testing.draws_integer_delays, "delays must be at least 0, got -1"),
        (TooMany(), testing.draws_integer_delays, r"delays must have shape \(400,\), got \(401,\)"),
        (RemembersAnArray(), testing.draws_integer_delays, "the state must be plain values that JSON can hold"),
        (Secretive(), testing.same_seed_same_delays, "draw must not change the distribution"),
        (Unseeded(), testing.same_seed_same_delays, "delays differ between two draws"),
        (ForgetsTheTime(), testing.splitting_draws_changes_nothing, "use `first`"),
        (
            ForgetsTheState(),
            testing.splitting_draws_changes_nothing,
            "delays drawn 1 at a time differ from those drawn at once",
        ),
        (
            TakesNumbersAsItLikes(),
            testing.splitting_draws_changes_nothing,
            "use the same random numbers for each episode",
        ),
        (Nameless(), testing.has_a_label_and_a_mean, "label must not be empty"),
        (WithoutMean(), testing.has_a_label_and_a_mean, "mean must be a float .*got None"),
        (Good(mean=-1.0), testing.has_a_label_and_a_mean, "mean must be at least 0, got -1.0"),
        (ClaimsTheory(), testing.has_a_label_and_a_mean, "only an IndependentDelays has sub-exponential parameters"),
        (LosesAField(late=7), testing.survives_a_round_trip, "delays differ after a round trip"),
        (Falling(), testing.cdfs_mean_and_draws_agree, "cdfs must not decrease"),
        (BeyondOne(), testing.cdfs_mean_and_draws_agree, r"cdfs must lie in 0\.\.1"),
        (ShortSupport(), testing.cdfs_mean_and_draws_agree, "cdfs must be 1 at 0, the maximum of support"),
        (LateSupport(), testing.cdfs_mean_and_draws_agree, "cdfs must be 0 below 1, the minimum of support"),
        (OwnQuantiles(), testing.cdfs_mean_and_draws_agree, "quantiles do not invert cdfs"),
        (OwnDraws(), testing.cdfs_mean_and_draws_agree, "draws must be the quantiles"),
        (Coin(mean=0.4), testing.cdfs_mean_and_draws_agree, "mean must be at least 0.5, got 0.4"),
        (Coin(mean=0.6), testing.cdfs_mean_and_draws_agree, "mean must be 0.5, got 0.6"),
        (LightTail(), testing.has_the_tail_it_claims, "does not hold at g = "),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, DelayDistribution) else getattr(each, "__name__", ""),
)
def test_each_check_finds_a_distribution_that_breaks_it(
    distribution: DelayDistribution, check: testing.Check, message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        check(distribution)
    with pytest.raises(AssertionError):
        testing.check_delay(distribution)
