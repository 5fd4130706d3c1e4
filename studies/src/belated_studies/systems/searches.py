"""The searches for the settings of the systems: of equal size for each, on seeds that no report uses.

Bandits are searched on another instance than the one that is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from belated.agents import (
    DelayedDAPO,
    DelayedOFU,
    DelayedOPPO,
    DelayedPSLB,
    DelayedPSVI,
    OTFLinTS,
    OTFLinUCB,
    TabularUCBVI,
)
from belated.delays import DelayDistribution, OutcomeDelays, Poisson
from belated.environments import AdversarialMDP, Chain, FiniteMDP
from belated.runner import Rung, Search, Space
from belated_studies.searching import RIDGES, RUNGS, grid
from belated_studies.systems.testbeds import (
    FULL,
    NOISE,
    PERIOD,
    SILENT,
    TOLD,
    WINDOW,
    bandit,
    conversions,
    late,
)

#: All of the rounds that are reported, on many seeds: who explores too little is found out late, and on few of them.
BANDIT_RUNGS = (
    Rung(episodes=FULL.rounds, seeds=range(1000, 1030), keep=3),
    Rung(episodes=FULL.rounds, seeds=range(1030, 1130), keep=1),
)
PSLB = Space(DelayedPSLB(noise=NOISE), {"scale": grid(0.1, 2, 6)})
OFU = Space(DelayedOFU(noise=NOISE), {"bonus_scale": grid(0.03, 1, 6)})


def linear_bandit() -> Search:
    """Return the search on the linear bandit."""
    langevin = Space(DelayedPSLB(noise=NOISE, sampler="plain"), {"scale": grid(0.1, 2, 6)})
    spaces = {"pslb": PSLB, "pslb-langevin": langevin, "ofu": OFU}
    return _search("linear-bandit", bandit(10, seed=1), late(250), spaces, BANDIT_RUNGS)


def on_the_fly() -> Search:
    """Return the search of those that count every play as a zero until it converts."""
    spaces = {
        "otf-linucb": Space(OTFLinUCB(window=WINDOW), {"scale": grid(0.001, 1, 6)}),
        "otf-lints": Space(OTFLinTS(window=WINDOW), {"scale": grid(0.001, 1, 6)}),
    }
    return _search("conversions", conversions(seed=1), SILENT, spaces, BANDIT_RUNGS)


def waiting() -> Search:
    """Return the search of those that wait for the outcome, where they are told of zeros."""
    return _search("waiting", conversions(seed=1), TOLD, {"pslb": PSLB, "ofu": OFU}, BANDIT_RUNGS)


def chain() -> Search:
    """Return the search on a chain."""
    spaces = {
        "tabular-ucbvi": _counting(0.0001, 0.03),
        "psvi": Space(DelayedPSVI(noise=0.1), {"scale": grid(0.02, 1, 6), "ridge": RIDGES}),
    }
    return _search("chain", Chain(10), Poisson(200), spaces, RUNGS)


def adversarial() -> Search:
    """Return the search against an adversary that switches."""
    oppo = {"step_size": grid(0.01, 0.3, 4), "exploration": [0.02, 0.05, 0.1]}
    dapo = {"step_size": [0.01, 0.03, 0.1], "exploration": [0.02, 0.05], "bonus_scale": [0.1, 1.0]}
    spaces = {
        "oppo": Space(DelayedOPPO(confidence=0.01), oppo),
        "dapo": Space(DelayedDAPO(confidence=0.01), dapo),
        "tabular-ucbvi": _counting(0.0003, 0.1),
        "psvi": Space(DelayedPSVI(noise=0.3), {"scale": grid(0.2, 10, 6), "ridge": RIDGES}),
    }
    switching = AdversarialMDP(adversary="switching", period=PERIOD, seed=1)
    return _search("adversarial", switching, Poisson(50), spaces, RUNGS)


def _search(
    name: str,
    world: FiniteMDP,
    delay: DelayDistribution | OutcomeDelays,
    spaces: Mapping[str, Space],
    rungs: Sequence[Rung],
) -> Search:
    return Search(name, world, delay, spaces, rungs, report_seeds=range(FULL.seeds))


def _counting(low: float, high: float) -> Space:
    forms = ["hoeffding", "bernstein"]
    return Space(TabularUCBVI(episodes=5000), {"bonus_form": forms, "bonus_scale": grid(low, high, 6)})
