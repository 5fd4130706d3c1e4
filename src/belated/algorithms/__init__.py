"""One algorithm, one file, one shape."""

from belated.algorithms.agent import Learner, Settings
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
from belated.algorithms.registry import ALGORITHMS, algorithm_from_dict
from belated.algorithms.saving import load_agent, save_agent
from belated.algorithms.tabular_ucbvi import TabularUCBVI
from belated.algorithms.ucbvi import DelayedUCBVI

__all__ = [
    "ALGORITHMS",
    "BOLD",
    "QPMD",
    "AutoPSVI",
    "DelayedDAPO",
    "DelayedLPSVI",
    "DelayedOFU",
    "DelayedOPPO",
    "DelayedPHE",
    "DelayedPSLB",
    "DelayedPSRL",
    "DelayedPSVI",
    "DelayedUCBVI",
    "EpsilonGreedy",
    "FixedPolicy",
    "Greedy",
    "Learner",
    "MultiBatch",
    "OTFLinTS",
    "OTFLinUCB",
    "RandomPolicy",
    "RareSwitching",
    "Settings",
    "TabularUCBVI",
    "algorithm_from_dict",
    "load_agent",
    "save_agent",
]
