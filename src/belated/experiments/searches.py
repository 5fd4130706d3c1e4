"""The hyper-parameter searches: one of equal size for each agent, on seeds that no report uses."""

from __future__ import annotations

import numpy as np

from belated.algorithms import DelayedLPSVI, DelayedPSVI, DelayedUCBVI
from belated.delays import Poisson
from belated.environments import RiverSwim, SyntheticLinearMDP
from belated.experiments.settings import SIGMAS
from belated.runner.tuning import Rung, Search, Space

#: Seeds of everything that is reported.
REPORT_SEEDS = tuple(range(10))

#: Weak candidates leave early; the last rung decides on seeds that the earlier ones did not see.
RUNGS = (
    Rung(episodes=2000, seeds=range(1000, 1003), keep=8),
    Rung(episodes=5000, seeds=range(1003, 1007), keep=3),
    Rung(episodes=5000, seeds=range(1007, 1017), keep=1),
)


def _grid(low: float, high: float, count: int) -> list[float]:
    """Return a logarithmic grid, rounded to three digits so that it can be quoted."""
    return [float(f"{value:.3g}") for value in np.geomspace(low, high, count)]


RIDGES = [1.0, 0.1]
SCALES = _grid(0.5, 64, 12)


def _langevin(noise: float, temperatures: list[float]) -> dict[str, Space]:
    return {
        "lpsvi": Space(
            DelayedLPSVI(noise=noise, warm_start="step"),
            {"temperature": temperatures, "ridge": RIDGES, "sampler": ["plain", "preconditioned"]},
        ),
        "lpsvi-plain": Space(
            DelayedLPSVI(noise=noise),
            {"temperature": temperatures, "ridge": RIDGES, "warm_start": ["episode", "step"]},
        ),
    }


SEARCHES: dict[str, Search] = {
    "synthetic": Search(
        name="synthetic",
        environment=SyntheticLinearMDP(actions=50),
        delay=Poisson(50),
        spaces={
            **{
                f"psvi-{sigma}": Space(DelayedPSVI(noise=sigma), {"scale": SCALES, "ridge": RIDGES}) for sigma in SIGMAS
            },
            **_langevin(0.1, _grid(0.1, 1000, 6)),
            "ucbvi": Space(DelayedUCBVI(), {"bonus_ratio": _grid(0.001, 1, 12), "ridge": RIDGES}),
        },
        rungs=RUNGS,
        report_seeds=REPORT_SEEDS,
    ),
    "riverswim": Search(
        name="riverswim",
        environment=RiverSwim(),
        delay=Poisson(5),
        spaces={
            "psvi": Space(DelayedPSVI(noise=0.3), {"scale": SCALES, "ridge": RIDGES}),
            **_langevin(0.3, _grid(0.001, 100, 6)),
            "ucbvi": Space(
                DelayedUCBVI(),
                {"bonus_ratio": _grid(0.0001, 0.1, 6), "bonus_form": ["constant", "growing"], "ridge": RIDGES},
            ),
        },
        rungs=RUNGS,
        report_seeds=REPORT_SEEDS,
    ),
}
