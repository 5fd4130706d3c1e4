"""Every algorithm of the library by the name that specs and saved files use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from belated.algorithms.agent import Settings
from belated.algorithms.auto_psvi import AutoPSVI
from belated.algorithms.bold import BOLD
from belated.algorithms.dapo import DelayedDAPO
from belated.algorithms.epsilon_greedy import EpsilonGreedy
from belated.algorithms.fixed_policy import FixedPolicy
from belated.algorithms.greedy import Greedy
from belated.algorithms.lpsvi import DelayedLPSVI
from belated.algorithms.multi_batch import MultiBatch
from belated.algorithms.ofu import DelayedOFU
from belated.algorithms.oppo import DelayedOPPO
from belated.algorithms.otf import OTFLinTS, OTFLinUCB
from belated.algorithms.phe import DelayedPHE
from belated.algorithms.pslb import DelayedPSLB
from belated.algorithms.psrl import DelayedPSRL
from belated.algorithms.psvi import DelayedPSVI
from belated.algorithms.qpmd import QPMD
from belated.algorithms.random_policy import RandomPolicy
from belated.algorithms.rare_switching import RareSwitching
from belated.algorithms.tabular_ucbvi import TabularUCBVI
from belated.algorithms.ucbvi import DelayedUCBVI
from belated.validate import choice, refuse

ALGORITHMS: dict[str, type[Settings]] = {
    algorithm.kind: algorithm
    for algorithm in (
        AutoPSVI,
        DelayedPSVI,
        DelayedLPSVI,
        DelayedPHE,
        DelayedUCBVI,
        TabularUCBVI,
        DelayedPSRL,
        MultiBatch,
        DelayedPSLB,
        DelayedOFU,
        RareSwitching,
        OTFLinUCB,
        OTFLinTS,
        QPMD,
        BOLD,
        DelayedOPPO,
        DelayedDAPO,
        EpsilonGreedy,
        Greedy,
        RandomPolicy,
        FixedPolicy,
    )
}


def algorithm_from_dict(specification: Mapping[str, Any]) -> Settings:
    """Return the algorithm that `specification` describes, the inverse of `to_dict`.

    >>> algorithm_from_dict({"algorithm": "epsilon-greedy", "epsilon": 0.2})
    EpsilonGreedy(epsilon=0.2, ridge=1.0)
    """
    if not isinstance(specification, Mapping) or "algorithm" not in specification:
        raise refuse("the specification", specification, "a mapping with the field 'algorithm'")
    name = choice("algorithm", specification["algorithm"], ALGORITHMS)
    return ALGORITHMS[name].from_dict(dict(specification))
