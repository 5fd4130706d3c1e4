"""The hyper-parameter searches: one of equal size for each agent, on seeds that no report uses."""

from __future__ import annotations

import numpy as np

from belated.algorithms import (
    DelayedDAPO,
    DelayedLPSVI,
    DelayedOFU,
    DelayedOPPO,
    DelayedPSLB,
    DelayedPSVI,
    DelayedUCBVI,
    OTFLinTS,
    OTFLinUCB,
    TabularUCBVI,
)
from belated.delays import Poisson
from belated.environments import AdversarialMDP, Chain, RiverSwim, SyntheticLinearMDP
from belated.experiments import systems
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

#: The same for the study of systems, which reports more seeds.
SYSTEM_SEEDS = tuple(range(30))
BANDIT_RUNGS = (
    Rung(episodes=5000, seeds=range(1000, 1003), keep=3),
    Rung(episodes=20_000, seeds=range(1003, 1011), keep=1),
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


def _counting(low: float, high: float) -> Space:
    forms = ["hoeffding", "bernstein"]
    return Space(TabularUCBVI(episodes=5000), {"bonus_form": forms, "bonus_scale": _grid(low, high, 6)})


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
    # The study of systems. Bandits are searched on another instance than the one that is reported.
    "linear-bandit": Search(
        name="linear-bandit",
        environment=systems.bandit(10, seed=1),
        delay=systems.late(250),
        spaces={
            "pslb": Space(DelayedPSLB(noise=systems.NOISE), {"scale": _grid(0.1, 2, 6)}),
            "pslb-langevin": Space(DelayedPSLB(noise=systems.NOISE, sampler="plain"), {"scale": _grid(0.1, 2, 6)}),
            "ofu": Space(DelayedOFU(noise=systems.NOISE), {"bonus_scale": _grid(0.03, 1, 6)}),
        },
        rungs=BANDIT_RUNGS,
        report_seeds=SYSTEM_SEEDS,
    ),
    "conversions": Search(
        name="conversions",
        environment=systems.conversions(seed=1),
        delay=systems.SILENT,
        spaces={
            "otf-linucb": Space(OTFLinUCB(window=systems.WINDOW), {"scale": _grid(0.001, 1, 6)}),
            "otf-lints": Space(OTFLinTS(window=systems.WINDOW), {"scale": _grid(0.001, 1, 6)}),
        },
        rungs=BANDIT_RUNGS,
        report_seeds=SYSTEM_SEEDS,
    ),
    "waiting": Search(
        name="waiting",
        environment=systems.conversions(seed=1),
        delay=systems.TOLD,
        spaces={
            "pslb": Space(DelayedPSLB(noise=systems.NOISE), {"scale": _grid(0.1, 2, 6)}),
            "ofu": Space(DelayedOFU(noise=systems.NOISE), {"bonus_scale": _grid(0.03, 1, 6)}),
        },
        rungs=BANDIT_RUNGS,
        report_seeds=SYSTEM_SEEDS,
    ),
    "chain": Search(
        name="chain",
        environment=Chain(10),
        delay=Poisson(200),
        spaces={
            "tabular-ucbvi": _counting(0.0001, 0.03),
            "psvi": Space(DelayedPSVI(noise=0.1), {"scale": _grid(0.02, 1, 6), "ridge": RIDGES}),
        },
        rungs=RUNGS,
        report_seeds=SYSTEM_SEEDS,
    ),
    "adversarial": Search(
        name="adversarial",
        environment=AdversarialMDP(adversary="switching", period=systems.PERIOD, seed=1),
        delay=Poisson(50),
        spaces={
            "oppo": Space(
                DelayedOPPO(confidence=0.01), {"step_size": _grid(0.01, 0.3, 4), "exploration": [0.02, 0.05, 0.1]}
            ),
            "dapo": Space(
                DelayedDAPO(confidence=0.01),
                {"step_size": [0.01, 0.03, 0.1], "exploration": [0.02, 0.05], "bonus_scale": [0.1, 1.0]},
            ),
            "tabular-ucbvi": _counting(0.0003, 0.1),
            "psvi": Space(DelayedPSVI(noise=0.3), {"scale": _grid(0.2, 10, 6), "ridge": RIDGES}),
        },
        rungs=RUNGS,
        report_seeds=SYSTEM_SEEDS,
    ),
}
