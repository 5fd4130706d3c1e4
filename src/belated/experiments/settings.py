"""The agents of the paper's experiments: with its printed hyper-parameters, and with tuned ones."""

from __future__ import annotations

from importlib import resources
from math import sqrt
from pathlib import Path

from belated.algorithms import DelayedLPSVI, DelayedPSVI, DelayedUCBVI, Settings
from belated.runner.tuning import load_winners

#: The synthetic MDP has d = 10 and H = 20, so ν = √d·H.
PAPER_SCALE = sqrt(10) * 20

SIGMAS = (0.3, 0.2, 0.1)


def literal_synthetic() -> dict[str, Settings]:
    """Return the agents of the synthetic MDP as the paper prints their hyper-parameters.

    Which "previous sample" warm-starts a chain is left open. Read as the sample of the step above, the printed numbers
    come closest to the published ones in RiverSwim; the study of open details compares both readings.
    """
    psvi = {f"psvi-{sigma}": DelayedPSVI(draws=2, scale=PAPER_SCALE, noise=sigma) for sigma in SIGMAS}
    return {
        **psvi,
        "lpsvi": DelayedLPSVI(draws=2, steps=40, temperature=0.02, step_ratio=0.5, warm_start="step"),
        "ucbvi": DelayedUCBVI(bonus_ratio=0.1),
    }


def literal_riverswim() -> dict[str, Settings]:
    """Return the agents of RiverSwim as the paper prints them: γ = c_γ²·d·M·H² with c_γ = 0.005."""
    temperature = 0.005**2 * 10 * 2 * 20**2
    return {
        "psvi": DelayedPSVI(draws=2, scale=1.0, noise=1.13),
        "lpsvi": DelayedLPSVI(draws=2, steps=40, temperature=temperature, step_ratio=0.5, warm_start="step"),
        "ucbvi": DelayedUCBVI(bonus_ratio=0.04, bonus_form="growing"),
    }


def tuned(search: str) -> dict[str, Settings]:
    """Return the winners of the committed search `search`."""
    with resources.as_file(resources.files("belated.studies") / "tuned" / search / "winners.json") as path:
        return load_winners(Path(path))


def three_agents(agents: dict[str, Settings]) -> dict[str, Settings]:
    """Return the agents of Figure 1 and Table 2: PSVI with σ = 0.1, LPSVI and UCBVI."""
    return {"psvi": agents["psvi-0.1"], "lpsvi": agents["lpsvi"], "ucbvi": agents["ucbvi"]}
