"""Laws of delays that the tests share."""

from __future__ import annotations

from typing import Any

from belated.delays import (
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
    Uniform,
)

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
