"""Distributions of delays that the tests share."""

from __future__ import annotations

from typing import Any

from belated.delays import (
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

THREE = Multinomial([10, 20, 30], [0.2, 0.5, 0.3])
RANDOM: list[IndependentDelays] = [
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
INDEPENDENT: list[IndependentDelays] = [*RANDOM, Lossy(Constant(2), 0), Lossy(Constant(2), 1)]
TIME_VARYING: list[DelayDistribution] = [
    Periodic(24),
    Periodic(7, Lossy(Geometric(9), 0.2), offset=3),
    Periodic(5, Bursts(Constant(0), Uniform(5, 40), begin=0.05, end=0.2)),
    Outages([[100, 350], [20, 30]], Poisson(4)),
    Outages([[3, 9]], Backlog(Geometric(4), rate=5)),
    Drift(Poisson(2), NegativeBinomial(40, 2), start=50, end=300),
    Drift(Constant(3), Lossy(Pareto(1, 5), 0.1), start=0, end=100),
    Bursts(Geometric(1), Poisson(60), begin=0.02, end=0.1),
    Bursts(Constant(0), Lossy(Constant(9), 0.5), begin=1, end=0.5),
    Backlog(Geometric(9), rate=10),
    Backlog(Pareto(1.5, 1), rate=4),
]
EVERY: list[DelayDistribution] = [*INDEPENDENT, Fixed([4, NEVER, 0]), *TIME_VARYING]


def by_label(distribution: object) -> str:
    return distribution.label if isinstance(distribution, DelayDistribution) else ""


def arriving(delays: Any) -> Any:
    return delays[delays < NEVER]
