"""The searches for the tuned settings of the paper's agents: of equal size for each, on seeds that no report uses."""

from __future__ import annotations

from belated.agents import DelayedLPSVI, DelayedPSVI, DelayedUCBVI, EpsilonGreedy
from belated.environments import RiverSwim
from belated.runner import Search, Space
from belated_studies.paper import figure_3
from belated_studies.paper.agents import SIGMAS
from belated_studies.paper.setting import FULL, POISSON, synthetic
from belated_studies.searching import RIDGES, RUNGS, grid

SCALES = grid(0.5, 64, 12)


def synthetic_search() -> Search:
    """Return the search on the synthetic MDP of Figure 1."""
    return Search(
        name="synthetic",
        environment=synthetic(100),
        delay=POISSON,
        spaces={
            **{
                f"psvi-{sigma}": Space(DelayedPSVI(noise=sigma), {"scale": SCALES, "ridge": RIDGES}) for sigma in SIGMAS
            },
            **_langevin(0.1, grid(0.1, 1000, 6)),
            "ucbvi": Space(DelayedUCBVI(), {"bonus_ratio": grid(0.001, 1, 12), "ridge": RIDGES}),
            "epsilon-greedy": Space(EpsilonGreedy(), {"epsilon": grid(0.001, 1, 12), "ridge": RIDGES}),  # for the demo
        },
        rungs=RUNGS,
        report_seeds=range(FULL.seeds),
    )


def riverswim_search() -> Search:
    """Return the search on RiverSwim."""
    return Search(
        name="riverswim",
        environment=RiverSwim(),
        delay=figure_3.DELAYS["poisson"],
        spaces={
            "psvi": Space(DelayedPSVI(noise=0.3), {"scale": SCALES, "ridge": RIDGES}),
            **_langevin(0.3, grid(0.001, 100, 6)),
            "ucbvi": Space(
                DelayedUCBVI(),
                {"bonus_ratio": grid(0.0001, 0.1, 6), "bonus_form": ["constant", "growing"], "ridge": RIDGES},
            ),
        },
        rungs=RUNGS,
        report_seeds=range(FULL.seeds),
    )


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
